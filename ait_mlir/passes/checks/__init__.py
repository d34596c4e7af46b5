"""Checks that share no code with the passes that they check."""
