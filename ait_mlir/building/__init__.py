"""The writer of `ait` ops that front ends and rewrites share."""
