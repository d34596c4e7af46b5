"""Products of few rows with a large matrix, as in decoding, at the speed at which the matrix can be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.types import TensorType, scope_of
from ait_mlir.dims import Scope, const
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import Problem, call_template, is_narrow
from ait_mlir.lowering.kernels.gemm import ContractionKernel
from ait_mlir.lowering.kernels.tile import Tile
from ait_mlir.lowering.target import HOPPER

__all__ = ["KERNELS", "FewRowsTile", "StreamGemm", "StreamTile"]

MOST_ROWS = 16
"""The most rows of a: every 16 rows read all of b once more."""
MOST_COLUMNS = 1 << 20
"""The most columns of b: a grid has at most 65,535 tiles along a dim, the narrowest of 16 columns."""
SHARED_LIMIT = HOPPER.shared_bytes
START_SECONDS = 2e-6
RATE = 0.87
"""The share of the target's bandwidth that the kernel reaches."""


class FewRowsTile(Tile):
    """Template arguments of a tile made of `ait::gpu::FewRowsTile`, and the blocks of a cluster that share k."""

    template: ClassVar[str]
    """The name of the tile in C++."""
    eights: int
    warps: int
    blocks: int
    split: int

    @property
    def cpp(self) -> str:
        return f"ait::gpu::{self.template}<{', '.join(map(str, self.values()[:-1]))}>"

    @property
    def width(self) -> int:
        """The columns of the result."""
        raise NotImplementedError

    @property
    def registers(self) -> int:
        """Registers of a thread for what it reads and for its sums."""
        raise NotImplementedError

    @property
    def shared_bytes(self) -> int:
        return self.warps * 8 * self.eights * (self.width + 4) * 4

    def problems(self) -> Mapping[str, bool]:
        return {
            "warps is 4, 8 or 16": self.warps in (4, 8, 16),
            "blocks is 1 to 4": self.blocks <= 4,
            "split is 1, 2, 4 or 8": self.split in (1, 2, 4, 8),
            "what a thread holds fits in registers": (self.registers + 30) * 32 * self.warps * self.blocks <= 65536,
            "at most 227 KiB of shared memory": self.blocks * self.shared_bytes <= SHARED_LIMIT,
        }


@dataclass(frozen=True)
class StreamTile(FewRowsTile):
    """Template arguments of `ait::gpu::StreamTile`, and the blocks of a cluster that share k."""

    template = "StreamTile"

    kernel = "streaming gemm"
    keys = ("columns", "eights", "warps", "chunks", "blocks", "split")

    columns: int
    eights: int
    warps: int
    chunks: int
    blocks: int
    split: int

    @classmethod
    def first(cls) -> StreamTile:
        return TILES[0]

    @property
    def width(self) -> int:
        return self.columns

    @property
    def registers(self) -> int:
        return self.chunks * (self.columns // 2 + 4 * self.eights) + self.columns // 4 * self.eights

    def problems(self) -> Mapping[str, bool]:
        return {
            "columns is 16, 32 or 64": self.columns in (16, 32, 64),
            "eights is 1 or 2": self.eights in (1, 2),
            "chunks is 1, 2, 4 or 8": self.chunks in (1, 2, 4, 8),
            **super().problems(),
        }


TILES = (
    StreamTile(32, 1, 8, 2, 2, 2),
    StreamTile(16, 1, 8, 4, 3, 1),
    StreamTile(64, 1, 16, 1, 1, 2),
    StreamTile(64, 1, 16, 2, 1, 2),
    StreamTile(16, 1, 8, 4, 2, 1),
    StreamTile(32, 1, 16, 2, 1, 2),
    StreamTile(32, 2, 8, 2, 2, 2),
    StreamTile(64, 2, 16, 1, 1, 2),
    StreamTile(32, 2, 8, 2, 2, 1),
    StreamTile(32, 2, 16, 2, 1, 2),
    StreamTile(64, 2, 8, 1, 2, 1),
    StreamTile(64, 2, 16, 1, 1, 4),
)


class StreamGemm(ContractionKernel):
    """Warps that read b into registers, clusters that share k: rcr products of f16 and bf16 for sm_90 and later; also a
    matrix times a vector."""

    provider = "stream"
    max_batch_loops = 0
    one_instance = True

    def takes(self, op: ContractionOp, target: Target) -> bool:
        kind = cast(TensorType, op.a.type).element_type
        clusters = target.has("clusters")
        return target.kind == "cuda" and clusters and is_narrow(kind) and len(op.operands) <= 16

    def matches(self, op: ContractionOp, target: Target) -> bool:
        if not super().matches(op, target):
            return False
        problem, scope = self.problem(op), scope_of(op)
        few = scope.bounds(problem.m)[0] <= MOST_ROWS and scope.bounds(problem.n)[1] <= MOST_COLUMNS
        return few and scope.divisible(problem.k, 8) and _along_k(problem, scope)

    def accepts(self, op: ContractionOp, position: int, strides: Strides, scope: Scope) -> bool:
        if not super().accepts(op, position, strides, scope):
            return False
        return _along_k(self.problem(op, position, strides), scope)

    def problem(self, op: ContractionOp, position: int | None = None, strides: Strides = ()) -> Problem:
        found = Problem.contiguous(op, position, strides)
        return found.turned() if _is_column(found) else found

    def configs(self, op: ContractionOp, target: Target) -> list[dict[str, int]]:
        m = self.problem(op).sizes(scope_of(op))[0]
        return [tile.config() for tile in TILES if (tile.eights == 1) == (m <= 8)]

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        again = -(-m // MOST_ROWS)
        return START_SECONDS + 2.0 * (again * n * k + m * (n + k)) / (RATE * target.bandwidth)

    def terms(self, op: ContractionOp, config: Config, target: Target) -> Terms:
        tile = StreamTile.of(config)
        m, n, k, _ = self.problem(op).sizes(scope_of(op))
        again = -(-m // (8 * tile.eights))
        blocks = -(-n // tile.columns) * tile.split * again
        waves = -(-blocks // (target.multiprocessors * tile.blocks))
        steps = -(-k // (16 * tile.chunks * tile.warps * tile.split))
        finish = tile.warps * tile.columns * 8 * tile.eights * 0.1e-9
        first = {
            "start": 1e-6,
            "round": waves * 0.1e-6,
            "exchange": waves * 1e-6 if tile.split > 1 else 0.0,
            "finish": waves * finish,
        }
        work = {
            "b": 2.0 * again * n * k / target.bandwidth,
            "step": waves * steps * 1e-6,
            "a": 2.0 * blocks * m * k / tile.split / (2 * target.bandwidth),
        }
        return Terms(first, work)

    def check(self, op: ContractionOp, config: Config, target: Target) -> None:
        StreamTile.of(config)

    def emit(self, launch: Launch[ContractionOp]) -> Emission:
        problem = Problem.of(launch.op, launch.ins, launch.outs)
        if _is_column(problem):
            problem = problem.turned()
        tile = StreamTile.of(launch.config)
        early = "true" if problem.b.arg.constant else "false"
        template = f"gemm_stream<{tile.cpp}, {{epilogue}}>"
        return call_template(launch, "gemm_stream", template, f", {launch.cpp(const(tile.split))}, {early}", problem)


def _is_column(problem: Problem) -> bool:
    """Whether the result is a single column: a matrix times a vector, which is read as the vector times a matrix."""
    return problem.n.as_int() == 1 and problem.m.as_int() != 1 and not problem.batch


def _along_k(problem: Problem, scope: Scope) -> bool:
    """Whether k is contiguous in a and b, and their rows start on 16-byte boundaries if the first does."""
    a, b = problem.a, problem.b
    even = problem.m.as_int() == 1 or scope.divisible(a.row, 8)
    return a.col.as_int() == b.row.as_int() == 1 and even and scope.divisible(b.col, 8)


KERNELS = (StreamGemm(),)
