"""Events in, state out."""
