"""Declarative rewrites: one file a family of patterns; `engine` holds the pattern language and its compiler."""
