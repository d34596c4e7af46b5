"""Benchmarks: each prints a table and says how it measured; most write their rows with `--save` (record.py)."""
