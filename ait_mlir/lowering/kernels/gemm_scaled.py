"""Products of 8-bit floats with scales of blocks, on CUDA cards that multiply these floats: wgmma, mma.sync, and plain
arithmetic for any sizes."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.dialects.ait.gemm import ScaledGemmOp
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import Scope, const
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import (
    Matrix,
    Problem,
    arg_name,
    contiguous_args,
    epilogue_functor,
    extents_fit,
    lies_in_rows,
)
from ait_mlir.lowering.kernels.gemm import SIMT_RATE
from ait_mlir.lowering.kernels.gemm_hopper import (
    MAX_CONFIGS,
    SHORT_SUM_TILES,
    START_SECONDS,
    STREAM_SHARE,
    Finish,
    ShortSumTile,
    best_tiles,
    has_aligned_rows,
    is_aligned,
)
from ait_mlir.lowering.kernels.gemm_tiles import CLOCK, GemmTile
from ait_mlir.lowering.kernels.gemm_tiles import best_tiles as best_mma_tiles
from ait_mlir.lowering.kernels.loops import broadcast_strides

__all__ = ["KERNELS", "HopperScaledGemm", "MmaScaledGemm", "ScaledGemm"]

DEPTH = 128
"""The numbers along K of a step of wgmma, whose sums are scaled together."""


class ScaledGemm(Kernel[ScaledGemmOp]):
    """Plain arithmetic: a warp for each column, its lanes share k."""

    name = "scaled_gemm"
    ops = (ScaledGemmOp,)
    one_instance = True

    def matches(self, op: ScaledGemmOp, target: Target) -> bool:
        return extents_fit(op) and target.kind == "cuda" and target.has("float8")

    def accepts(self, op: ScaledGemmOp, position: int, strides: Strides, scope: Scope) -> bool:
        return lies_in_rows(op, position, strides, scope, 2)

    def sizes(self, op: ScaledGemmOp) -> tuple[int, int, int]:
        """m, n and k at `estimate_env`."""
        extents, env = op.extents(), estimate_env(scope_of(op))
        return extents.m.evaluate(env), extents.n.evaluate(env), extents.k.evaluate(env)

    def seconds(self, op: ScaledGemmOp, target: Target) -> float:
        moved = bytes_moved(op, scope_of(op)) / target.bandwidth
        m, n, k = self.sizes(op)
        return target.launch_seconds + max(4 * moved, 8.0 * m * n * k / SIMT_RATE[4])

    def call(self, launch: Launch[ScaledGemmOp], problem: Problem) -> tuple[str, str, str]:
        """The stem of the header, the call with `{epilogue}` for the functor, and arguments after the common ones."""
        return "gemm_scaled", "gemm_scaled<{epilogue}>", ""

    def emit(self, launch: Launch[ScaledGemmOp]) -> Emission:
        op, place, dims = launch.op, launch.place, launch.dims
        problem = problem_of(op, launch.ins, launch.outs)
        rows, columns = launch.ins[2:4]
        groups = launch.cpp(rows.type.dims[1], const(op.group.value.data), const(op.block.value.data))
        definition, functor = epilogue_functor(op, place)
        header, call, more = self.call(launch, problem)
        arguments = (
            f"ctx, {problem.shape_cpp(place, dims)}, {problem.a.cpp(place, dims)}, {problem.b.cpp(place, dims)}, "
            f"ait::gpu::block_scales({rows.name}, {columns.name}, {groups}), "
            f"{problem.d.cpp(place, dims, const=False)}, {problem.extras_cpp(place, dims)}{more}"
        )
        headers = ("ait/math.h", launch.header(header))
        text = call.replace("{epilogue}", functor)
        return Emission(headers, definition, f"return ait::gpu::{text}({arguments});\n")


def fits_blocks(op: ScaledGemmOp, columns: int, depth: int) -> bool:
    """Whether a step of so many numbers along K lies in one group, and a tile of so many columns in one block."""
    return op.group.value.data % depth == 0 and op.block.value.data % columns == 0


def check_blocks(op: ScaledGemmOp, config: Config, columns: int, depth: int) -> None:
    """Raise `ValueError` unless steps and tiles lie in groups and blocks."""
    if not fits_blocks(op, columns, depth):
        group, block = op.group.value.data, op.block.value.data
        raise ValueError(
            f"the tile {dict(config)} has steps of {depth} along k and {columns} columns, which do not divide groups "
            f"of {group} and blocks of {block}"
        )


def problem_of(op: ScaledGemmOp, ins: Sequence[Arg], outs: Sequence[Arg]) -> Problem:
    """The product with these buffers, without its scales."""
    a, b = ins[:2]
    (out,) = outs
    extras = [(e, broadcast_strides(e, out.type.dims)) for e in ins[len(op.own_operands) :]]
    return Problem(
        out.type.dims[0],
        out.type.dims[1],
        a.type.dims[1],
        (),
        Matrix(a, a.strides[0], a.strides[1], ()),
        Matrix(b, b.strides[1], b.strides[0], ()),
        Matrix(out, out.strides[0], out.strides[1], ()),
        tuple(Matrix(e, strides[0], strides[1], ()) for e, strides in extras),
    )


class MmaScaledGemm(ScaledGemm):
    """mma.sync on sm_89 and later: the sums of 32 products are scaled in registers."""

    provider = "mma"

    def matches(self, op: ScaledGemmOp, target: Target) -> bool:
        fits = super().matches(op, target) and target.has("mma") and bool(self.tiles(op, target))
        return fits and all(is_aligned(x, scope_of(op)) for x in (self.problem(op).a, self.problem(op).b))

    def problem(self, op: ScaledGemmOp, position: int | None = None, strides: Strides = ()) -> Problem:
        return problem_of(op, *contiguous_args(op, position, strides))

    def accepts(self, op: ScaledGemmOp, position: int, strides: Strides, scope: Scope) -> bool:
        if not super().accepts(op, position, strides, scope):
            return False
        return position > 1 or is_aligned(self.problem(op, position, strides).one_of(arg_name(op, position)), scope)

    def tiles(self, op: ScaledGemmOp, target: Target) -> list[GemmTile]:
        """The tiles that fit the blocks, the best estimate first."""
        m, n, k = self.sizes(op)
        return [tile for tile in best_mma_tiles(m, n, -(-k // 2), 1, target) if fits_blocks(op, tile.n, 2 * tile.k)]

    def configs(self, op: ScaledGemmOp, target: Target) -> list[dict[str, int]]:
        return [tile.config() for tile in self.tiles(op, target)][:MAX_CONFIGS]

    def seconds(self, op: ScaledGemmOp, target: Target) -> float:
        m, n, k = self.sizes(op)
        return self.tiles(op, target)[0].cycles(m, n, -(-k // 2), 1, target) / CLOCK

    def check(self, op: ScaledGemmOp, config: Config, target: Target) -> None:
        tile = GemmTile.of(config)
        check_blocks(op, config, tile.n, 2 * tile.k)

    def call(self, launch: Launch[ScaledGemmOp], problem: Problem) -> tuple[str, str, str]:
        tile = GemmTile.of(launch.config)
        early = "true" if launch.ins[1].constant else "false"
        return "gemm_scaled_mma", f"gemm_scaled_mma<{tile.cpp()}, {{epilogue}}>", f", {tile.split}, {early}"


class HopperScaledGemm(MmaScaledGemm):
    """wgmma on sm_90a: the sums of a step, 128 products, are scaled in registers."""

    provider = "hopper"

    def matches(self, op: ScaledGemmOp, target: Target) -> bool:
        if not ScaledGemm.matches(self, op, target) or not target.has("wgmma", "bulk_copies"):
            return False
        problem, scope = self.problem(op), scope_of(op)
        fits = op.group.value.data == DEPTH and bool(self.short_tiles(op)) and scope.positive(problem.k)
        aligned = all(is_aligned(x, scope) for x in (problem.a, problem.b))
        return fits and aligned and all(x.col.as_int() in (0, 1) for x in problem.extras)

    def accepts(self, op: ScaledGemmOp, position: int, strides: Strides, scope: Scope) -> bool:
        if not super().accepts(op, position, strides, scope):
            return False
        is_extra = len(op.own_operands) <= position < len(op.operands)
        return not is_extra or self.problem(op, position, strides).one_of(arg_name(op, position)).col.as_int() in (0, 1)

    def short_tiles(self, op: ScaledGemmOp) -> list[ShortSumTile]:
        """The tiles that fit the blocks, the best estimate first."""
        m, n, k = self.sizes(op)
        fitting = tuple(tile for tile in SHORT_SUM_TILES if fits_blocks(op, tile.n, DEPTH))
        found = best_tiles(m, n, -(-k // 2), 1, Finish.of(op), fitting)
        return [tile for tile in found if isinstance(tile, ShortSumTile)]

    def configs(self, op: ScaledGemmOp, target: Target) -> list[dict[str, int]]:
        return [tile.config() for tile in self.short_tiles(op)][:MAX_CONFIGS]

    def seconds(self, op: ScaledGemmOp, target: Target) -> float:
        m, n, k = self.sizes(op)
        streaming = 1.0 * n * k / (STREAM_SHARE * target.bandwidth)
        return max(self.short_tiles(op)[0].seconds(m, n, -(-k // 2), 1, Finish.of(op)), START_SECONDS + streaming)

    def check(self, op: ScaledGemmOp, config: Config, target: Target) -> None:
        tile = ShortSumTile.of(config)
        check_blocks(op, config, tile.n, DEPTH)

    def call(self, launch: Launch[ScaledGemmOp], problem: Problem) -> tuple[str, str, str]:
        tile = ShortSumTile.of(launch.config)
        aligned = "true" if has_aligned_rows(problem, launch.scope) else "false"
        early = ", ".join("true" if x.arg.constant else "false" for x in (problem.a, problem.b))
        rows = sum(1 << i for i, x in enumerate(problem.extras) if x.row.as_int() == 0)
        vectors = rows + sum(1 << 16 + i for i, x in enumerate(problem.extras) if x.col.as_int() == 0)
        return "gemm_scaled_wgmma", f"gemm_scaled_wgmma<{tile.cpp()}, {aligned}, {vectors}, {{epilogue}}>", f", {early}"


KERNELS = (HopperScaledGemm(), MmaScaledGemm(), ScaledGemm())
