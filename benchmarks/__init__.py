"""Benchmarks: each prints a table and says how it measured."""
