"""The table that `ait inspect --ops` prints, from the specifications, the kernels and the documented calls.

`python -m tests.specs.operators` writes it to `ait_mlir/tools/operators.json`; tests/test_specs.py fails where that is old.
"""

from __future__ import annotations

import json
from typing import Any

from ait_mlir.dialects.ait import AIT
from ait_mlir.dialects.ait.data import ConstantOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.traits import ScalarLike, ViewLike
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.tools.operators import PATH
from tests.frontend.documented import ROWS as CALLS
from tests.frontend.documented.row import Row
from tests.frontend.support import graph_of
from tests.specs import NO_KERNEL, ROWS
from tests.specs.spec import Consumer, Spec

TARGETS: dict[str, tuple[Consumer, Target]] = {
    "cpu": ("cpu", Target("cpu", "native")),
    "cuda": ("cuda", Target("cuda", "sm_90a")),
    "rocm": ("rocm", Target("rocm", "gfx90a")),
}


def main_op(row: Row) -> str:
    """The op that a documented operator is: the first of its graph that computes more than elements, else the first."""
    graph = graph_of(row.outputs(row.tensors()))
    ops = [op for op in graph.block.ops if not isinstance(op, OutputOp | ParamOp | ConstantOp)]
    heavy = [op for op in ops if not isinstance(op, ScalarLike | ViewLike)]
    return (heavy or ops)[0].name.removeprefix("ait.") if ops else "graph"


def support(specs: list[Spec], consumer: Consumer, target: Target) -> dict[str, list[str]]:
    """The element types that have a kernel on a target, and who provides kernels."""
    types: dict[str, None] = {}
    providers: dict[str, None] = {}
    for spec in specs:
        for form, t in spec.keys(consumer):
            if t in types and t != "f16":  # all forms of one type find all providers
                continue
            found = [kernel.provider for kernel in kernels_for(spec.case(form, t).op, target)]
            if found:
                types[t] = None
                providers |= dict.fromkeys(found)
    return {"dtypes": list(types), "providers": list(providers)}


def table() -> dict[str, dict[str, Any]]:
    """By op: the names it has in AITemplate, and for each target the element types and providers, or the reason for none."""
    names: dict[str, list[str]] = {}
    for name, row in sorted(CALLS.items()):
        names.setdefault(main_op(row), []).append(name)
    made: dict[str, dict[str, Any]] = {}
    for op in sorted(op.name.removeprefix("ait.") for op in AIT.operations):
        specs = [spec for spec in ROWS if spec.op == op]
        made[op] = {"names": names.get(op, [])}
        for target, (consumer, arch) in TARGETS.items():
            found: dict[str, Any] = support(specs, consumer, arch)
            if not found["dtypes"]:
                reasons = [NO_KERNEL[op]] if op in NO_KERNEL else [s.without[consumer] for s in specs]
                found["reason"] = reasons[0]
            made[op][target] = found
    return made


def text() -> str:
    return json.dumps(table(), indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(text())
    print(f"wrote {PATH}: {len(table())} ops")
