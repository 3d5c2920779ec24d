"""Sandboxes: six roles, three backends, the model proxy and the host policy."""
