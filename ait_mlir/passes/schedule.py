"""Places tasks on streams and estimates their total time.

A task has a time and a share of the card when it runs alone. Concurrent tasks keep their times until their shares add
up to more than the card; beyond that, all slow down by the same factor. A launch that fills the card gains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

EVENT_SECONDS = 1.5e-6
"""The time that a wait for another stream adds to a chain of launches: assumed, not measured."""


@dataclass(frozen=True)
class Task:
    """A task's `seconds` and `share` of the card (0 to 1) when it runs alone, and the earlier tasks that it follows.

    A `pinned` task must be on stream 0.
    """

    seconds: float
    share: float
    after: tuple[int, ...]
    pinned: bool = False


@dataclass(frozen=True)
class Schedule:
    """The stream of each task, and the seconds until stream 0 has waited for the end of all."""

    streams: tuple[int, ...]
    seconds: float


def one_stream(tasks: Sequence[Task]) -> Schedule:
    return Schedule((0,) * len(tasks), sum(task.seconds for task in tasks))


def best_schedule(tasks: Sequence[Task], limit: int) -> Schedule:
    """The fastest schedule found with up to `limit` streams; among equally fast schedules, the fewest streams."""
    best = one_stream(tasks)
    for count in range(2, limit + 1):
        streams = _earliest(tasks, count)
        for labels in {streams, _longest_first(tasks, streams)}:
            seconds = simulate(tasks, labels)
            if seconds < best.seconds * 0.995:
                best = Schedule(labels, seconds)
        if max(streams) + 1 < count:
            break
    return best


def _earliest(tasks: Sequence[Task], count: int) -> tuple[int, ...]:
    """For each task, the stream on which it ends first; on a tie, the stream of the last task that it follows."""
    free = [0.0] * count
    ends: list[float] = []
    streams: list[int] = []
    for task in tasks:
        last = max(task.after, key=lambda i: ends[i], default=None)
        options: list[tuple[float, bool, int]] = []
        for stream in range(1 if task.pinned else count):
            begin = free[stream] if stream == 0 or free[stream] else EVENT_SECONDS
            for i in task.after:
                begin = max(begin, ends[i] + (EVENT_SECONDS if streams[i] != stream else 0.0))
            options.append((begin, last is None or streams[last] != stream, stream))
        begin, _, stream = min(options)
        streams.append(stream)
        ends.append(begin + task.seconds)
        free[stream] = ends[-1]
    return tuple(streams)


def _longest_first(tasks: Sequence[Task], streams: tuple[int, ...]) -> tuple[int, ...]:
    """The streams renumbered so that stream 0, which needs no event at its start, has the most work."""
    if any(task.pinned for task in tasks):
        return streams
    work = [0.0] * (max(streams) + 1)
    for task, stream in zip(tasks, streams, strict=True):
        work[stream] += task.seconds
    longest = max(range(len(work)), key=lambda s: work[s])
    return tuple({0: longest, longest: 0}.get(s, s) for s in streams)


def simulate(tasks: Sequence[Task], streams: Sequence[int]) -> float:
    """The seconds of a schedule, simulated from the end of one task to the next."""
    queues: dict[int, list[int]] = {}
    for i, stream in enumerate(streams):
        queues.setdefault(stream, []).append(i)
    ends: dict[int, float] = {}
    left: dict[int, float] = {}
    now = 0.0
    while len(ends) < len(tasks):
        starts: list[float] = []
        for stream, queue in queues.items():
            if not queue or queue[0] in left or any(j not in ends for j in tasks[queue[0]].after):
                continue
            i = queue[0]
            ready = max((ends[j] + EVENT_SECONDS * (streams[j] != stream) for j in tasks[i].after), default=0.0)
            if not tasks[i].after and stream != 0:
                ready = EVENT_SECONDS
            if ready <= now:
                left[i] = tasks[i].seconds
            else:
                starts.append(ready)
        pressure = max(1.0, sum(tasks[i].share for i in left))
        step = min([*(seconds * pressure for seconds in left.values()), *(start - now for start in starts)])
        now += step
        for i in list(left):
            left[i] -= step / pressure
            if left[i] <= 1e-12:
                del left[i]
                ends[i] = now
                queues[streams[i]].pop(0)
    return max((end + EVENT_SECONDS * (streams[i] != 0) for i, end in ends.items()), default=0.0)
