"""Nested concats without copies: kernels write the parts of an inner buffer directly into the outer buffer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.strided import Strided, contiguous_strides
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dialects.ait_rt.buffers import ViewOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, Scope, const, floordiv
from ait_mlir.rewrites.buffers import hoist, launch_accepts, strides_of
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native


@pattern(benefit=2, over=("whole", "reshaped"))
def write_parts_in_place(p: PatternBuilder, copied: str) -> None:
    """A buffer is written part by part and then copied, possibly in another shape: kernels that accept the strides
    write the copy's target directly."""
    source, target = p.result(p.op("ait_rt.alloc", [])), p.value()
    seen = source
    if copied == "reshaped":
        view = p.op("ait_rt.view", [source])
        seen = p.result(view)
        p.require("shows_all_in_order", view)
        p.require("one_use", seen)
    root = p.op("ait_rt.copy", [seen, target], results=0)
    p.require("parts_fit_in", source, target, root)
    p.require("is_made_beside", source, root)
    p.require("is_not_carried_on", target, source, root)
    p.require("is_written_once", source)
    p.require("is_written_once", target)
    p.apply(root, "write_parts_of_target", root)


NESTED = patterns(write_parts_in_place)


# ** constraints and rewrites **


def _source(copy: Operation) -> SSAValue:
    """The allocation that a copy reads, directly or through a view."""
    seen = copy.operands[0]
    return seen.owner.source if isinstance(seen.owner, ViewOp) else seen


def _parts(source: SSAValue, copy: Operation) -> Iterator[ViewOp | None]:
    """The views of a buffer, except the view that the copy reads; None in place of any other use."""
    for use in source.uses:
        op = use.operation
        if op is not copy and op is not copy.operands[0].owner:
            yield op if isinstance(op, ViewOp) else None


@constraint
def parts_fit_in(source: SSAValue, target: SSAValue, copy: Operation) -> bool:
    """The source is used only through views of its parts, the target can be viewed in the source's shape, and all users
    of a part are launches that accept its strides in the target."""
    scope = scope_of(copy)
    whole = _in_shape_of(source, target, scope)
    if whole is None or not any(True for _ in _parts(source, copy)):
        return False
    for part in _parts(source, copy):
        place = None if part is None else _part_of(whole, part, scope)
        if part is None or place is None:
            return False
        if not all(launch_accepts(use, place.strides, scope) for use in part.buffer.uses):
            return False
    return True


def _in_shape_of(source: SSAValue, target: SSAValue, scope: Scope) -> Strided | None:
    """The target, from its first element on, viewed in the shape of the source; None if no strides can express that."""
    dims = cast(BufferType, target.type).dims
    return Strided(dims, const(0), strides_of(target)).reshape(cast(BufferType, source.type).dims, scope)


def _part_of(whole: Strided, part: ViewOp, scope: Scope) -> Strided | None:
    """The region of `whole` that matches a view of a row-major buffer of the same shape, cut along at most one dim."""
    own, dims, strides = contiguous_strides(whole.dims), part.buffer_type.dims, part.strides.data
    if len(dims) != len(own):
        return None
    if any(d.as_int() != 1 and not scope.equal(a, b) for d, a, b in zip(dims, strides, own, strict=True)):
        return None
    cut = [i for i, (d, e) in enumerate(zip(dims, whole.dims, strict=True)) if not scope.equal(d, e)]
    offset: Expr = part.offset.data[0]
    if not cut:
        return Strided(dims, const(0), whole.strides) if scope.equal(offset, const(0)) else None
    (axis, *others) = cut
    start = floordiv(offset, own[axis])
    if others or not scope.equal(start * own[axis], offset) or not scope.le(start + dims[axis], whole.dims[axis]):
        return None
    return Strided(dims, start * whole.strides[axis], whole.strides)


@native
def write_parts_of_target(r: Rewriter, copy: Operation) -> None:
    """Let the kernels that write the parts of the copy's source write the parts of its target instead."""
    source, target, scope = _source(copy), copy.operands[1], scope_of(copy)
    alloc, seen = cast(Operation, source.owner), copy.operands[0].owner
    whole = _in_shape_of(source, target, scope)
    assert whole is not None, "write_parts_of_target needs parts_fit_in"
    places = [(part, _part_of(whole, part, scope)) for part in _parts(source, copy) if part is not None]
    r.erase(copy)
    if isinstance(seen, ViewOp):
        r.erase(seen)
    hoist(r, target, alloc)
    for part, place in places:
        assert place is not None, "write_parts_of_target needs parts_fit_in"
        moved = ViewOp(target, place.offset, place.strides, part.buffer_type)
        r.insert(moved, before=part)
        r.replace_value(part.buffer, moved.buffer)
        r.erase(part)
    r.erase(alloc)
