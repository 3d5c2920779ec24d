"""Verbs: each checks, changes rows and appends events in one transaction, and starts work on commit."""
