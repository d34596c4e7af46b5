"""The table of ops: their names in AITemplate, and the element types and providers of each target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ait_mlir import outside
from ait_mlir.tools.report import table

PATH = Path(__file__).with_name("operators.json")
"""Made from the specifications, the kernels and the documented calls: `python -m tests.specs.operators`."""


def operators() -> dict[str, dict[str, Any]]:
    """By op: its `names`, and for `cpu`, `cuda`, `rocm` the `dtypes` and `providers`, or the `reason` for none."""
    return json.loads(PATH.read_text())


def operator_table() -> str:
    """One row for each op of the dialect, and one for each operator from outside, with the place of its definition."""
    rows = [["op", "dtypes", "reference", "CPU", "CUDA", "ROCm", "names in AITemplate"]]
    for op, found in operators().items():
        types = found["cpu"]["dtypes"]
        cells = [_cell(found[target], types) for target in ("cpu", "cuda", "rocm")]
        reference = "-" if "reason" in found["cpu"] else "NumPy"
        rows.append([f"ait.{op}", " ".join(types) or "-", reference, *cells, " ".join(found["names"])])
    for name, row in outside.rows().items():
        rows.append([name, "-", "-" if row.rule is None else "NumPy", *_kernels(row), f"from {row.place}"])
    return table(rows)


def _kernels(row: outside.Outside) -> list[str]:
    """The providers of an operator from outside on each target."""
    from ait_mlir.lowering.kernels import kernels_of_class

    cells: list[str] = []
    for target in ("cpu", "cuda", "rocm"):
        own = [kernel for kernel in row.kernels if target in kernel.targets()]
        found = [*own, *(kernel for kernel in kernels_of_class(row.op) if kernel not in row.kernels)]
        cells.append(", ".join(kernel.provider for kernel in found) or "none")
    return cells


def _cell(found: dict[str, Any], types: list[str]) -> str:
    """`native, cublaslt`, without the element types that only the CPU has; or why there is nothing."""
    if "reason" in found:
        return f"none: {found['reason']}"
    missing = [t for t in types if t not in found["dtypes"]]
    return ", ".join(found["providers"]) + (f" (no {' '.join(missing)})" if missing else "")
