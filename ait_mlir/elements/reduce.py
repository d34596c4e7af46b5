"""Elements of reductions, argmax and argmin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.elementwise import DivOp, MulOp, SubOp
from ait_mlir.dialects.ait.reduce import ArgmaxOp, ReduceOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, maximum, product
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index

FOLDS = {"sum": "add", "prod": "mul", "mean": "add", "max": "max", "min": "min"}

Read = Callable[[Sequence[Expr]], SSAValue]
"""Writes the element at an index along the reduced dims."""


def joined(index: Sequence[Index], taps: Sequence[Expr], axes: Sequence[int], rank: int) -> list[Index]:
    """The index of the input: `taps` along the reduced axes, `index` along the others."""
    kept, reduced = iter(index), iter(taps)
    return [next(reduced) if axis in axes else next(kept) for axis in range(rank)]


def mean(w: ElementWriter, sizes: Sequence[Expr], read: Read, element: Attribute) -> SSAValue:
    """The mean of the elements that `read` writes."""
    return w.op(DivOp, w.fold("add", sizes, read), w.number(product(sizes), element))


def squares(w: ElementWriter, sizes: Sequence[Expr], read: Read, middle: SSAValue) -> SSAValue:
    """The sum of squared distances from `middle`."""

    def square(taps: Sequence[Expr]) -> SSAValue:
        distance = w.op(SubOp, read(taps), middle)
        return w.op(MulOp, distance, distance)

    return w.fold("add", sizes, square)


@elements_of(ReduceOp)
def _(op: ReduceOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    x, kind, axes = tensor_type(op.input), op.kind.data, op.axes()
    sizes, compute = [x.dims[axis] for axis in axes], compute_type(x.element_type)

    def read(taps: Sequence[Expr]) -> SSAValue:
        return w.element(op.input, joined(index, taps, axes, x.rank))

    if kind == "mean":
        return mean(w, sizes, read, compute)
    if kind != "var":
        return w.fold(FOLDS[kind], sizes, read)
    correction = 0 if op.correction is None else op.correction.value.data
    divisor = w.number(maximum(product(sizes) - correction, const(0)), compute)
    return w.op(DivOp, squares(w, sizes, read, mean(w, sizes, read, compute)), divisor)


@elements_of(ArgmaxOp)
def _(op: ArgmaxOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    x, axis = tensor_type(op.input), op.dim.value.data
    kind = "argmax" if op.smallest is None else "argmin"
    place = w.place(kind, [x.dims[axis]], lambda taps: w.element(op.input, joined(index, taps, [axis], x.rank)))
    return w.cast(place, i64, tensor_type(op.output).element_type)
