"""Runs: from the launch form to the receipt, every step in the log."""
