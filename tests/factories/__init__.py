"""Makers of rows: set only what the test is about."""
