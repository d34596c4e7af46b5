"""Ops that drop dims: one result from many elements, wherever these are."""

from __future__ import annotations

from xdsl.dialects.builtin import f64

from ait_mlir.dialects.ait.reduce import ArgmaxOp, ReduceOp, TopkOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Expr, const, minimum
from ait_mlir.lowering.cpp import literal
from ait_mlir.lowering.kernels.base import (
    Config,
    Emission,
    Kernel,
    Launch,
    Target,
    bytes_moved,
    element_bytes,
    estimate_env,
)
from ait_mlir.lowering.kernels.loops import ZERO, Loop, collapse, nest, operand, single, sizes

RESULT_RATE = 20e9
"""Bytes per second that the threads of one result read, where there are few results."""
JOIN_SECONDS = 1e-6
"""What the second launch of a split reduction takes beside being launched."""
_STRUCTS = {"sum": "Sum", "mean": "Mean", "max": "Max", "min": "Min", "var": "Var"}


class ReduceKernel(Kernel[ReduceOp]):
    """`ait.reduce` over any dims, any strides."""

    name = "reduce"
    ops = (ReduceOp,)
    function = "reduce"
    more = ""
    """Arguments of the function behind the operands."""

    def seconds(self, op: ReduceOp, target: Target) -> float:
        rate = target.bandwidth
        if target.is_gpu:
            rate = min(rate, _results(op) * RESULT_RATE)
        return target.launch_seconds + bytes_moved(op, scope_of(op)) / rate

    def emit(self, launch: Launch[ReduceOp]) -> Emission:
        op, ins, outs, scope, dims = launch.op, launch.ins, launch.outs, launch.scope, launch.dims
        axes = op.axes()
        left = iter(outs[0].strides)
        strides = [ZERO if i in axes else next(left) for i in range(ins[0].type.rank)]
        loops = nest(ins[0].type.dims, [ins[0].strides, strides]) if ins[0].type.rank else []
        kept = collapse([x for i, x in enumerate(loops) if i not in axes] or [single(2)], scope)
        reduced = collapse([x for i, x in enumerate(loops) if i in axes] or [Loop(single(2).size, (ZERO, ZERO))], scope)
        nested = [*kept, *reduced]
        columns = reduced[-1].strides[0].as_int() != 1 and kept[-1].strides[0].as_int() == 1
        correction = 0 if op.correction is None else op.correction.value.data
        return launch.call(
            self.function,
            f"{self.function}<ait::{_STRUCTS[op.kind.data]}, {len(kept)}, {'true' if columns else 'false'}>("
            f"ctx, {sizes(nested, dims)}, {operand(ins[0].name, nested, 0, dims)}, "
            f"{operand(outs[0].name, nested, 1, dims)}, {literal(float(correction), f64)}{self.more})",
        )


class SplitReduce(ReduceKernel):
    """Few results of many elements, on a GPU: parts of them all over the card, which a second launch joins."""

    provider = "split"
    name = "reduce_split"
    function = "reduce_split"
    more = ", ws"

    def matches(self, op: ReduceOp, target: Target) -> bool:
        return target.is_gpu

    def seconds(self, op: ReduceOp, target: Target) -> float:
        return 2 * target.launch_seconds + JOIN_SECONDS + bytes_moved(op, scope_of(op)) / target.bandwidth

    def workspace(self, op: ReduceOp, config: Config) -> Expr:
        return split_bytes(op)


def split_bytes(op: ReduceOp) -> Expr:
    """Workspace of `ait::gpu::reduce_split`: parts of 1,024 blocks at most, each of up to 128 results side by side."""
    results = tensor_type(op.output).num_elements()
    part = max(4, element_bytes(tensor_type(op.output))) * (3 if op.kind.data == "var" else 1)
    return minimum(results * const(1024), results + const(1024 * 128)) * const(part)


def _results(op: ReduceOp) -> int:
    """How many results there are, at the dims of estimates."""
    return max(1, tensor_type(op.output).num_elements().evaluate(estimate_env(scope_of(op))))


class SelectKernel(Kernel[ArgmaxOp | TopkOp]):
    """`ait.argmax` over any dim and `ait.topk`, any strides."""

    name = "select"
    ops = (ArgmaxOp, TopkOp)

    def seconds(self, op: ArgmaxOp | TopkOp, target: Target) -> float:
        passes = op.k.value.data if isinstance(op, TopkOp) and target.is_gpu else 1
        return target.launch_seconds + passes * bytes_moved(op, scope_of(op)) / target.bandwidth

    def emit(self, launch: Launch[ArgmaxOp | TopkOp]) -> Emission:
        op, ins, outs, dims = launch.op, launch.ins, launch.outs, launch.dims
        shape = ins[0].type.dims
        if isinstance(op, ArgmaxOp):
            axis, count = op.dim.value.data, 1
            columns = [(*a.strides[:axis], ZERO, *a.strides[axis:]) for a in outs]
        else:
            axis, count = len(shape) - 1, op.k.value.data
            columns = [a.strides for a in outs]
        loops = nest(shape, [ins[0].strides, *columns])
        row = loops.pop(axis)
        nested = [*collapse(loops or [single(1 + len(outs))], launch.scope), row]
        results = [operand(a.name, nested, 1 + i, dims) for i, a in enumerate(outs)]
        return launch.call(
            "select",
            f"select<{'true' if len(outs) == 2 else 'false'}>(ctx, {sizes(nested, dims)}, "
            f"{operand(ins[0].name, nested, 0, dims)}, {count}, {results[0]}, {results[-1]})",
        )


KERNELS = (ReduceKernel(), SplitReduce(), SelectKernel())
