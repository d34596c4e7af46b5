"""Ops that drop dims: one result from many elements, along any dims and with any strides."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import f64, i32
from xdsl.ir import Attribute

from ait_mlir.dialects.ait.dtypes import BY_IR, compute_type, is_float
from ait_mlir.dialects.ait.reduce import ArgmaxOp, ReduceOp, TopkOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import const, minimum
from ait_mlir.lowering.cpp import literal
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Target
from ait_mlir.lowering.kernels.loops import ZERO, Loop, collapse, nest, operand, single, sizes

RESULT_RATE = 20e9
"""Bytes per second that the threads of one result read, if there are few results."""
JOIN_SECONDS = 1e-6
"""Seconds of the second launch of a split reduction, in addition to the launch itself."""
MOMENTS = 2.9
"""The slowdown of a variance along a dim that is not the last, on an H200: 184 us for 256 x 1,024 x 256 in f32."""
COLUMNS_CPU = 2.0
"""The slowdown on a core of a reduction along a dim that is not the last: 25 us for 89 x 56 x 32 in f32."""
_STRUCTS = {"sum": "Sum", "prod": "Prod", "mean": "Mean", "max": "Max", "min": "Min", "var": "Var"}


class ReduceKernel(Kernel[ReduceOp]):
    """`ait.reduce` over any dims, any strides."""

    name = "reduce"
    ops = (ReduceOp,)
    one_instance = True

    def seconds(self, op: ReduceOp, target: Target) -> float:
        rate = target.bandwidth
        if target.is_gpu:
            rate = min(rate, _results(op) * RESULT_RATE)
        return target.launch_seconds + self.slowdown(op, target) * bytes_moved(op, scope_of(op)) / rate

    def slowdown(self, op: ReduceOp, target: Target) -> float:
        return _slowdown(op) if target.is_gpu else COLUMNS_CPU if _direction(op) == "columns" else 1.0

    def terms(self, op: ReduceOp, config: Config, target: Target) -> Terms:
        moved, results = bytes_moved(op, scope_of(op)), _results(op)
        work = {"bytes": self.slowdown(op, target) * moved / target.bandwidth}
        if target.is_gpu:
            work["few"] = moved / (results * RESULT_RATE)
        return Terms({"start": target.launch_seconds}, work, _direction(op))

    def emit(self, launch: Launch[ReduceOp]) -> Emission:
        c = _Code.of(launch)
        call = f"reduce<{c.template}>(ctx, {c.sizes}, {c.operand}, {c.result}, {c.correction})"
        return launch.call("reduce", call)


class SplitReduce(Kernel[ReduceOp]):
    """Few results of many elements, on a GPU: blocks on the whole card reduce parts, a second launch joins them."""

    provider = "split"
    name = "reduce_split"
    ops = (ReduceOp,)
    one_instance = True
    gpu_only = True

    def seconds(self, op: ReduceOp, target: Target) -> float:
        moved = self.slowdown(op, target) * bytes_moved(op, scope_of(op))
        return 2 * target.launch_seconds + JOIN_SECONDS + moved / target.bandwidth

    def slowdown(self, op: ReduceOp, target: Target) -> float:
        return _slowdown(op)

    def terms(self, op: ReduceOp, config: Config, target: Target) -> Terms:
        results = 4.0 * min(1024 * _results(op), 1024 * 128 + _results(op))
        moved = self.slowdown(op, target) * bytes_moved(op, scope_of(op))
        work = {"bytes": moved / target.bandwidth, "parts": results / target.bandwidth}
        return Terms({"start": 2 * target.launch_seconds}, work, _direction(op))

    def between(self, op: ReduceOp, config: Config, target: Target) -> tuple[TensorType, ...]:
        """The partial results of at most 1,024 blocks, each for up to 128 results; a variance needs three numbers."""
        results = tensor_type(op.output).num_elements()
        parts = minimum(results * const(1024), results + const(1024 * 128))
        numbers = [const(3)] if op.kind.data == "var" else []
        return (TensorType.get([parts, *numbers], _accumulator(tensor_type(op.output).element_type)),)

    def emit(self, launch: Launch[ReduceOp]) -> tuple[Emission, ...]:
        c, (parts,) = _Code.of(launch), launch.between
        given = f"ctx, {c.sizes}, {c.operand}"
        return (
            launch.call("reduce_split", f"reduce_parts<{c.template}>({given}, {parts.name})"),
            launch.call("reduce_split", f"join_parts<{c.template}>({given}, {parts.name}, {c.result}, {c.correction})"),
        )


@dataclass(frozen=True)
class _Code:
    """The C++ pieces of a call of a reduction template."""

    template: str
    sizes: str
    operand: str
    result: str
    correction: str

    @staticmethod
    def of(launch: Launch[ReduceOp]) -> _Code:
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
        return _Code(
            f"ait::{_STRUCTS[op.kind.data]}, {len(kept)}, {'true' if columns else 'false'}",
            sizes(nested, dims),
            operand(ins[0].name, nested, 0, dims),
            operand(outs[0].name, nested, 1, dims),
            literal(float(correction), f64),
        )


def _accumulator(element_type: Attribute) -> Attribute:
    """The type of the accumulator: the compute type for floats, at least 32 bits for integers."""
    if is_float(element_type):
        return compute_type(element_type)
    return element_type if BY_IR[element_type].bytes >= 4 else i32


def _results(op: ReduceOp) -> int:
    """The number of results at the dims of estimates."""
    return max(1, tensor_type(op.output).num_elements().evaluate(estimate_env(scope_of(op))))


def _slowdown(op: ReduceOp) -> float:
    return MOMENTS if op.kind.data == "var" and _direction(op) == "columns" else 1.0


def _direction(op: ReduceOp) -> str:
    """`rows` if the elements of one result are adjacent, else `columns`; they run at different speeds."""
    return "rows" if tensor_type(op.operands[0]).rank - 1 in op.axes() else "columns"


SELECTING = 3.2
"""The slowdown of an argmax on an H200: 197 us for 1,024 x 128,256 in f16."""


class SelectKernel(Kernel[ArgmaxOp | TopkOp]):
    """`ait.argmax`, and `ait.topk` on a CPU, along any dim, any strides."""

    name = "select"
    ops = (ArgmaxOp, TopkOp)

    def slowdown(self, op: ArgmaxOp | TopkOp, target: Target) -> float:
        return SELECTING if target.is_gpu else 1.0

    def matches(self, op: ArgmaxOp | TopkOp, target: Target) -> bool:
        return not (target.is_gpu and isinstance(op, TopkOp))

    def emit(self, launch: Launch[ArgmaxOp | TopkOp]) -> Emission:
        op, ins, outs, dims = launch.op, launch.ins, launch.outs, launch.dims
        shape = ins[0].type.dims
        if isinstance(op, ArgmaxOp):
            axis, count = op.dim.value.data, 1
            columns = [(*a.strides[:axis], ZERO, *a.strides[axis:]) for a in outs]
        else:
            axis, count = op.axis, op.k.value.data
            columns = [a.strides for a in outs]
        loops = nest(shape, [ins[0].strides, *columns])
        row = loops.pop(axis)
        nested = [*collapse(loops or [single(1 + len(outs))], launch.scope), row]
        results = [operand(a.name, nested, 1 + i, dims) for i, a in enumerate(outs)]
        smallest = op.smallest is not None
        flags = (len(outs) == 2, smallest, isinstance(op, ArgmaxOp) or not smallest)
        return launch.call(
            "select",
            f"select<{', '.join('true' if f else 'false' for f in flags)}>(ctx, {sizes(nested, dims)}, "
            f"{operand(ins[0].name, nested, 0, dims)}, {count}, {results[0]}, {results[-1]})",
        )


KERNELS = (ReduceKernel(), SplitReduce(), SelectKernel())
