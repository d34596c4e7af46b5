"""Numbers that a run reads from tensors: `.item()` of a tensor of one number, and Python's arithmetic with it.

Such a number is a tensor of rank 0: a float in f64, as Python's floats are, a whole number in i64. A row of the
table that takes a tensor or a number also takes such a number.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.compositions.functions import floor_divide, remainder
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr
from ait_mlir.importers.torch.call import NotSupported
from ait_mlir.importers.torch.dims import DimTable
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.size_floats import FUNCTIONS
from ait_mlir.importers.torch.writer import ImportWriter

_OPERATOR: Any = operator  # some of its functions have no complete types


def _power(w: ImportWriter, a: SSAValue, b: SSAValue) -> SSAValue:
    if tensor_type(a).element_type != f64:
        raise NotSupported("a power of a whole number that a tensor holds is not supported; convert it to float")
    return w.pointwise("pow", a, b)


_OF_TWO: Mapping[Any, Callable[[ImportWriter, SSAValue, SSAValue], SSAValue]] = {
    operator.add: ImportWriter.add,
    operator.sub: ImportWriter.sub,
    operator.mul: ImportWriter.mul,
    _OPERATOR.truediv: ImportWriter.div,
    _OPERATOR.pow: _power,
    _OPERATOR.floordiv: floor_divide,
    _OPERATOR.mod: remainder,
    torch.sym_max: ImportWriter.maximum,
    torch.sym_min: ImportWriter.minimum,
}
_OF_ONE: Mapping[Any, Callable[[ImportWriter, SSAValue], SSAValue]] = {
    operator.neg: ImportWriter.neg,
    _OPERATOR.abs: lambda w, a: w.pointwise("abs", a),
    torch.sym_float: lambda w, a: a,
    **{
        function: lambda w, a, name=name: w.pointwise(name, a)
        for name in ("exp", "log", *FUNCTIONS)
        for function in (getattr(math, name), getattr(torch, f"_sym_{name}", None))
        if function is not None
    },
}

_ARITHMETIC = frozenset(
    f"{prefix}{name}{suffix}"
    for name in ("add", "sub", "mul", "div", "truediv", "true_divide", "neg", "pow", "gt", "ge", "lt", "le")
    for prefix in ("", "r", "i")
    for suffix in ("", "_")
) | {"clamp", "clamp_", "full", "full_like", "new_full", "fill_", "masked_fill", "masked_fill_", "where", "item"}
"""Names of operations that take a number of a run, as functions of Python or methods of tensors."""


def is_run_number(value: Any, table: DimTable) -> bool:
    """Whether the value of a node is a number that only the run knows, and no size."""
    if not isinstance(value, torch.SymFloat | torch.SymInt):
        return False
    found = torch.fx.experimental.symbolic_shapes.free_unbacked_symbols(value)
    return any(not table.knows(str(symbol)) for symbol in found)


def read(w: ImportWriter, x: SSAValue, value: Any) -> SSAValue:
    """The number that a tensor of one element holds, for a node with this value."""
    return w.reshape(w.cast(x, _element(value)), ())


def _element(value: Any) -> Attribute:
    return f64 if isinstance(value, float | torch.SymFloat) else i64


def written(w: ImportWriter, node: Any, operands: list[Any]) -> SSAValue:
    """A node that computes a number of the run from others. Raises `NotSupported` for an operation without a row."""
    numbers = [x.meta["val"] if hasattr(x, "meta") else x for x in node.args]
    divides = node.target in (_OPERATOR.truediv, torch.sym_float)
    element = f64 if divides or any(_element(number) == f64 for number in numbers) else i64
    operands = [x for x in operands if x is not None]  # `round` without a number of digits
    given = [
        w.cast(cast("SSAValue", x), element) if isinstance(x, SSAValue) else w.number(cast("float | Expr", x), element)
        for x in operands
    ]
    result: SSAValue | None = None
    if (one := _OF_ONE.get(node.target)) is not None and len(given) == 1:
        result = one(w, given[0])
    elif (two := _OF_TWO.get(node.target)) is not None and len(given) == 2:
        result = two(w, *given)
    if result is not None and element == _element(node.meta["val"]):
        return result
    name = getattr(node.target, "__name__", node.target)
    raise NotSupported(f"'{name}' of a number that a tensor holds is not supported; compute it with tensors")


def is_number_input(node: Any, value: Any) -> bool:
    """Whether an argument of a graph of dynamo is a float of Python, which it passes as a tensor."""
    if not isinstance(value, torch.Tensor) or value.dim() or value.dtype != torch.float64 or value.device.type != "cpu":
        return False
    return bool(node.users) and all(user.op == "call_method" and user.target == "item" for user in node.users)


def may_vary(node: Any) -> bool:
    """Whether kernels can read such a float: it is only an operand of arithmetic."""
    return all(
        user.op == "output"
        or (_name(user) in _ARITHMETIC and (isinstance(user.meta.get("example_value"), torch.Tensor) or may_vary(user)))
        for user in node.users
    )


def _name(node: Any) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
