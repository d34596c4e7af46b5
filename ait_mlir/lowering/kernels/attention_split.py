"""Attention of few rows of q over many rows of k and v, as in decoding: the whole card shares the rows of k and v."""

from __future__ import annotations

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import Scope
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.attention import (
    AttentionCall,
    AttentionKernel,
    AttentionSizes,
    accepts_strides,
    sizes_of,
)
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, Strides, Target

__all__ = ["KERNELS", "SplitAttention"]

LARGEST_HEAD = 128
MOST_ROWS = 64
"""The most rows of q: every 16 rows read all of k and v once more."""

# Fitted to times of an H200; `python -m benchmarks.contractions attention` prints such times.
START_SECONDS = 2.8e-6
BLOCK_RATE = 20e9
"""Bytes of k and v per second that a block reads."""
STEP_SECONDS = 2e-6
"""Seconds of a step of a block with 8 rows and heads of 64, when a multiprocessor computes several blocks: many short
sequences wait."""
SHARED_RATE = 5.5e12
"""Bytes of k and v per second that come from L2, because several tiles of q read them."""
MOST_BLOCKS = 16
"""Blocks of a cluster, at most; the kernel takes as many as the card runs at once."""


class SplitAttention(AttentionKernel):
    """Warps read k and v into registers, clusters join the partial results: for sm_90 and later."""

    provider = "split"

    def takes_numbers(self, op: AttentionOp, target: Target) -> bool:
        return False

    def takes_float8(self, op: AttentionOp, target: Target) -> bool:
        return False

    def matches(self, op: AttentionOp, target: Target) -> bool:
        if not super().matches(op, target) or not target.has("clusters") or op.no_softmax is not None:
            return False
        scope = scope_of(op)
        (_, _, rows), _, depth, width = sizes_of(op)
        return (
            self.uses_tensor_cores(op, target)
            and self.head_size(op, scope) <= LARGEST_HEAD
            and scope.bounds(rows)[0] <= MOST_ROWS
            and scope.divisible(depth, 8)
            and scope.divisible(width, 8)
        )

    def configs(self, op: AttentionOp, target: Target) -> list[dict[str, int]]:
        p = AttentionSizes.of(op)
        eights = 1 if p.rows * p.group <= 8 else 2
        # Between few instances and many, small blocks fill the card more evenly.
        order = (4, 8) if 16 <= p.instances // p.group < target.multiprocessors else (8, 4)
        return [{"eights": eights, "warps": warps, "blocks": MOST_BLOCKS} for warps in order]

    def seconds(self, op: AttentionOp, target: Target) -> float:
        p = AttentionSizes.of(op)
        tiles = -(-p.rows * p.group // 16)  # of q, each of which reads k and v
        instances = p.instances // p.group * tiles
        units = target.multiprocessors
        rate = target.bandwidth if instances >= units else min(instances * MOST_BLOCKS, units) * BLOCK_RATE
        moving = p.kv_bytes / rate + (tiles - 1) * p.kv_bytes / SHARED_RATE
        (first, *_), depth = self.configs(op, target), self.head_size(op, scope_of(op))
        rounds, steps = self._rounds(p, first, target)
        each = STEP_SECONDS * first["eights"] * max(1.0, depth / 64) ** 0.7
        return START_SECONDS + max(moving, rounds * steps * each if rounds > 1 else 0.0)

    @staticmethod
    def _rounds(p: AttentionSizes, config: Config, target: Target) -> tuple[int, int]:
        """The number of blocks that a multiprocessor computes in sequence, and the steps of each block."""
        eights, warps, most = _tile_of(config)
        tiles = -(-p.rows * p.group // (8 * eights))  # of q, each of which reads k and v
        blocks = max(1, min(most, -(-p.cols // (16 * warps))))
        rounds = -(-p.instances // p.group * tiles * blocks // (target.multiprocessors * max(1, 16 // warps)))
        return rounds, -(-p.cols // (16 * warps * blocks))

    def terms(self, op: AttentionOp, config: Config, target: Target) -> Terms:
        p, (eights, warps, most) = AttentionSizes.of(op), _tile_of(config)
        tiles = -(-p.rows * p.group // (8 * eights))  # of q, each of which reads k and v
        blocks = max(1, min(most, -(-p.cols // (16 * warps))))
        waves, steps = self._rounds(p, config, target)
        work = {
            "bytes": p.kv_bytes / target.bandwidth,
            "cache": (tiles - 1) * p.kv_bytes / (2 * target.bandwidth),
            "step": waves * steps * 1e-6,
        }
        return Terms({"start": 1e-6, "round": waves * 1e-6, "exchange": 1e-6 if blocks > 1 else 0.0}, work)

    def accepts(self, op: AttentionOp, position: int, strides: Strides, scope: Scope) -> bool:
        return accepts_strides(op, position, strides, scope, 8)

    def check(self, op: AttentionOp, config: Config, target: Target) -> None:
        _tile_of(config)

    def emit(self, launch: Launch[AttentionOp]) -> Emission:
        op = launch.op
        eights, warps, blocks = _tile_of(launch.config)
        depth = -(-self.head_size(op, launch.scope) // 64) * 64
        flags = ", ".join("true" if flag else "false" for flag in (op.causal is not None, op.window is not None))
        call = f"attention_split<ait::gpu::SplitTile<{depth}, {eights}, {warps}>, {flags}>"
        return AttentionCall.of(launch).emission(launch, "attention_split", call, str(blocks))


def _tile_of(config: Config) -> tuple[int, int, int]:
    """The entries `eights`, `warps` and `blocks` of a configuration; `ValueError` if the kernel has no such tile."""
    eights, warps, blocks = config.get("eights", 1), config.get("warps", 4), config.get("blocks", MOST_BLOCKS)
    if eights not in (1, 2) or warps not in (1, 2, 4, 8, 16) or blocks not in (1, 2, 4, 8, 16):
        raise ValueError(
            f"no split attention has the configuration {dict(config)}: eights is 1 or 2, warps a power of 2 "
            "up to 16, blocks one up to 16"
        )
    return eights, warps, blocks


KERNELS = (SplitAttention(),)
