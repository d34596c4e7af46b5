"""The table of ops: their names in AITemplate, and the element types and providers of each target.

It is computed on demand, from examples of each op and the kernels that accept them.
"""

from __future__ import annotations

import difflib
import inspect
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from ait_mlir import outside
from ait_mlir.dialects.ait import AIT
from ait_mlir.elements import kernel_op
from ait_mlir.errors import InputError
from ait_mlir.lowering.kernels import Target, kernels_for, kernels_of_class
from ait_mlir.tools.op_examples import ELEMENT_TYPES, NAMES, NO_KERNEL, examples
from ait_mlir.tools.report import table

if TYPE_CHECKING:
    from xdsl.irdl import IRDLOperation

TARGETS = {"cpu": Target("cpu", "native"), "cuda": Target("cuda", "sm_90a"), "rocm": Target("rocm", "gfx90a")}


@cache
def operator_row(op: str) -> dict[str, Any]:
    """The `names` of an op, and for `cpu`, `cuda`, `rocm` its `dtypes` and `providers`, or the `reason` for none."""
    row: dict[str, Any] = {"names": NAMES.get(op, "").split()}
    found = {} if op in NO_KERNEL else {t: [kernel_op(e) for e in examples(op, t)] for t in ELEMENT_TYPES}
    for name, target in TARGETS.items():
        by_type = {t: [k.provider for e in ops for k in kernels_for(e, target)] for t, ops in found.items()}
        providers = dict.fromkeys(provider for made in by_type.values() for provider in made)
        row[name] = {"dtypes": [t for t, made in by_type.items() if made], "providers": list(providers)}
        if not providers:
            row[name]["reason"] = NO_KERNEL.get(op, "no kernel, and no pass makes it there")
    return row


def operator_table() -> str:
    """One row for each op of the dialect, and one for each operator from outside, with the place of its definition."""
    rows = [["op", "dtypes", "reference", "CPU", "CUDA", "ROCm", "names in AITemplate"]]
    for op in sorted(op.name.removeprefix("ait.") for op in AIT.operations):
        found = operator_row(op)
        types = found["cpu"]["dtypes"]
        cells = [_cell(found[target], types) for target in TARGETS]
        reference = "-" if "reason" in found["cpu"] else "NumPy"
        rows.append([f"ait.{op}", " ".join(types) or "-", reference, *cells, " ".join(found["names"])])
    for name, row in outside.rows().items():
        rows.append([name, "-", "-" if row.rule is None else "NumPy", *_kernels(row), f"from {row.place}"])
    return table(rows)


def operator_page(name: str) -> str:
    """The documentation of an op: its docstring, operands, properties and results, and its row of the table.

    Raises `InputError` with the closest names if there is none.
    """
    ours = {op.name: op for op in AIT.operations}
    known = cast("dict[str, type[IRDLOperation]]", ours | {found: row.op for found, row in outside.rows().items()})
    if (op := known.get(name) or known.get(f"ait.{name}")) is None:
        asked = name if "." in name else f"ait.{name}"
        close = difflib.get_close_matches(asked, known, 3, 0.7)
        hint = f"did you mean {' or '.join(close)}?" if close else "ait inspect --ops lists all"
        raise InputError(f"there is no op {name!r}; {hint}")
    definition = op.get_irdl_definition()
    parts = [op.name, "", inspect.cleandoc(op.__doc__ or "")]
    fields = {
        "operands": [operand for operand, _ in definition.operands],
        "properties": [prop for prop in definition.properties if prop != "operandSegmentSizes"],
        "results": [result for result, _ in definition.results],
    }
    parts += [f"\n{kind}: {', '.join(names)}" for kind, names in fields.items() if names]
    if (row := outside.rows().get(op.name)) is not None:
        kernels = [f"{target}: {found}" for target, found in zip(TARGETS, _kernels(row), strict=True)]
        parts += ["", f"kernels: {'; '.join(kernels)}", "", f"from {row.place}"]
    else:
        entry = operator_row(op.name.removeprefix("ait."))
        types = entry["cpu"]["dtypes"]
        kernels = [f"{target}: {_cell(entry[target], types)}" for target in TARGETS]
        parts += ["", f"dtypes: {' '.join(types) or '-'}", "", f"kernels: {'; '.join(kernels)}"]
        if entry["names"]:
            parts += ["", f"names in AITemplate: {' '.join(entry['names'])}"]
    return "\n".join(parts)


def _kernels(row: outside.Outside) -> list[str]:
    """The providers of an operator from outside on each target."""
    cells: list[str] = []
    for target in TARGETS:
        own = [kernel for kernel in row.kernels if target in kernel.targets()]
        found = [*own, *(kernel for kernel in kernels_of_class(row.op) if kernel not in row.kernels)]
        cells.append(", ".join(kernel.provider for kernel in found) or "none")
    return cells


def _cell(found: dict[str, Any], types: list[str]) -> str:
    """A cell of the table: providers, and in parentheses the missing element types; or the reason for no kernel."""
    if "reason" in found:
        return f"none: {found['reason']}"
    missing = [t for t in types if t not in found["dtypes"]]
    return ", ".join(found["providers"]) + (f" (no {' '.join(missing)})" if missing else "")
