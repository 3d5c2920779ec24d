"""The scorer at work: outside here, inside in runs/guest."""
