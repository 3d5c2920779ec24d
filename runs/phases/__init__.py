"""Phases: one file each, in the order of `table`."""
