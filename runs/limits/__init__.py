"""Ceilings: parsed, watched, and the one way a run stops."""
