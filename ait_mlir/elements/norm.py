"""Elements of softmax and of norms: folds over a row, and the element itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.elementwise import AddOp, DivOp, ExpOp, MaxOp, MulOp, RsqrtOp, SubOp
from ait_mlir.dialects.ait.norm import GroupNormOp, LayerNormOp, NormOp, RmsNormOp, SoftmaxOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, product
from ait_mlir.elements.elementwise import broadcast
from ait_mlir.elements.reduce import Read, mean, squares
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index, NoElements


@elements_of(SoftmaxOp)
def _(op: SoftmaxOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    axis, size = op.dim.value.data, tensor_type(op.input).dims[op.dim.value.data]

    def read(taps: Sequence[Expr]) -> SSAValue:
        return w.element(op.input, [*index[:axis], *taps, *index[axis + 1 :]])

    def shifted(value: SSAValue) -> SSAValue:
        return w.op(ExpOp, w.op(SubOp, value, largest))

    largest = w.fold("max", [size], read)
    sum_ = w.fold("add", [size], lambda taps: shifted(read(taps)))
    return w.op(DivOp, shifted(w.element(op.input, index)), sum_)


@elements_of(LayerNormOp, RmsNormOp)
def _(op: NormOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    x = tensor_type(op.input)
    rank = x.rank - op.axes.value.data
    element = tensor_type(op.results[0]).element_type if op.prologue.blocks else x.element_type
    compute = compute_type(element)

    def given(at: Sequence[Index], which: int = 0) -> SSAValue:
        """The input element of the norm; with `which`, the element of that result of the prologue."""
        if not op.prologue.blocks:
            return w.element(op.input, at)
        operands = (op.input, *op.prologue_operands)
        return w.inline(op.prologue.block, [partial(w.element, v, broadcast(v, at)) for v in operands], which)

    if position:
        return given(index, position)
    read: Read = lambda taps: given([*index[:rank], *taps])  # noqa: E731
    sizes, row = x.dims[rank:], index[rank:]
    eps, value = w.property(op.eps, compute), given(index)
    if isinstance(op, RmsNormOp):

        def square(taps: Sequence[Expr]) -> SSAValue:
            return w.op(MulOp, read(taps), read(taps))

        spread = w.op(AddOp if op.bounded is None else MaxOp, mean(w, sizes, square, compute), eps)
    else:
        middle = mean(w, sizes, read, compute)
        spread = w.op(AddOp, w.op(DivOp, squares(w, sizes, read, middle), w.number(product(sizes), compute)), eps)
        value = w.op(SubOp, value, middle)
    value = w.op(MulOp, value, w.op(RsqrtOp, spread))
    if op.scale is not None:
        value = w.op(MulOp, value, w.element(op.scale, row))
    if op.bias is not None:
        value = w.op(AddOp, value, w.element(op.bias, row))
    return through_epilogue(op, w, value, index)


@elements_of(GroupNormOp)
def _(op: GroupNormOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    x, axis = tensor_type(op.input), op.dim.value.data
    channel, compute = index[axis], compute_type(x.element_type)
    if not isinstance(channel, Expr):
        raise NoElements("a channel that is a value")
    width = x.dims[axis] // op.groups.value.data
    if not w.scope.positive(width):
        raise NoElements("groups may have no channels")
    group = w.simplified(channel // width) if op.groups.value.data > 1 else const(0)
    axes = range(1, x.rank)
    sizes = [width if a == axis else x.dims[a] for a in axes]

    def read(taps: Sequence[Expr]) -> SSAValue:
        inner = [group * width + tap if a == axis else tap for a, tap in zip(axes, taps, strict=True)]
        return w.element(op.input, [index[0], *inner])

    middle = mean(w, sizes, read, compute)
    variance = w.op(DivOp, squares(w, sizes, read, middle), w.number(product(sizes), compute))
    root = w.op(RsqrtOp, w.op(AddOp, variance, w.property(op.eps, compute)))
    value = w.op(MulOp, w.op(SubOp, w.element(op.input, index), middle), root)
    if op.scale is not None:
        value = w.op(MulOp, value, w.element(op.scale, [channel]))
    if op.bias is not None:
        value = w.op(AddOp, value, w.element(op.bias, [channel]))
    return through_epilogue(op, w, value, index)


def through_epilogue(op: NormOp | GroupNormOp, w: ElementWriter, value: SSAValue, index: Sequence[Index]) -> SSAValue:
    """The result of the epilogue for a normalised element."""
    if not op.epilogue.blocks:
        return value
    operands = [partial(w.element, v, broadcast(v, index)) for v in op.epilogue_operands]
    return w.inline(op.epilogue.block, [lambda: value, *operands], 0)
