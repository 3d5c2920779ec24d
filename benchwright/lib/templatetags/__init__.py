"""Template tags that every app's pages use."""
