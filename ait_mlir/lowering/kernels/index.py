"""Ops that move elements by index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.ir import Operation

from ait_mlir.dialects.ait.index import EmbeddingOp, UpdateSliceOp
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import Scope, const
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Strides, Target, bytes_moved
from ait_mlir.lowering.kernels.loops import Loop, braces, collapse, nest, sizes


class GatherKernel(Kernel):
    """`ait.embedding`: copies rows of the table.

    An id outside of the table never reads outside of it: the CPU fails with a message that names the id, a GPU writes
    NaN to the row of a float table and 0 to that of another.
    """

    provider = "native"
    name = "gather"

    def matches(self, op: Operation, target: Target) -> bool:
        return isinstance(op, EmbeddingOp)

    def heuristic(self, op: Operation, target: Target) -> float:
        return target.launch_seconds + bytes_moved(op, scope_of(op)) / target.bandwidth

    def accepts(self, op: Operation, position: int, strides: Strides, scope: Scope) -> bool:
        return position == 1 or strides[-1].as_int() == 1

    def emit(
        self,
        op: Operation,
        ins: Sequence[Arg],
        outs: Sequence[Arg],
        cpp_dims: Mapping[str, str],
        config: Mapping[str, int],
        target: Target,
    ) -> Emission:
        table, ids = ins
        (out,) = outs
        rows, width = table.type.dims
        loops = collapse(nest(ids.type.dims, [ids.strides, out.strides[:-1]]), scope_of(op))
        place = "gpu" if target.is_gpu else "cpu"
        return Emission(
            (f"ait/kernels/{place}/gather.{'cuh' if target.is_gpu else 'h'}",),
            "",
            f"return ait::{place}::gather(ctx, {sizes(loops, cpp_dims)}, {table.name}, {rows.cpp(cpp_dims)}, "
            f"{width.cpp(cpp_dims)}, {table.strides[0].cpp(cpp_dims)}, "
            f"{ids.name}, {braces((loop.strides[0] for loop in loops), cpp_dims)}, "
            f"{out.name}, {braces((loop.strides[1] for loop in loops), cpp_dims)});\n",
        )


class UpdateKernel(Kernel):
    """`ait.update_slice`: writes the rows alone, over the buffer of the tensor, which is operand 0 and the result."""

    provider = "native"
    name = "update"

    def matches(self, op: Operation, target: Target) -> bool:
        return isinstance(op, UpdateSliceOp)

    def heuristic(self, op: Operation, target: Target) -> float:
        return target.launch_seconds + bytes_moved(op, scope_of(op)) / target.bandwidth

    def accepts(self, op: Operation, position: int, strides: Strides, scope: Scope) -> bool:
        return position != 2 or all(stride.as_int() == 1 for stride in strides)

    def emit(
        self,
        op: Operation,
        ins: Sequence[Arg],
        outs: Sequence[Arg],
        cpp_dims: Mapping[str, str],
        config: Mapping[str, int],
        target: Target,
    ) -> Emission:
        _, rows, position = ins
        (out,) = outs
        axis, scope = cast(UpdateSliceOp, op).axis, scope_of(op)
        loops = nest(rows.type.dims, [rows.strides, out.strides])
        before, inner = (_merged(part, scope) for part in (loops[:axis], loops[axis + 1 :]))
        width = const(1)
        if inner and all(stride.as_int() == 1 for stride in inner[-1].strides):
            width = inner.pop().size
        loops = [*before, loops[axis], *inner]
        place = "gpu" if target.is_gpu else "cpu"
        space = ", ".join(
            (
                sizes(loops, cpp_dims),
                braces((loop.strides[0] for loop in loops), cpp_dims),
                braces((loop.strides[1] for loop in loops), cpp_dims),
                width.cpp(cpp_dims),
                str(len(before)),
                out.type.dims[axis].cpp(cpp_dims),
                str(position.type.rank),
            )
        )
        return Emission(
            (f"ait/kernels/{place}/update.{'cuh' if target.is_gpu else 'h'}",),
            "",
            f"return ait::{place}::update_slice(ctx, ait::update_space({space}), {rows.name}, {position.name}, "
            f"{out.name});\n",
        )


def _merged(loops: Sequence[Loop], scope: Scope) -> list[Loop]:
    """The same iteration space with fewer loops, none where there is a single element."""
    return [loop for loop in collapse(loops, scope) if loop.size.as_int() != 1] if loops else []


KERNELS = (GatherKernel(), UpdateKernel())
