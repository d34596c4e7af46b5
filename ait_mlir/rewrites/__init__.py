"""Declarative rewrites: a family has its patterns, constraints and natives together; `engine` is the language."""
