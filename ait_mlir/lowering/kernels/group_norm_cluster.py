"""Group norm with the channels last, on a GPU, in one launch: a cluster of blocks has some groups of a sample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import f64

from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.norm import GroupNormOp
from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope, const, product
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import is_narrow
from ait_mlir.lowering.kernels.loops import broadcast_strides, collapse, nest, operand, pack, single, sizes
from ait_mlir.lowering.regions import functor, identity_functor

ITEMS = (1, 2, 4, 8, 16)
"""Chunks of 16 bytes that a thread may keep."""
ACCESSES = (8, 4, 2, 1)
"""Elements of an access."""
CLUSTERS = (1, 2, 4, 8)
MOST_CHANNELS = 512
"""Of a unit: the threads of a block where elements are read one by one."""
LINE_BYTES = 64
"""What a unit should have of a place, so that what comes from memory is used."""
CONFIGS = 4
# As benchmarks/group_norms.py measures them on an H200.
JOIN_SECONDS = 2.5e-6
"""What the threads of a block take to join their moments."""
EXCHANGE_SECONDS = 0.5e-6
"""What it takes the blocks of a cluster to tell each other their moments."""
ALONE = 1.2
SHARE_OF_BANDWIDTH = 0.5
"""What a multiprocessor alone reaches of its share of the bandwidth."""


def threads_of(items: int) -> int:
    """As `group_norm_threads` of the template."""
    return 768 if items <= 4 else 384 if items == 8 else 512


@dataclass(frozen=True)
class _Shape:
    """The sizes of a group norm at the dims of estimates."""

    samples: int
    places: int
    channels: int
    groups: int
    vector: int
    """Elements of an access: 16 bytes of the narrowest tensor, or less, so that it touches two groups at most."""
    narrow: int
    """Bytes of an element of the input."""

    @staticmethod
    def of(op: GroupNormOp) -> _Shape | None:
        """None for what the template does not do: channels that are not the last dim."""
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
        most = min(channels // groups, 8, 16 // min(element_bytes(x) for x in types))
        vector = next(v for v in ACCESSES if v <= most and channels % math.lcm(channels // groups, v) == 0)
        places = product(t.dims[1:-1]).evaluate(env)
        return _Shape(t.dims[0].evaluate(env), places, channels, groups, vector, element_bytes(t))

    def widths(self) -> Iterator[int]:
        """Channels of a unit: whole groups and whole accesses; the smallest that fills lines, and twice as many."""
        least = math.lcm(self.channels // self.groups, self.vector)
        fitting = [w for w in range(least, min(self.channels, MOST_CHANNELS) + 1, least) if self.channels % w == 0]
        wide = [w for w in fitting if w * self.narrow >= LINE_BYTES] or fitting[-1:]
        yield from wide[:2]

    def items(self, width: int, cluster: int) -> int:
        """The fewest chunks of a thread with which a block has room for its share; 0: none has room."""
        share = -(-self.places // cluster)
        columns = width // self.vector
        return next((n for n in ITEMS if columns * -(-share // n) <= threads_of(n)), 0)

    def seconds(self, width: int, cluster: int, target: Target, moved: int) -> float:
        """The time of a plan: of the multiprocessor with the most blocks, or of the memory."""
        blocks = max(1, self.samples) * (self.channels // width) * cluster
        if self.items(width, cluster) == 0:
            moved += self.samples * self.places * self.channels * self.narrow
        turns = -(-blocks // target.multiprocessors)
        alone = SHARE_OF_BANDWIDTH * target.bandwidth / target.multiprocessors
        work = max(moved / target.bandwidth, turns * moved / blocks / alone)
        if self.items(width, cluster) == ITEMS[-1]:
            work *= ALONE  # one block on a multiprocessor: nothing is read while it computes
        return target.launch_seconds + JOIN_SECONDS + work + (EXCHANGE_SECONDS if cluster > 1 else 0)


class ClusterGroupNorm(Kernel[GroupNormOp]):
    """`ait.group_norm` over the last dim; the input is read once where the blocks have room for it."""

    provider = "cluster"
    name = "group_norm"
    ops = (GroupNormOp,)

    def matches(self, op: GroupNormOp, target: Target) -> bool:
        shape = _Shape.of(op) if target.is_gpu else None
        return shape is not None and any(shape.widths())

    def configs(self, op: GroupNormOp, target: Target) -> list[dict[str, int]]:
        shape = self._shape(op)
        moved = bytes_moved(op, scope_of(op))
        clusters = [c for c in CLUSTERS if c == 1 or (target.has("clusters") and c <= max(1, shape.places))]
        plans = [(w, c) for w in shape.widths() for c in clusters]
        plans.sort(key=lambda plan: shape.seconds(*plan, target, moved))
        return [{"width": w, "cluster": c, "items": shape.items(w, c) or 4} for w, c in plans[:CONFIGS]]

    def seconds(self, op: GroupNormOp, target: Target) -> float:
        best = self.configs(op, target)[0]
        moved = bytes_moved(op, scope_of(op))
        return self._shape(op).seconds(best["width"], best["cluster"], target, moved)

    def accepts(self, op: GroupNormOp, position: int, strides: Strides, scope: Scope) -> bool:
        if 1 <= position < len(op.own_operands):
            return is_contiguous(tensor_type(op.operands[position]).dims, strides, scope)
        return position != 0 or strides[-1].as_int() == 1

    def check(self, op: GroupNormOp, config: Config, target: Target) -> None:
        shape = self._shape(op)
        width, cluster, items = (self._value(op, config, target, key) for key in ("width", "cluster", "items"))
        size = shape.channels // shape.groups
        if width < 1 or width % size or shape.channels % width or width > MOST_CHANNELS:
            raise ValueError(
                f"width is {width}, expected a multiple of {size}, the channels of a group, that divides "
                f"{shape.channels} and is at most {MOST_CHANNELS}"
            )
        if cluster not in CLUSTERS or (cluster > 1 and not target.has("clusters")):
            raise ValueError(f"cluster is {cluster}, expected 1, or 2, 4 or 8 where blocks form clusters")
        if items not in ITEMS:
            raise ValueError(f"items is {items}, expected one of {', '.join(map(str, ITEMS))}")

    def _shape(self, op: GroupNormOp) -> _Shape:
        shape = _Shape.of(op)
        assert shape is not None, "asked only about what it matches"
        return shape

    def _value(self, op: GroupNormOp, config: Config, target: Target, key: str) -> int:
        return config[key] if key in config else self.configs(op, target)[0][key]

    def emit(self, launch: Launch[GroupNormOp]) -> Emission:
        op, scope, dims = launch.op, launch.scope, launch.dims
        (x, *_), (y,) = launch.ins, launch.outs
        width, cluster, items = (
            self._value(op, launch.config, launch.target, key) for key in ("width", "cluster", "items")
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
        vector = self._shape(op).vector
        room = items * (threads_of(items) // max(1, width // vector))
        flags = (
            -(-highest // cluster) <= room,
            all(a.constant for a in factors),
            highest >= 1 << 31,
        )
        name = "epilogue_@ID@"
        return launch.call(
            "group_norm_cluster",
            f"group_norm<{name}, {vector}, {items}, {', '.join('true' if f else 'false' for f in flags)}>(ctx, "
            f"{sizes(nested, dims)}, {operand(x.name, nested, 0, dims)}, {pack(extras, nested, 1, dims)}, "
            f"{operand(y.name, nested, len(strides) - 1, dims)}, {scale}, {bias}, "
            f"{launch.cpp(*(const(n) for n in (op.groups.value.data, width)))}, {cluster}, "
            f"{launch.number(op.eps, f64)})",
            functor(op.epilogue, name, is_narrow(y.type.element_type))
            if op.epilogue.blocks
            else identity_functor(x.type.element_type, name),
        )


KERNELS = (ClusterGroupNorm(),)
