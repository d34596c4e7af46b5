"""Checks the streams of a program: events must order steps that access the same memory if one of them writes.

It shares no code for orders with the pass that assigns streams and with the planner: each step has the set of all steps
that happen before it, as a bit for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dialects.ait_rt.buffers import AllocOp, BufferOp
from ait_mlir.dialects.ait_rt.program import LaunchOp, ProgramOp
from ait_mlir.dialects.ait_rt.streams import EventOp, RecordOp, WaitOp
from ait_mlir.passes.checks.accesses import name_of
from ait_mlir.passes.checks.disjoint import are_disjoint
from ait_mlir.passes.step_order import Access, Step, parts_of, steps_of, users_of

Problem = tuple[str, Operation]


def event_problems(program: ProgramOp) -> Iterator[Problem]:
    """The errors of the events: a part of a run begins and ends on stream 0, and other streams branch off from it."""
    recorded: set[int] = set()
    for part in parts_of(program.block):
        here: dict[int, int] = {}  # the events of this part, with the streams that they cover, as bits
        known: dict[int, int] = {0: 1}  # for each stream that has branched off, the streams it follows, as bits
        open_streams: dict[int, Operation] = {}
        for op in part:
            if isinstance(op, LaunchOp | RecordOp) and op.on not in known:
                yield f"{op.name}: stream {op.on} begins without a wait for an event of stream 0", op
                return
            if isinstance(op, RecordOp):
                if op.number in recorded:
                    yield f"{op.name}: event {op.number} is recorded twice", op
                recorded.add(op.number)
                here[op.number] = known[op.on]
            elif isinstance(op, WaitOp):
                if op.number not in here:
                    where = "before the host's last wait" if op.number in recorded else "nowhere before"
                    yield f"{op.name}: event {op.number} is recorded {where}", op
                    return
                known[op.on] = known.get(op.on, 1 << op.on) | here[op.number]
            elif isinstance(op, LaunchOp):
                for stream in known:
                    if stream != op.on:
                        known[stream] &= ~(1 << op.on)
                here = {event: ends & ~(1 << op.on) for event, ends in here.items()}
                if op.on != 0:
                    open_streams[op.on] = op
        for stream, op in open_streams.items():
            if not known[0] >> stream & 1:
                yield f"{op.name}: stream 0 does not wait for the end of stream {stream}", op


class Reach:
    """For each step of a program the set of the steps that happen before it, as bits."""

    def __init__(self, program: ProgramOp, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.before: list[int] = []
        number = {step.op: i for i, step in enumerate(steps)}
        ended: dict[int, int] = {}
        events: dict[int, int] = {}
        host = 0  # the steps that had ended at the host's last wait
        for op in program.block.ops:
            if isinstance(op, EventOp):
                own = ended.get(op.on, 0) | host
                if isinstance(op, RecordOp):
                    events[op.number] = own
                else:
                    ended[op.on] = own | events.get(op.number, 0)
            elif (i := number.get(op)) is not None:
                stream = steps[i].stream
                self.before.append(ended.get(stream, 0) | host)
                ended[stream] = self.before[i] | 1 << i
                if steps[i].is_wait:
                    host |= ended[stream]

    def are_ordered(self, a: int, b: int) -> bool:
        """Whether one of two steps happens before the other."""
        return bool(self.before[b] >> a & 1 or self.before[a] >> b & 1)

    def last_beside(self, users: int) -> int:
        """The last position of a step that does not happen after all steps in the bit set `users`."""
        for i in range(len(self.steps) - 1, -1, -1):
            if users & ~self.before[i]:
                return self.steps[i].last
        return -1


def races(program: ProgramOp) -> Iterator[Problem]:
    """The pairs of accesses to one buffer that no event orders, one of them a write."""
    steps = steps_of(program)
    reach = Reach(program, steps)
    for root, users in users_of(steps).items():
        if len({steps[i].stream for i in users}) < 2:
            continue
        for n, b in enumerate(users):
            for a in users[:n]:
                if not reach.are_ordered(a, b) and conflict(steps[a], steps[b], root):
                    what = f"{steps[b].name} and {steps[a].name} both use {name_of(root)}, which one of them writes"
                    yield f"{what}; no event orders stream {steps[b].stream} and stream {steps[a].stream}", steps[b].op


def conflict(a: Step, b: Step, root: BufferOp) -> bool:
    """Whether two steps may touch one element of a buffer, and one of them writes it."""
    scope = scope_of(a.op)

    def apart(x: Access, y: Access) -> bool:
        return x.view is not None and y.view is not None and are_disjoint(x.view, y.view, scope)

    own, others = ([x for x in step.accesses if x.root is root] for step in (a, b))
    return any((x.writes or y.writes) and not apart(x, y) for x in own for y in others)


def ends_beside(program: ProgramOp) -> dict[AllocOp, int]:
    """For each allocation, the first position from which every step happens after all uses of the allocation."""
    steps = steps_of(program)
    reach = Reach(program, steps)
    found: dict[AllocOp, int] = {}
    for root, users in users_of(steps).items():
        if isinstance(root, AllocOp):
            found[root] = 1 + reach.last_beside(sum(1 << i for i in users))
    return found
