"""Elements of ops that only move elements: the operand's index for an index of the result."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ExpandOp, PermuteOp, ReshapeOp, SliceOp, SplitOp
from ait_mlir.dims import Expr, Scope, const, product, total
from ait_mlir.elements.elementwise import broadcast
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index, NoElements

MAX_PIECES = 8
"""The most operands of a concat among which an element is chosen."""


@elements_of(PermuteOp)
def _(op: PermuteOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    order = op.order()
    return w.element(op.input, [index[order.index(axis)] for axis in range(len(order))])


@elements_of(ExpandOp)
def _(op: ExpandOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    at = broadcast(op.input, index)
    kept = [*(const(0) for _ in index[len(at) :]), *at]
    if any(isinstance(i, SSAValue) and i is not k for i, k in zip(index, kept, strict=True)):
        raise NoElements("an index that is a value is checked against the dim that it indexes")
    return w.element(op.input, at)


@elements_of(SliceOp)
def _(op: SliceOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    whole, part = tensor_type(op.input).dims, tensor_type(op.output).dims
    cut = [not w.scope.equal(*sizes) for sizes in zip(whole, part, strict=True)]
    return w.element(op.input, list(map(moved, index, op.offsets.data, cut)))


@elements_of(SplitOp)
def _(op: SplitOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    axis = op.dim.value.data
    before = total(tensor_type(r).dims[axis] for r in op.results[:position])
    return w.element(op.input, [moved(i, before, len(op.results) > 1) if a == axis else i for a, i in enumerate(index)])


@elements_of(ConcatOp)
def _(op: ConcatOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    axis = op.dim.value.data
    at = index[axis]
    if not isinstance(at, Expr) or len(op.operands) > MAX_PIECES:
        raise NoElements("a concat is read at a value, or has too many operands")
    starts = [const(0)]
    for piece in op.operands:
        starts.append(starts[-1] + tensor_type(piece).dims[axis])
    pieces = [
        (piece, start, end)
        for piece, start, end in zip(op.operands, starts, starts[1:], strict=False)
        if not w.scope.le(end, at) and not w.scope.lt(at, start)
    ]

    def read(pieces: Sequence[tuple[SSAValue, Expr, Expr]]) -> SSAValue:
        (piece, start, end), *others = pieces
        place = [*index[:axis], at - start, *index[axis + 1 :]]
        if not others:
            return w.element(piece, place)
        return w.choose(w.compare("lt", at, end), lambda: w.element(piece, place), lambda: read(others))

    if not pieces:
        raise NoElements("a concat has no element there")
    return read(pieces)


@elements_of(ReshapeOp)
def _(op: ReshapeOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    return reshaped(w, op.input, tensor_type(op.output).dims, index)


def reshaped(w: ElementWriter, source: SSAValue, target: Shape, index: Sequence[Index]) -> SSAValue:
    """The element of a reshape of a tensor to the dims `target`."""
    dims_of_source = tensor_type(source).dims
    found: list[Index] = []
    for before, behind in segments(dims_of_source, target, w.scope):
        part = index[behind.start : behind.stop]
        kept = [i for i, size in zip(part, target[behind], strict=True) if size.as_int() != 1]
        dims = [size for size in dims_of_source[before] if size.as_int() != 1]
        if len(kept) == len(dims) == 1:
            inner: list[Index] = [*kept]
        elif dims:
            inner = [*unravel(w, ravel(kept, [s for s in target[behind] if s.as_int() != 1]), dims)]
        else:
            inner = []
        places = iter(inner)
        found += [const(0) if size.as_int() == 1 else next(places) for size in dims_of_source[before]]
    return w.element(source, found)


def moved(index: Index, offset: Expr, cut: bool) -> Index:
    """An index plus an offset; `cut` if the dim ends early. Raises `NoElements` for an index that is a value."""
    if isinstance(index, Expr):
        return index + offset
    if cut or offset.as_int() != 0:
        raise NoElements("an index that is a value is checked against the dim that it indexes")
    return index


def segments(source: Shape, target: Shape, scope: Scope) -> list[tuple[slice, slice]]:
    """Divides two shapes into the shortest runs of dims with equal numbers of elements."""
    found: list[tuple[slice, slice]] = []
    i = j = first = second = 0
    while i < len(source) or j < len(target):
        if i > first and j > second and scope.equal(product(source[first:i]), product(target[second:j])):
            found.append((slice(first, i), slice(second, j)))
            first, second = i, j
            continue
        left, right = product(source[first:i]), product(target[second:j])
        more_left = j >= len(target) or (i < len(source) and (i == first or scope.le(left, right)))
        if i < len(source) and more_left:
            i += 1
        else:
            j += 1
    found.append((slice(first, i), slice(second, j)))
    return found


def ravel(index: Sequence[Index], dims: Sequence[Expr]) -> Expr:
    """The row-major position of an index."""
    place = const(0)
    for i, size in zip(index, dims, strict=True):
        if not isinstance(i, Expr):
            raise NoElements("a reshape is read at a value")
        place = place * size + i
    return place


def unravel(w: ElementWriter, place: Expr, dims: Sequence[Expr]) -> list[Expr]:
    """The index of a row-major position."""
    found: list[Expr] = []
    for number in range(len(dims)):
        inner = product(dims[number + 1 :])
        if not w.scope.positive(inner):
            raise NoElements(f"a reshape divides by {inner}, which may be 0")
        at = place // inner
        found.append(w.simplified(at if number == 0 else w.simplified(at) % dims[number]))
    return found
