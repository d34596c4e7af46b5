"""Sizes that may be too large for some dims within their ranges: the bytes of tensors, buffers and the arena, and all
numbers that a launch computes from dims.

The code of a program computes them in 64 bits, without checks. If the ranges of the dims allow one to pass 2^62, the
program also has the function `too_large` (`templates/dims.j2`), which a run asks first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dialects.ait.types import scope_of, shape_text
from ait_mlir.dialects.ait_rt.buffers import AllocOp, BufferOp, ViewOp
from ait_mlir.dialects.ait_rt.loop import LoopOp
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dims import Expr, Scope, maximum, product, total

MOST = 1 << 62
"""The largest size that programs accept, as `ait::Checked::kMost`."""


@dataclass(frozen=True)
class Size:
    """A number that must stay below 2^62, and the name of the buffer or launch that it belongs to."""

    what: str
    expr: Expr


def can_be_large(scope: Scope, exprs: Sequence[Expr]) -> bool:
    """Whether any of the expressions may pass 2^62 while it is computed."""
    return any(scope.magnitude(e) > MOST for e in exprs)


def large_sizes(program: ProgramOp, noted: Mapping[Expr, str]) -> list[Size]:
    """The sizes of a program that may be above 2^62: sizes of its buffers, and the sizes `noted` for its launches."""
    scope = program.scope
    found: dict[Expr, str] = {}
    for size in _sizes(program, noted):
        if can_be_large(scope, [size.expr]):
            found.setdefault(size.expr, size.what)
    return [Size(what, e) for e, what in found.items()]


def _sizes(program: ProgramOp, noted: Mapping[Expr, str]) -> Iterator[Size]:
    """The sizes of a program; inputs and outputs, which the caller knows, come first."""
    for op in program.inputs():
        yield from _memory(f"input '{op.buffer_name.data}'", op, op.seen())
    for op in program.outputs():
        yield from _memory(f"output '{op.buffer_name.data}'", op, op.seen())
    arena = f"the arena of @{program.sym_name.data}"
    yield Size(arena, program.arena_size)
    for dim in program.scope.bound:
        if dim.upper is not None:
            yield Size(f"the bound of dim {dim.name!r}", program.scope.upper(dim.upper))
    for op in program.all_ops():
        if isinstance(op, AllocOp):
            yield from _memory(f"a buffer {shape_text(op.buffer_type.dims)}", op, Strided.whole(op.buffer_type.dims))
            if op.at is not None:
                yield from _at_each_end(arena, op, op.at)
        elif isinstance(op, LoopOp):
            yield Size(f"the loop over {op.step!r}", program.scope.upper(op.count))
        elif isinstance(op, ViewOp):
            view = Strided(op.buffer_type.dims, op.offset.data[0], op.strides.data)
            yield from _memory(f"a view {shape_text(view.dims)} of a buffer", op, view)
    for e, what in noted.items():
        yield Size(what, program.scope.upper(e))


def _memory(what: str, op: BufferOp, tensor: Strided) -> Iterator[Size]:
    """The bytes of a tensor, up to its last element. Dims of 0 count as 1, because kernels also compute products of
    some dims of an empty tensor."""
    scope = scope_of(op)
    extents = [e if scope.positive(e) else maximum(e, 1) for e in map(scope.upper, tensor.dims)]
    sizes = [product(extents)]
    if tensor != Strided.whole(tensor.dims):
        sizes.append(total(e * s for e, s in zip(extents, tensor.strides, strict=True)) + tensor.offset + 1)
    width = BY_IR[op.buffer_type.element_type].bytes
    for number in (*(size * width for size in sizes), *tensor.dims, *tensor.strides):
        yield from _at_each_end(what, op, scope.upper(number))


def _at_each_end(what: str, op: Operation, e: Expr) -> Iterator[Size]:
    """A size at the first and the last step of the loops around an op."""
    exprs: list[Expr] = [e]
    around = op.parent_op()
    while around is not None:
        if isinstance(around, LoopOp):
            step, ends = around.step, (0, around.count - 1)
            exprs = [x.substitute({step: end}) for x in exprs for end in ends]
        around = around.parent_op()
    for x in dict.fromkeys(exprs):
        yield Size(what, x)
