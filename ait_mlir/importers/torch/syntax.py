"""Parts of Python's syntax trees, for conversions of functions (`loop_code.py`, `choice_code.py`)."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence


def statements(text: str, at: ast.AST) -> list[ast.stmt]:
    """The statements in `text`, with the source location of `at`."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        ast.copy_location(node, at)
    return tree.body


def copied(node: ast.stmt) -> ast.stmt:
    """A copy of a statement, with its source location."""
    made = ast.parse(ast.unparse(node)).body[0]
    for inner in ast.walk(made):
        ast.copy_location(inner, node)
    return made


def tuple_of(names: Sequence[str]) -> str:
    """The text of a tuple of variables."""
    return f"({''.join(f'{name}, ' for name in names)})"


def identifiers(tree: ast.AST) -> Iterable[str]:
    """The names of variables and attributes in a tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def variables_set(body: Iterable[ast.AST]) -> set[str]:
    """The variables that statements set."""
    return {name for statement in body for name, is_set in variables(statement) if is_set}


def variables(node: ast.AST) -> Iterable[tuple[str, bool]]:
    """The variables that a statement or expression reads (False) or sets (True), except variables of comprehensions."""
    own = {n for inner in ast.walk(node) if isinstance(inner, ast.comprehension) for n in stored_in(inner.target)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id not in own:
            yield inner.id, isinstance(inner.ctx, ast.Store)


def stored_in(target: ast.AST) -> set[str]:
    """The variables that a target of an assignment sets."""
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


__all__ = ["copied", "identifiers", "statements", "stored_in", "tuple_of", "variables", "variables_set"]
