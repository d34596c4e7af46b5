"""Convolutions of few channels on the tensor cores of CUDA devices, of f16 and bf16, from pixels in shared memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import is_narrow
from ait_mlir.lowering.kernels.conv import ConvKernel, call_conv, weight_steps
from ait_mlir.lowering.kernels.gemm_tiles import CLOCK

__all__ = ["KERNELS", "PatchConv"]

EIGHT = 8
"""Channels of a chunk, 16 bytes; columns of a tile of the instruction."""
MOST_CHANNELS = 128
"""The most input channels. With more, `hopper` and cuDNN fill their tiles."""
MOST_SUMS = 64
"""The most sums of a lane: they stay in registers."""
CONFIGS = 4
# Fitted to times of an H100 with 3 to 96 channels and windows of 3 x 3 and 7 x 7.
WAIT_SECONDS = 0.3e-6
"""Seconds from the start of a launch to its first pixels."""
ROW_CYCLES, STEP_CYCLES = 600, 70
"""Cycles of a warp for 16 places of 16 columns: to read and finish them, and for each step along K."""
BUSY_WARPS = 6.0
"""All warps that share a multiprocessor do as much work as this many warps that each have their own."""
CACHE_BANDWIDTH = 2.5e12
"""Bytes a second with which blocks fill shared memory."""


@dataclass(frozen=True)
class PatchTile:
    """`PatchTile` of the template: `warps` of 16 `rows` places and 8 `tiles` columns each."""

    rows: int
    tiles: int
    warps: int

    @property
    def places(self) -> int:
        return 16 * self.rows * self.warps

    @property
    def columns(self) -> int:
        return EIGHT * self.tiles

    @property
    def resident(self) -> int:
        """Blocks of a multiprocessor, as `kResident` of the template."""
        sums = 4 * self.rows * self.tiles
        return (4 if sums > 32 else 5 if sums > 16 else 7) * 4 // self.warps

    def config(self) -> dict[str, int]:
        return {"rows": self.rows, "tiles": self.tiles, "warps": self.warps}

    @staticmethod
    def of(config: Config) -> PatchTile:
        return PatchTile(*(config.get(key, default) for key, default in (("rows", 2), ("tiles", 4), ("warps", 4))))


TILES = tuple(
    PatchTile(rows, tiles, warps)
    for tiles in (2, 4, 6, 8)
    for rows, warps in ((1, 4), (2, 4), (4, 4), (2, 8))
    if 4 * rows * tiles <= MOST_SUMS
)


@dataclass(frozen=True)
class _Window:
    """The sizes of a convolution from which its plans are made, at the dims of estimates."""

    places: int
    columns: int
    chunks: int
    """Chunks of a pixel."""
    taps: tuple[int, ...]
    """The extent of the window along each dim, including the gaps of dilation."""
    steps: int
    """Pairs of chunks of all taps."""
    strides: tuple[int, ...]

    @staticmethod
    def of(op: ConvOp) -> _Window:
        env = estimate_env(scope_of(op))
        chunks = -(-(tensor_type(op.x).dims[-1].as_int() or 0) // EIGHT)
        reach = tuple((taps - 1) * step + 1 for taps, step in zip(op.kernel(), op.dilations(), strict=True))
        steps = -(-math.prod(op.kernel()) * chunks // 2)
        found = op.extents()
        return _Window(found.m.evaluate(env), found.n.evaluate(env), chunks, reach, steps, tuple(op.strides()))

    def pixels(self, tile: PatchTile) -> int:
        """The number of pixels that a tile reads, if its places are about a square."""
        sides = (tile.places,)
        if len(self.taps) == 2:
            across = 1 << (tile.places.bit_length() // 2)
            sides = (tile.places // across, across)
        numbers = zip(sides, self.strides, self.taps, strict=True)
        return math.prod((side - 1) * step + reach for side, step, reach in numbers)

    def bytes(self, tile: PatchTile) -> int:
        """Bytes of shared memory of a block."""
        weight = tile.columns * (self.steps * 32 + 16)
        return self.steps * 8 + 32 + weight + self.pixels(tile) * (self.chunks // 2 * 32 + 16)

    def seconds(self, tile: PatchTile, target: Target, moved: int) -> float:
        """Estimated seconds. Blocks mostly wait: all warps of a multiprocessor do the work of `BUSY_WARPS` warps that
        do not share it."""
        row = (ROW_CYCLES + STEP_CYCLES * self.steps) * (0.6 + 0.2 * tile.tiles)  # of 16 places in one warp
        blocks = -(-self.places // tile.places) * -(-self.columns // tile.columns)
        turns = -(-blocks // target.multiprocessors)
        alone = -(-turns // tile.resident) * tile.rows * row
        around = self.pixels(tile) / (tile.places * math.prod(self.strides))
        shared = turns * tile.rows * tile.warps * row * max(1.0, around) / BUSY_WARPS
        weight = tile.columns * self.steps * 32 * min(blocks, tile.resident * target.multiprocessors)
        filled = (weight + blocks * self.pixels(tile) * self.chunks * 16) / CACHE_BANDWIDTH
        return target.launch_seconds + WAIT_SECONDS + max(moved / target.bandwidth, max(alone, shared) / CLOCK + filled)


class PatchConv(ConvKernel):
    """mma.sync over pixels in shared memory, which a block reads once for all taps and up to 64 columns."""

    provider = "patch"

    def matches(self, op: ConvOp, target: Target) -> bool:
        channels = tensor_type(op.x).dims[-1].as_int()
        return (
            super().matches(op, target)
            and target.kind == "cuda"
            and target.has("mma")
            and is_narrow(tensor_type(op.x).element_type)
            and op.num_groups() == 1
            and not op.is_transposed()
            and op.spatial <= 2
            and channels is not None
            and 0 < channels <= MOST_CHANNELS
            and any(self._tiles(op, target))
        )

    def _tiles(self, op: ConvOp, target: Target) -> Iterator[PatchTile]:
        """The tiles that fit in shared memory and are no wider than the columns of the result need."""
        window = _Window.of(op)
        widest = max(2, min(8, 2 * -(-window.columns // (2 * EIGHT))))
        yield from (t for t in TILES if t.tiles <= widest and window.bytes(t) <= target.shared_bytes)

    def _sorted(self, op: ConvOp, target: Target) -> list[PatchTile]:
        window, moved = _Window.of(op), bytes_moved(op, scope_of(op))
        return sorted(self._tiles(op, target), key=lambda tile: window.seconds(tile, target, moved))

    def configs(self, op: ConvOp, target: Target) -> list[dict[str, int]]:
        return [tile.config() for tile in self._sorted(op, target)[:CONFIGS]]

    def every_config(self, op: ConvOp, target: Target) -> list[dict[str, int]]:
        return [tile.config() for tile in self._sorted(op, target)]

    def check(self, op: ConvOp, config: Config, target: Target) -> None:
        tile = PatchTile.of(config)
        if tile not in TILES:
            known = ", ".join(f"{t.rows} x {t.tiles} x {t.warps}" for t in TILES)
            raise ValueError(
                f"no tile has rows x tiles x warps {tile.rows} x {tile.tiles} x {tile.warps}; there are {known}"
            )

    def seconds(self, op: ConvOp, target: Target) -> float:
        window, moved = _Window.of(op), bytes_moved(op, scope_of(op))
        return min(window.seconds(tile, target, moved) for tile in self._tiles(op, target))

    def accepts(self, op: ConvOp, position: int, strides: Strides, scope: Scope) -> bool:
        if position == 0:
            return strides[-1].as_int() == 1 and (
                not _in_chunks(op) or all(scope.divisible(s, EIGHT) for s in strides[:-1])
            )
        if position == 1:
            along = weight_steps(tensor_type(op.weight), strides, scope)
            return along is not None and along.as_int() == 1
        return True

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        op, tile = launch.op, PatchTile.of(launch.config)
        numbers = f"{tile.rows}, {tile.tiles}, {tile.warps}"
        chunked = str(_in_chunks(op)).lower()
        template = f"conv_patch<ait::gpu::PatchTile<{numbers}>, {chunked}, {launch.target.shared_bytes}, {{epilogue}}>"
        return call_conv(launch, "conv_patch", template, ", true" if launch.ins[1].constant else "")


def _in_chunks(op: ConvOp) -> bool:
    """Whether the channels of a pixel are whole chunks."""
    return (tensor_type(op.x).dims[-1].as_int() or 0) % EIGHT == 0


KERNELS = (PatchConv(),)
