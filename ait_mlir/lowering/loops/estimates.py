"""Estimated seconds of a schedule: bytes of memory, sectors that threads ask for, and how many bytes are on their way.

A warp reads memory in sectors of 32 bytes. A read whose neighbouring threads lie apart asks for a sector for each
element; the first-level cache still serves such reads, at its own rate. Few threads have few bytes on their way, so
they do not reach the bandwidth of the memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.loops.nest import Axis, Fold, Nest, Node, Read
from ait_mlir.lowering.loops.rows import Rows
from ait_mlir.lowering.target import Target

SECTOR = 32
L1_RATE = 100e9
"""Bytes of sectors that the first-level cache of one multiprocessor serves in a second."""
L2_SHARE = 1.3
"""The rate of the second-level cache, over that of the memory."""
LATENCY = 800e-9
"""Seconds of an access to memory."""
RESIDENT = 2048
"""Threads on a multiprocessor."""
JOIN = 0.3e-6
"""Seconds in which the threads of a row join a fold."""


@dataclass(frozen=True)
class Work:
    """How often a read is executed, and along which axis threads are neighbours."""

    read: Read
    times: float


@dataclass(frozen=True)
class Estimate:
    nest: Nest
    env: Mapping[str, int]
    target: Target

    @staticmethod
    def of(nest: Nest, target: Target) -> Estimate:
        return Estimate(nest, estimate_env(nest.around), target)

    def number(self, e: Expr) -> int:
        return max(1, e.evaluate(self.env))

    def points(self, axes: tuple[Axis, ...]) -> float:
        return float(math.prod(self.number(a.count) for a in axes))

    def slope(self, offset: Expr, axis: Axis) -> float:
        """By how many elements an offset moves from one index of an axis to the next, on average."""
        last = self.number(axis.count) - 1
        if last < 1:
            return 0.0
        start = {**self.env, **{d.name: 0 for d in self.nest.scope.dims if d.name not in self.nest.around}}
        return abs(offset.evaluate({**start, axis.name: last}) - offset.evaluate(start)) / last

    def sectors(self, offset: Expr, element: int, lane: Axis | None, lanes: int, vector: bool) -> float:
        """Bytes of sectors for one element of an access."""
        if vector:
            return float(element)
        slope = 0.0 if lane is None else self.slope(offset, lane)
        return min(float(SECTOR), max(element / 8, slope * element * lanes))

    def executed(self, nodes: tuple[Node, ...], times: float) -> list[Work]:
        found: list[Work] = []
        for node in nodes:
            if isinstance(node, Read):
                found.append(Work(node, times))
            elif isinstance(node, Fold):
                found += self.executed(node.nodes, times * self.points(node.axes))
        return found

    def seconds(
        self, op: LoopsOp, works: list[Work], lane: Axis | None, lanes: int, threads: float, chunk: float
    ) -> float:
        """Seconds of so many threads that each have `chunk` bytes on their way."""
        target = self.target
        moved = float(bytes_moved(op, self.nest.around))
        asked = far = 0.0
        for work in works:
            width = BY_IR[work.read.element].bytes
            unit = lane is not None and abs(self.slope(work.read.offset, lane) - 1) < 1e-6
            sector = self.sectors(work.read.offset, width, lane, lanes, unit)
            asked += sector * work.times
            slope = 0.0 if lane is None else self.slope(work.read.offset, lane)
            if slope * width >= SECTOR:  # neighbours of a sector are read by other warps
                far += SECTOR * work.times
        for value, offset in zip(op.results, self.nest.offsets, strict=True):
            width = BY_IR[tensor_type(value).element_type].bytes
            unit = lane is not None and abs(self.slope(offset, lane) - 1) < 1e-6
            asked += self.sectors(offset, width, lane, lanes, unit) * self.points(self.nest.axes)
        on_the_way = min(threads, target.multiprocessors * RESIDENT) * chunk
        rate = target.bandwidth * min(1.0, on_the_way / (target.bandwidth * LATENCY))
        l1 = asked / (L1_RATE * target.multiprocessors)
        return target.launch_seconds + max(moved / rate, l1, far / (L2_SHARE * target.bandwidth))

    def map_seconds(self, op: LoopsOp, lane: Axis | None, lanes: int) -> float:
        results = self.points(self.nest.axes)
        works = self.executed(self.nest.nodes, results)
        widest = max((BY_IR[w.read.element].bytes for w in works), default=1)
        serial = sum(self.points(f.axes) for f in self.nest.folds())
        per_thread = lanes * widest * max(1, min(8, len(works)))
        threads = results / lanes
        steps = serial * LATENCY / 8 * max(1.0, threads / (self.target.multiprocessors * RESIDENT))
        return self.seconds(op, works, lane, lanes, threads, per_thread) + steps

    def rows_seconds(self, op: LoopsOp, rows: Rows, lane: Axis | None, lanes: int, threads: int, columns: int) -> float:
        """Of rows that `threads` threads have; of `columns`, so many rows are side by side in a block."""
        count = self.points(rows.group)
        works: list[Work] = []
        kept: set[tuple[int, float]] = set()
        chunks = 0.0
        for walk in rows.walks():
            points = self.points(walk.axes)
            for nodes in [f.nodes for f in walk.folds] or [rows.nodes]:
                for work in self.executed(nodes, count * points):
                    key = (work.read.tensor, points)
                    if key not in kept:
                        works.append(work)
                        kept.add(key)
            chunks = max(chunks, points / (threads * (1 if columns else lanes)))
        widest = max((BY_IR[w.read.element].bytes for w in works), default=1)
        total = count * threads / (lanes if columns else 1)
        chunk = lanes * widest * min(max(chunks, 1.0), 8.0)
        busy = min(1.0, max(chunks, 1e-3))  # threads beyond the row's end have nothing to read
        waves = max(1.0, total / (self.target.multiprocessors * RESIDENT))
        joins = len(rows.steps) * JOIN * waves * (1 + threads / 256)
        serial = max(0.0, chunks - 8) * LATENCY / 8
        return self.seconds(op, works, lane, lanes, total * busy, chunk) + joins + serial * waves
