"""Elements of pools: a fold over the window of a result's element."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.elementwise import DivOp, WhereOp
from ait_mlir.dialects.ait.pool import AdaptivePoolOp, OverlapAddOp, PoolBase, PoolOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, ceildiv, const, maximum, minimum, product
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index, NoElements, lowest


def spatial(op: PoolBase, position: int, index: Sequence[Index]) -> list[Expr]:
    """The spatial part of an index of the first result."""
    found = [i for i in index[1:-1] if isinstance(i, Expr)]
    if position or len(found) != len(index) - 2:
        raise NoElements("the places of the largest elements, or a place that is a value")
    return found


@elements_of(PoolOp)
def _(op: PoolOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    x = tensor_type(op.x)
    compute, at = compute_type(x.element_type), spatial(op, position, index)
    mean = op.kind.data == "mean"
    starts = [i * step - before for i, step, (before, _) in zip(at, op.strides(), op.pads(), strict=True)]
    sizes = [const(n) for n in op.windows()]
    other = 0 if mean else lowest(compute)

    def read(taps: Sequence[Expr]) -> SSAValue:
        inner = [start + tap * step for start, tap, step in zip(starts, taps, op.dilations(), strict=True)]
        return w.element_or(op.x, [index[0], *inner, index[-1]], other)

    folded = w.fold("add" if mean else "max", sizes, read)
    if not mean:
        return folded
    if op.divisor is not None:
        count = const(op.divisor.value.data)
    else:
        count = product(w.simplified(seen(op, axis, start, x.dims[1 + axis])) for axis, start in enumerate(starts))
        count = maximum(count, const(1)) if op.exclude_pad is not None else count
    return w.op(DivOp, folded, w.number(count, compute))


def seen(op: PoolOp, axis: int, start: Expr, size: Expr) -> Expr:
    """The number of elements in a window along a spatial dim, with or without the padding."""
    step, window = op.dilations()[axis], const(op.windows()[axis])
    if op.exclude_pad is None:
        return maximum(minimum(ceildiv(size + op.pads()[axis][1] - start, step), window), const(0))
    first = maximum(ceildiv(-start, step), const(0))
    return maximum(minimum(ceildiv(size - start, step), window) - first, const(0))


@elements_of(AdaptivePoolOp)
def _(op: AdaptivePoolOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    x, y = tensor_type(op.x), tensor_type(op.outputs[0])
    compute, at = compute_type(x.element_type), spatial(op, position, index)
    mean = op.kind.data == "mean"
    sizes: list[Expr] = []
    spans: list[tuple[Expr, Expr]] = []
    for i, size, places in zip(at, x.dims[1:-1], y.dims[1:-1], strict=True):
        whole = size // places
        if w.scope.equal(whole * places, size):
            sizes.append(whole)
            spans.append((i * whole, whole))
        else:
            start, end = (i * size) // places, ceildiv((i + 1) * size, places)
            sizes.append(ceildiv(size, places) + 1)
            spans.append((start, end - start))
    other = w.constant(0 if mean else lowest(compute), compute)

    def read(taps: Sequence[Expr]) -> SSAValue:
        inner = [start + tap for (start, _), tap in zip(spans, taps, strict=True)]
        beyond = [w.compare("lt", tap, n) for (_, n), tap in zip(spans, taps, strict=True) if not w.scope.lt(tap, n)]
        return w.guarded(w.all_of(beyond), lambda: w.element(op.x, [index[0], *inner, index[-1]]), other)

    folded = w.fold("add" if mean else "max", sizes, read)
    return w.op(DivOp, folded, w.number(product(n for _, n in spans), compute)) if mean else folded


@elements_of(OverlapAddOp)
def _(op: OverlapAddOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    """An element sums the windows that lie over it: without a dilation, of every stride-th place of a window one."""
    strides, dilations, before = op.numbers()
    n = len(strides)
    windows = tensor_type(op.x).dims[-2 * n : -n]
    outer = index[: len(index) - n]
    at = [i + cut for i, cut in zip(index[len(outer) :], before, strict=True) if isinstance(i, Expr)]
    if len(at) < n:
        raise NoElements("a dim that windows cover is read at a value")
    dense = [dilation == 1 for dilation in dilations]
    sizes = [
        ceildiv(size, stride) if is_dense else size
        for size, stride, is_dense in zip(windows, strides, dense, strict=True)
    ]
    compute = compute_type(tensor_type(op.x).element_type)
    zero = w.constant(0, compute)

    def read(taps: Sequence[Expr]) -> SSAValue:
        places: list[Expr] = []
        numbers: list[Expr] = []
        whole: list[SSAValue] = []
        for axis, tap in enumerate(taps):
            stride, here = strides[axis], at[axis]
            if dense[axis]:
                places.append(here % stride + stride * tap)
                numbers.append(here // stride - tap)
                continue
            rest = here - dilations[axis] * tap
            places.append(tap)
            numbers.append(rest // stride)
            if stride > 1:
                whole.append(w.compare("eq", rest % stride, const(0)))
        found = w.element_or(op.x, [*outer, *places, *numbers], 0)
        condition = w.all_of(whole)
        return found if condition is None else w.op(WhereOp, condition, found, zero)

    return w.fold("add", sizes, read)
