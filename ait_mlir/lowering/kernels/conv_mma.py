"""Convolutions on the tensor cores of CUDA devices, of f16, bf16, and f32 as TF32, with any epilogue inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope, const
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import in_halves, matrices_beside, on_mma
from ait_mlir.lowering.kernels.conv import ConvKernel, call_conv, is_depthwise, weight_steps
from ait_mlir.lowering.kernels.gemm_tiles import CLOCK, GemmTile, best_tiles

__all__ = ["KERNELS", "MmaConv"]

CONFIGS = 4
"""The number of tiles to try for the largest sizes, and again for the smallest."""
GATHER_SHARE = 1.1
"""The time of a product with gathered rows, relative to a product with rows in memory. A guess, not measured."""
ELEMENT_RATE = 1.8e11
"""Elements per second gathered one by one, from the first convolution of a ResNet-50 with 32 images on an H200."""


@cache
def _tiles(m: int, n: int, k: int, groups: int, target: Target) -> tuple[GemmTile, ...]:
    return tuple(best_tiles(m, n, k, groups, target))


class MmaConv(ConvKernel):
    """mma.sync over gathered rows, a product for each group. Rows are gathered by asynchronous copies of 16 bytes, a
    chunk, if the channels of a group are a whole number of chunks, otherwise element by element.
    """

    provider = "mma"
    name = "conv"

    def matches(self, op: ConvOp, target: Target) -> bool:
        most_taps = 31 // op.spatial  # GatherTile::kBits
        return (
            super().matches(op, target)
            and on_mma(op, target)
            and not op.is_transposed()
            and not is_depthwise(op)
            and scope_of(op).positive(tensor_type(op.x).dims[-1])
            and max(op.kernel()) <= most_taps
        )

    def _chunk(self, op: ConvOp) -> int:
        """The number of elements in a chunk: 16 bytes, copied at once."""
        return 16 // element_bytes(tensor_type(op.x))

    def _in_chunks(self, op: ConvOp) -> bool:
        return scope_of(op).divisible(tensor_type(op.weight).dims[-1], self._chunk(op))

    def _sizes(self, op: ConvOp, env: Mapping[str, int]) -> tuple[int, int, int, int]:
        """Rows and columns of the product of a group, its depth in elements of 2 bytes, and the number of groups."""
        found = op.extents()
        depth = in_halves(found.k.evaluate(env), tensor_type(op.x).element_type)
        return found.m.evaluate(env), found.n.evaluate(env), depth, op.num_groups()

    def configs(self, op: ConvOp, target: Target) -> list[dict[str, int]]:
        """The best tiles at the largest sizes and at the smallest, in turn."""
        scope = scope_of(op)
        few = {dim.name: min(dim.hints) if dim.hints else max(1, dim.lo) for dim in scope.dims}
        large, small = (_tiles(*self._sizes(op, env), target)[:CONFIGS] for env in (estimate_env(scope), few))
        tiles = dict.fromkeys(tile for pair in zip(large, small, strict=True) for tile in pair)
        return [tile.config() for tile in tiles]

    def every_config(self, op: ConvOp, target: Target) -> list[dict[str, int]]:
        return [tile.config() for tile in _tiles(*self._sizes(op, estimate_env(scope_of(op))), target)]

    def check(self, op: ConvOp, config: Config, target: Target) -> None:
        GemmTile.of(config)

    def seconds(self, op: ConvOp, target: Target) -> float:
        m, n, k, groups = self._sizes(op, estimate_env(scope_of(op)))
        size = element_bytes(tensor_type(op.x))
        busy = _tiles(m, n, k, groups, target)[0].cycles(m, n, k, groups, target) / CLOCK * GATHER_SHARE
        if not self._in_chunks(op):
            busy += groups * m * k * 2 / size / ELEMENT_RATE
        return busy + matrices_beside(op) * size * groups * m * n / target.bandwidth

    def terms(self, op: ConvOp, config: Config, target: Target) -> Terms:
        return self.terms_of(op, target)(config)

    def terms_of(self, op: ConvOp, target: Target) -> Callable[[Config], Terms]:
        m, n, k, groups = self._sizes(op, estimate_env(scope_of(op)))
        operand = matrices_beside(op) * element_bytes(tensor_type(op.x)) * groups * m * n / target.bandwidth
        gather = 0.0 if self._in_chunks(op) else groups * m * k * 2 / element_bytes(tensor_type(op.x)) / ELEMENT_RATE
        rest = bytes_moved(op, scope_of(op)) / target.bandwidth

        def terms(config: Config) -> Terms:
            found = GemmTile.of(config).terms(m, n, k, groups, target)
            return Terms({**found.first, "operand": operand}, {**found.work, "rest": rest, "gather": gather})

        return terms

    def accepts(self, op: ConvOp, position: int, strides: Strides, scope: Scope) -> bool:
        chunked = self._in_chunks(op)
        if position == 0 and chunked:
            return strides[-1].as_int() == 1 and all(scope.divisible(s, self._chunk(op)) for s in strides[:-1])
        if position == 1:
            along = weight_steps(tensor_type(op.weight), strides, scope)
            return (
                along is not None
                and along.as_int() == 1
                and (not chunked or scope.divisible(strides[0], self._chunk(op)))
            )
        return True

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        tile = GemmTile.of(launch.config)
        early = ", true" if launch.ins[1].constant else ""
        template = f"conv_mma<{tile.cpp()}, {str(self._in_chunks(launch.op)).lower()}, {{epilogue}}>"
        return call_conv(launch, "conv_mma", template, f", {launch.cpp(const(tile.split))}{early}")


KERNELS = (MmaConv(),)
