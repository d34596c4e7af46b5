"""Puts independent chains of launches on several streams where the estimates say that it is faster.

A program is cut at launches that are ordered with all other launches. Each piece between two cuts is scheduled
separately; most pieces are single launches. A piece uses several streams only if they are estimated to be faster, and
so does a program, for all its pieces together. Events order exactly the launches that share memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.foreign import CallFfiOp
from ait_mlir.dialects.ait_rt.buffers import AllocOp, BufferOp, ReadDimOp
from ait_mlir.dialects.ait_rt.program import MAX_STREAMS, KernelOp, LaunchOp, ProgramOp
from ait_mlir.dialects.ait_rt.streams import EventOp, RecordOp, WaitOp
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.module_target import target_of
from ait_mlir.passes.checks.races import conflict
from ait_mlir.passes.launch_cost import LaunchCost, launch_cost
from ait_mlir.passes.schedule import Task, best_schedule
from ait_mlir.passes.step_order import Step, has_streams, steps_of

MOST_STEPS = 4096
"""Most steps of a program that gets several streams: the work grows with the square of the steps."""
MOST_USERS = 64
"""Most users of one buffer that are compared with each other; further users keep their order."""
PIECE_SECONDS = 2e-6
"""The least time that several streams must save in a piece."""
HOST_EVENT_SECONDS = 1.1e-6
"""Host time for recording an event or waiting for it: 16 us for the 14 events of a recommender on four streams."""
HOST_LAUNCH_SECONDS = 3.0e-6
"""Host time for a launch in a plain run, from two networks whose speed the host limits: the recommender (37 launches:
177 us) and Inception-v3 (120 launches, 144 events: 590 us). Without events they differ by 249 us and 83 launches."""


@dataclass
class Placed:
    """The streams of a program's launches, and the estimated seconds on one stream and on these streams."""

    streams: dict[Operation, int]
    before: float
    after: float


def dependences(steps: Sequence[Step]) -> list[set[int]]:
    """For each step, the earlier steps that conflict with it: both access one buffer, and one of them writes."""
    found: list[set[int]] = [set() for _ in steps]
    users: dict[BufferOp, list[int]] = {}
    for i, step in enumerate(steps):
        for root in dict.fromkeys(access.root for access in step.accesses):
            before = users.setdefault(root, [])
            if len(before) >= MOST_USERS:
                found[i].update(before[-1:])
            else:
                found[i].update(j for j in before if conflict(steps[j], step, root))
            before.append(i)
            if len(before) == MOST_USERS:  # further users form a chain, which follows all earlier users
                found[i].update(before[:-1])
    return found


def place(
    steps: Sequence[Step], after: Sequence[set[int]], costs: Sequence[LaunchCost], pinned: Sequence[bool], limit: int
) -> Placed:
    """Streams for the steps between two waits of the host; `after` has the dependences of each step."""
    ancestors: list[int] = []
    for before in after:
        known = 0
        for j in before:
            known |= ancestors[j] | 1 << j
        ancestors.append(known)
    following = -1  # the ancestors that all later steps have
    cuts: list[int] = []
    for i in range(len(steps) - 1, -1, -1):
        if ancestors[i] == (1 << i) - 1 and following >> i & 1:
            cuts.append(i)
        following &= ancestors[i]
    streams = dict.fromkeys((step.op for step in steps), 0)
    placed = Placed(streams, sum(c.seconds for c in costs), sum(c.seconds for c in costs))
    for low, high in pairwise((-1, *reversed(cuts), len(steps))):
        piece = range(low + 1, high)
        if len(piece) < 2:
            continue
        tasks = [
            Task(
                costs[i].seconds,
                costs[i].share,
                tuple(j - piece.start for j in sorted(after[i]) if j >= piece.start),
                pinned[i],
            )
            for i in piece
        ]
        found = best_schedule(tasks, limit)
        gain = sum(task.seconds for task in tasks) - found.seconds
        if max(found.streams) > 0 and gain >= PIECE_SECONDS:
            streams.update((steps[i].op, stream) for i, stream in zip(piece, found.streams, strict=True))
            placed.after -= gain
    return placed


def put_in_waves(steps: Sequence[Step], most: int) -> tuple[list[Step], list[int]]:
    """Order the steps between two waits of the host in waves of at most `most` steps; returns them, and the number of
    the wave of each.

    A step is in the wave behind the last step that it depends on, or in a later part of it. Definitions move before all
    steps. A wait of the host stays last.
    """
    first, last = steps[0].op, steps[-1].op
    block = cast(Block, first.parent)
    moving = {step.op for step in steps}
    for op in [op for op in _between(first, last) if op not in moving]:
        op.detach()
        block.insert_op_before(op, first)
    levels: list[int] = []
    for i, before in enumerate(dependences(steps)):
        held = range(i) if steps[i].is_wait else before
        levels.append(1 + max((levels[j] for j in held), default=-1))
    order = sorted(range(len(steps)), key=lambda i: (levels[i], i))
    anchor = last.next_op
    for op in (steps[i].op for i in order):
        op.detach()
        if anchor is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, anchor)
    waves, wave = list[int](), -1
    for level in sorted(set(levels)):
        count = levels.count(level)
        waves += [wave + 1 + i // most for i in range(count)]
        wave = waves[-1]
    return [steps[i] for i in order], waves


def _between(first: Operation, last: Operation) -> Iterator[Operation]:
    op: Operation | None = first
    while op is not None and op is not last:
        yield op
        op = op.next_op


def between_waits(steps: Sequence[Step]) -> list[list[Step]]:
    """The steps in parts that end with a wait of the host."""
    parts: list[list[Step]] = [[]]
    for step in steps:
        parts[-1].append(step)
        if step.is_wait:
            parts.append([])
    return [part for part in parts if part]


def assign_waves(program: ProgramOp, kernels: Mapping[str, KernelOp], limit: int, most: int) -> Placed:
    """Run a program's launches in waves of at most `most` that do not depend on each other, each wave spread over
    `limit` streams in turn; a wave waits for the one before it."""
    steps = steps_of(program)
    if not 2 <= len(steps) <= MOST_STEPS:
        return Placed({}, 0.0, 0.0)
    event, streams = 0, dict[Operation, int]()
    for part in between_waits(steps):
        ordered, waves = put_in_waves(part, most)
        places = [i - waves.index(wave) for i, wave in enumerate(waves)]
        on = [0 if is_pinned(s, kernels) else place % limit for s, place in zip(ordered, places, strict=True)]
        after = dependences(ordered)
        for i, wave in enumerate(waves):
            after[i] |= {j for j in range(i) if waves[j] == wave - 1}
        event = Writer(ordered, on, event).write(after)
        streams |= {step.op: stream for step, stream in zip(ordered, on, strict=True)}
    return Placed(streams, 0.0, 0.0)


class Writer:
    """Writes the streams of the steps of a part into the program, and the events that they need."""

    def __init__(self, steps: Sequence[Step], on: Sequence[int], first_event: int) -> None:
        self.steps, self.on, self.next_event = steps, on, first_event
        self.block = cast(Block, steps[0].op.parent)
        self.recorded: dict[int, int] = {}
        self.clocks: list[list[int]] = []
        count = max(on) + 1
        self.known = [[-1] * count for _ in range(count)]
        """`known[a][b]` is the last step on stream b that stream a is ordered after."""
        self.begun = {0}

    def write(self, after: Sequence[set[int]]) -> int:
        """Write the streams and events; returns the next free event. At the end stream 0 waits for all others."""
        for i, step in enumerate(self.steps):
            stream = self.on[i]
            if isinstance(step.op, ReadDimOp):
                self.join(i)
            for j in sorted(after[i], reverse=True):
                if self.known[stream][self.on[j]] < j:
                    self.wait(j, stream, i)
            if stream not in self.begun:
                self.wait(-1, stream, i)
            if isinstance(step.op, LaunchOp):
                step.op.properties["stream"] = IntegerAttr(stream, i64)
            self.known[stream][stream] = i
            self.clocks.append(list(self.known[stream]))
        self.join(len(self.steps))
        return self.next_event

    def join(self, end: int) -> None:
        """Let stream 0 wait for the steps before `end` on all other streams."""
        for stream in range(1, len(self.known)):
            last = max((i for i in range(end) if self.on[i] == stream), default=-1)
            if self.known[0][stream] < last:
                self.wait(last, 0, end)

    def wait(self, index: int, stream: int, before: int) -> None:
        """Let a stream wait, before the step `before`, for the end of the step `index`; -1 is the start of the part."""
        if index not in self.recorded:
            self.recorded[index] = self.next_event
            self.next_event += 1
            if index < 0:
                self.block.insert_op_before(RecordOp(self.recorded[index], 0), self.steps[0].op)
            else:
                self.block.insert_op_after(RecordOp(self.recorded[index], self.on[index]), self.steps[index].op)
        waiting = WaitOp(self.recorded[index], stream)
        if before < len(self.steps):
            self.block.insert_op_before(waiting, self.steps[before].op)
        else:
            self.block.add_op(waiting)
        self.begun.add(stream)
        if index >= 0:
            self.known[stream] = [max(a, b) for a, b in zip(self.known[stream], self.clocks[index], strict=True)]


def assign(program: ProgramOp, kernels: Mapping[str, KernelOp], target: Target, limit: int, gain: float) -> Placed:
    """Put a program's launches on at most `limit` streams if that is estimated to save the fraction `gain` of its
    time."""
    steps = steps_of(program)
    if not 2 <= len(steps) <= MOST_STEPS:
        return Placed({}, 0.0, 0.0)
    costs: dict[str, LaunchCost] = {}
    for step in steps:
        if isinstance(step.op, LaunchOp) and step.op.kernel_name not in costs:
            try:
                costs[step.op.kernel_name] = launch_cost(kernels[step.op.kernel_name], target)
            except ValueError as error:
                raise PassError(str(error), step.op) from error
    whole, found = Placed({}, 0.0, 0.0), list[tuple[list[Step], list[set[int]]]]()
    for part in between_waits(steps):
        after = dependences(part)
        of_part = [costs[s.op.kernel_name] if isinstance(s.op, LaunchOp) else ALONE for s in part]
        pinned = [is_pinned(step, kernels) for step in part]
        placed = place(part, after, of_part, pinned, limit)
        whole.streams |= placed.streams
        whole.before, whole.after = whole.before + placed.before, whole.after + placed.after
        found.append((part, after))
    if whole.before - whole.after < gain * whole.before or not any(whole.streams.values()):
        return Placed(dict.fromkeys(whole.streams, 0), whole.before, whole.before)
    event = 0
    for part, after in found:
        event = Writer(part, [whole.streams[step.op] for step in part], event).write(after)
    if slows_plain_runs(program, whole):
        program.properties["streams_if_recorded"] = UnitAttr()
    return whole


def slows_plain_runs(program: ProgramOp, placed: Placed) -> bool:
    """Whether a plain run is estimated to be no faster with several streams, because of the host time of events.

    A plain run takes as long as the slower of host and card. A recorded run costs the host neither launches nor events.
    """
    launches = HOST_LAUNCH_SECONDS * len(program.launches())
    events = HOST_EVENT_SECONDS * sum(isinstance(op, EventOp) for op in program.block.ops)
    return max(launches + events, placed.after) >= max(launches, placed.before)


ALONE = LaunchCost(0.0, 1.0)
"""The cost of a step that is not a launch; it stays on stream 0."""


def is_pinned(step: Step, kernels: Mapping[str, KernelOp]) -> bool:
    """Whether a step must be on stream 0: a copy, loop or wait, or code from outside, which may share hidden state."""
    if not isinstance(step.op, LaunchOp):
        return True
    op = kernels[step.op.kernel_name].compute_op()
    return isinstance(op, CallFfiOp) or op.name.partition(".")[0] != "ait"


@dataclass(frozen=True)
class AssignStreamsPass(ModulePass):
    """Put independent chains of launches on several streams, ordered by events, where estimates say that it is faster.

    `streams` is the most that a run may use; 0 and 1 leave all launches on one. `gain` is the least fraction of a
    program's time that they must save. If the events would cost the host of a plain run more time than the streams
    save, only recorded runs use several streams. `report=true` prints both estimates. A CPU has one stream. Runs before
    `plan-memory`.

    With `waves`, estimates do not decide: launches run in waves of at most so many, each spread over the streams, and a
    wave waits for the one before it. The more launches are in a wave, the less memory they share.
    """

    name = "assign-streams"

    streams: int = 4
    gain: int | float = 0.03
    report: bool = False
    waves: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.waves < 0:
            raise PassError(f"waves is {self.waves}, expected the launches of a wave, or 0 to decide by estimates")
        if not 0 <= self.streams <= MAX_STREAMS:
            raise PassError(f"streams is {self.streams}, expected a number from 0 to {MAX_STREAMS}")
        if not 0 <= self.gain < 1:
            raise PassError(f"gain is {self.gain}, expected a part from 0 to below 1, such as 0.03")
        programs = [program for program in op.ops if isinstance(program, ProgramOp)]
        if self.streams < 2 or not programs or not (target := target_of(op)).is_gpu:
            return
        kernels = {k.sym_name.data: k for k in op.ops if isinstance(k, KernelOp)}
        for program in programs:
            if has_streams(program):
                continue
            if any(isinstance(o, AllocOp) and o.at is not None for o in program.all_ops()):
                raise PassError(
                    "the memory is planned for one stream; run 'assign-streams' before 'plan-memory'", program
                )
            if self.waves:
                placed = assign_waves(program, kernels, self.streams, self.waves)
            else:
                placed = assign(program, kernels, target, self.streams, self.gain)
            if self.report:
                print(summary(program, placed), file=sys.stderr)


def summary(program: ProgramOp, placed: Placed) -> str:
    """A line for the report: the number of streams and the estimates."""
    count = 1 + max(placed.streams.values(), default=0)
    when = "" if program.streams_if_recorded is None else " in recorded runs"
    estimates = f"{placed.after * 1e6:.1f} us by estimate, {placed.before * 1e6:.1f} on one"
    return f"@{program.sym_name.data}: {count} stream{'s' if count > 1 else ''}{when}, {estimates}"
