"""Accounts, keys, the ledger: who pays."""
