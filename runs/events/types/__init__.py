"""Every event type; `union` lists them all."""
