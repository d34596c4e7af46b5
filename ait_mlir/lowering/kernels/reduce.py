"""Ops that drop dims: one result from many elements, wherever these are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import f64
from xdsl.ir import Operation

from ait_mlir.dialects.ait.reduce import ArgmaxOp, ReduceOp, TopkOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Expr, Scope, const, minimum
from ait_mlir.lowering.cpp import literal
from ait_mlir.lowering.kernels.base import (
    Arg,
    Emission,
    Kernel,
    Strides,
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


class ReduceKernel(Kernel):
    """`ait.reduce` over any dims, any strides."""

    provider = "native"
    name = "reduce"
    function = "reduce"
    more = ""
    """Arguments of the function behind the operands."""

    def matches(self, op: Operation, target: Target) -> bool:
        return isinstance(op, ReduceOp)

    def heuristic(self, op: Operation, target: Target) -> float:
        rate = target.bandwidth
        if target.is_gpu:
            rate = min(rate, _results(cast(ReduceOp, op)) * RESULT_RATE)
        return target.launch_seconds + bytes_moved(op, scope_of(op)) / rate

    def accepts(self, op: Operation, position: int, strides: Strides, scope: Scope) -> bool:
        return True

    def emit(
        self,
        op: Operation,
        ins: Sequence[Arg],
        outs: Sequence[Arg],
        cpp_dims: Mapping[str, str],
        config: Mapping[str, int],
        target: Target,
    ) -> Emission:
        reduction = cast(ReduceOp, op)
        scope, axes = scope_of(op), reduction.axes()
        left = iter(outs[0].strides)
        strides = [ZERO if i in axes else next(left) for i in range(ins[0].type.rank)]
        loops = nest(ins[0].type.dims, [ins[0].strides, strides]) if ins[0].type.rank else []
        kept = collapse([x for i, x in enumerate(loops) if i not in axes] or [single(2)], scope)
        reduced = collapse([x for i, x in enumerate(loops) if i in axes] or [Loop(single(2).size, (ZERO, ZERO))], scope)
        nested = [*kept, *reduced]
        columns = reduced[-1].strides[0].as_int() != 1 and kept[-1].strides[0].as_int() == 1
        correction = 0 if reduction.correction is None else reduction.correction.value.data
        place = "gpu" if target.is_gpu else "cpu"
        kind = _STRUCTS[reduction.kind.data]
        return Emission(
            (f"ait/kernels/gpu/{self.function}.cuh" if target.is_gpu else "ait/kernels/cpu/reduce.h",),
            "",
            f"return ait::{place}::{self.function}<ait::{kind}, {len(kept)}, {'true' if columns else 'false'}>("
            f"ctx, {sizes(nested, cpp_dims)}, {operand(ins[0].name, nested, 0, cpp_dims)}, "
            f"{operand(outs[0].name, nested, 1, cpp_dims)}, {literal(float(correction), f64)}{self.more});\n",
        )


class SplitReduce(ReduceKernel):
    """Few results of many elements, on a GPU: parts of them all over the card, which a second launch joins."""

    provider = "split"
    name = "reduce_split"
    function = "reduce_split"
    more = ", ws"

    def matches(self, op: Operation, target: Target) -> bool:
        return target.is_gpu and isinstance(op, ReduceOp)

    def heuristic(self, op: Operation, target: Target) -> float:
        return 2 * target.launch_seconds + JOIN_SECONDS + bytes_moved(op, scope_of(op)) / target.bandwidth

    def workspace(self, op: Operation, config: Mapping[str, int] | None = None) -> Expr:
        return split_bytes(cast(ReduceOp, op))


def split_bytes(op: ReduceOp) -> Expr:
    """Workspace of `ait::gpu::reduce_split`: parts of 1,024 blocks at most, each of up to 128 results side by side."""
    results = tensor_type(op.output).num_elements()
    part = max(4, element_bytes(tensor_type(op.output))) * (3 if op.kind.data == "var" else 1)
    return minimum(results * const(1024), results + const(1024 * 128)) * const(part)


def _results(op: ReduceOp) -> int:
    """How many results there are, at the dims of estimates."""
    return max(1, tensor_type(op.output).num_elements().evaluate(estimate_env(scope_of(op))))


class SelectKernel(Kernel):
    """`ait.argmax` over any dim and `ait.topk`, any strides."""

    provider = "native"
    name = "select"

    def matches(self, op: Operation, target: Target) -> bool:
        return isinstance(op, ArgmaxOp | TopkOp)

    def heuristic(self, op: Operation, target: Target) -> float:
        passes = op.k.value.data if isinstance(op, TopkOp) and target.is_gpu else 1
        return target.launch_seconds + passes * bytes_moved(op, scope_of(op)) / target.bandwidth

    def accepts(self, op: Operation, position: int, strides: Strides, scope: Scope) -> bool:
        return True

    def emit(
        self,
        op: Operation,
        ins: Sequence[Arg],
        outs: Sequence[Arg],
        cpp_dims: Mapping[str, str],
        config: Mapping[str, int],
        target: Target,
    ) -> Emission:
        shape = ins[0].type.dims
        if isinstance(op, ArgmaxOp):
            axis, count = op.dim.value.data, 1
            columns = [(*a.strides[:axis], ZERO, *a.strides[axis:]) for a in outs]
        else:
            axis, count = len(shape) - 1, cast(TopkOp, op).k.value.data
            columns = [a.strides for a in outs]
        loops = nest(shape, [ins[0].strides, *columns])
        row = loops.pop(axis)
        nested = [*collapse(loops or [single(1 + len(outs))], scope_of(op)), row]
        results = [operand(a.name, nested, 1 + i, cpp_dims) for i, a in enumerate(outs)]
        place = "gpu" if target.is_gpu else "cpu"
        return Emission(
            ("ait/kernels/gpu/select.cuh" if target.is_gpu else "ait/kernels/cpu/select.h",),
            "",
            f"return ait::{place}::select<{'true' if len(outs) == 2 else 'false'}>("
            f"ctx, {sizes(nested, cpp_dims)}, {operand(ins[0].name, nested, 0, cpp_dims)}, {count}, "
            f"{results[0]}, {results[-1]});\n",
        )


KERNELS = (ReduceKernel(), SplitReduce(), SelectKernel())
