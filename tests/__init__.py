"""Tests, by what they need: unit, db, flows, sandbox, contracts, browser."""
