"""Benchwright: a score you can believe and check."""
