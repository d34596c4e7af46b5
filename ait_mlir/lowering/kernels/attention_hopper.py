"""Attention on Hopper's own matrix instruction, with k and v in one piece.

Heads have up to 256 columns of f16 or bf16, or up to 128 of f8E4M3FN."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import element_bytes
from ait_mlir.lowering.kernels.attention import (
    AttentionCall,
    AttentionKernel,
    AttentionSizes,
    accepts_strides,
    is_changed,
    is_score_operand,
    rows_apart,
    sizes_of,
)
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, Strides, Target
from ait_mlir.lowering.target import HOPPER

__all__ = ["KERNELS", "FlashTile", "HopperAttention"]

LARGEST_HEAD = 256
GROUP_ROWS = 64
SHARED_LIMIT, SMS = HOPPER.shared_bytes, HOPPER.multiprocessors

# Fitted to times of an H200; `python -m benchmarks.contractions attention` prints such times.
START_SECONDS = 1.6e-6
TILE_SECONDS = {1: 0.8e-6, 2: 1.2e-6, 3: 1.6e-6}
"""Seconds of a tile beside its steps, by its number of groups: the first and the last product, and the result."""
SCORE_SECONDS = {
    **{(64, 1): 0.115e-9, (64, 2): 0.078e-9, (64, 3): 0.062e-9, (128, 1): 0.160e-9, (128, 2): 0.108e-9},
    **{(192, 1): 0.230e-9, (192, 2): 0.155e-9, (256, 1): 0.300e-9, (256, 2): 0.205e-9},  # in proportion, not measured
}
"""Seconds for one score of a step, by the columns of a head and the number of groups."""
FLOAT8_SCORE_SECONDS = {(64, 1): 9.2e-11, (64, 2): 6.85e-11, (64, 3): 5.8e-11, (128, 1): 12.4e-11, (128, 2): 8.6e-11}
"""The same of 8-bit floats; `python -m benchmarks.attention_float8 --tiles` prints such times."""
CHANGED = 1.25
"""The factor on the time of a step if the op changes scores."""
BANDWIDTH = 0.95
"""The share of the target's bandwidth that tiles reach."""


@dataclass(frozen=True)
class FlashTile:
    """Template arguments of `ait::gpu::FlashTile`; `depth` follows from the op."""

    depth: int
    groups: int
    cols: int
    stages: int
    bytes: int = 2
    """Of an element: 1 of 8-bit floats, of which a step of v is also kept with its columns along lines."""

    @property
    def cpp(self) -> str:
        is_narrow = ", 1" * (self.bytes == 1)
        return f"ait::gpu::FlashTile<{self.depth}, {self.groups}, {self.cols}, {self.stages}{is_narrow}>"

    def config(self) -> dict[str, int]:
        """The tile as a configuration in the IR."""
        return {"groups": self.groups, "cols": self.cols, "stages": self.stages}

    @staticmethod
    def of(config: Mapping[str, int], default: FlashTile) -> FlashTile:
        """The tile of a config; missing entries are as in `default`. `ValueError` if there is no such tile."""
        given = default.config() | dict(config)
        tile = FlashTile(default.depth, given["groups"], given["cols"], given["stages"], default.bytes)
        tile.check()
        return tile

    @property
    def rows(self) -> int:
        return GROUP_ROWS * self.groups

    @property
    def shared_bytes(self) -> int:
        turned = -(-self.cols // 128) * 128 * self.depth if self.bytes == 1 else 0
        stage = 2 * self.cols * self.depth * self.bytes + turned
        barriers = 16 * (2 + (2 if self.bytes == 2 else 3) * self.stages)
        return 1024 + self.rows * self.depth * self.bytes + self.stages * stage + barriers

    @property
    def registers(self) -> int:
        """Registers that a thread needs for scores, weights in the type of q, and its part of the result. 8-bit floats
        have that part twice, since each step has sums of its own."""
        return self.cols // 2 + self.cols * self.bytes // 8 + self.depth // 2 * (3 - self.bytes)

    def registers_with(self, op: AttentionOp) -> int:
        """Registers that a thread needs, including elements of the operands that change its scores."""
        count = self.registers
        for position, value in enumerate(op.operands):
            dims = tensor_type(value).dims
            if is_score_operand(op, position) and dims and dims[-1].as_int() != 1:
                lines = 2 if len(dims) > 1 and dims[-2].as_int() != 1 else 1
                words = max(1, BY_IR[tensor_type(value).element_type].bytes // 2)
                count += self.cols // 8 * lines * words
        return count

    def fits(self, op: AttentionOp) -> bool:
        """Whether scores, weights, results and the operands that change scores fit in registers."""
        return self.registers_with(op) <= REGISTERS.get(self.groups, 0)

    def check(self) -> None:
        """Raise `ValueError` where the template's static assertions would fail or registers run out."""
        problems = {
            "1 to 3 groups": 1 <= self.groups <= 3,
            f"cols is a multiple of 32 up to {128 * self.bytes}": (
                self.cols % 32 == 0 and 32 <= self.cols <= 128 * self.bytes
            ),
            "at least 1 stage": self.stages >= 1,
            "scores, weights and results of a thread fit in registers": self.registers <= REGISTERS.get(self.groups, 0),
            "at most 227 KiB of shared memory": self.shared_bytes <= SHARED_LIMIT,
        }
        wrong = [what for what, holds in problems.items() if not holds]
        if wrong:
            raise ValueError(f"no Hopper attention has the tile {self.config()}: {'; '.join(wrong)}")

    def seconds(self, p: AttentionSizes) -> float:
        """Estimated seconds of a problem."""
        rounds = -(-(-(-p.rows // self.rows) * p.instances) // SMS)
        steps = math.ceil(p.seen / self.cols)
        if p.causal:  # half of a tile's last step is hidden; in one round, the longest tile decides
            steps = p.decisive(rounds) / self.cols + 0.5
        each = SCORE_SECONDS if self.bytes == 2 else FLOAT8_SCORE_SECONDS
        step = self.rows * self.cols * each.get((self.depth, self.groups), each[self.depth, 2])
        return START_SECONDS + rounds * (TILE_SECONDS[self.groups] + max(1.0, steps) * step)


REGISTERS = {1: 208, 2: 208, 3: 136}
"""Registers of a thread for scores, weights and results, by the number of groups."""
TILES: dict[int, tuple[FlashTile, ...]] = {
    64: (FlashTile(64, 2, 128, 2), FlashTile(64, 3, 128, 2), FlashTile(64, 2, 224, 2), FlashTile(64, 1, 128, 2)),
    128: (FlashTile(128, 2, 128, 2), FlashTile(128, 2, 160, 2), FlashTile(128, 1, 128, 2)),
    192: (FlashTile(192, 2, 96, 2), FlashTile(192, 1, 96, 2)),
    256: (FlashTile(256, 2, 64, 2), FlashTile(256, 1, 64, 2)),
}
"""The tiles, by the number of columns of a head that they have room for."""
FLOAT8_TILES: dict[int, tuple[FlashTile, ...]] = {
    64: (FlashTile(64, 2, 128, 2, 1), FlashTile(64, 3, 96, 2, 1), FlashTile(64, 1, 128, 2, 1)),
    128: (FlashTile(128, 2, 128, 2, 1), FlashTile(128, 2, 96, 2, 1), FlashTile(128, 1, 128, 2, 1)),
}
"""Those of 8-bit floats."""
SHORT_STEPS = (FlashTile(64, 2, 64, 2), FlashTile(128, 2, 64, 2), FlashTile(192, 2, 64, 2), FlashTile(256, 2, 32, 2))
"""Tiles with registers left for operands that change scores; if scores are not changed, longer steps are faster."""
SHORT_FLOAT8 = (FlashTile(64, 2, 64, 2, 1), FlashTile(128, 2, 64, 2, 1))


def tiles_for(op: AttentionOp, depth: int) -> list[FlashTile]:
    """The tiles to try for an op whose heads have room for `depth` columns."""
    tiles, short = (FLOAT8_TILES, SHORT_FLOAT8) if op.reads_float8 else (TILES, SHORT_STEPS)
    whole = list(tiles.get(depth, ()))
    if not is_changed(op):
        return whole
    return [t for t in (*whole, *short) if t.depth == depth and t.fits(op)]


class HopperAttention(AttentionKernel):
    """wgmma, bulk tensor copies, a persistent grid on sm_90a; one group's softmax overlaps another group's products."""

    provider = "hopper"
    numbers_on_tensor_cores: ClassVar[bool] = True

    def takes_numbers(self, op: AttentionOp, target: Target) -> bool:
        return True

    def takes_float8(self, op: AttentionOp, target: Target) -> bool:
        """With a softmax; results are f16, bf16 or numbers of 8 bits."""
        return op.no_softmax is None and (op.quantises or element_bytes(tensor_type(op.output)) == 2)

    def matches(self, op: AttentionOp, target: Target) -> bool:
        if not super().matches(op, target) or not target.has("wgmma", "bulk_copies"):
            return False
        scope = scope_of(op)
        _, _, depth, width = sizes_of(op)
        return (
            (op.reads_float8 or self.uses_tensor_cores(op, target))
            and op.then is None
            and self.head_size(op, scope) <= LARGEST_HEAD
            and scope.divisible(depth, 16 if op.reads_float8 else 8)
            and scope.divisible(width, 16 if op.reads_float8 or op.quantises else 8)
            and bool(tiles_for(op, self.depth(op)))
        )

    def depth(self, op: AttentionOp) -> int:
        """The number of columns of a head that the op's tiles have room for."""
        return -(-self.head_size(op, scope_of(op)) // 64) * 64

    def configs(self, op: AttentionOp, target: Target) -> list[dict[str, int]]:
        problem, short = AttentionSizes.of(op), (*SHORT_STEPS, *SHORT_FLOAT8)
        return [
            t.config()
            for t in sorted(tiles_for(op, self.depth(op)), key=lambda t: (t in short, t.seconds(problem)))
        ]

    def seconds(self, op: AttentionOp, target: Target) -> float:
        problem = AttentionSizes.of(op)
        moving = START_SECONDS + TILE_SECONDS[1] + problem.bytes / (BANDWIDTH * target.bandwidth)
        steps = min(t.seconds(problem) for t in tiles_for(op, self.depth(op)))
        return max(moving, steps * (CHANGED if is_changed(op) else 1.0))

    def terms(self, op: AttentionOp, config: Config, target: Target) -> Terms:
        p, tile = AttentionSizes.of(op), FlashTile.of(config, tiles_for(op, self.depth(op))[0])
        changed = CHANGED if is_changed(op) else 1.0
        tiles = -(-p.rows // tile.rows) * p.instances
        rounds = -(-tiles // SMS)
        steps = max(1.0, math.ceil(p.seen / tile.cols))
        if p.causal:
            steps = max(1.0, p.decisive(rounds) / tile.cols + 0.5)
        work = {
            "products": rounds * steps * tile.rows * tile.cols * tile.depth * 2 * tile.bytes / 6e12 * changed,
            "scores": rounds * steps * tile.rows * tile.cols * 0.1e-9 / tile.groups * changed,
            "step": rounds * steps * 0.1e-6,
            "cache": 2.0 * tile.bytes * tiles * p.seen * tile.depth / (2 * target.bandwidth),
            "bytes": p.bytes / target.bandwidth,
        }
        first = {"start": 1e-6, "round": rounds * 1e-6, "groups": rounds * tile.groups * 0.1e-6}
        return Terms(first, work, str(tile.depth))

    def accepts(self, op: AttentionOp, position: int, strides: Strides, scope: Scope) -> bool:
        is_byte = op.quantises if position == len(op.operands) else op.reads_float8
        return accepts_strides(op, position, strides, scope, 16 if is_byte else 8)

    def check(self, op: AttentionOp, config: Config, target: Target) -> None:
        tile = FlashTile.of(config, tiles_for(op, self.depth(op))[0])
        if not tile.fits(op):
            raise ValueError(
                f"no Hopper attention has the tile {tile.config()} for these operands of the scores: a thread would "
                f"hold {tile.registers_with(op)} registers; take fewer cols"
            )

    def emit(self, launch: Launch[AttentionOp]) -> Emission:
        op = launch.op
        tile = FlashTile.of(launch.config, tiles_for(op, self.depth(op))[0])
        flags = ", ".join("true" if flag else "false" for flag in (op.causal is not None, op.window is not None))
        call = f"attention_hopper<{tile.cpp}, {flags}>"
        rows = rows_apart(launch)
        return AttentionCall.of(launch).emission(launch, "attention_hopper", call, "" if rows is None else f"0, {rows}")


KERNELS = (HopperAttention(),)
