"""Elementwise ops: one pass over memory, any strides, several results."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from ait_mlir.dialects.ait.elementwise import ElementwiseOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dims import Scope
from ait_mlir.lowering.kernels.amounts import element_bytes
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Launch, Target
from ait_mlir.lowering.kernels.loops import Loop, broadcast_strides, collapse, in_order_of, nest, pack, sizes
from ait_mlir.lowering.regions import functor, functor_name, op_functor

MAX_OPERANDS = 32
"""Operands and results of one launch; CUDA passes at most 4 KiB of parameters."""


SHORT_ROW = 64
"""Shorter rows are not worth the kernel for repeated rows."""


def repeated_rows(loops: Sequence[Loop], ins: Sequence[Arg], outs: Sequence[Arg], scope: Scope) -> int:
    """A bit mask of the inputs that repeat one row over a matrix whose rows may not be whole chunks; 0 if none do.

    A chunk has 16 bytes of the narrowest operand, and at most 8 elements. All other operands must have the matrix's
    layout, or be one element; otherwise the result is 0.
    """
    widths = [element_bytes(a.type) for a in (*ins, *outs)]
    chunk = min(16 // min(widths), 8)
    if len(loops) != 2 or scope.divisible(loops[1].size, chunk) or scope.bounds(loops[1].size)[1] < SHORT_ROW:
        return 0
    rows, columns = loops
    repeated = 0
    for i, (outer, inner, width) in enumerate(zip(rows.strides, columns.strides, widths, strict=True)):
        one = i < len(ins) and outer.as_int() == 0
        if one and inner.as_int() == 1 and width * chunk % 16 == 0:
            repeated |= 1 << i
        elif not (one and inner.as_int() == 0) and not (inner.as_int() == 1 and scope.equal(outer, columns.size)):
            return 0
    return repeated


def is_pitched(loops: Sequence[Loop], ins: Sequence[Arg], outs: Sequence[Arg], scope: Scope) -> bool:
    """Whether the results are matrices whose rows lie apart, on boundaries of 16 bytes, and have no whole chunks."""
    if len(loops) != 2 or scope.bounds(loops[1].size)[1] < SHORT_ROW:
        return False
    rows, columns = loops
    chunk = min(16 // min(element_bytes(a.type) for a in (*ins, *outs)), 8)
    return not scope.divisible(columns.size, chunk) and all(
        inner.as_int() == 1 and scope.divisible(outer, chunk)
        for outer, inner in zip(rows.strides[len(ins) :], columns.strides[len(ins) :], strict=True)
    )


class MapKernel(Kernel[Operation]):
    """`ait.fused_elementwise`, and each elementwise op on tensors."""

    name = "map"
    ops = (FusedElementwiseOp, ElementwiseOp)

    def matches(self, op: Operation, target: Target) -> bool:
        values = (*op.operands, *op.results)
        return len(values) <= MAX_OPERANDS and all(isinstance(v.type, TensorType) for v in values)

    def masks(self, op: Operation, target: Target) -> bool:
        return target.is_gpu

    def emit(self, launch: Launch[Operation]) -> Emission:
        op, ins, outs = launch.op, launch.ins, launch.outs
        shape = outs[0].type.dims
        strides = [broadcast_strides(a, shape) for a in ins] + [a.strides for a in outs]
        loops = nest(shape, strides)
        if launch.masked is None:  # which counts along the leading dim
            loops = in_order_of(loops, len(ins), launch.scope)
        loops = collapse(loops, launch.scope)
        packs = [pack(args, loops, first, launch.dims) for first, args in ((0, ins), (len(ins), outs))]
        if isinstance(op, FusedElementwiseOp):
            name = functor_name(op.body.block.ops)
            definitions = functor(op.body, name)
        else:
            name = functor_name([op])
            definitions = op_functor(op, name)
        if launch.masked is not None:
            each = loops[0].size.substitute({launch.masked: 1})
            call = (
                f"map_masked<{name}>(ctx, {sizes(loops, launch.dims)}, n, {launch.cpp(each)}, {packs[0]}, {packs[1]})"
            )
            return launch.call("map_masked", call, definitions)
        repeated = repeated_rows(loops, ins, outs, launch.scope) if launch.target.is_gpu else 0
        template = f"{name}, {repeated:#x}" if repeated else name
        if launch.target.is_gpu and is_pitched(loops, ins, outs, launch.scope):
            template = f"{name}, 0, true"
        return launch.call(
            "map",
            f"map<{template}>(ctx, {sizes(loops, launch.dims)}, {packs[0]}, {packs[1]})",
            definitions,
        )


KERNELS = (MapKernel(),)
