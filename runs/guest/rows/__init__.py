"""From source files to canonical rows: opening, formats, and what to say about them. Standard library only."""
