"""Whole models and programs, each run by `tests/examples`."""
