"""Pages of a run: parse the request, ask one query or call one action, render."""
