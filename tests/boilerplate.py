"""Counts the boilerplate of a family of ops by file: what it needs before it says anything of its own.

    python -m tests.boilerplate cumulative           # a family with all its operators
    python -m tests.boilerplate cumulative cumsum    # what one of its operators needs

Counted are the lines of imports, of constructors (with their headers), of the headers of classes, methods and decorated
functions, and of the tables that list a family or a file's contents. Fields, docstrings, bodies and helper functions
are what an author has to say, and do not count.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (
    "ait_mlir/dialects/ait",
    "ait_mlir/reference",
    "ait_mlir/frontend/ops",
    "ait_mlir/importers/torch/rows",
    "ait_mlir/lowering/kernels",
    "tests/specs",
)
LISTS = ("ait_mlir/families.py", *(f"{folder}/__init__.py" for folder in FOLDERS), "tests/emulator/corpus.py")
"""Files with tables of families or their operators."""
TABLES = ("OPS", "KERNELS", "ROWS", "SPECS")


def boilerplate(source: str, operator: str | None = None) -> Counter[str]:
    """The lines of each kind in a file of a family, or those that one of its operators needs."""
    tree = ast.parse(source)
    if operator is not None:
        _reduce_to(tree, operator)
    found: Counter[str] = Counter()
    for node, in_class in _statements(tree):
        first = min(n.lineno for n in (node, *getattr(node, "decorator_list", ())))
        lines = (node.end_lineno or node.lineno) - first + 1
        if isinstance(node, ast.Import | ast.ImportFrom):
            found["imports"] += lines
        elif isinstance(node, ast.FunctionDef) and node.name == "__init__":
            found["constructors"] += lines
        elif isinstance(node, ast.ClassDef) or (
            isinstance(node, ast.FunctionDef) and (in_class or node.decorator_list)
        ):
            found["headers"] += node.lineno - first + _header(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and _name(node) in TABLES:
            found["tables"] += lines
    return found


def _header(node: ast.ClassDef | ast.FunctionDef) -> int:
    """The lines from `class` or `def` to the colon."""
    return max(1, node.body[0].lineno - node.lineno)


def _statements(tree: ast.Module) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements of a module and of its classes, and whether each belongs to a class."""
    for node in tree.body:
        yield node, False
        if isinstance(node, ast.ClassDef):
            yield from ((inner, True) for inner in node.body if isinstance(inner, ast.FunctionDef))


def _name(node: ast.stmt) -> str | None:
    """What a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else None


def _reduce_to(tree: ast.Module, operator: str) -> None:
    """Leave what an operator needs in a file that defines it, or has rows for it; any other file is left whole."""
    defined = {name: node for node in tree.body if (name := _name(node)) is not None}
    if (rows := defined.get("ROWS")) is not None:
        _keep_rows(rows, operator)
        needed = {"ROWS"}
    elif operator in defined:
        needed = {operator}
    else:
        return
    todo = list(needed)
    while todo:
        used = _names_in(defined[todo.pop()])
        todo += [name for name in used - needed if name in defined]
        needed |= used
    tree.body = [node for node in tree.body if _is_needed(node, needed)]


def _keep_rows(table: ast.stmt, operator: str) -> None:
    """Leave the rows of an operator, such as `aten.cumsum.default`, in the table of a file."""
    assert isinstance(table, ast.AnnAssign) and isinstance(table.value, ast.Dict) and table.end_lineno is not None
    rows = table.value
    kept = [i for i, key in enumerate(rows.keys) if key is not None and f".{operator}." in ast.literal_eval(key)]
    table.end_lineno -= len(rows.keys) - len(kept)
    rows.keys, rows.values = [rows.keys[i] for i in kept], [rows.values[i] for i in kept]


def _names_in(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _is_needed(node: ast.stmt, needed: set[str]) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        return future or any((alias.asname or alias.name) in needed for alias in node.names)
    return _name(node) in needed


def _listed(source: str, name: str) -> int:
    """The lines outside of functions that name a family."""
    bodies = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    inside = {line for node in bodies for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    row = re.compile(rf'["./]{name}["\s]|ops\.{name} import')
    return sum(i not in inside and bool(row.search(line)) for i, line in enumerate(source.splitlines(), 1))


def of_family(name: str, operator: str | None = None) -> dict[str, Counter[str]]:
    """The counts of a family, or of an operator of it, by file; `ValueError` if there is no such family or operator."""
    files = [file for folder in FOLDERS if (file := ROOT / folder / f"{name}.py").is_file()]
    if not files:
        raise ValueError(f"no family is called {name!r}: there is no {FOLDERS[0]}/{name}.py")
    texts = {str(file.relative_to(ROOT)): file.read_text() for file in files}
    if operator is not None and not any(f"class {operator}(" in text for text in texts.values()):
        raise ValueError(f"{name} has no operator {operator!r}: no file has a class of this name")
    found = {file: boilerplate(text, operator) for file, text in texts.items()}
    for file in LISTS:
        found[file] = Counter(tables=_listed((ROOT / file).read_text(), name))
    return {file: counts for file, counts in found.items() if counts.total()}


def main() -> None:
    total: Counter[str] = Counter()
    for file, counts in of_family(*sys.argv[1:3]).items():
        print(f"{file:45} {counts.total():3}  {', '.join(f'{kind} {n}' for kind, n in counts.items() if n)}")
        total += counts
    print(f"{'all':45} {total.total():3}  {', '.join(f'{kind} {n}' for kind, n in total.items())}")


if __name__ == "__main__":
    main()
