"""Run one op of the reference on arrays, from text."""

from __future__ import annotations

from typing import Any

import numpy as np

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.reference import evaluate_graph

DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "int64": "i64",
    "int32": "i32",
    "int8": "i8",
    "uint8": "ui8",
    "bool": "i1",
}


def type_of(array: np.ndarray[Any, Any], dtype: str | None = None) -> str:
    """The text of an array's tensor type."""
    return "!ait.tensor<" + "".join(f"{n} x " for n in array.shape) + (dtype or DTYPES[str(array.dtype)]) + ">"


def evaluate(lines: str, rounding: bool = False, dtype: str | None = None, **inputs: Any) -> dict[str, Any]:
    """Evaluate lines of a graph's body on inputs that the keywords name; float inputs may be given another type."""
    arrays = {name: np.asarray(value) for name, value in inputs.items()}
    arguments = ", ".join(
        f"%{name}: {type_of(a, dtype if a.dtype.kind == 'f' else None)}" for name, a in arrays.items()
    )
    module = parse_text(context(), f"ait.graph @g({arguments}) {{\n{lines}\n}}")
    (graph,) = module.body.block.ops
    assert isinstance(graph, GraphOp)
    return evaluate_graph(graph, arrays, {}, {}, rounding)


def run(op: str, result: str, rounding: bool = False, dtype: str | None = None, **inputs: Any) -> Any:
    """Evaluate one op and return its only result."""
    lines = f'%y = {op} : {result}\nait.output "y" %y : {result}'
    return evaluate(lines, rounding, dtype, **inputs)["y"]
