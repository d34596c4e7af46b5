"""An independent check of a memory plan: for all values of the dims, no two live buffers share bytes.

It shares no code with the planner and does not depend on sections or orders. A sweep over the program keeps the live
buffers in a chain, where each is proved to end before the next begins. A new buffer must be proved to fit between two
neighbours. A failed proof is an error, with a counterexample at the smallest, the largest or a sampled value of the
dims if one is found. The number of proofs is linear in the number of buffers.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush

from ait_mlir.dims import DimError, Expr, Scope, const
from ait_mlir.passes.memory.buffers import ALIGNMENT, Buffer

_SAMPLES = 16
_MAX_PROBLEMS = 20


def verify(
    buffers: Sequence[Buffer],
    offsets: Mapping[int | str, Expr],
    arena: Expr,
    scope: Scope,
    alignment: int = ALIGNMENT,
) -> list[str]:
    """The problems of the plan, one sentence each; empty for a correct plan. Stops after 20 problems."""
    problems: list[str] = []
    for problem in _problems(buffers, offsets, arena, scope, alignment):
        problems.append(problem)
        if len(problems) == _MAX_PROBLEMS:
            break
    return problems


def _problems(
    buffers: Sequence[Buffer], offsets: Mapping[int | str, Expr], arena: Expr, scope: Scope, alignment: int
) -> Iterator[str]:
    known: set[int | str] = set()
    whole: list[Buffer] = []
    for buffer in buffers:
        if buffer.id in known:
            yield f"two buffers are called {buffer.id!r}"
        elif buffer.id not in offsets:
            yield f"buffer {buffer.id!r} has no offset"
        elif buffer.start >= buffer.end:
            yield f"buffer {buffer.id!r} is live from {buffer.start} to {buffer.end}, which is never"
        else:
            whole.append(buffer)
        known.add(buffer.id)
    sound: list[Buffer] = []
    for buffer in whole:
        try:
            found = list(_alone(buffer, offsets[buffer.id], arena, scope, alignment))
            _span(buffer, offsets, scope.maximum_env(), 0)
        except DimError as error:
            yield f"buffer {buffer.id!r} of {buffer.size} bytes at {offsets[buffer.id]}: {error}"
            continue
        yield from found
        sound.append(buffer)
    yield from _together(sound, offsets, scope)


def _alone(buffer: Buffer, offset: Expr, arena: Expr, scope: Scope, alignment: int) -> Iterator[str]:
    place = f"buffer {buffer.id!r} of {buffer.size} bytes at {offset}"
    if missing := sorted(scope.undeclared(offset) | scope.undeclared(buffer.size) | scope.undeclared(arena)):
        raise DimError(f"dim {missing[0]!r} is not declared (arena of {arena} bytes)")
    if not scope.le(0, buffer.size):
        yield f"{place} is not proved to have a size of at least 0"
    if not scope.divisible(offset, alignment):
        yield f"{place} is not proved to be aligned to {alignment} bytes"
    if not scope.le(0, offset):
        yield f"{place} is not proved to begin inside the arena{_example(scope, const(0), offset)}"
    if not scope.le(offset + buffer.size, arena):
        end = _example(scope, offset + buffer.size, arena)
        yield f"{place} is not proved to end within the arena of {arena} bytes{end}"


def _together(buffers: Sequence[Buffer], offsets: Mapping[int | str, Expr], scope: Scope) -> Iterator[str]:
    point = scope.maximum_env()
    ends: list[tuple[int, int]] = []  # of the live buffers, soonest first
    chain: list[tuple[int, int, int]] = []  # the live buffers, lowest first: (low, high) at `point`, index
    for index in sorted(range(len(buffers)), key=lambda i: buffers[i].start):
        buffer = buffers[index]
        if buffer.size.as_int() == 0:
            continue
        while ends and ends[0][0] <= buffer.start:
            gone = heappop(ends)[1]
            del chain[bisect_left(chain, _span(buffers[gone], offsets, point, gone))]
        span = _span(buffer, offsets, point, index)
        at = bisect_left(chain, span)
        # the chain is proved to ascend, so a buffer that does not overlap its neighbours overlaps no buffer
        below = buffers[chain[at - 1][2]] if at else None
        above = buffers[chain[at][2]] if at < len(chain) else None
        low = offsets[buffer.id]
        if below is not None and not scope.le(offsets[below.id] + below.size, low):
            yield _overlap(below, buffer, offsets, scope)
        elif above is not None and not scope.le(low + buffer.size, offsets[above.id]):
            yield _overlap(above, buffer, offsets, scope)
        else:
            chain.insert(at, span)
            heappush(ends, (buffer.end, index))


def _span(
    buffer: Buffer, offsets: Mapping[int | str, Expr], point: Mapping[str, int], index: int
) -> tuple[int, int, int]:
    low = offsets[buffer.id].evaluate(point)
    return low, low + buffer.size.evaluate(point), index


def _overlap(a: Buffer, b: Buffer, offsets: Mapping[int | str, Expr], scope: Scope) -> str:
    first, last = max(a.start, b.start), min(a.end, b.end) - 1
    text = f"buffers {a.id!r} and {b.id!r} are both live from position {first} to {last}"
    for point in _points(scope):
        spans = [_span(x, offsets, point, 0) for x in (a, b)]
        if max(s[0] for s in spans) < min(s[1] for s in spans):
            shown = " and ".join(f"[{low}, {high})" for low, high, _ in spans)
            return f"{text} and overlap: bytes {shown}{_at(point)}"
    spans = [f"{x.size} bytes at {offsets[x.id]}" for x in (a, b)]
    return f"{text}, and that they never overlap is not provable: {spans[0]}, {spans[1]}"


def _example(scope: Scope, small: Expr, large: Expr) -> str:
    """The text of a counterexample to `small <= large`; empty if no tried point is one."""
    for point in _points(scope):
        if small.evaluate(point) > large.evaluate(point):
            return f": {small.evaluate(point)} > {large.evaluate(point)}{_at(point)}"
    return ""


def _at(point: Mapping[str, int]) -> str:
    return f" at {', '.join(f'{name} = {value}' for name, value in point.items())}" if point else ""


def _points(scope: Scope) -> Iterator[dict[str, int]]:
    yield scope.minimum_env()
    yield scope.maximum_env()
    rng = random.Random(0)
    for _ in range(_SAMPLES):
        yield {d.name: rng.randint(d.lo, d.hi) for d in scope}
