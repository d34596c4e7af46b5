"""Plans offsets for buffers with known lifetimes; buffers that are never live together share bytes.

Greedy by size: the largest buffer comes first. Each buffer goes into the smallest sufficient gap between the placed
buffers that are live at the same time (Pisarchyk and Lee, arXiv 2001.03288). If the result is above the peak of live
bytes, two other orders are tried and the best one is kept.

Sizes are dim expressions. Multiples of one base, like 1536*batch*seq and 6144*batch*seq, form a section, which is
planned in integer coefficients of the base. The sections follow one another, constants first. A coefficient that is not
a multiple of 64 would give unaligned offsets. If it is large, it is rounded up; otherwise its base is rounded up:
4*batch*seq counts 64*(batch*seq ceildiv 16) once. Before a section is planned, its buffers go into gaps of earlier
sections if enough units of the earlier base are proved to hold them.

Time and memory are linear in the number of pairs of buffers that are live together.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ait_mlir.dims import Expr, Scope, ceildiv, const, from_terms, total
from ait_mlir.passes.memory.buffers import ALIGNMENT, Buffer, MemoryPlanError, Plan

CONSTANT_ALIGNMENT = 256
_COARSE = 1024  # a coefficient from here on is rounded up to the alignment itself, at a loss of at most 6 %


def plan(buffers: Sequence[Buffer], scope: Scope) -> Plan:
    """Offsets in bytes, multiples of 64 (256 while nothing before is symbolic), and the arena's size.

    Raises MemoryPlanError for two buffers of one id, an empty lifetime, or a size that may be negative.
    """
    _check(buffers, scope)
    live = _Lifetimes(buffers)
    sections = _sections(buffers, scope)
    offsets: dict[int | str, Expr] = {}
    top = const(0)
    done: list[tuple[_Section, Expr]] = []
    fits = _Fits(scope)
    for section in sections:
        for index in sorted(section.sizes, key=lambda i: -section.sizes[i]):
            if (home := _host(index, buffers[index].size, done, fits, live)) is not None:
                del section.sizes[index]
                offsets[buffers[index].id] = home
        section.place(live)
        done.append((section, top))
        for index, (low, _) in section.placed.items():
            if index in section.sizes:
                offsets[buffers[index].id] = top + section.base * low
        top = top + section.base * section.top
    return Plan({b.id: offsets[b.id] for b in buffers}, top)


@dataclass
class _Section:
    """Buffers whose sizes are `sizes[index]` times `base` bytes, and the spans of coefficients they were given."""

    base: Expr
    sizes: dict[int, int] = field(default_factory=dict[int, int])
    placed: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    top: int = 0

    def place(self, live: _Lifetimes) -> None:
        """Place all of `sizes`, in the first order that reaches the peak of live bytes, or in the best."""
        peak = live.peak(self.sizes)
        best: dict[int, tuple[int, int]] | None = None
        for order in _ORDERS:
            placed: dict[int, tuple[int, int]] = {}
            top = 0
            for index in sorted(self.sizes, key=lambda i: order(self.sizes[i], live.length(i), i)):
                size = self.sizes[index]
                low = _best_gap(placed, live.neighbours(index), size, None)
                assert low is not None
                placed[index] = (low, low + size)
                top = max(top, low + size)
            if best is None or top < self.top:
                best, self.top = placed, top
            if self.top == peak:
                break
        self.placed.update(best or {})


_ORDERS: tuple[Callable[[int, int, int], tuple[int, ...]], ...] = (
    lambda size, length, index: (-size, -length, index),
    lambda size, length, index: (-size * length, -size, index),
    lambda size, length, index: (-length, -size, index),
)


def _best_gap(
    placed: dict[int, tuple[int, int]], neighbours: Iterable[int], size: int, limit: int | None
) -> int | None:
    """The start of the smallest gap that holds `size` between spans of neighbours; else above them, below `limit`."""
    spans = sorted([placed[i] for i in neighbours if i in placed])
    at, best, room = 0, None, 0
    for low, high in spans:
        if low - at >= size and (best is None or low - at < room):
            best, room = at, low - at
        if high > at:
            at = high
    if limit is not None and limit - at >= size and (best is None or limit - at < room):
        return at
    return at if best is None and limit is None else best


# ** lifetimes **


class _Lifetimes:
    """Which buffers are live together, by index: the older ones of each in a list, the newer by a range of starts."""

    def __init__(self, buffers: Sequence[Buffer]):
        self._buffers = buffers
        self._order = sorted(range(len(buffers)), key=lambda i: buffers[i].start)
        self._starts = [buffers[i].start for i in self._order]
        self._older: list[list[int]] = [[] for _ in buffers]
        active: list[int] = []
        begin = 0
        while begin < len(self._order):
            start = self._starts[begin]
            end = bisect_right(self._starts, start, begin)
            active = [i for i in active if buffers[i].end > start]
            for index in self._order[begin:end]:
                self._older[index] = active  # shared: all of one start have the same
            active = active + self._order[begin:end]
            begin = end

    def length(self, index: int) -> int:
        """How many positions the buffer is live for."""
        return self._buffers[index].end - self._buffers[index].start

    def neighbours(self, index: int) -> list[int]:
        """The buffers that are live at some position with this one, itself among them."""
        buffer = self._buffers[index]
        first = bisect_left(self._starts, buffer.start)
        return self._older[index] + self._order[first : bisect_left(self._starts, buffer.end, first)]

    def peak(self, sizes: dict[int, int]) -> int:
        """The largest sum of `sizes` at one position."""
        events: list[tuple[int, int]] = []
        for index, size in sizes.items():
            events.append((self._buffers[index].start, size))
            events.append((self._buffers[index].end, -size))
        now = highest = 0
        for _, change in sorted(events):  # an end sorts before a start at the same position
            now += change
            highest = max(highest, now)
        return highest


# ** sections **


def _sections(buffers: Sequence[Buffer], scope: Scope) -> list[_Section]:
    """Constants first, then by the bytes that are asked for at the largest dims, the most first."""
    shapes: dict[Expr, tuple[Expr, int]] = {}
    odd: dict[Expr, int] = {}  # base -> greatest common divisor of its small coefficients that are no multiple of 64
    for size in {b.size: None for b in buffers}:
        coefficient = math.gcd(*(c for c, _ in size.terms()))
        shape = from_terms((c // (coefficient or 1), mono) for c, mono in size.terms())
        shapes[size] = shape, coefficient
        if _is_odd(shape, coefficient):
            odd[shape] = math.gcd(odd.get(shape, 0), coefficient, ALIGNMENT)
    sections: dict[Expr, _Section] = {}
    for index, buffer in enumerate(buffers):
        base, coefficient = shapes[buffer.size]
        if buffer.size.as_int() is not None:
            base, coefficient = const(1), -(-coefficient // CONSTANT_ALIGNMENT) * CONSTANT_ALIGNMENT
        elif _is_odd(base, coefficient):
            unit = odd[base]
            base, coefficient = ceildiv(base, ALIGNMENT // unit) * ALIGNMENT, coefficient // unit
        else:
            coefficient = -(-coefficient // ALIGNMENT) * ALIGNMENT
        sections.setdefault(base, _Section(base)).sizes[index] = coefficient
    weight = {base: scope.bounds(base)[1] * sum(s.sizes.values()) for base, s in sections.items()}
    return sorted(sections.values(), key=lambda s: (s.base is not const(1), -weight[s.base], str(s.base)))


def _is_odd(shape: Expr, coefficient: int) -> bool:
    return shape.as_int() is None and coefficient % ALIGNMENT != 0 and coefficient < _COARSE


class _Fits:
    """The number of units of a base that is proved to hold a size."""

    def __init__(self, scope: Scope):
        self._scope = scope
        self._points = [scope.minimum_env(), scope.maximum_env()]
        self._found: dict[tuple[Expr, Expr], int | None] = {}

    def units(self, size: Expr, base: Expr) -> int | None:
        """A number for which size <= number * base is proved and offsets stay aligned; None where none is found."""
        key = (size, base)
        if key not in self._found:
            self._found[key] = self._search(size, base)
        return self._found[key]

    def _search(self, size: Expr, base: Expr) -> int | None:
        aligned = all(c % ALIGNMENT == 0 for c, _ in base.terms())
        grain = CONSTANT_ALIGNMENT if base.as_int() is not None else 1 if aligned else ALIGNMENT
        if self._scope.undeclared(size) or self._scope.undeclared(base):
            return None
        needed = 0
        for point in self._points:
            if (room := base.evaluate(point)) <= 0:
                return None
            needed = max(needed, -(-size.evaluate(point) // room))
        needed = -(-needed // grain) * grain
        return needed if self._scope.le(size, base * needed) else None


def _host(index: int, size: Expr, done: list[tuple[_Section, Expr]], fits: _Fits, live: _Lifetimes) -> Expr | None:
    """Reserve a gap for the buffer in a finished section, and return its offset."""
    for section, start in done:
        units = fits.units(size, section.base)
        if units is None or units > section.top:
            continue
        low = _best_gap(section.placed, live.neighbours(index), units, section.top)
        if low is not None:
            section.placed[index] = (low, low + units)
            return start + section.base * low
    return None


def _check(buffers: Sequence[Buffer], scope: Scope) -> None:
    seen: set[int | str] = set()
    for buffer in buffers:
        if buffer.id in seen:
            raise MemoryPlanError(f"two buffers are called {buffer.id!r}; each needs its own id")
        seen.add(buffer.id)
        if buffer.start >= buffer.end:
            raise MemoryPlanError(f"buffer {buffer.id!r} is live from {buffer.start} to {buffer.end}, which is never")
    for size in {b.size: None for b in buffers}:
        if not scope.le(0, size):
            name = next(b.id for b in buffers if b.size is size)
            raise MemoryPlanError(f"buffer {name!r} has {size} bytes, which is not proved to be at least 0")


def peak_bytes(buffers: Sequence[Buffer], scope: Scope) -> int:
    """The most bytes live at one position with each dim at its maximum: no arena can be smaller there."""
    env = scope.maximum_env()
    return _Lifetimes(buffers).peak({i: b.size.evaluate(env) for i, b in enumerate(buffers)})


def total_bytes(buffers: Sequence[Buffer]) -> Expr:
    """The bytes without any sharing."""
    return total(b.size for b in buffers)
