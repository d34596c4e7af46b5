"""Benchmarks: each prints a table, says how it measured, and writes its rows with `--save` (record.py)."""
