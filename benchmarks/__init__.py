"""Load tests and their tools: run by hand, figures in docs."""
