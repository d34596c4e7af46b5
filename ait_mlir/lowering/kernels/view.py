"""Ops that move elements and compute nothing, as copies between strided buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.strided import Strided, contiguous_strides
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.types import Shape, TensorType, scope_of
from ait_mlir.dialects.ait.view import CopiesOp, ReshapeOp
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.lowering.kernels.amounts import bytes_moved
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.loops import ZERO, Loop, collapse, nest, single, sizes, steps

MAX_RANK = 16
"""The most dims, but for those of size 1, of both sides of a copy together."""


@dataclass(frozen=True)
class Part:
    """One strided copy: from `source` at an offset to `target` at an offset, both in elements."""

    source: Arg
    target: Arg
    loops: Sequence[Loop]
    source_offset: Expr = ZERO
    target_offset: Expr = ZERO


def _loops_of(value: SSAValue) -> int:
    """The most loops over a tensor: its dims but for those of size 1."""
    return sum(dim.as_int() != 1 for dim in cast(TensorType, value.type).dims)


class CopyKernel(Kernel[Operation]):
    """`reshape`, `permute`, `expand`, `slice`, `split` and `concat` that could not become views."""

    name = "copy"
    ops = (ViewLike,)

    def matches(self, op: Operation, target: Target) -> bool:
        return sum(sorted(map(_loops_of, (*op.operands, *op.results)))[-2:]) <= MAX_RANK

    def seconds(self, op: Operation, target: Target) -> float:
        parts = max(len(op.operands), len(op.results))
        return parts * target.launch_seconds + bytes_moved(op, scope_of(op)) / target.bandwidth

    def accepts(self, op: Operation, position: int, strides: Strides, scope: Scope) -> bool:
        if not isinstance(op, ReshapeOp) or position == 0:
            return True
        source, target = (cast(TensorType, v.type).dims for v in (op.operands[0], op.results[0]))
        return all(_step(group.target, scope) is not None for group in _groups(source, target, None, strides, scope))

    def emit(self, launch: Launch[Operation]) -> Emission:
        assert isinstance(launch.op, ViewLike)
        return copies_of(launch, parts(launch.op, launch.ins, launch.outs, launch.scope))


def copies_of(launch: Launch[Any], pieces: Iterable[Part]) -> Emission:
    """The code that makes some copies."""
    dims = launch.dims
    lines = ["int32_t status = 0;"]
    for part in pieces:
        lines.append(
            f"status = ait::{launch.place}::copy(ctx, {sizes(part.loops, dims)}, "
            f"{_pointer(part.source, part.source_offset, dims)}, {steps(part.loops, 0, dims)}, "
            f"{_pointer(part.target, part.target_offset, dims)}, {steps(part.loops, 1, dims)});"
        )
        lines.append("if (status != 0) return status;")
    lines.append("return 0;")
    return Emission((launch.header("copy"),), "", "\n".join(lines) + "\n")


def parts(op: ViewLike, ins: Sequence[Arg], outs: Sequence[Arg], scope: Scope) -> Iterator[Part]:
    """The strided copies that compute `op`: each result from its place in the operand, or each operand to its place."""
    if isinstance(op, ReshapeOp):
        yield Part(ins[0], outs[0], collapse(_reshape_loops(ins[0], outs[0], scope), scope))
        return
    whole, target = (Strided(arg.type.dims, ZERO, arg.strides) for arg in (ins[0], outs[0]))
    for i, out in enumerate(outs):
        if (view := op.result_view(i, whole, scope)) is not None:
            loops = collapse(nest(view.dims, [view.strides, out.strides]), scope)
            yield Part(ins[0], out, loops, source_offset=view.offset)
    for i, arg in enumerate(ins):
        if (view := op.operand_view(i, target, scope)) is not None:
            loops = collapse(nest(view.dims, [arg.strides, view.strides]), scope)
            yield Part(arg, outs[0], loops, target_offset=view.offset)


# ** reshape **


@dataclass(frozen=True)
class Group:
    """Dims of both sides that have the same number of elements, as loops of one stride."""

    source: list[Loop]
    target: list[Loop]


def _groups(
    source: Shape, target: Shape, source_strides: Strides | None, target_strides: Strides | None, scope: Scope
) -> list[Group]:
    """Both shapes cut into the smallest groups of dims with equal products; strides of None are row-major."""
    a = _loops(source, source_strides)
    b = _loops(target, target_strides)
    cuts = [(0, 0)]
    products = _prefixes(b)
    for i, p in enumerate(_prefixes(a)):
        j = next((j for j, q in enumerate(products) if j >= cuts[-1][1] and scope.equal(p, q)), None)
        if j is not None and i + 1 < len(a) and j + 1 < len(b):
            cuts.append((i + 1, j + 1))
    cuts.append((len(a), len(b)))
    return [Group(a[i:k], b[j:m]) for (i, j), (k, m) in pairwise(cuts)]


def _loops(shape: Shape, strides: Strides | None) -> list[Loop]:
    return [loop for loop in nest(shape, [strides or contiguous_strides(shape)]) if loop.size.as_int() != 1]


def _prefixes(loops: Sequence[Loop]) -> list[Expr]:
    product, out = const(1), list[Expr]()
    for loop in loops:
        product = product * loop.size
        out.append(product)
    return out


def _step(loops: Sequence[Loop], scope: Scope) -> Expr | None:
    """The stride of the loops merged into one; None if they cannot be merged."""
    merged = collapse(loops, scope) if loops else [single(1)]
    return merged[0].strides[0] if len(merged) == 1 else None


def _reshape_loops(source: Arg, target: Arg, scope: Scope) -> list[Loop]:
    loops: list[Loop] = []
    for group in _groups(source.type.dims, target.type.dims, source.strides, target.strides, scope):
        into, out_of = _step(group.target, scope), _step(group.source, scope)
        if into is not None:
            rows = contiguous_strides([loop.size for loop in group.source])
            loops += [Loop(loop.size, (loop.strides[0], s * into)) for loop, s in zip(group.source, rows, strict=True)]
        elif out_of is not None:
            rows = contiguous_strides([loop.size for loop in group.target])
            loops += [
                Loop(loop.size, (s * out_of, loop.strides[0])) for loop, s in zip(group.target, rows, strict=True)
            ]
        else:
            raise ValueError("a reshape between two buffers that are both cut within a dim needs a copy in between")
    return loops or [single(2)]


# ** many pieces **


class CopiesKernel(Kernel[CopiesOp]):
    """`ait.copies`: one launch for as many pieces as its arguments have room for."""

    name = "copies"
    ops = (CopiesOp,)

    def matches(self, op: CopiesOp, target: Target) -> bool:
        return all(_loops_of(v) <= MAX_RANK for v in op.results)

    def emit(self, launch: Launch[CopiesOp]) -> Emission:
        dims = launch.dims
        pieces: list[str] = []
        for source, out in zip(launch.ins, launch.outs, strict=True):
            loops = collapse(nest(out.type.dims, [source.strides, out.strides]), launch.scope)
            ends = f"{source.name}, {steps(loops, 0, dims)}, {out.name}, {steps(loops, 1, dims)}"
            pieces.append(f"ait::copy_piece({sizes(loops, dims)}, {ends})")
        template = f"<{launch.target.argument_bytes}>" if launch.target.is_gpu else ""
        table = ",\n    ".join(pieces)
        return launch.call("copies", f"copies{template}(ctx, {{\n    {table}}})")


# ** text **


def _pointer(arg: Arg, offset: Expr, cpp_dims: Mapping[str, str]) -> str:
    return arg.name if offset.as_int() == 0 else f"{arg.name} + {offset.cpp(cpp_dims)}"


KERNELS = (CopyKernel(), CopiesKernel())
