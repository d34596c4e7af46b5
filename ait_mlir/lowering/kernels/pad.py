"""Padding and cropping of any dims, any strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, Scope
from ait_mlir.lowering.cpp import literal
from ait_mlir.lowering.kernels.base import Emission, Kernel, Launch, Target
from ait_mlir.lowering.kernels.loops import ONE, ZERO

MAX_RANK = 8


@dataclass(frozen=True)
class PadLoop:
    """The fields of `ait::PadDim`: sizes of the input and the result, elements before, strides of both."""

    size: Expr
    padded: Expr
    before: Expr
    strides: tuple[Expr, Expr]

    @property
    def plain(self) -> bool:
        """Whether the dim is not padded."""
        return self.size is self.padded and self.before is ZERO


def merged(loops: Sequence[PadLoop], across: bool, scope: Scope) -> list[PadLoop]:
    """The same elements with fewer dims: a dim without padding is merged into the previous dim.

    With `across`, also into a padded dim: if an element is outside of that dim, its whole row is.
    """
    found: list[PadLoop] = []
    for loop in loops:
        if loop.plain and loop.size.as_int() == 1:
            continue
        outer = found[-1] if found else None
        if outer is not None and loop.plain and (across or outer.plain) and _continues(outer, loop, scope):
            joined = (outer.size * loop.size, outer.padded * loop.size, outer.before * loop.size)
            found[-1] = PadLoop(*joined, loop.strides)
        else:
            found.append(loop)
    return found or [PadLoop(ONE, ONE, ZERO, (ONE, ONE))]


def _continues(outer: PadLoop, inner: PadLoop, scope: Scope) -> bool:
    return all(scope.equal(a, b * inner.size) for a, b in zip(outer.strides, inner.strides, strict=True))


MIRRORED = 7.2
"""The slowdown of a pad of the last dim by mirrored elements, on an H200: 237 us for 8 x 64 x 256 x 256 and 3."""


class PadKernel(Kernel[PadOp]):
    """`ait.pad`: copies rows on the CPU, words on a GPU."""

    name = "pad"
    ops = (PadOp,)

    def slowdown(self, op: PadOp, target: Target) -> float:
        x, y = tensor_type(op.input), tensor_type(op.results[0])
        is_plain = not x.rank or x.dims[-1] is y.dims[-1] or op.mode.data == "constant"
        return 1.0 if is_plain or not target.is_gpu else MIRRORED

    def matches(self, op: PadOp, target: Target) -> bool:
        return tensor_type(op.input).rank <= MAX_RANK

    def emit(self, launch: Launch[PadOp]) -> Emission:
        op, (x,), (y,) = launch.op, launch.ins, launch.outs
        mode = op.mode.data
        dims = zip(x.type.dims, y.type.dims, op.before.data, x.strides, y.strides, strict=True)
        loops = [PadLoop(n, m, before, (a, b)) for n, m, before, a, b in dims]
        loops = merged(loops, mode in ("constant", "circular"), launch.scope)
        text = ", ".join(f"{{{launch.cpp(e.size, e.padded, e.before, *e.strides)}}}" for e in loops)
        shape = f"ait::PadDims<{len(loops)}>{{{{{text}}}}}"
        value = literal(op.fill, x.type.element_type)
        return launch.call("pad", f"pad<ait::PadMode::{mode}>(ctx, {shape}, {x.name}, {y.name}, {value})")


KERNELS = (PadKernel(),)
