"""Attention of padded and packed sequences on Hopper's own matrix instruction, by the kernel of plain attention."""

from __future__ import annotations

from ait_mlir.dialects.ait.attention import RaggedAttentionOp
from ait_mlir.dialects.ait.bits import known_number
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope
from ait_mlir.lowering.kernels.amounts import element_bytes
from ait_mlir.lowering.kernels.attention_hopper import (
    BANDWIDTH,
    LARGEST_HEAD,
    START_SECONDS,
    TILE_SECONDS,
    TILES,
    FlashTile,
)
from ait_mlir.lowering.kernels.attention_ragged import RaggedAttention, flag, ragged_sizes
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, Strides, Target


class HopperRaggedAttention(RaggedAttention):
    """wgmma and bulk tensor copies on sm_90a, of f16 and bf16, for heads whose widths are multiples of 8.

    Pages are left to the other kernel: a copy of several rows needs them side by side.
    """

    provider = "hopper"

    def matches(self, op: RaggedAttentionOp, target: Target) -> bool:
        if not super().matches(op, target) or not target.has("wgmma", "bulk_copies"):
            return False
        scope, scale = scope_of(op), known_number(op.scale)
        return (
            op.pages is None
            and scale is not None
            and scale > 0
            and element_bytes(tensor_type(op.qkv[0])) == 2
            and self.uses_tensor_cores(op, target)
            and self.head_size(op) <= LARGEST_HEAD
            and all(scope.divisible(tensor_type(x).dims[3], 8) for x in op.qkv)
        )

    def tiles(self, op: RaggedAttentionOp) -> tuple[FlashTile, ...]:
        """The tiles to try."""
        return TILES[-(-self.head_size(op) // 64) * 64]

    def configs(self, op: RaggedAttentionOp, target: Target) -> list[dict[str, int]]:
        sizes = ragged_sizes(op)
        return [t.config() for t in sorted(self.tiles(op), key=lambda t: t.seconds(sizes))]

    def seconds(self, op: RaggedAttentionOp, target: Target) -> float:
        sizes = ragged_sizes(op)
        moving = START_SECONDS + TILE_SECONDS[1] + sizes.bytes / (BANDWIDTH * target.bandwidth)
        return max(moving, min(t.seconds(sizes) for t in self.tiles(op)))

    def check(self, op: RaggedAttentionOp, config: Config, target: Target) -> None:
        FlashTile.of(config, self.tiles(op)[0])

    def accepts(self, op: RaggedAttentionOp, position: int, strides: Strides, scope: Scope) -> bool:
        if not super().accepts(op, position, strides, scope):
            return False
        return 3 <= position < len(op.operands) or all(scope.divisible(s, 8) for s in strides[:-1])

    def emit(self, launch: Launch[RaggedAttentionOp]) -> Emission:
        op = launch.op
        tile = FlashTile.of(launch.config, self.tiles(op)[0])
        flags = ", ".join(map(flag, (op.causal, op.window, op.segments)))
        call = f"attention_ragged_hopper<{tile.cpp}, {flags}>({self.arguments(launch)})"
        return launch.call("attention_ragged_hopper", call)


KERNELS = (HopperRaggedAttention(),)
