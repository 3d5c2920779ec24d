"""Benchwright from a program: the client of API v1, and the check of receipts."""
