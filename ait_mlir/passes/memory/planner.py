"""Plans offsets for buffers with known lifetimes; buffers that are never live together share bytes.

Sizes are dim expressions. Multiples of one base, like 1536*batch*seq and 6144*batch*seq, form a section, which is
planned in integer coefficients of the base by a strategy (`placement.py`). The sections follow one another, constants
first. A coefficient that is not a multiple of 64 would give unaligned offsets. If it is large, it is rounded up;
otherwise its base is rounded up: 4*batch*seq counts 64*(batch*seq ceildiv 16) once. Before a section is planned, its
buffers go into gaps of earlier sections if enough units of the earlier base are proved to hold them.

Time and memory are linear in the number of pairs of buffers that are live together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ait_mlir.dims import DimError, Expr, Scope, ceildiv, const, from_terms
from ait_mlir.passes.memory.buffers import ALIGNMENT, Buffer, MemoryPlanError, Plan
from ait_mlir.passes.memory.placement import Lifetimes, Strategy, best_gap, greedy

CONSTANT_ALIGNMENT = 256
_COARSE = 1024  # a coefficient from here on is rounded up to the alignment itself, at a loss of at most 6 %


def plan(buffers: Sequence[Buffer], scope: Scope, strategy: Strategy = greedy) -> Plan:
    """A plan: offsets in bytes, multiples of 64 (of 256 before the first symbolic size), and the arena's size.

    The plan is optimal if all sizes have one base and the strategy proves its result, or if the arena is the peak of
    live bytes at the largest dims.
    Raises MemoryPlanError for two buffers with the same id, an empty lifetime, or a size that may be negative.
    """
    _check(buffers, scope)
    live = Lifetimes(buffers)
    sections = _sections(buffers, scope)
    offsets: dict[int | str, Expr] = {}
    top = const(0)
    done: list[tuple[_Section, Expr]] = []
    fits = _Fits(scope)
    proved = len(sections) < 2
    for section in sections:
        for index in sorted(section.sizes, key=lambda i: -section.sizes[i]):
            if (home := _host(index, buffers[index].size, done, fits, live)) is not None:
                del section.sizes[index]
                offsets[buffers[index].id] = home
        proved &= section.place(live, strategy)
        done.append((section, top))
        for index, (low, _) in section.placed.items():
            if index in section.sizes:
                offsets[buffers[index].id] = top + section.base * low
        top = top + section.base * section.top
    peak = peak_bytes(buffers, scope)
    optimal = proved or top.evaluate(scope.maximum_env()) == peak
    return Plan({b.id: offsets[b.id] for b in buffers}, top, optimal, peak)


def naive(buffers: Sequence[Buffer], scope: Scope) -> Plan:
    """A plan in which nothing shares bytes."""
    _check(buffers, scope)
    start, end = min((b.start for b in buffers), default=0), max((b.end for b in buffers), default=0)
    found = plan([replace(b, start=start, end=end) for b in buffers], scope)
    peak = peak_bytes(buffers, scope)
    return replace(found, optimal=found.arena.evaluate(scope.maximum_env()) == peak, peak=peak)


@dataclass
class _Section:
    """Buffers whose sizes are `sizes[index]` times `base` bytes, and their placed spans of coefficients."""

    base: Expr
    sizes: dict[int, int] = field(default_factory=dict[int, int])
    placed: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    top: int = 0

    def place(self, live: Lifetimes, strategy: Strategy) -> bool:
        """Place all buffers of the section; returns whether a smaller section is proved to be impossible."""
        found = strategy(self.sizes, live)
        self.placed.update(found.spans)
        self.top = found.top
        return found.optimal


# ** sections **


def _sections(buffers: Sequence[Buffer], scope: Scope) -> list[_Section]:
    """The sections of buffers with one base: constants first, then by total bytes at the largest dims, descending."""
    shapes: dict[Expr, tuple[Expr, int]] = {}
    odd: dict[Expr, int] = {}  # base -> greatest common divisor of its small coefficients that are not multiples of 64
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
    """For pairs of a size and a base, the number of units of the base that is proved to hold the size."""

    def __init__(self, scope: Scope):
        self._scope = scope
        self._points = [scope.minimum_env(), scope.maximum_env()]
        self._found: dict[tuple[Expr, Expr], int | None] = {}

    def units(self, size: Expr, base: Expr) -> int | None:
        """A number for which size <= number * base is proved and offsets stay aligned; None if none is found."""
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
        try:
            return needed if self._scope.le(size, base * needed) else None
        except DimError:  # a number beyond 64 bits
            return None


def _host(index: int, size: Expr, done: list[tuple[_Section, Expr]], fits: _Fits, live: Lifetimes) -> Expr | None:
    """Reserve a gap for a buffer in a finished section and return its offset; None if no gap holds it."""
    for section, start in done:
        units = fits.units(size, section.base)
        if units is None or units > section.top:
            continue
        low = best_gap(section.placed, live.neighbours(index), units, section.top)
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
    return Lifetimes(buffers).peak({i: b.size.evaluate(env) for i, b in enumerate(buffers)})
