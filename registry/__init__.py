"""Benchmarks, subsets, impls: what is measured. Versions never change."""
