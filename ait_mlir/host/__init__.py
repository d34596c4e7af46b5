"""The machine that we are on: its CPU, its files."""
