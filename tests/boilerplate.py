"""Counts the boilerplate of a family of ops by file: what it needs before it says anything of its own.

    python -m tests.boilerplate cumulative

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


def boilerplate(source: str) -> Counter[str]:
    """The lines of each kind in a file of a family."""
    found: Counter[str] = Counter()
    for node, in_class in _statements(ast.parse(source)):
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
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            found["tables"] += lines if isinstance(target, ast.Name) and target.id in TABLES else 0
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


def of_family(name: str) -> dict[str, Counter[str]]:
    """The counts of a family by file; `ValueError` if there is no such family."""
    files = [file for folder in FOLDERS if (file := ROOT / folder / f"{name}.py").is_file()]
    if not files:
        raise ValueError(f"no family is called {name!r}: there is no {FOLDERS[0]}/{name}.py")
    found = {str(file.relative_to(ROOT)): boilerplate(file.read_text()) for file in files}
    for file in LISTS:
        lines = [line for line in (ROOT / file).read_text().splitlines() if re.search(rf"\b{name}\b(?!_)", line)]
        listed = [line for line in lines if re.search(rf'["./]{name}["\s]|ops\.{name} import', line)]
        found[file] = Counter(tables=len(listed))
    return {file: counts for file, counts in found.items() if counts.total()}


def main() -> None:
    total: Counter[str] = Counter()
    for file, counts in of_family(sys.argv[1]).items():
        print(f"{file:45} {counts.total():3}  {', '.join(f'{kind} {n}' for kind, n in counts.items() if n)}")
        total += counts
    print(f"{'all':45} {total.total():3}  {', '.join(f'{kind} {n}' for kind, n in total.items())}")


if __name__ == "__main__":
    main()
