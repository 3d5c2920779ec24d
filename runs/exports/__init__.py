"""A run's results for other tools."""
