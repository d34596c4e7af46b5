"""Every test checks something: it asserts, expects an error, or calls what does. Every definition has a user."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
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


DOCUMENTED = ("compiler", "testing", "utils", "backend")
"""Packages whose names are for users of AITemplate's import paths."""
ONLY_TESTED = {"patterns_of": "tests of patterns and `make mutate` take the patterns of a pass"}
USERS = ("ait_mlir", "benchmarks", "examples", "docs")
OF_USERS = ("ait_mlir/frontend/ops/", "ait_mlir/frontend/nn/")
"""Folders whose files list in `__all__` the names for users."""
WORD = re.compile(r"[A-Za-z_]\w*")


def definitions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Name and line of the functions, classes and constants of a file; a decorator is a user."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if not node.decorator_list:
                yield node.name, node.lineno
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, node.lineno) for target in targets if isinstance(target, ast.Name))


def without_users(files: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    """`FILE:LINE: NAME` for each definition of `files` that neither they nor `texts` mention elsewhere."""
    words = Counter(word for text in (*files.values(), *texts.values()) for word in WORD.findall(text))
    found: list[str] = []
    for file, text in files.items():
        for name, line in definitions(ast.parse(text)):
            listed = text.count(f'"{name}"')  # in `__all__`
            if listed and file.startswith(OF_USERS):
                continue
            if words[name] - listed <= 1 and not name.startswith("__") and name not in ONLY_TESTED:
                found.append(f"{file}:{line}: {name}")
    return found


def test_every_definition_has_a_user() -> None:
    root = FOLDER.parent
    paths = [
        path for name in USERS for path in sorted((root / name).rglob("*")) if path.suffix in (".py", ".md", ".j2")
    ]
    texts = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in paths}
    texts["pyproject.toml"] = (root / "pyproject.toml").read_text(encoding="utf-8")
    documented = tuple(f"ait_mlir/{name}/" for name in DOCUMENTED)
    ours = {
        file: text
        for file, text in texts.items()
        if file.startswith("ait_mlir/") and file.endswith(".py") and not file.startswith(documented)
    }
    unused = without_users(ours, {file: text for file, text in texts.items() if file not in ours})
    assert not unused, "no file but tests mentions these; use or remove them:\n" + "\n".join(unused)


def test_a_definition_without_a_user_is_named() -> None:
    file = "def used() -> int:\n    return 1\n\n\ndef unused() -> int:\n    return used()\n\n\nLEFT = 2\n"
    assert without_users({"a.py": file}, {}) == ["a.py:5: unused", "a.py:9: LEFT"]
    assert without_users({"a.py": file}, {"b.md": "`unused` and `LEFT`"}) == []
