"""Floats that a model computes from dims, such as `x.shape[0] ** 0.5`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Mapping
from typing import Any

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from ait_mlir.importers.torch.dims import DimTable
from ait_mlir.importers.torch.errors import NotSupported
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.writer import ImportWriter

_OF_TWO: Mapping[str, Callable[[ImportWriter, SSAValue, SSAValue], SSAValue]] = {
    "Add": ImportWriter.add,
    "Mul": ImportWriter.mul,
    "FloatTrueDiv": ImportWriter.div,
    "IntTrueDiv": ImportWriter.div,
    "FloatPow": lambda w, a, b: w.pointwise("pow", a, b),
    "Max": ImportWriter.maximum,
    "Min": ImportWriter.minimum,
}
"""By the class of an expression of SymPy."""


def size_float(w: ImportWriter, value: Any, table: DimTable) -> SSAValue:
    """A `SymFloat` of the program as an f64 of rank 0. Raises `NotSupported` for functions without a row."""
    return _written(w, value.node.expr, table)


def _written(w: ImportWriter, e: Any, table: DimTable) -> SSAValue:
    try:
        numerator, denominator = table.fraction(e)
    except NotSupported:
        pass
    else:
        whole = w.number(numerator, f64)
        return whole if denominator == 1 else w.div(whole, w.scalar(denominator, f64))
    kind = type(e).__name__
    if e.is_number:
        return w.scalar(float(e), f64)
    if kind in _OF_TWO:
        return functools.reduce(functools.partial(_OF_TWO[kind], w), (_written(w, a, table) for a in e.args))
    if kind == "OpaqueUnaryFn_sqrt":
        return w.pointwise("sqrt", _written(w, e.args[0], table))
    raise NotSupported(f"the float {e} of dims is not supported; compute it with tensors")


@contextlib.contextmanager
def no_example_floats() -> Generator[None]:
    """A context in which `float()` of a float that depends on dims raises `NotSupported`: PyTorch would give its value
    in the example.
    """
    node = torch.fx.experimental.sym_node.SymNode
    own = node.guard_float

    def guard_float(self: Any, file: str, line: int) -> float:
        if self.expr.free_symbols:
            raise NotSupported(f"the float {self.expr} depends on dims, but a number is needed; compute with tensors")
        return own(self, file, line)

    node.guard_float = guard_float
    try:
        yield
    finally:
        node.guard_float = own
