"""Tiles of the native tensor-core gemm, and the estimated time of a problem with each tile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.tile import Tile
from ait_mlir.lowering.target import HOPPER, Target

CLOCK = 1.7e9
MMA_RATE = 900
"""Multiply-adds a multiprocessor reaches per cycle with mma.sync, f16."""
SHARED_RATE = 48
"""Bytes a multiprocessor takes from L2 per cycle."""
STEP_CYCLES = 130
"""Cycles of one step along K that no other work overlaps, if a multiprocessor has one small block."""
FEW_ROWS = 32
"""Up to this number of rows the time is the time to load b from memory; the next three numbers fit the times of
`python benchmarks/models.py llama-decode --measure`."""
STREAM_RATE = 2350
"""Bytes per cycle from memory, at most."""
BYTES_UNDER_WAY = 7e6
"""Bytes that must be in flight at once to reach `STREAM_RATE`."""
SPLIT_SHARE = 0.8
"""The share of `STREAM_RATE` that blocks with a split K reach."""
START_CYCLES = 2600
"""Cycles of a block beside its steps: launch, filling the pipeline, epilogue."""


@dataclass(frozen=True)
class GemmTile(Tile):
    """Template arguments of `ait::gpu::Tile`, and how many blocks of a cluster split K."""

    kernel = "native gemm"
    keys = ("tile_m", "tile_n", "tile_k", "warps_m", "warps_n", "stages", "blocks", "split")

    m: int
    n: int
    k: int
    warps_m: int
    warps_n: int
    stages: int
    blocks: int
    split: int = 1

    def cpp(self, sums: int = 1) -> str:
        gated = ", true" if sums == 2 else ""
        return f"ait::gpu::Tile<{', '.join(map(str, self.values()[:-1]))}{gated}>"

    @classmethod
    def first(cls) -> GemmTile:
        return TILES[0]

    def problems(self) -> Mapping[str, bool]:
        return {
            "a warp computes multiples of 16 rows": self.m % (16 * self.warps_m) == 0,
            "a warp computes multiples of 16 columns": self.n % (16 * self.warps_n) == 0,
            "tile_k is 32 or a multiple of 64": self.k == 32 or self.k % 64 == 0,
            "a tile has 32 or a multiple of 64 rows and columns": all(x == 32 or x % 64 == 0 for x in (self.m, self.n)),
            "2 to 8 stages": 2 <= self.stages <= 8,
            "at most 1024 threads": self.warps_m * self.warps_n <= 32,
            "at most 227 KiB of shared memory": self.shared_bytes <= HOPPER.shared_bytes,
            "at most 16 blocks": self.blocks <= 16,
            "split is 1, 2, 4 or 8": self.split in (1, 2, 4, 8),
        }

    @property
    def shared_bytes(self) -> int:
        pipeline = (self.m + self.n) * self.k * 2 * self.stages
        return max(pipeline, 16 * self.warps_m * (self.n + 8) * 4)

    def cycles(self, m: int, n: int, k: int, batches: int, target: Target) -> float:
        """Estimated cycles of a problem; for a problem without elements, the cycles of a launch."""
        if min(m, n, batches) == 0:
            return START_CYCLES
        units = target.multiprocessors
        blocks = -(-m // self.m) * -(-n // self.n) * batches * self.split
        depth = -(-k // self.split)
        resident = max(1, min(self.blocks, -(-blocks // units)))
        waves = -(-blocks // (units * resident))
        compute = resident * self.m * self.n * depth / MMA_RATE
        memory = resident * (self.m + self.n) * 2 * depth / SHARED_RATE
        latency = STEP_CYCLES * -(-depth // self.k) * (1 + self.k / 256)
        reduce = 0 if self.split == 1 else 900 + self.m * self.n * self.split / 256
        busy = START_CYCLES + waves * max(compute, memory, latency) + reduce + resident * self.m * self.n / 64
        if m > FEW_ROWS:
            return busy
        return max(busy, 0.1 * busy + self.streaming_cycles(n, k, batches, min(blocks, units * self.blocks)))

    def terms(self, m: int, n: int, k: int, batches: int, target: Target) -> Terms:
        """The parts of the time of a problem with operands of 2 bytes."""
        units = target.multiprocessors
        blocks = -(-m // self.m) * -(-n // self.n) * batches * self.split
        depth = -(-k // self.split)
        resident = max(1, min(self.blocks, -(-blocks // units)))
        waves = -(-blocks // (units * resident))
        steps = -(-depth // self.k)
        return Terms(
            {
                "start": 1e-6,
                "round": waves * 0.1e-6,
                "exchange": waves * 1e-6 if self.split > 1 else 0.0,
                "exchanged": waves * resident * self.m * self.n * 4 * (1 - 1 / self.split) / 20e9,
                "parts": waves * resident * (self.split - 1) * 0.1e-6,
                "finish": waves * resident * self.m * self.n / 64 / CLOCK,
            },
            {
                "products": waves * resident * self.m * self.n * depth / MMA_RATE / CLOCK,
                "copies": waves * resident * (self.m + self.n) * 2 * depth / SHARED_RATE / CLOCK,
                "step": waves * steps * (1 + self.k / 256) * 0.1e-6,
                "latency": waves * steps * 1e-6 / (self.stages - 1),
                "cache": blocks * depth * (self.m + self.n) * 2 / (2 * target.bandwidth),
                "b": 2.0 * n * k * batches / target.bandwidth,
                "rest": 2.0 * m * (k + n) * batches / target.bandwidth,
            },
        )

    def streaming_cycles(self, n: int, k: int, batches: int, resident: int) -> float:
        """Cycles to load all of b from memory, limited by the bytes that resident blocks have in flight at once."""
        under_way = resident * (self.stages - 1) * self.n * self.k * 2
        share = min(1.0, under_way / BYTES_UNDER_WAY) * (SPLIT_SHARE if self.split > 1 else 1.0)
        return START_CYCLES + 2 * n * k * batches / (share * STREAM_RATE)


TILES = (
    GemmTile(128, 128, 64, 2, 2, 3, 2),
    GemmTile(128, 256, 64, 2, 4, 3, 1),
    GemmTile(256, 128, 64, 4, 2, 3, 1),
    GemmTile(128, 128, 32, 2, 2, 4, 2),
    GemmTile(128, 64, 64, 2, 2, 4, 2),
    GemmTile(64, 128, 64, 2, 2, 4, 2),
    GemmTile(64, 64, 64, 2, 4, 4, 2),
    GemmTile(64, 64, 64, 2, 2, 4, 3),
    GemmTile(64, 64, 128, 2, 2, 3, 2),
    GemmTile(64, 32, 64, 2, 2, 4, 4),
    GemmTile(32, 64, 64, 2, 2, 4, 4),
    GemmTile(32, 32, 128, 2, 2, 4, 3),
)


def best_tiles(m: int, n: int, k: int, batches: int, target: Target) -> list[GemmTile]:
    """All tiles that fit the target, with each split of K that could pay, best estimate first."""
    options: list[GemmTile] = []
    for tile in (t for t in TILES if t.shared_bytes <= target.shared_bytes):
        blocks = -(-m // tile.m) * -(-n // tile.n) * batches
        for split in (1, 2, 4, 8):
            few = tile.m * tile.n <= 64 * 64 and blocks * split <= 6 * target.multiprocessors
            if split == 1 or (target.has("clusters") and few and k >= 2 * split * tile.k):
                options.append(replace(tile, split=split))
    return sorted(options, key=lambda tile: tile.cycles(m, n, k, batches, target))


def tile_for_few_rows(
    large: GemmTile, m: tuple[int, int], n: int, k: int, target: Target
) -> tuple[GemmTile, int] | None:
    """A tile for the lower part of a range of rows, and the most rows for which it is estimated to be faster.

    None where `large` is as good from the start of the range, or the range is short.
    """
    low, high = max(1, m[0]), m[1]
    if high < 2 * low:
        return None
    few = min(max(low, 128), high)
    small = best_tiles(few, n, k, 1, target)[0]
    limit, rows = 0, few
    while rows <= high and small.cycles(rows, n, k, 1, target) < large.cycles(rows, n, k, 1, target):
        limit, rows = rows, rows * 2
    return (small, limit) if limit else None
