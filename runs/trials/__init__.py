"""Several tries of one task: how many, and what they come to. Pure."""
