"""Group norm with the channels last, on a GPU: blocks share groups of a sample, as a cluster or in two launches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import f32, f64

from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.norm import GroupNormOp
from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Scope, const, product
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.loops import broadcast_strides, collapse, nest, operand, pack, single, sizes
from ait_mlir.lowering.regions import functor, identity_functor

ITEMS = (1, 2, 4, 8, 16)
"""Chunks of 16 bytes that a thread may keep."""
ACCESSES = (8, 4, 2, 1)
"""Choices for the number of elements of an access."""
CLUSTERS = (1, 2, 4, 8)
MOST_GROUPS = 4
"""The most groups in an access."""
MOST_CHANNELS = 512
"""The most channels of a unit: the threads of a block when elements are read one by one."""
LINE_BYTES = 64
"""The bytes of a place that a unit should have, so that it uses whole lines of memory."""
SECTOR_BYTES = 32
"""The smallest number of bytes that a cache reads or writes."""
CONFIGS = 6
MOST_SPLITS = 256
"""The most blocks that share a unit in two launches."""
MOST_SLICES = 4
"""`kFoundSlices` of the template."""
WARP = 32
# Fitted to times of an H200 and an H100 (`python -m benchmarks.group_norms`).
JOIN_SECONDS = 1.8e-6
"""Seconds in which the threads of a block join their moments."""
EXCHANGE_SECONDS = 0.5e-6
"""Seconds in which the blocks of a cluster exchange their moments."""
JOINED_SECONDS = 0.3e-6
"""Seconds in which a warp of the second launch joins the moments that 32 blocks found for a group."""
WAIT_SECONDS = 0.1e-6
"""Seconds that each of two launches waits for the previous launch, in addition to the launch itself."""
SPLIT_THREADS = (256, 128, 512)
"""Threads of a block in two launches, the best guess first."""
RUNNING = 1024
"""Threads that a multiprocessor runs at a time."""
ALONE = 1.2
SPLIT_SHARE = 0.6
"""The share of the bandwidth that the two launches reach."""
SHARE_OF_BANDWIDTH = 0.5
"""The share of its part of the bandwidth that a multiprocessor reaches with a single block."""


def threads_of(items: int) -> int:
    """Threads of a block, as `group_norm_threads` of the template."""
    return 768 if items == 4 else 384 if items == 8 else 512


@dataclass(frozen=True)
class _Shape:
    """The sizes of a group norm at the dims of estimates."""

    samples: int
    places: int
    channels: int
    groups: int
    vector: int
    """Elements of an access: up to 16 bytes of the narrowest tensor, with channels of at most two groups, or of up to
    four whole groups."""
    narrow: int
    """Bytes of an element of the input."""

    @staticmethod
    def of(op: GroupNormOp) -> _Shape | None:
        """The sizes of an op; None if the template cannot run it, for example if the channels are not the last dim."""
        t = tensor_type(op.input)
        types = [tensor_type(v) for v in (op.input, op.output, *op.epilogue_operands)]
        channels, groups = t.dims[-1].as_int(), op.groups.value.data
        if (
            op.dim.value.data != t.rank - 1
            or channels is None
            or any(compute_type(x.element_type) == f64 for x in types)
        ):
            return None
        env = estimate_env(scope_of(op))
        size, most = channels // groups, min(8, 16 // min(element_bytes(x) for x in types))
        fits = (v <= size or (v % size == 0 and v <= MOST_GROUPS * size) for v in ACCESSES)
        vector = next(
            v for v, f in zip(ACCESSES, fits, strict=True) if f and v <= most and channels % math.lcm(size, v) == 0
        )
        places = product(t.dims[1:-1]).evaluate(env)
        return _Shape(t.dims[0].evaluate(env), places, channels, groups, vector, element_bytes(t))

    def widths(self) -> Iterator[int]:
        """The candidate widths of a unit, in channels: always whole groups and accesses. These are the two smallest
        that fill lines of memory, and two smaller ones, so that more blocks share a small sample.
        """
        least = math.lcm(self.channels // self.groups, self.vector)
        fitting = [w for w in range(least, min(self.channels, MOST_CHANNELS) + 1, least) if self.channels % w == 0]
        wide = [w for w in fitting if w * self.narrow >= LINE_BYTES] or fitting[-1:]
        yield from wide[:2]
        yield from [w for w in fitting if w < wide[0]][:2]

    def items(self, width: int, cluster: int) -> int:
        """The fewest chunks of a thread so that a block holds its share of a unit; 0 if the share is too large."""
        share = -(-self.places // cluster)
        columns = width // self.vector
        return next((n for n in ITEMS if columns * -(-share // n) <= threads_of(n)), 0)

    def seconds(self, width: int, cluster: int, target: Target, moved: int) -> float:
        """Estimated seconds of a plan: the busiest multiprocessor's, or the memory's if that is longer."""
        blocks = max(1, self.samples) * (self.channels // width) * cluster
        moved = int(moved * max(1.0, SECTOR_BYTES / (width * self.narrow)))
        if self.items(width, cluster) == 0:
            moved += self.samples * self.places * self.channels * self.narrow
        turns = -(-blocks // target.multiprocessors)
        alone = SHARE_OF_BANDWIDTH * target.bandwidth / target.multiprocessors
        work = max(moved / target.bandwidth, turns * moved / blocks / alone)
        if self.items(width, cluster) == ITEMS[-1]:
            work *= ALONE  # one block on a multiprocessor: nothing is read while it computes
        return target.launch_seconds + JOIN_SECONDS + work + (EXCHANGE_SECONDS if cluster > 1 else 0)


class ClusterGroupNorm(Kernel[GroupNormOp]):
    """`ait.group_norm` over the last dim; the input is read once if the blocks have room for it."""

    provider = "cluster"
    name = "group_norm"
    ops = (GroupNormOp,)
    shared: ClassVar[str] = "cluster"
    """The key of the number of blocks that share a unit."""

    def matches(self, op: GroupNormOp, target: Target) -> bool:
        shape = _Shape.of(op) if target.is_gpu else None
        return shape is not None and any(shape.widths())

    def plans(self, shape: _Shape, target: Target) -> list[tuple[int, int]]:
        """The plans to try: the channels of a unit, and the number of blocks that share a unit."""
        clusters = [c for c in CLUSTERS if c == 1 or (target.has("clusters") and c <= max(1, shape.places))]
        return [(w, c) for w in shape.widths() for c in clusters]

    def seconds_of(self, shape: _Shape, plan: tuple[int, int], target: Target, moved: int) -> float:
        return shape.seconds(*plan, target, moved)

    def configs(self, op: GroupNormOp, target: Target) -> list[dict[str, int]]:
        shape, moved = self._shape(op), bytes_moved(op, scope_of(op))
        plans = sorted(self.plans(shape, target), key=lambda plan: self.seconds_of(shape, plan, target, moved))
        return [{"width": w, self.shared: c, "items": shape.items(w, c) or 4} for w, c in plans[:CONFIGS]]

    def seconds(self, op: GroupNormOp, target: Target) -> float:
        best, moved = self.configs(op, target)[0], bytes_moved(op, scope_of(op))
        return self.seconds_of(self._shape(op), (best["width"], best[self.shared]), target, moved)

    def accepts(self, op: GroupNormOp, position: int, strides: Strides, scope: Scope) -> bool:
        if 1 <= position < len(op.own_operands):
            return is_contiguous(tensor_type(op.operands[position]).dims, strides, scope)
        return position != 0 or strides[-1].as_int() == 1

    def check(self, op: GroupNormOp, config: Config, target: Target) -> None:
        shape = self._shape(op)
        width, cluster, items = (self._value(op, config, target, key) for key in ("width", self.shared, "items"))
        size = shape.channels // shape.groups
        if width < 1 or width % size or shape.channels % width or width > MOST_CHANNELS:
            raise ValueError(
                f"width is {width}, expected a multiple of {size}, the channels of a group, that divides "
                f"{shape.channels} and is at most {MOST_CHANNELS}"
            )
        self.check_shared(cluster, target)
        if items not in ITEMS:
            raise ValueError(f"items is {items}, expected one of {', '.join(map(str, ITEMS))}")

    def check_shared(self, blocks: int, target: Target) -> None:
        if blocks not in CLUSTERS or (blocks > 1 and not target.has("clusters")):
            raise ValueError(f"cluster is {blocks}, expected 1, or 2, 4 or 8 where blocks form clusters")

    def _shape(self, op: GroupNormOp) -> _Shape:
        shape = _Shape.of(op)
        assert shape is not None, "asked only about what it matches"
        return shape

    def _value(self, op: GroupNormOp, config: Config, target: Target, key: str) -> int:
        return config[key] if key in config else self.configs(op, target)[0][key]

    def emit(self, launch: Launch[GroupNormOp]) -> Emission | tuple[Emission, ...]:
        return self.part(launch, "whole")

    def part(self, launch: Launch[GroupNormOp], kind: str) -> Emission:
        """The C++ call of the template for one part (a `NormPart` enumerator) of the group norm."""
        op, scope, dims = launch.op, launch.scope, launch.dims
        (x, *_), (y,) = launch.ins, launch.outs
        width, cluster, items = (
            self._value(op, launch.config, launch.target, key) for key in ("width", self.shared, "items")
        )
        extras, shape = launch.ins[len(op.own_operands) :], y.type.dims
        strides = [x.strides, *(broadcast_strides(a, shape) for a in extras), y.strides]
        loops = nest(shape, strides)
        places = collapse(loops[1:-1] or [single(len(strides))], scope)
        nested = [loops[0], *places, loops[-1]]
        factors = launch.ins[1 : len(op.own_operands)]
        null = f"static_cast<const {element_type(x.type.element_type)}*>(nullptr)"
        names = [a.name for a in factors]
        scale = names.pop(0) if op.scale is not None else null
        bias = names.pop(0) if op.bias is not None else null
        highest = scope.bounds(product(shape[1:-1]))[1]
        found = self._shape(op)
        vector, size = found.vector, found.channels // found.groups
        room = items * (threads_of(items) // max(1, width // vector))
        flags = (
            -(-highest // cluster) <= room,
            all(a.constant for a in factors),
            highest >= 1 << 31,
        )
        name = "epilogue_@ID@"
        return launch.call(
            "group_norm_cluster",
            f"group_norm<{name}, ait::{launch.place}::NormPart::{kind}, {vector}, {size if size < vector else 0}, "
            f"{items}, {', '.join('true' if f else 'false' for f in flags)}>(ctx, "
            f"{sizes(nested, dims)}, {operand(x.name, nested, 0, dims)}, {pack(extras, nested, 1, dims)}, "
            f"{operand(y.name, nested, len(strides) - 1, dims)}, {scale}, {bias}, "
            f"{launch.cpp(*(const(n) for n in (op.groups.value.data, width)))}, {cluster}, "
            f"{launch.number(op.eps, f64)}{''.join(f', {b.name}' for b in launch.between)})",
            functor(op.epilogue, name, [y.type.element_type])
            if op.epilogue.blocks
            else identity_functor(x.type.element_type, name),
        )


class SplitGroupNorm(ClusterGroupNorm):
    """`ait.group_norm` in two launches: any number of blocks share a sample, and the input is read twice."""

    provider = "split"
    shared = "splits"

    def plans(self, shape: _Shape, target: Target) -> list[tuple[int, int]]:
        """Plans whose blocks together have about as many threads as the card runs at a time."""
        found: dict[tuple[int, int], None] = {}
        for width in shape.widths():
            units, columns = max(1, shape.samples) * (shape.channels // width), width // shape.vector
            for threads in SPLIT_THREADS:
                lanes = max(1, threads // columns)
                splits = -(-shape.places // lanes)
                most = max(1, target.multiprocessors * RUNNING // (threads * units))
                found[width, max(1, min(splits, most, MOST_SPLITS))] = None
        return list(found)

    def seconds_of(self, shape: _Shape, plan: tuple[int, int], target: Target, moved: int) -> float:
        (width, splits), samples = plan, max(1, shape.samples)
        groups = shape.groups * width // shape.channels
        threads = min(512, width // shape.vector * -(-shape.places // splits))
        moved += samples * shape.places * shape.channels * shape.narrow
        busy = min(1.0, samples * (shape.channels // width) * splits * threads / (target.multiprocessors * RUNNING / 2))
        work = moved * max(1.0, SECTOR_BYTES / (width * shape.narrow)) / busy / target.bandwidth
        joined = JOINED_SECONDS * -(-groups * WARP // threads) * -(-splits // WARP)
        return 2 * (target.launch_seconds + WAIT_SECONDS) + joined + work / SPLIT_SHARE

    def check_shared(self, blocks: int, target: Target) -> None:
        if not 1 <= blocks <= MOST_SPLITS:
            raise ValueError(f"splits is {blocks}, expected 1 to {MOST_SPLITS}")

    def between(self, op: GroupNormOp, config: Config, target: Target) -> tuple[TensorType, ...]:
        """Partial statistics: four numbers for each slice of each block's share of a group, for each sample."""
        splits = self._value(op, config, target, "splits")
        numbers = const(4 * MOST_SLICES * splits * op.groups.value.data)
        return (TensorType.get([tensor_type(op.input).dims[0], numbers], f32),)

    def emit(self, launch: Launch[GroupNormOp]) -> tuple[Emission, ...]:
        return self.part(launch, "moments"), self.part(launch, "result")


KERNELS = (ClusterGroupNorm(), SplitGroupNorm())
