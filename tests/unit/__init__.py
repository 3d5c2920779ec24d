"""Pure tests: no database, no network, no processes."""
