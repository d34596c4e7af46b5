"""Padding and cropping by pads in PyTorch's order: before and after each dim, from the last dim to the first."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const

ZERO = const(0)


def pad(w: Writer, x: SSAValue, pads: Sequence[Expr], mode: str = "constant", value: float = 0.0) -> SSAValue:
    """x padded in a mode; `value` fills constant pads. Negative pads crop."""
    rank = tensor_type(x).rank
    before, behind = ([ZERO] * (rank - len(pads) // 2) + [*pads[first::-2]] for first in (-2, -1))
    if mode == "circular":  # PyTorch repeats the part that is left after the crop
        for axis, (n, m) in enumerate(zip(before, behind, strict=True)):
            if any((e.as_int() or 0) < 0 for e in (n, m)):
                start, end = (-e if (e.as_int() or 0) < 0 else ZERO for e in (n, m))
                x = w.slice(x, axis, start, tensor_type(x).dims[axis] - start - end)
                before[axis], behind[axis] = n + start, m + end
    dims = [n + d + m for n, d, m in zip(before, tensor_type(x).dims, behind, strict=True)]
    return w.put(PadOp(mode, x, before, dims, value or None))
