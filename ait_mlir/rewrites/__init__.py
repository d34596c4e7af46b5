"""Declarative rewrites: each family keeps its patterns, constraints and natives together; `engine` is the language."""
