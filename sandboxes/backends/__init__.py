"""Backends: one interface, and one folder or file for each place where sandboxes run."""
