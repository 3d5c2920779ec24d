"""API v1 of runs."""
