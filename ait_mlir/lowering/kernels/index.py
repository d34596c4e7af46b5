"""Ops that move elements by index."""

from __future__ import annotations

from ait_mlir.dialects.ait.index import EmbeddingOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope
from ait_mlir.lowering.kernels.base import Emission, Kernel, Launch, Strides, Target, estimate_env
from ait_mlir.lowering.kernels.loops import collapse, nest, sizes, steps


class GatherKernel(Kernel[EmbeddingOp]):
    """`ait.embedding`: copies rows of the table.

    An id outside of the table never reads outside of it: the CPU fails with a message that names the id, a GPU writes
    NaN to the row of a float table and 0 to that of another.
    """

    name = "gather"
    ops = (EmbeddingOp,)

    def seconds(self, op: EmbeddingOp, target: Target) -> float:
        env = estimate_env(scope_of(op))
        result, ids = tensor_type(op.output), tensor_type(op.ids)
        moved = 2 * result.byte_size().evaluate(env) + ids.byte_size().evaluate(env)
        return target.launch_seconds + moved / target.bandwidth

    def accepts(self, op: EmbeddingOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position == 1 or strides[-1].as_int() == 1

    def emit(self, launch: Launch[EmbeddingOp]) -> Emission:
        (table, ids), (out,) = launch.ins, launch.outs
        rows, width = table.type.dims
        loops = collapse(nest(ids.type.dims, [ids.strides, out.strides[:-1]]), launch.scope)
        return launch.call(
            "gather",
            f"gather(ctx, {sizes(loops, launch.dims)}, {table.name}, {launch.cpp(rows, width, table.strides[0])}, "
            f"{ids.name}, {steps(loops, 0, launch.dims)}, {out.name}, {steps(loops, 1, launch.dims)})",
        )


KERNELS = (GatherKernel(),)
