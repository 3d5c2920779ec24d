"""`builtin://rules`: a Driver without a model. Pure: rows in, a scorer and its references out, the same each time."""
