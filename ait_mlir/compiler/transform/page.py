"""Writes `docs/passes.md` from the tables: `python -m ait_mlir.compiler.transform.page`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ait_mlir.compiler.transform.helper_rows import HELPERS
from ait_mlir.compiler.transform.rows import OPTIMIZE, TRANSFORMATIONS

INTRODUCTION = """# AITemplate's transformations and our passes

`ait_mlir.compiler.transform.MODULE.FUNCTION` has the documented signatures: a sorted list of tensors in, the
transformed list out. A function emits the graph as an `ait` module, runs our passes, and makes tensors of the result.
The given graph stays as it is; if nothing changes, the given tensors are returned. `ait-opt FILE -p PASS` runs the same
pass on text. This page is made of the tables in `rows.py` and `helper_rows.py` of `ait_mlir/compiler/transform` by
`python -m ait_mlir.compiler.transform.page`.

{acting} functions act on graphs: {passes} run passes, {others} do something else. Each is tested on a graph where it
acts, with the operators or marks (and of passes the launches) that it then has, and on one where it must not act; the
reference gives the same results before and after (`tests/frontend/test_transforms.py`, `test_transform_graphs.py`). The
other {graphless} have no graph to act on; the second table says why.
"""

MODULES = """The modules `fuse_split`, `transform_strided_op_and_view_op` and `transform_strided_slice` document no
function of their own. What they do in AITemplate happens on buffers here; `transform_strided_ops` shows it.
"""

RIGHT = """## Where AITemplate's own rewrites are wrong

| graph | what its rewrite does | ours |
|---|---|---|
| softmax(a @ b) * 2 | the factor joins the product before the softmax | [factor_behind_softmax.mlir](FUSION) |
| (a @ b + c) * k | k multiplies a @ b alone | [factor_of_sum.mlir](FUSION) |
| bmm(expand([1, 1, 64] to [4, 16, 64]), w) | the expand goes, although it enlarges M | [expand_of_rows.mlir](FUSION) |
| y + y, y * y behind a bias | the graph comes out empty | [product_with_itself.mlir](FUSION) |
| a sigmoid with a second reader | an error | [second_reader.mlir](FUSION) |
| an output inside a fusion, c / (a @ b), two factors | no case is known | [general_causes.mlir](FUSION) |
"""


def text() -> str:
    """The page."""
    passes = [
        f"| `{row.module}.{row.name}` | {_passes(row.passes)} | [{Path(row.file).name}](../{row.file}) "
        f"| [{Path(row.test).name}](../{row.test}) | {row.law} |"
        for row in TRANSFORMATIONS.values()
    ]
    helpers = [
        f"| `{row.module}.{row.name}` | {row.calls} | [{Path(row.file).name}](../{row.file}) "
        f"| [{Path(row.test).name}](../{row.test}) | {row.law} | {row.graphless} |"
        for row in HELPERS.values()
    ]
    head = ["| documented name | our passes | file | test | law |", "|---|---|---|---|---|"]
    other = ["| documented name | calls | file | test | what holds | no graph, as |", "|---|---|---|---|---|---|"]
    right = re.sub(r"\[(\w+\.mlir)\]\(FUSION\)", r"[\1](../lit_tests/passes/fusion/\1)", RIGHT)
    runs, others = len(TRANSFORMATIONS), sum(not row.graphless for row in HELPERS.values())
    counts = {"acting": runs + others, "passes": runs, "others": others, "graphless": len(HELPERS) - others}
    parts = [INTRODUCTION.format(**counts), "## Passes", "", *head, *passes, "", "## Other functions and classes", ""]
    return "\n".join([*parts, *other, *helpers, "", MODULES, right])


def _passes(pipeline: str) -> str:
    if pipeline == OPTIMIZE:
        return "those of the phases `simplified` and `fused`"
    return ", ".join(f"`{name}`" for name in pipeline.split(",")) if pipeline else "none: nothing to do"


if __name__ == "__main__":
    sys.stdout.write("docs/passes.md\n")
    (Path(__file__).parents[3] / "docs" / "passes.md").write_text(text())
