"""What runs inside a work sandbox: standard library only, Python 3.9+, never imported by the server."""
