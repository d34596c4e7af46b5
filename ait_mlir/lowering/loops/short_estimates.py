"""Estimated seconds of rows that are so short that one thread, or a few, keep a row.

Beside the bytes there are the instructions that each row needs whatever its length is, threads that a row leaves
without work, and the order in which neighbouring threads access memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr
from ait_mlir.lowering.loops.estimates import (
    INSTRUCTION_RATE,
    L1_RATE,
    L2_SHARE,
    LATENCY,
    RESIDENT,
    SCATTERED_STORES,
    SECTOR,
    Estimate,
)
from ait_mlir.lowering.loops.kept import Kept
from ait_mlir.lowering.loops.nest import Axis, Read
from ait_mlir.lowering.loops.rows import Rows, best_lane, nodes_of
from ait_mlir.lowering.loops.staged import Staging, staging_of

WARP = 32
ROW = 20
"""Instructions of a thread for a row, besides `AXIS` for each axis along which there are rows."""
AXIS = 10
JOIN = 6
"""Instructions of a thread that joins its state with another thread's."""
COPY = 3
"""Instructions of an access that moves 16 bytes to or from shared memory."""
REGISTERS = 65536
"""The registers of a multiprocessor."""
OTHER_REGISTERS = 40
"""Registers of a thread for all but the elements of a row."""
CHAIN = 10e-9
"""Seconds of a thread for each element of its part of a row, which few threads do not hide."""
OVERLAP = 0.1
"""The share of the time of instructions, and of the first-level cache, that does not overlap accesses to memory."""


@dataclass(frozen=True, eq=False)
class Short:
    """Rows that are computed by `threads` threads each, or, if `columns` is not 0, side by side along `lane`."""

    estimate: Estimate
    rows: Rows
    lane: Axis | None
    lanes: int
    threads: int
    columns: int
    kept: Kept

    @property
    def staging(self) -> Staging | None:
        is_row = self.threads == 1 and not self.columns
        return staging_of(self.estimate.nest, self.rows) if is_row else None

    def accessed(self, offset: Expr, width: int, axes: tuple[Axis, ...]) -> tuple[float, float]:
        """Bytes of sectors for each element of a walk that is not staged: those that the accesses of a warp request,
        and those that the warp needs.
        """
        e, lane = self.estimate, best_lane(self.estimate.nest, axes) or axes[-1]
        if self.columns:
            is_vector = self.lanes > 1 and e.is_vector(offset, self.lane, self.lanes)
            return e.sectors(offset, width, self.lane, self.lanes, is_vector, self.rows.group)
        lanes = self.lanes if e.nest.around.divisible(lane.count, self.lanes) else 1
        key = ("short", offset, width, axes, self.threads, lanes)
        if (found := e.known.get(key)) is None:
            found = e.known[key] = self._sectors(offset, width, axes, lane, lanes)
        return found

    def _sectors(
        self, offset: Expr, width: int, axes: tuple[Axis, ...], lane: Axis, lanes: int
    ) -> tuple[float, float]:
        e, group, points = self.estimate, self.rows.group, round(self.estimate.points(axes))
        at = e.offsets(offset, lane, range(points), axes)
        rows = e.offsets(offset, group[-1], range(max(1, WARP // self.threads)), group) if group else [0]
        is_vector = lanes > 1 and e.is_vector(offset, lane, lanes)
        asked, needed = 0, set[int]()
        for first in range(0, points, self.threads * lanes):
            here = at[first : first + self.threads * lanes]
            for access in [here] if is_vector else [here[j::lanes] for j in range(lanes)]:
                sectors = {(place + row - rows[0]) * width // SECTOR for row in rows for place in access}
                asked += len(sectors)
                needed |= sectors
        return asked * SECTOR / (len(rows) * points), len(needed) * SECTOR / (len(rows) * points)

    def seconds(self) -> float:
        e, target = self.estimate, self.estimate.target
        count, staging = e.points(self.rows.group), self.staging
        arrays = staging.arrays() if staging is not None else []
        staged = {read for array in arrays for read in array.of}
        asked = far = scattered = flying = 0.0
        seen: set[tuple[int, float]] = set()
        for walk in self.rows.walks():
            points = e.points(walk.axes)
            for axes, nodes in nodes_of(walk, self.rows):
                for work in e.executed(nodes, count * points, None):
                    width, key = BY_IR[work.read.element].bytes, (work.read.tensor, points)
                    is_new = key not in seen
                    seen.add(key)
                    if work.read in staged or not (is_new or not self.kept.slots):
                        continue
                    near, beyond = self.accessed(work.read.offset, width, axes)
                    asked += near * work.times
                    far += beyond * work.times if is_new and beyond > 2 * width else 0.0
                    flying += width * points if is_new and self._moves(work.read) else 0.0
        of_results = {r.tensor for r in staging.results} if staging is not None else set[int]()
        for i, (value, offset) in enumerate(zip(e.op.results, e.nest.offsets, strict=True)):
            if i in of_results:
                continue
            once = e.nest.once_along(i)
            width, points = (
                BY_IR[tensor_type(value).element_type].bytes,
                count * e.points(tuple(axis for axis in self.rows.rest if axis not in once)),
            )
            near, _ = self.accessed(offset, width, self.rows.rest)
            asked += near * points
            scattered += near * points if near > 2 * width else 0.0
        for array in arrays:
            step = max(4, min(16, self.lanes * array.bytes // array.points))
            conflicts = math.gcd(max(1, array.bytes // step), 128 // step)
            asked += count * array.bytes * (2 + 2 * conflicts)
        flying += sum(array.bytes for array in arrays if array.of)
        side = self.lanes if self.columns else 1
        threads = count * self.threads / side
        held = self.kept.bytes(4 if self.lanes == 1 else 0) * self._most() / self.threads * side
        resident = min(RESIDENT, REGISTERS / (OTHER_REGISTERS + held / 4))
        on_the_way = min(threads, target.multiprocessors * resident) * max(4.0, flying * side / self.threads)
        rate = target.bandwidth * min(1.0, on_the_way / (target.bandwidth * LATENCY))
        busy = self._instructions(count, threads) / (INSTRUCTION_RATE * target.multiprocessors)
        l1 = asked / (L1_RATE * target.multiprocessors)
        moved = max(
            e.moved / rate,
            l1,
            far / (L2_SHARE * target.bandwidth),
            scattered / (SCATTERED_STORES * target.bandwidth),
        )
        chain = CHAIN * self._most() / self.threads * side
        return target.launch_seconds + max(moved, busy) + OVERLAP * (busy + l1) + chain

    def _moves(self, read: Read) -> bool:
        """Whether the elements of a read depend on the row."""
        return any(axis.name in read.offset.symbols for axis in self.rows.group)

    def _most(self) -> float:
        return max(self.estimate.points(walk.axes) for walk in self.rows.walks())

    def _instructions(self, count: float, threads: float) -> float:
        """The instructions of all rows, also of threads that a row, or the end of an axis, leaves without work."""
        e, rows = self.estimate, self.rows
        chunks = self._most() / (1 if self.columns else self.lanes)
        used = chunks / (math.ceil(chunks / self.threads) * self.threads)
        if self.columns and self.lane is not None:
            side = e.number(self.lane.count) / self.lanes
            used *= side / (math.ceil(side / self.columns) * self.columns)
        own = e.row_instructions(rows, count, self.kept.skipped)
        joined = JOIN * math.log2(self.threads) * len(rows.folds()) * (self.lanes if self.columns else 1)
        staging = self.staging
        copied = 0.0
        if staging is not None:
            tensors = (*staging.reads, *staging.results)
            copied = count * sum(COPY * t.bytes / 16 + t.points * COPY / self.lanes for t in tensors)
        return own / used + threads * (ROW + AXIS * len(rows.group) + joined) + copied
