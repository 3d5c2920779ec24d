"""The Driver: what reads a benchmark and writes its scorer."""
