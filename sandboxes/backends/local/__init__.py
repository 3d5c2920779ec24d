"""The local backend: bubblewrap boxes owned by one daemon, sandboxd."""
