"""Estimated seconds of a schedule, from the bytes that it moves, the sectors that warps request, and the bytes in
flight.

A warp reads memory in sectors of 32 bytes. If neighbouring threads read elements that lie apart, each element costs a
sector; the first-level cache still serves these requests, at its own rate. A few threads have few bytes in flight, so
they do not reach the bandwidth of the memory.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dialects.ait.traits import ScalarLike
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.loops.boxes import Boxes
from ait_mlir.lowering.loops.kept import Kept
from ait_mlir.lowering.loops.nest import (
    Axis,
    Fold,
    Nest,
    Node,
    Read,
    Scalar,
    alignment,
    picked,
    step,
    walk,
)
from ait_mlir.lowering.loops.rows import Rows, Walk, best_lane, nodes_of
from ait_mlir.lowering.loops.turned import beside_axis, turned_folds, turned_reads, turned_values
from ait_mlir.lowering.target import Target

SECTOR = 32
L1_RATE = 200e9
"""Bytes of sectors that the first-level cache of one multiprocessor serves in a second."""
L2_SHARE = 1.3
"""The rate of the second-level cache, over that of the memory."""
SCATTERED_STORES = 0.5
"""The rate of stores that fill only a part of each sector, in bytes of whole sectors, over that of the memory. Measured
on an H200: a softmax and a layer norm whose results lie across their rows stored 66 billion elements in a second."""
SCATTERED_READS = 0.5
"""The rate of the sectors of rows that lie across the memory, over that of the memory: other rows read the other
elements of a sector, at other times. Measured on an H200: a group norm of rows of 18,816 elements of f32, of which 8
neighbours are in 8 rows, read 65 billion elements in a second."""
TURNED = 3
"""Accesses to shared memory of an element that turns: one that keeps it, and reads from banks that others use."""
LATENCY = 800e-9
"""Seconds of an access to memory."""
RESIDENT = 2048
"""Threads on a multiprocessor."""
INSTRUCTION_RATE = 1.6e9 * 128 * 0.95
"""Instructions of threads that a multiprocessor executes in a second."""
MOST_HELD = 128
"""Bytes of a row in the registers of a thread beyond which fewer threads hide the time of instructions."""
MOMENTS = 12
"""Instructions that add an element to a sum and to squared distances from the mean."""
NOTHING = Kept()
MAX_WINDOW = 64
"""The most points of a fold that are looked at."""
THREADS_OF_BOX = 256
"""Threads of a block that turns a box."""
INSTRUCTIONS_OF_BOX = 60
"""Instructions of a thread to find a box, and to wait."""
BATCH_BYTES = 16
"""Bytes that a thread of a box reads of a tensor before it uses them, if it reads single elements."""
TURN_SHARE = 0.25
"""The share of the shorter of reads and instructions that does not overlap the longer one: a block waits for its reads
before it stores."""
JOIN = 0.3e-6
"""Seconds in which the threads of a row join a fold."""


@dataclass(frozen=True)
class Work:
    """A read, how often it is executed, and the axis along which threads are neighbours; beyond its end they continue
    along `axes`, by default those of the results."""

    read: Read
    times: float
    lane: Axis | None
    axes: tuple[Axis, ...] | None = None
    window: tuple[Axis, ...] = ()
    """The axes of the folds around it, whose points one thread reads one after the other."""


@dataclass(frozen=True, eq=False)
class Estimate:
    op: LoopsOp
    nest: Nest
    env: Mapping[str, int]
    target: Target
    known: dict[object, tuple[float, float]] = field(default_factory=dict[object, tuple[float, float]])
    """The sectors of accesses, and of windows."""

    @staticmethod
    def of(op: LoopsOp, nest: Nest, target: Target) -> Estimate:
        return Estimate(op, nest, estimate_env(nest.around), target)

    @cached_property
    def moved(self) -> float:
        """The bytes that the op reads and writes."""
        return float(bytes_moved(self.op, self.nest.around))

    @cached_property
    def users(self) -> Mapping[SSAValue, frozenset[str]]:
        return self.nest.users()

    def number(self, e: Expr) -> int:
        return max(1, e.evaluate(self.env))

    def points(self, axes: tuple[Axis, ...]) -> float:
        return float(math.prod(self.number(a.count) for a in axes))

    def offsets(
        self,
        offset: Expr,
        axis: Axis | None,
        places: Sequence[int],
        axes: Sequence[Axis] | None = None,
        point: Mapping[str, int] = MappingProxyType({}),
    ) -> list[int]:
        """The value of an offset at each place along an axis. A place beyond the end of the axis continues along the
        next outer axes of `axes`, by default of the results. Axes that no place reaches are at their middle, or at
        their index in `point`.
        """
        env = {**self.middle(), **point}
        if axis is None:
            return [offset.evaluate(env)] * len(places)
        order = [axis, *(a for a in reversed(self.nest.axes if axes is None else axes) if a is not axis)]
        sizes = [self.number(a.count) for a in order]
        reached = sum(size <= max(places) for size in itertools.accumulate(sizes, operator.mul)) + 1
        found: list[int] = []
        for place in places:
            rest, here = place, dict(env)
            for a, size in zip(order[:reached], sizes, strict=False):
                rest, here[a.name] = divmod(rest, size)
            found.append(offset.evaluate(here))
        return found

    def sectors(
        self,
        offset: Expr,
        element: int,
        lane: Axis | None,
        lanes: int,
        is_vector: bool,
        axes: Sequence[Axis] | None = None,
    ) -> tuple[float, float]:
        """Bytes of memory sectors for each element of a read, by two counts.

        The first counts the sectors of each access of a warp separately: a lane accesses one element, or with
        `is_vector` all its `lanes` neighbours together. The second counts each sector of all accesses of the warp once.
        `axes` is that of `offsets`.
        """
        if is_vector and lane is not None and self.number(lane.count) >= 32 * lanes:
            return float(element), float(element)
        key = (offset, element, lane, lanes, is_vector, axes)
        if (found := self.known.get(key)) is None:
            places = range(0, 32 * lanes, lanes if is_vector else 1)
            at = [o * element for o in self.offsets(offset, lane, places, axes)]
            if is_vector:
                ends = element * lanes + SECTOR - 1
                together = {sector for o in at for sector in range(o // SECTOR, (o + ends) // SECTOR)}
                asked = needed = len(together)
            else:
                sectors = [o // SECTOR for o in at]
                asked, needed = sum(len(set(sectors[j::lanes])) for j in range(lanes)), len(set(sectors))
            found = self.known[key] = (asked * SECTOR / (32 * lanes), needed * SECTOR / (32 * lanes))
        return found

    def is_vector(self, offset: Expr, lane: Axis | None, lanes: int) -> bool:
        """Whether one access reads the elements of all lanes."""
        by = None if lane is None else step(offset, lane.name)
        if lane is None or by is None or by.as_int() != 1:
            return False
        return lanes == 1 or alignment(self.nest, offset, lane.name, lanes) is not None

    def executed(
        self,
        nodes: tuple[Node, ...],
        times: float,
        lane: Axis | None,
        axes: tuple[Axis, ...] | None = None,
        window: tuple[Axis, ...] = (),
    ) -> list[Work]:
        """The reads of nodes that run `times` times, with neighbouring threads along `lane`, then along `axes`."""
        found: list[Work] = []
        for node in nodes:
            if isinstance(node, Read):
                found.append(Work(node, times, lane, axes, window))
            elif isinstance(node, Fold):
                found += self.executed(node.nodes, times * self.points(node.axes), lane, axes, (*window, *node.axes))
        return found

    def seconds(
        self,
        works: list[Work],
        lane: Axis | None,
        lanes: int,
        threads: float,
        chunk: float,
        far_rate: float = L2_SHARE,
        runs: Mapping[int, int] = MappingProxyType({}),
        axes: tuple[Axis, ...] | None = None,
    ) -> float:
        """Seconds of `threads` threads that each have `chunk` bytes in flight. Sectors that the first-level cache does
        not have come at `far_rate` times the rate of the memory. `runs`: of results that turn in shared memory, the
        neighbours that are stored together. `axes`: along which threads store neighbours, beyond the end of `lane`.
        """
        target = self.target
        moved = self.moved
        asked = far = scattered = 0.0
        for work in works:
            width = BY_IR[work.read.element].bytes
            fewer = picked(self.nest, work.read, work.lane.name, lanes) if work.lane is not None and lanes > 1 else None
            if fewer is not None:
                asked += width * len(fewer.starts) * fewer.count / lanes * work.times
                continue
            near, beyond = self.sectors(
                work.read.offset, width, work.lane, lanes, self.is_vector(work.read.offset, work.lane, lanes), work.axes
            )
            asked += near * work.times
            if beyond > 2 * width:
                points = self.points(work.window)
                if 1 < points <= MAX_WINDOW and work.lane is not None:
                    beyond = min(beyond, self.window_bytes(work.window, work.read, work.lane) / points)
                far += beyond * work.times
        for i, (value, offset) in enumerate(zip(self.op.results, self.nest.offsets, strict=True)):
            width = BY_IR[tensor_type(value).element_type].bytes
            once = self.nest.once_along(i)
            stored = self.points(tuple(axis for axis in self.nest.axes if axis not in once))
            if i in runs:
                beyond = math.ceil(runs[i] * width / SECTOR) * SECTOR / runs[i]
                near = beyond + TURNED * width
            else:
                near, beyond = self.sectors(offset, width, lane, lanes, self.is_vector(offset, lane, lanes), axes)
            asked += near * stored
            if beyond > 2 * width:
                scattered += beyond * stored
        on_the_way = min(threads, target.multiprocessors * RESIDENT) * chunk
        rate = target.bandwidth * min(1.0, on_the_way / (target.bandwidth * LATENCY))
        l1 = asked / (L1_RATE * target.multiprocessors)
        beyond = far / (far_rate * target.bandwidth), scattered / (SCATTERED_STORES * target.bandwidth)
        return target.launch_seconds + max(moved / rate, l1, *beyond)

    def map_seconds(self, lane: Axis | None, lanes: int, items: int) -> float:
        results = self.points(self.nest.axes)
        works = self.executed(self.nest.nodes, results, lane)
        widest = max((BY_IR[w.read.element].bytes for w in works), default=1)
        serial = sum(self.points(f.axes) for f in self.nest.folds())
        per_thread = lanes * items * widest * max(1, min(8, len(works)))
        threads = results / (lanes * items)
        share = 1 if items == 1 else 0.6  # rows of a thread share a part of the index
        busy = self.busy_seconds(results, lane, lanes, share)
        return max(self.seconds(works, lane, lanes, threads, per_thread), busy) + serial * LATENCY / 8

    def busy_seconds(self, results: float, lane: Axis | None, lanes: int, share: float) -> float:
        """Seconds to execute the instructions of `results` results, each computed by one thread, with `share` of the
        usual index computations.
        """
        work = results / lanes * (12 + 10 * len(self.nest.axes)) * share + self.instructions(results, lane, lanes)
        return work / (INSTRUCTION_RATE * self.target.multiprocessors)

    def instructions(self, results: float, lane: Axis | None, lanes: int) -> float:
        """The instructions to compute `results` results. A value inside folds counts once for each point of the folds
        that it depends on.
        """
        users = self.users
        inner = {a.name: self.number(a.count) for node in self.nest.walk() if isinstance(node, Fold) for a in node.axes}
        found = 0.0
        for node in self.nest.walk():
            on = users[node.value] if isinstance(node, Fold) else users[node.results[0]]
            times = results * math.prod(inner[name] for name in on if name in inner)
            if isinstance(node, Read):
                is_one = self.is_vector(node.offset, lane, lanes) and not node.guards
                shared = lane is not None and lanes > 1 and picked(self.nest, node, lane.name, lanes) is not None
                index = 4 + node.offset.size / 16 + 3 * len(node.guards) + 6 * len(node.gathers)
                found += times * (2 if is_one or shared else index)
            elif isinstance(node, Fold):
                found += times
            elif isinstance(node, Scalar) and isinstance(node.op, ScalarLike):
                found += times * (1 if node.op.CHEAP else 8)
        return found

    def tiles_seconds(self, lane: Axis, turn: Axis, config: Mapping[str, int]) -> float:
        """Seconds of the schedule of tiles: the longer of its copy and its instructions, with the idle threads at the
        ends of axes.
        """
        used = 1.0
        for axis, pieces in ((lane, config["across"]), (turn, config["along"])):
            size, count = pieces * config["lanes"], self.number(axis.count)
            used *= count / (math.ceil(count / size) * size)
        results = self.points(self.nest.axes)
        works = self.executed(self.nest.nodes, results, None)
        turned = {read.result for read in turned_reads(self.nest, lane.name, turn.name)}
        folds = turned_folds(self.nest, lane.name, turn.name)
        inside = [(fold, node) for fold in folds for node in walk(fold.nodes) if isinstance(node, Read)]
        turned |= {read.result for _, read in inside}
        values = turned_values(self.nest, lane.name, turn.name, config["lanes"])
        one_by_one = [node for node in values.nodes if isinstance(node, Read)]
        turned |= {read.result for read in one_by_one}
        works = [w for w in works if w.read.result not in turned]
        beside = beside_axis(self.nest, lane.name, turn.name)
        near = far = 0.0
        for read in one_by_one:
            near += self.sectors(read.offset, BY_IR[read.element].bytes, turn, 1, is_vector=False)[0] * results
        for fold, read in inside:
            asked, _ = self.sectors(read.offset, BY_IR[read.element].bytes, turn, 1, is_vector=False)
            near += asked * results * self.points(fold.axes)
            shared = 1 if beside is None else self.number(beside.count)
            far += self.window_bytes(fold.axes, read, turn) * results / shared
        widths = [BY_IR[read.element].bytes for read in self.nest.reads()]
        piece = config["lanes"] * max(widths)
        seconds = self.seconds(works, lane, config["lanes"], results / config["lanes"], float(piece))
        narrow = max(1.0, 64 / (piece * min(config["along"], config["across"])))
        l1 = near / (L1_RATE * self.target.multiprocessors)
        seconds = max(seconds, l1, far / (L2_SHARE * self.target.bandwidth))
        busy = self.busy_seconds(results, lane, config["lanes"], 1)
        return max(seconds * 1.1 * narrow**0.5, busy) / used**0.5

    def boxes_seconds(self, boxes: Boxes, lanes: int) -> float:
        """Seconds of the schedule of boxes: the sectors that the neighbours of each order fill, instructions with
        those of elements beyond the ends of the axes, and the bytes that blocks have on their way.
        """
        target, extents = self.target, boxes.extents
        results = 1.0
        for axis in boxes.order:
            results *= math.ceil(self.number(axis.count) / extents[axis.name]) * extents[axis.name]
        sectors = work = 0.0
        for side in boxes.sides:
            inner = side.axes[-1]
            elements = results * boxes.elements_of(side) / boxes.elements
            for read in side.reads:
                width = BY_IR[read.element].bytes
                sectors += elements * width * self.filling(read.offset, width, inner, extents)
                work += elements * 3
            work += elements * 3 * len({guard for read in side.reads for guard in read.guards})
            scalars = sum(self.cost(node) for node in side.nodes if isinstance(node, Scalar))
            work += elements * (6 + scalars + 2 * len(side.values))
        lane = boxes.run[0]
        for offset, t in zip(self.nest.offsets, self.nest.elements, strict=True):
            width = BY_IR[t].bytes
            sectors += results * width * self.filling(offset, width, lane, extents)
        joined, together = boxes.joined()
        others = boxes.left(joined)
        for node in others:
            if isinstance(node, Read):
                width, by = BY_IR[node.element].bytes, step(node.offset, together.name)
                is_one = by is not None and by.as_int() == 1 and not node.guards
                is_one = is_one and (lanes == 1 or alignment(joined, node, together.name, lanes) is not None)
                sectors += results * self.sectors(node.offset, width, lane, lanes, is_one)[0]
        work += results * (20 / lanes + 2 + sum(self.cost(node) for node in others))
        work += results / boxes.elements * THREADS_OF_BOX * INSTRUCTIONS_OF_BOX
        blocks = min(RESIDENT // THREADS_OF_BOX, target.shared_bytes // max(1, boxes.bytes(lanes)))
        reads = sum(len(side.reads) for side in boxes.sides)
        on_the_way = target.multiprocessors * blocks * THREADS_OF_BOX * reads * BATCH_BYTES
        share = min(1.0, on_the_way / (target.bandwidth * LATENCY))
        busy = max(work, 32 * self.conflicts(boxes, lanes) * results) / (INSTRUCTION_RATE * target.multiprocessors)
        memory = max(self.moved / (target.bandwidth * share), sectors / (L2_SHARE * target.bandwidth))
        return target.launch_seconds + LATENCY + max(memory, busy) + TURN_SHARE * min(memory, busy)

    def conflicts(self, boxes: Boxes, lanes: int) -> float:
        """The cycles in which banks of shared memory take and give an element, for a warp of them."""
        cycles = 0.0
        for side in boxes.sides:
            inner, share = side.axes[-1].name, boxes.elements_of(side) / boxes.elements
            for t in side.types:
                width, pitch = BY_IR[t].bytes, boxes.pitches(side, lanes)[0][inner]
                words = {i * pitch * width // 4 for i in range(min(32, boxes.extents[inner]))}
                same = Counter(word % 32 for word in words)
                cycles += share * max(same.values()) + max(1.0, width * lanes / 4) / lanes
        return cycles / 4  # instructions of a multiprocessor's four schedulers

    def filling(self, offset: Expr, width: int, inner: Axis, extents: Mapping[str, int]) -> float:
        """The bytes of sectors over those of the elements that a box has side by side in memory from an axis on."""
        order = [inner, *(a for a in self.nest.axes if a is not inner and extents[a.name] > 1)]
        steps = {a.name: by for a in order if (by := step(offset, a.name)) is not None}
        at = {a: abs(by.evaluate(self.middle())) for a, by in steps.items()}
        run, next_step = 1, 1
        for axis in sorted((a for a in order if at.get(a.name)), key=lambda a: at[a.name]):
            if at[axis.name] > next_step:
                break
            run *= extents[axis.name]
            next_step = at[axis.name] * self.number(axis.count)
            if extents[axis.name] < self.number(axis.count):
                break
        bytes_ = run * width
        beside = {name for name in steps if at[name] > 1}
        aligned = all(steps[name].as_int() is not None and at[name] * width % SECTOR == 0 for name in beside)
        return math.ceil(bytes_ / SECTOR) * SECTOR / bytes_ if aligned else (bytes_ + SECTOR - width) / bytes_

    def window_bytes(self, fold: tuple[Axis, ...], read: Read, axis: Axis) -> float:
        """The bytes of sectors that a read of a fold needs for each result, if a warp computes neighbours along an axis
        and the first-level cache keeps what several points of the fold read.
        """
        width = BY_IR[read.element].bytes
        key = ("window", read.offset, width, axis, fold)
        if (known := self.known.get(key)) is None:
            found: set[int] = set()
            sizes = [min(self.number(a.count), MAX_WINDOW) for a in fold]
            for point in itertools.islice(itertools.product(*map(range, sizes)), MAX_WINDOW):
                here = dict(zip((a.name for a in fold), point, strict=True))
                found.update(o * width // SECTOR for o in self.offsets(read.offset, axis, range(32), point=here))
            each = len(found) * SECTOR / 32
            known = self.known[key] = (each, each)
        return known[0]

    def middle(self) -> dict[str, int]:
        """The dims, and each axis at its middle."""
        around = self.nest.around
        env = {d.name: self.number(d.upper + 1) // 2 for d in self.nest.scope.dims if d.name not in around and d.upper}
        return {**env, **self.env}

    def rows_seconds(
        self,
        rows: Rows,
        lane: Axis | None,
        lanes: int,
        threads: int,
        columns: int,
        block: int,
        kept: Kept = NOTHING,
        runs: Mapping[int, int] = MappingProxyType({}),
    ) -> float:
        """Seconds of the schedules of rows: `threads` threads compute one row, a block has `block` threads. `runs` as
        of `seconds`.

        If `columns` is not 0, a block computes that many rows side by side along `lane`. `kept` stays in registers;
        other elements that several walks need are read again.
        """
        count = self.points(rows.group)
        if not columns and not any(self.has_lanes(walk, lanes) for walk in rows.walks()):
            lanes = 1
        works: list[Work] = []
        seen: set[tuple[int, float]] = set()
        chunks = again = 0.0
        for each in rows.walks():
            before = set(seen)
            points = self.points(each.axes)
            place = each.axes.index(best_lane(self.nest, each.axes) or each.axes[-1])
            for axes, nodes in nodes_of(each, rows):
                for work in self.executed(
                    nodes, count * points, lane if columns else axes[place], None if columns else axes
                ):
                    key = (work.read.tensor, points)
                    if key in before:
                        again += work.times * BY_IR[work.read.element].bytes
                    elif key not in seen:
                        works.append(work)
                        seen.add(key)
            chunks = max(chunks, points / (threads * (1 if columns else lanes)))
        if not columns:
            lane = rows.rest[-1] if rows.rest else None
        widest = max((BY_IR[w.read.element].bytes for w in works), default=1)
        total = count * threads / (lanes if columns else 1)
        chunk = lanes * widest * min(max(chunks, 1.0), 8.0)
        busy = min(1.0, max(chunks, 1e-3))  # threads beyond the row's end have nothing to read
        waves = max(1.0, total / (self.target.multiprocessors * RESIDENT))
        joins = len(rows.steps) * JOIN * waves * (1 + block / 256)
        serial = max(0.0, chunks - 8) * LATENCY / 8
        read_again = 0.0 if kept.slots else again / (L2_SHARE * self.target.bandwidth)
        busy_processors = min(self.target.multiprocessors, max(1.0, total / block))
        work = self.row_instructions(rows, count, kept.skipped) / (INSTRUCTION_RATE * busy_processors)
        width = max(widest, kept.bytes(0)) if kept.put else widest
        held = max(1.0, chunks * lanes * width / MOST_HELD) if kept.slots and not columns else 1.0
        shares = not columns and self.moved > self.target.row.l2_bytes
        far_rate = SCATTERED_READS if shares else L2_SHARE
        beside = None if columns else tuple(rows.rest)
        seconds = max(self.seconds(works, lane, lanes, total * busy, chunk, far_rate, runs, beside), work * held)
        if chunks > 8 and waves < 8:  # the last blocks of long rows have the card to themselves
            seconds *= math.ceil(waves) / waves
        return seconds + joins + serial * waves + read_again

    def has_lanes(self, walk: Walk, lanes: int) -> bool:
        """Whether a thread reads `lanes` neighbours of a walk at once."""
        axis = best_lane(self.nest, walk.axes)
        return axis is not None and self.nest.around.divisible(axis.count, lanes)

    def row_instructions(self, rows: Rows, count: float, skipped: frozenset[Node]) -> float:
        """The instructions to compute `count` rows, of which nodes may be skipped."""
        found = 0.0
        for each in rows.walks():
            points = count * self.points(each.axes)
            for _, nodes in nodes_of(each, rows):
                found += points * (2 + sum(self.cost(node) for node in nodes if node not in skipped))
            found += points * MOMENTS * sum(fold.kind == "moments" for fold in each.folds)
        return found

    def cost(self, node: Node) -> float:
        """The instructions to compute a node once."""
        if isinstance(node, Fold):
            return self.points(node.axes) * (1 + sum(self.cost(inner) for inner in node.nodes))
        if isinstance(node, Scalar) and isinstance(node.op, ScalarLike):
            return 1.0 if node.op.CHEAP else 8.0
        return 2.0
