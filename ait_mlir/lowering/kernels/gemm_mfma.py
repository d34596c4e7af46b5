"""Contractions of f16, bf16 and i8 on the matrix cores of AMD's CDNA cards, with any elementwise epilogue inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import i8

from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.types import TensorType, scope_of
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, Target
from ait_mlir.lowering.kernels.contraction import Problem, call_template, is_narrow
from ait_mlir.lowering.kernels.gemm import ContractionKernel
from ait_mlir.lowering.kernels.tile import Tile
from ait_mlir.lowering.target import ARCHITECTURES

__all__ = ["KERNELS", "MfmaGemm", "MfmaTile"]

UNIT_RATE = 0.25 * 1.7e12
"""Multiply-adds of a compute unit per second: a quarter of its matrix cores' peak. A guess, not measured."""
STEP_SECONDS = 0.6e-6
"""The least time of a step of 32 along k, to load it from memory. A guess, not measured."""
STEP_K = 32


@dataclass(frozen=True)
class MfmaTile(Tile):
    """Template arguments of `ait::gpu::MfmaTile`: the tile, waves along its dims, the size of the instruction."""

    kernel = "MFMA gemm"
    keys = ("tile_m", "tile_n", "waves_m", "waves_n", "size")

    m: int
    n: int
    waves_m: int
    waves_n: int
    size: int

    @property
    def cpp(self) -> str:
        return f"ait::gpu::MfmaTile<{', '.join(map(str, self.values()))}>"

    @classmethod
    def first(cls) -> MfmaTile:
        return TILES[0]

    @property
    def shared_bytes(self) -> int:
        return max((self.m + self.n) * (STEP_K + 8) * 2, self.waves_m * self.size * (self.n + 4) * 4)

    def problems(self) -> Mapping[str, bool]:
        return {
            "size is 16 or 32": self.size in (16, 32),
            "1 to 16 waves": self.waves_m * self.waves_n <= 16,
            "a wave computes whole squares of that size": self.m % (self.waves_m * self.size) == 0
            and self.n % (self.waves_n * self.size) == 0,
            "a lane holds at most 128 results": self.m * self.n <= 128 * 64 * self.waves_m * self.waves_n,
            "at most 64 KiB of shared memory": self.shared_bytes <= ARCHITECTURES["gfx90a"].shared_bytes,
        }

    def seconds(self, m: int, n: int, k: int, batches: int, units: int) -> float:
        """Estimated seconds beside the launch."""
        waves = -(-(-(-m // self.m) * -(-n // self.n) * batches) // units)
        return waves * -(-k // STEP_K) * max(STEP_SECONDS / 2, self.m * self.n * STEP_K / UNIT_RATE)


TILES = (MfmaTile(128, 128, 2, 2, 32), MfmaTile(64, 64, 2, 2, 32), MfmaTile(32, 64, 1, 4, 16))


class MfmaGemm(ContractionKernel):
    """MFMA from shared memory, one tile a block, for gfx90a and gfx942."""

    provider = "mfma"

    def takes(self, op: ContractionOp, target: Target) -> bool:
        kinds = [cast(TensorType, v.type).element_type for v in (op.a, op.b)]
        has_type = target.has("mfma_bytes") if kinds == [i8, i8] else target.has("mfma") and is_narrow(kinds[0])
        return has_type and len(op.operands) <= 16

    def _best(self, m: int, n: int, k: int, batches: int, target: Target) -> list[MfmaTile]:
        units = target.multiprocessors
        return sorted(TILES, key=lambda tile: tile.seconds(m, n, k, batches, units))

    def configs(self, op: ContractionOp, target: Target) -> list[dict[str, int]]:
        problem = Problem.contiguous(op)
        return [tile.config() for tile in self._best(*problem.sizes(scope_of(op)), target)]

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        best = self._best(m, n, k, batches, target)[0]
        return target.launch_seconds + best.seconds(m, n, k, batches, target.multiprocessors)

    def check(self, op: ContractionOp, config: Config, target: Target) -> None:
        MfmaTile.of(config)

    def emit(self, launch: Launch[ContractionOp]) -> Emission:
        problem = Problem.of(launch.op, launch.ins, launch.outs)
        along_k = (problem.a.col, problem.b.row)
        flags = ", ".join("true" if stride.as_int() == 1 else "false" for stride in along_k)
        return call_template(launch, "gemm", f"gemm_mfma<{MfmaTile.of(launch.config).cpp}, {flags}, {{epilogue}}>")


KERNELS = (MfmaGemm(),)
