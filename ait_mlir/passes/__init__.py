"""Passes that are no patterns, and the tables of passes and phases."""
