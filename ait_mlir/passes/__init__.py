"""Passes not written as patterns, and the tables of passes and phases."""
