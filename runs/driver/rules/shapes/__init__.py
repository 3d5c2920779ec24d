"""One file for each shape of task. `match(table, hints)` gives a Match, a CannotTell, or None: not this shape."""
