"""Every test checks something: it asserts, expects an error, or calls what does."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = Path(__file__).parent
CHECKING = ("assert", "check", "raises", "fail", "expect", "refuse")
"""What a call is named that checks."""


def functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def name_of(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def checks(function: ast.FunctionDef, others: dict[str, ast.FunctionDef], seen: frozenset[str] = frozenset()) -> bool:
    """Whether a function of a file has a check, itself or in another function of the file that it calls."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if isinstance(node, ast.Call):
            name = name_of(node)
            if any(word in name for word in CHECKING):
                return True
            if name in others and name not in seen and checks(others[name], others, seen | {name}):
                return True
    return False


def test_every_test_checks_something() -> None:
    without: list[str] = []
    for path in sorted(FOLDER.rglob("test_*.py")):
        found = functions(ast.parse(path.read_text()))
        without += [
            f"{path.relative_to(FOLDER)}:{function.lineno}: {name}"
            for name, function in found.items()
            if name.startswith("test_") and not checks(function, found)
        ]
    assert not without, "tests without a check:\n" + "\n".join(without)
