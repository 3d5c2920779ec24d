"""Tests that need real isolation: they start a daemon of their own."""
