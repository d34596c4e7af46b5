"""Imports of the package go down the layers of docs/architecture.md, and modules do not import each other in cycles.

Every import counts: at the top of a file, inside a function, and under `TYPE_CHECKING`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = "docs/architecture.md"


@dataclass(frozen=True)
class Import:
    """A module that a line of another one imports."""

    importer: str
    imported: str
    place: str
    """`FILE:LINE`"""


def module_name(file: Path, root: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(text: str, importer: str, place: str, modules: Mapping[str, Path]) -> Iterator[Import]:
    """The imports of one file, but for those of the file itself."""
    package = importer if place.endswith("__init__.py") else importer.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif not isinstance(node, ast.ImportFrom):
            continue
        else:
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found = [name if (name := f"{base}.{alias.name}") in modules else base for alias in node.names]
        for name in dict.fromkeys(found):
            if name in modules and name != importer:
                yield Import(importer, name, f"{place}:{node.lineno}")


@cache
def package(root: Path) -> tuple[dict[str, Path], list[Import]]:
    """The modules of the package in a folder, and their imports of each other."""
    modules = {module_name(file, root): file for file in sorted((root / "ait_mlir").rglob("*.py"))}
    found: list[Import] = []
    for name, file in modules.items():
        found += imports_of(file.read_text(encoding="utf-8"), name, str(file.relative_to(root)), modules)
    return modules, found


@cache
def layers() -> tuple[tuple[str, ...], ...]:
    """The rows of the table "Where things are": the modules and packages of each, the lowest first."""
    text = (ROOT / PAGE).read_text(encoding="utf-8").partition("## Where things are")[2]
    rows: list[tuple[str, ...]] = []
    for line in text.splitlines():
        if (row := re.match(r"\| (`ait_mlir/[^|]*)\|", line)) is not None:
            named = [name for name in re.findall(r"`([^`]+)`", row[1]) if not name.endswith("/")]
            paths = [Path("ait_mlir", name.removeprefix("ait_mlir/")) for name in named]
            rows.append(tuple(module_name(path, Path()) for path in paths))
    return tuple(rows)


def layer_of(module: str, rows: tuple[tuple[str, ...], ...]) -> int | None:
    """The number of the row that names the module or, most closely, a package around it; None if no row does."""
    numbers = {name: i for i, row in enumerate(rows) for name in row}
    if module == "ait_mlir":
        return numbers.get(module)
    while module.count(".") and module not in numbers:
        module = module.rpartition(".")[0]
    return numbers.get(module) if "." in module else None


def upward(imports: list[Import], rows: tuple[tuple[str, ...], ...]) -> list[str]:
    """A sentence for each import of a higher layer."""
    found: list[str] = []
    for line in imports:
        low, high = layer_of(line.importer, rows), layer_of(line.imported, rows)
        if low is not None and high is not None and high > low:
            found.append(
                f"{line.place}: {line.importer} imports {line.imported}, of the higher layer {rows[high][0]} (the table of"
                f" {PAGE}). Move what both need into a lower layer, or let the caller pass it"
            )
    return found


def knots(imports: list[Import]) -> list[frozenset[str]]:
    """The largest sets of modules in which every module imports every other one, directly or through others."""
    edges: dict[str, list[str]] = {}
    for line in imports:
        edges.setdefault(line.importer, []).append(line.imported)
        edges.setdefault(line.imported, [])
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []
    for start in sorted(edges):  # Tarjan's algorithm, with a stack of its own
        if start in number:
            continue
        number[start] = lowest[start] = len(number)
        stack.append(start)
        work = [(start, iter(edges[start]))]
        while work:
            module, onward = work[-1]
            if (step := next(onward, None)) is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[module])
                if lowest[module] == number[module]:
                    inside = frozenset(stack[stack.index(module) :])
                    del stack[stack.index(module) :]
                    found += [inside] if len(inside) > 1 else []
            elif step not in number:
                number[step] = lowest[step] = len(number)
                stack.append(step)
                work.append((step, iter(edges[step])))
            elif step in stack:
                lowest[module] = min(lowest[module], number[step])
    return found


def said(knot: frozenset[str], imports: list[Import]) -> str:
    """The imports inside a set of modules."""
    inside = [line for line in imports if line.importer in knot and line.imported in knot]
    return "\n".join(f"  {line.place}: {line.importer} imports {line.imported}" for line in inside)


def test_every_module_is_in_a_layer() -> None:
    modules, _ = package(ROOT)
    missing = [str(modules[name].relative_to(ROOT)) for name in modules if layer_of(name, layers()) is None]
    assert not missing, f"no row of the table of {PAGE} names {', '.join(missing)}"


def test_imports_go_down() -> None:
    _, imports = package(ROOT)
    assert not (wrong := upward(imports, layers())), "\n".join(wrong)


def test_no_modules_import_each_other() -> None:
    _, imports = package(ROOT)
    tied = "\n".join(said(knot, imports) for knot in knots(imports))
    assert not tied, f"modules import each other in a cycle:\n{tied}"


LOW_AND_HIGH = {
    "dims/expr.py": "from __future__ import annotations\n",
    "passes/simplify.py": "from ait_mlir.dims import expr\n",
}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("from ait_mlir.passes.simplify import run\n", 1),
        ("from ..passes import simplify\n", 1),
        ("import ait_mlir.passes.simplify\n", 1),
        ("def f():\n    from ait_mlir.passes import simplify\n", 2),
        ("if TYPE_CHECKING:\n    from ait_mlir.passes.simplify import run\n", 2),
    ],
)
def test_an_import_of_a_higher_layer_is_named(tmp_path: Path, text: str, line: int) -> None:
    for name, content in {**LOW_AND_HIGH, "dims/expr.py": text}.items():
        file = tmp_path / "ait_mlir" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    _, imports = package(tmp_path)
    (wrong,) = upward(imports, (("ait_mlir.dims",), ("ait_mlir.passes",)))
    assert wrong.startswith(f"ait_mlir/dims/expr.py:{line}: ait_mlir.dims.expr imports ait_mlir.passes.simplify")
    (knot,) = knots(imports)
    ring = said(knot, imports)
    assert f"ait_mlir/dims/expr.py:{line}: " in ring and "ait_mlir/passes/simplify.py:1: " in ring
