"""Fingerprints: one question each."""
