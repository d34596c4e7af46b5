"""Queries of this machine: its CPU, its card, its files, its environment."""
