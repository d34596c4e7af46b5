"""Elementwise ops: one pass over memory, any strides, several results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation

from ait_mlir.dialects.ait.elementwise import ELEMENTWISE, FusedElementwiseOp
from ait_mlir.dialects.ait.types import TensorType, scope_of
from ait_mlir.dims import Scope
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Strides, Target, bytes_moved, element_bytes
from ait_mlir.lowering.kernels.loops import Loop, broadcast_strides, collapse, nest, operand, sizes
from ait_mlir.lowering.regions import functor, op_functor

MAX_OPERANDS = 32
"""Operands and results of one launch; CUDA passes at most 4 KiB of parameters."""


SHORT_ROW = 64
"""Rows known to be shorter than this are not worth a kernel for rows that repeat."""


def repeated_rows(loops: Sequence[Loop], ins: Sequence[Arg], outs: Sequence[Arg], scope: Scope) -> int:
    """A bit for each input that is one row for all of a matrix, whose rows are not known to be whole chunks; or 0.

    A chunk has 16 bytes of the narrowest operand, and at most 8 elements. All other operands must lie in memory as the
    matrix does, or be one element.
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


class MapKernel(Kernel):
    """`ait.fused_elementwise`, and each elementwise op on tensors."""

    provider = "native"
    name = "map"

    def matches(self, op: Operation, target: Target) -> bool:
        if not isinstance(op, (FusedElementwiseOp, *ELEMENTWISE)):
            return False
        values = (*op.operands, *op.results)
        return len(values) <= MAX_OPERANDS and all(isinstance(v.type, TensorType) for v in values)

    def heuristic(self, op: Operation, target: Target) -> float:
        return target.launch_seconds + bytes_moved(op, scope_of(op)) / target.bandwidth

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
        shape = outs[0].type.dims
        strides = [broadcast_strides(a, shape) for a in ins] + [a.strides for a in outs]
        loops = collapse(nest(shape, strides), scope_of(op))
        packs = [
            ", ".join(operand(a.name, loops, first + i, cpp_dims) for i, a in enumerate(args))
            for first, args in ((0, ins), (len(ins), outs))
        ]
        name = "map_@ID@"
        fused = isinstance(op, FusedElementwiseOp)
        place = "gpu" if target.is_gpu else "cpu"
        repeated = repeated_rows(loops, ins, outs, scope_of(op)) if target.is_gpu else 0
        template = f"{name}, {repeated:#x}" if repeated else name
        return Emission(
            (f"ait/kernels/{place}/map.{'cuh' if target.is_gpu else 'h'}",),
            functor(op.body, name) if fused else op_functor(op, name),
            f"return ait::{place}::map<{template}>(ctx, {sizes(loops, cpp_dims)}, "
            f"ait::pack({packs[0]}), ait::pack({packs[1]}));\n",
        )


KERNELS = (MapKernel(),)
