"""The one writer of `ait`, which front ends and rewrites share."""
