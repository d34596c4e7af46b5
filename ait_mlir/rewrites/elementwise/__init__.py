"""Rewrites of the family `elementwise`."""
