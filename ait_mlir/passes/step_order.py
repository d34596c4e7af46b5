"""The order of steps in a program with streams: the steps, their accesses, and which step happens before which.

A step is a launch, a copy, a whole loop, or the host's wait for a dim. Steps on one stream follow each other. Steps
launched before an event is recorded happen before steps launched after a wait for it. A step knows the last step of
each stream that happens before it (its vector clock: Fidge, 1988; Mattern, 1989).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from random import Random

from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dialects.ait_rt.buffers import (
    BufferOp,
    ConstantOp,
    CopyOp,
    DestinationOp,
    InputOp,
    ReadDimOp,
    ViewOp,
)
from ait_mlir.dialects.ait_rt.loop import LoopOp, program_ops
from ait_mlir.dialects.ait_rt.program import LaunchOp, ProgramOp
from ait_mlir.dialects.ait_rt.streams import EventOp, RecordOp, WaitOp

Clock = tuple[int, ...]


@dataclass(frozen=True)
class Access:
    """An access of a step to a part of a buffer; `view` is None if the part depends on the step of a loop."""

    root: BufferOp
    view: Strided | None
    writes: bool


@dataclass(frozen=True)
class Step:
    """A step of a program. `first` and `last` are its positions; a loop includes the positions of its ops."""

    op: Operation
    stream: int
    first: int
    last: int
    accesses: tuple[Access, ...]

    @property
    def name(self) -> str:
        """The name of the step in messages."""
        return f"launch @{self.op.kernel_name}" if isinstance(self.op, LaunchOp) else self.op.name

    @property
    def is_wait(self) -> bool:
        """Whether the host waits in this step, so that all later steps happen after it."""
        return isinstance(self.op, ReadDimOp)


def has_streams(program: ProgramOp) -> bool:
    """Whether a program uses other streams than 0."""
    return any((isinstance(op, LaunchOp | EventOp)) and op.on != 0 for op in program.block.ops)


def is_step(op: Operation) -> bool:
    return isinstance(op, LaunchOp | CopyOp | LoopOp | ReadDimOp)


def steps_of(program: ProgramOp) -> list[Step]:
    """The steps of a program, in the order of the text."""
    views: dict[SSAValue, tuple[BufferOp, Strided | None]] = {}
    found: list[Step] = []
    position = 0
    for op in program.block.ops:
        inside = list(program_ops(op.block)) if isinstance(op, LoopOp) else []
        define(op, views)
        for inner in inside:
            define(inner, views, moves=True)
        if is_step(op):
            accesses = [a for o in (op, *inside) for a in _accesses(o, views)]
            stream = op.on if isinstance(op, LaunchOp) else 0
            found.append(Step(op, stream, position, position + len(inside), tuple(dict.fromkeys(accesses))))
        position += 1 + len(inside)
    return found


def define(op: Operation, views: dict[SSAValue, tuple[BufferOp, Strided | None]], moves: bool = False) -> None:
    """Record the root and the view of the buffer that an op defines; `moves`: the view may depend on a loop's step."""
    if isinstance(op, ViewOp):
        root, outer = views[op.source]
        view = None
        if outer is not None and not moves:
            view = Strided(op.buffer_type.dims, outer.offset + op.offset.data[0], op.strides.data)
        views[op.buffer] = root, view
    elif isinstance(op, DestinationOp) and op.in_place_of is not None:
        views[op.buffer] = views[op.in_place_of]
    elif isinstance(op, BufferOp):
        views[op.results[0]] = op, Strided.whole(op.buffer_type.dims)


def _accesses(op: Operation, views: dict[SSAValue, tuple[BufferOp, Strided | None]]) -> Iterator[Access]:
    if isinstance(op, LaunchOp):
        reads, writes = (*op.ins, *([] if op.count is None else [op.count])), (*op.outs, *op.workspace)
    elif isinstance(op, CopyOp):
        reads, writes = (op.source,), (op.target,)
    elif isinstance(op, ReadDimOp):
        reads, writes = (op.source,), ()
    else:
        return
    for value, is_written in (*((v, False) for v in reads), *((v, True) for v in writes)):
        root, view = views[value]
        if not isinstance(root, ConstantOp) and not (isinstance(root, InputOp) and not root.is_state):
            yield Access(root, view, is_written)


# ** happens before **


class Order:
    """The happens-before order of a program's steps, as vector clocks."""

    def __init__(self, program: ProgramOp, steps: Sequence[Step]) -> None:
        self.steps = steps
        count = 1 + max((op.on for op in program.block.ops if isinstance(op, LaunchOp | EventOp)), default=0)
        by_op = {step.op: i for i, step in enumerate(steps)}
        now = [[0] * count for _ in range(count)]
        events: dict[int, list[int]] = {}
        self.clocks: list[Clock] = []
        for op in program.block.ops:
            if isinstance(op, RecordOp):
                events[op.number] = list(now[op.on])
            elif isinstance(op, WaitOp):
                happened = events.get(op.number, now[op.on])
                now[op.on] = [max(a, b) for a, b in zip(now[op.on], happened, strict=True)]
            elif op in by_op:
                stream = steps[by_op[op]].stream
                now[stream][stream] += 1
                self.clocks.append(tuple(now[stream]))
                if steps[by_op[op]].is_wait:
                    now = [[max(a, b) for a, b in zip(own, now[0], strict=True)] for own in now]

    def before(self, first: int, second: int) -> bool:
        """Whether step `first` happens before step `second`; both are indices."""
        stream = self.steps[first].stream
        return first != second and self.clocks[second][stream] >= self.clocks[first][stream]

    def last_beside(self, users: Sequence[int]) -> int:
        """The position of the last step that is not ordered after all of these steps."""
        wanted = [0] * len(self.clocks[0])
        for i in users:
            stream = self.steps[i].stream
            wanted[stream] = max(wanted[stream], self.clocks[i][stream])
        found = max(self.steps[i].last for i in users)
        return max(found, *(self._lasts[s][clock] for s, clock in enumerate(wanted) if clock))

    @cached_property
    def _lasts(self) -> list[list[int]]:
        """For each stream and clock value, the last position of a step whose clock of the stream is smaller."""
        found: list[list[int]] = []
        for stream in range(len(self.clocks[0])):
            lasts = [-1] * (2 + max(clock[stream] for clock in self.clocks))
            for step, clock in zip(self.steps, self.clocks, strict=True):
                lasts[clock[stream] + 1] = max(lasts[clock[stream] + 1], step.last)
            found.append(list(accumulate(lasts, max)))
        return found


def shuffled(program: ProgramOp, random: Random) -> list[Operation]:
    """The ops of a program in a random order that its events allow; every allowed order is possible.

    In each part between waits of the host, buffers come first; events are left out.
    """
    steps = steps_of(program)
    order = Order(program, steps)
    found: list[Operation] = []
    done = [0] * len(order.clocks[0]) if steps else []
    waiting = dict(zip((step.op for step in steps), order.clocks, strict=True))
    for part in parts_of(program.block):
        found += [op for op in part if not is_step(op) and not isinstance(op, EventOp)]
        left = {op: waiting[op] for op in part if op in waiting}
        stream = {step.op: step.stream for step in steps if step.op in left}
        while left:
            ready = [
                op
                for op, clock in left.items()
                if all(done[s] >= known - (s == stream[op]) for s, known in enumerate(clock))
                and done[stream[op]] == clock[stream[op]] - 1
            ]
            chosen = random.choice(ready)
            done[stream[chosen]] += 1
            del left[chosen]
            found.append(chosen)
    return found


def users_of(steps: Sequence[Step]) -> dict[BufferOp, list[int]]:
    """The indices of the steps that access each buffer."""
    found: dict[BufferOp, list[int]] = {}
    for i, step in enumerate(steps):
        for root in dict.fromkeys(access.root for access in step.accesses):
            found.setdefault(root, []).append(i)
    return found


def parts_of(block: Block) -> Iterator[list[Operation]]:
    """The ops of a program between the host's waits. A wait is the last op of its part."""
    part: list[Operation] = []
    for op in block.ops:
        part.append(op)
        if isinstance(op, ReadDimOp):
            yield part
            part = []
    yield part
