"""Products whose epilogue rotates heads of columns (rotary embedding), on Hopper's own matrix instruction."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.dialects.ait.gemm import RotatedGemmOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import LARGEST, Matrix, Problem, contiguous_args, is_narrow
from ait_mlir.lowering.kernels.gemm_hopper import MAX_CONFIGS, SPAN, Finish, HopperTile, best_tiles, is_aligned
from ait_mlir.lowering.kernels.loops import ZERO, broadcast_strides, collapse, nest

__all__ = ["KERNELS", "HopperRotatedGemm"]

FINISH = Finish(1, False)
"""The two tables together cost as much as one residual."""


class HopperRotatedGemm(Kernel[RotatedGemmOp]):
    """wgmma and bulk tensor copies, for f16 and bf16 on sm_90a: a tile has whole heads, a thread has both columns of a
    pair."""

    name = "rotated_gemm"
    ops = (RotatedGemmOp,)
    fitted_as = ("hopper", "gemm")
    one_instance = True

    def matches(self, op: RotatedGemmOp, target: Target) -> bool:
        scope, p = scope_of(op), problem(op, *contiguous_args(op))
        return (
            target.kind == "cuda"
            and target.has("wgmma", "bulk_copies")
            and is_narrow(tensor_type(op.a).element_type)
            and op.size.value.data % (2 * SPAN) == 0
            and bool(_tiles(op))
            and scope.positive(p.k)
            and scope.divisible(p.n, SPAN)
            and all(scope.bounds(e)[1] <= LARGEST for e in (p.m, p.n, p.k))
            and _steps_well(p, scope)
        )

    def accepts(self, op: RotatedGemmOp, position: int, strides: Strides, scope: Scope) -> bool:
        return _steps_well(problem(op, *contiguous_args(op, position, strides)), scope)

    def configs(self, op: RotatedGemmOp, target: Target) -> list[dict[str, int]]:
        return [tile.config() for tile in _tiles(op)][:MAX_CONFIGS]

    def every_config(self, op: RotatedGemmOp, target: Target) -> list[dict[str, int]]:
        return [tile.config() for tile in _tiles(op)]

    def seconds(self, op: RotatedGemmOp, target: Target) -> float:
        return _tiles(op)[0].seconds(*_sizes(op), FINISH)

    def terms(self, op: RotatedGemmOp, config: Config, target: Target) -> Terms:
        return HopperTile.of(config).terms(*_sizes(op), FINISH, target)

    def check(self, op: RotatedGemmOp, config: Config, target: Target) -> None:
        tile, size = HopperTile.of(config), op.size.value.data
        if not _fits(tile, size):
            raise ValueError(f"the tile {tile.config()} is split, or has no whole heads of {size} columns")

    def emit(self, launch: Launch[RotatedGemmOp]) -> Emission:
        op, p = launch.op, problem(launch.op, launch.ins, launch.outs)
        tile = HopperTile.of(launch.config)
        vectors = sum(1 << i for i, x in enumerate(p.extras) if x.row.as_int() == 0)
        template = f"gemm_rotated<{tile.cpp(head=op.size.value.data)}, true, {vectors}>"
        early = ", ".join("true" if x.arg.constant else "false" for x in (p.a, p.b))
        turned = launch.size(const(op.turned), "turned")
        arguments = ", ".join((*p.arguments(launch), f"{turned}, {early}"))
        return launch.call("gemm_rotated", f"{template}({arguments})")


def problem(op: RotatedGemmOp, ins: Sequence[Arg], outs: Sequence[Arg]) -> Problem:
    """The product with these buffers; leading dims are merged into m if the strides of all buffers allow it."""
    (a, b, cosines, sines), (out,) = ins, outs
    lead = out.type.dims[:-1]
    steps = [a.strides[:-1], out.strides[:-1], *(_row_strides(table, lead) for table in (cosines, sines))]
    *loops, rows = collapse(nest(lead, steps), scope_of(op))
    first = rows.strides
    if rows.size.as_int() == 1:  # the row stride is never used, so it becomes the row's length
        first = (a.type.dims[-1], out.type.dims[-1], ZERO, ZERO)
    batches = [tuple(loop.strides[i] for loop in loops) for i in range(4)]
    return Problem(
        rows.size,
        out.type.dims[-1],
        a.type.dims[-1],
        tuple(loop.size for loop in loops),
        Matrix(a, first[0], a.strides[-1], batches[0]),
        Matrix(b, b.strides[1], b.strides[0], (ZERO,) * len(loops)),
        Matrix(out, first[1], out.strides[-1], batches[1]),
        tuple(Matrix(x, first[i], x.strides[-1], batches[i]) for i, x in ((2, cosines), (3, sines))),
    )


def _row_strides(table: Arg, lead: Sequence[Expr]) -> tuple[Expr, ...]:
    rows = TensorType.get(table.type.dims[:-1], table.type.element_type)
    return broadcast_strides(Arg(table.name, rows, table.strides[:-1]), lead)


def _steps_well(p: Problem, scope: Scope) -> bool:
    """Whether all rows start on 16-byte boundaries if the first does, and there are at most two batch dims."""
    return (
        len(p.batch) <= 2
        and p.b.row.as_int() == 1
        and all(x.col.as_int() == 1 for x in (p.a, p.d, *p.extras))
        and all(is_aligned(x, scope) for x in (p.a, p.b, p.d, *p.extras))
    )


def _sizes(op: RotatedGemmOp) -> tuple[int, int, int, int]:
    return problem(op, *contiguous_args(op)).sizes(scope_of(op))


def _fits(tile: HopperTile, size: int) -> bool:
    return tile.split == 1 and tile.n % size == 0


def _tiles(op: RotatedGemmOp) -> list[HopperTile]:
    """The tiles of whole heads, the best estimate first."""
    return [tile for tile in best_tiles(*_sizes(op), FINISH) if _fits(tile, op.size.value.data)]


KERNELS = (HopperRotatedGemm(),)
