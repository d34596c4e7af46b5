"""The suites: which files of a checkout are tests, and how their imports change."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Change = tuple[str, str]
"""A regular expression, and what stands in place of its matches."""


@dataclass(frozen=True)
class Suite:
    """Tests of another project that are programs for ours.

    `folders` of its repository hold everything that they read; `tests` is the pattern of their files. `changes` are those
    of the imports. A suite is `soft` if its asserts say how a graph looks before they compare numbers: a failure of
    such an assert is noted, and the test goes on.
    """

    name: str
    folders: tuple[str, ...]
    tests: str
    changes: tuple[Change, ...]
    soft: bool = False


CUDNN_IMPORTS = (
    (r"(?m)^(\s*)import cudnn[ \t]*$", r"\1import ait_mlir.graph as cudnn"),
    (r"(?m)^(\s*)from cudnn((?:\.\w+)*) import", r"\1from ait_mlir.graph\2 import"),
)
SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "aitemplate", ("tests/unittest",), "tests/unittest/**/test_*.py", ((r"\baitemplate\b", "ait_mlir"),), soft=True
        ),
        Suite("cudnn", ("test/python",), "test/python/**/test_*.py", CUDNN_IMPORTS),
        Suite("notebooks", ("samples/python",), "samples/python/*.ipynb", CUDNN_IMPORTS),
    )
}
ON_CPU: tuple[Change, ...] = (
    (r"\btorch\.cuda\b", "host_cuda"),  # `host.py`
    (r"\.cuda\(\s*\)", ".cpu()"),
    (r"([\"'])cuda(?::0)?\1", '"cpu"'),
)
"""How a script for a card becomes one for the CPU."""


def changed(text: str, suite: Suite, target: str) -> str:
    """The text of a Python file of a suite for our package; on the target `cpu` it needs no card."""
    for pattern, replacement in (*suite.changes, *(ON_CPU if target == "cpu" else ())):
        text = re.sub(pattern, replacement, text)
    return softened(text) if suite.soft else text


class _Softened(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        arguments = [node.test, ast.Constant(ast.unparse(node.test))]
        return ast.Expr(ast.Call(ast.Name("soft_assert", ast.Load()), arguments, []))


def softened(text: str) -> str:
    """A Python text whose `assert` statements call `soft_assert(value, text)`."""
    if not re.search(r"(?m)^\s*assert\b", text):
        return text
    return ast.unparse(ast.fix_missing_locations(_Softened().visit(ast.parse(text))))


def copy(suite: Suite, checkout: Path, folder: Path, target: str) -> list[str]:
    """Copy the folders of a suite, changed, and return the names of its test files; `FileNotFoundError` if there are none."""
    for name in suite.folders:
        shutil.copytree(checkout / name, folder / name)
    for path in folder.rglob("*.py"):
        path.write_text(changed(path.read_text(encoding="utf-8"), suite, target), encoding="utf-8")
    found = sorted(str(path.relative_to(folder)) for path in folder.glob(suite.tests))
    if not found:
        raise FileNotFoundError(f"{checkout} has no files {suite.tests}")
    return found


def methods(text: str) -> Iterator[str]:
    """The names of the tests that a Python text writes, as pytest spells them, without their parameters."""
    for node in ast.parse(text).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        for test in inside:
            if isinstance(test, ast.FunctionDef) and test.name.startswith("test"):
                yield f"{node.name}::{test.name}" if isinstance(node, ast.ClassDef) else test.name


def cells(notebook: Path, suite: Suite, target: str) -> list[str]:
    """The code of each cell of a notebook, changed, without the lines for the notebook's shell."""
    found = ["".join(cell["source"]) for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    return [changed(re.sub(r"(?m)^\s*[%!].*$", "", text), suite, target) for text in found]
