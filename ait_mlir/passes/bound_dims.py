"""Makes the dims that launches bind known to later launches: kernels read them from device memory, or the host
waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait.strided import contiguous_strides
from ait_mlir.dialects.ait.types import Shape
from ait_mlir.dialects.ait_rt.buffers import CopyOp, ReadDimOp, ViewOp
from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, sym


@dataclass(frozen=True)
class BoundDim:
    """A dim, the launch that binds it, and the buffer that holds its value."""

    name: str
    binder: LaunchOp
    count: SSAValue


def place_waits(block: Block, dims: Sequence[BoundDim], can_mask: Callable[[LaunchOp], bool]) -> None:
    """Mask the launches that can read a bound dim from memory, and wait for it before the first op that cannot.

    A dim that no op waits for is read at the end of the program. `can_mask` says whether a launch's kernel can be
    masked.
    """
    for dim in dims:
        op = dim.binder.next_op
        while op is not None:
            if isinstance(op, LaunchOp):
                if names_dim(op, dim.name):
                    if op.masked is not None or mask_problem(op, dim.name) is not None or not can_mask(op):
                        break
                    op.mask(dim.name, dim.count)
            elif any(dim.name in e.symbols for inner in op.walk() for e in _dims(inner)):
                break
            op = op.next_op
        read = ReadDimOp(dim.name, dim.count)
        if op is None:
            block.add_op(read)
        else:
            block.insert_op_before(read, op)


def names_dim(launch: LaunchOp, dim: str) -> bool:
    """Whether the shape or a stride of a buffer of a launch depends on a dim."""
    return any(dim in e.symbols for value in launch.operands for e in (*_shape(value), *strides_of(value)))


def mask_problem(launch: LaunchOp, dim: str) -> str | None:
    """The reason why a launch cannot read a bound dim from memory, or None if it can: the dim must be the leading dim
    of each result and occur in no other dim and no stride."""
    for value in launch.operands:
        shape = _shape(value)
        if any(dim in e.symbols for e in (*shape[1:], *strides_of(value))):
            return f"an inner dim or a stride of {value.type} depends on {dim!r}"
        leads = shape[:1] == (sym(dim),)
        if not leads and (value in launch.outs or any(dim in e.symbols for e in shape)):
            return f"the leading dim of {value.type} is not {dim!r}"
    return None


def strides_of(value: SSAValue) -> Shape:
    """The strides of a buffer in elements."""
    return value.owner.strides.data if isinstance(value.owner, ViewOp) else contiguous_strides(_shape(value))


def _shape(value: SSAValue) -> Shape:
    assert isinstance(value.type, BufferType)
    return value.type.dims


def _dims(op: Operation) -> Iterator[Expr]:
    """The sizes that the host must know for an op: shapes and strides of operands, or the offset of a view."""
    if isinstance(op, ViewOp):
        yield from op.offset.data
    elif isinstance(op, LaunchOp | CopyOp):
        yield from (e for value in op.operands for e in (*_shape(value), *strides_of(value)))
