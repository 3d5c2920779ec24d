"""The machine: lease, loop, cache. Phases do the work."""
