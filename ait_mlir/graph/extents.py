"""Sizes with symbolic dims: they trace a graph once for many sizes.

A graph is traced with its own sizes. Each size above 1 is an `Extent`: a number with an expression over named dims.
Arithmetic gives extents. A comparison is decided by a proof for all sizes in range; without a proof, the actual numbers
decide it, and the answer becomes a fact about the code: two sizes are equal, a size is a constant, or a guard holds.
Code is valid for the graphs for which its facts are true.

The method is that of guards in tracing compilers (PyTorch 2, ASPLOS 2024, section 4).
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from ait_mlir.dims import Dim, Expr, Scope, const, sym

RANGES = (1, 64, 1024, 1 << 14, 1 << 18, 1 << 22, 1 << 26, (1 << 31) - 1)
"""Bounds of ranges: sizes above one bound up to the next share code. Kernels are chosen by estimates for the sizes that
came first."""
STEPS = (8, 4, 1)
"""Divisors of the length of a row: the largest that divides it is a fact about the code, because kernels move 16 bytes
at a time."""
_RELATIONS: dict[str, Callable[[int, int], bool]] = {"==": operator.eq, "<": operator.lt, "<=": operator.le}


class Retrace(Exception):
    """A fact was learned, so the graph must be traced again."""


@dataclass(frozen=True)
class Guard:
    """A comparison whose answer the code relies on."""

    left: Expr
    relation: str
    right: Expr
    answer: bool

    def holds(self, dims: dict[str, int]) -> bool:
        return _RELATIONS[self.relation](self.left.evaluate(dims), self.right.evaluate(dims)) is self.answer


@dataclass(frozen=True)
class Group:
    """Sizes that are equal or differ by constants. The first size is a constant, or `step` times the dim `name` with
    the range `low` to `high`.
    """

    members: tuple[int, ...]
    constant: int | None
    """The value of the first member, if it is a constant."""
    name: str = ""
    step: int = 1
    low: int = 0
    high: int = 0
    is_aligned: bool = False
    more: tuple[int, ...] = ()
    """The difference of each member to the first; empty if all are equal."""

    def value(self, sizes: Sequence[int]) -> int | None:
        """The dim for these sizes; None if the facts are not true of them."""
        size = sizes[self.members[0]]
        more = self.more or (0,) * len(self.members)
        if any(sizes[i] != size + d for i, d in zip(self.members, more, strict=True)):
            return None
        if self.constant is not None:
            return size if size == self.constant else None
        if size % self.step or (self.is_aligned and step_of(size) != self.step):
            return None
        count = size // self.step
        return count if self.low <= count <= self.high else None


class Facts:
    """The known facts about the sizes of a structure: equal sizes, constant differences, and constant sizes."""

    def __init__(self, sizes: Sequence[int], aligned: Sequence[bool]) -> None:
        self.sizes = tuple(sizes)
        self.aligned = tuple(aligned)
        """Whether a size is the length of a row in memory."""
        self._parent = list(range(len(self.sizes)))
        self._fixed: set[int] = set()

    def root(self, i: int) -> int:
        while self._parent[i] != i:
            i = self._parent[i]
        return i

    def unite(self, i: int, j: int) -> None:
        """Learn that the difference of sizes i and j is constant: its current value."""
        a, b = sorted((self.root(i), self.root(j)))
        self._parent[b] = a

    def fix(self, i: int) -> None:
        """Learn that size i is a constant."""
        self._fixed.add(i)

    def groups(self) -> list[Group]:
        members: dict[int, list[int]] = {}
        for i in range(len(self.sizes)):
            members.setdefault(self.root(i), []).append(i)
        found: list[Group] = []
        for root, own in members.items():
            size = self.sizes[root]
            more = tuple(self.sizes[i] - size for i in own)
            apart = more if any(more) else ()
            if not self._fixed.isdisjoint(own):
                found.append(Group(tuple(own), size, more=apart))
                continue
            aligned = not apart and any(self.aligned[i] for i in own)
            step = step_of(size) if aligned else 1
            low, high = range_of(size)
            found.append(Group(tuple(own), None, f"d{root}", step, -(-low // step), high // step, aligned, apart))
        return found


class Trace:
    """One pass over a graph: the expressions of its sizes, and the guards that it met."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.groups = facts.groups()
        self.guards: dict[Guard, None] = {}
        self._dims = {g.name: facts.sizes[g.members[0]] // g.step for g in self.groups if g.constant is None}
        self.scope = Scope(Dim(g.name, g.low, g.high, (self._dims[g.name],)) for g in self.groups if g.constant is None)
        self._of: dict[int, Expr] = {}
        self._plain: dict[Expr, int] = {}
        for group in self.groups:
            expr = const(group.constant) if group.constant is not None else sym(group.name) * group.step
            for i, more in zip(group.members, group.more or (0,) * len(group.members), strict=True):
                self._of[i] = expr + more
            if group.constant is None:
                self._plain[expr] = group.members[0]

    def size(self, i: int) -> int:
        """Size i, as an extent unless it is a constant."""
        return self.extent(self._of[i])

    def extent(self, expr: Expr) -> int:
        """An expression as a number to compute with: an integer where it is constant."""
        known = expr.as_int()
        return known if known is not None else cast(int, Extent(self, expr))

    def value(self, expr: Expr) -> int:
        return expr.evaluate(self._dims)

    def compare(self, left: Expr, relation: str, right: Expr) -> bool:
        """The answer to a comparison: proved, learned as a fact, or guarded."""
        scope = self.scope
        if relation == "==":
            if scope.equal(left, right):
                return True
            if scope.lt(left, right) or scope.lt(right, left):
                return False
        elif relation == "<":
            if scope.lt(left, right):
                return True
            if scope.le(right, left):
                return False
        else:
            if scope.le(left, right):
                return True
            if scope.lt(right, left):
                return False
        a, b = self.value(left), self.value(right)
        if a == b:
            self.same(left, right)
        answer = _RELATIONS[relation](a, b)
        self.guards[Guard(left, relation, right, answer)] = None
        return answer

    def same(self, left: Expr, right: Expr) -> NoReturn:
        """Record that two expressions are equal, as a fact about the sizes, and trace again (raises `Retrace`).

        If both expressions are a size plus a constant, their difference becomes constant; else all their sizes become
        constants.
        """
        i, j = self._size_near(left), self._size_near(right)
        if i is not None and j is not None:
            self.facts.unite(i, j)
            raise Retrace
        self.fix(left, right)

    def _size_near(self, expr: Expr) -> int | None:
        """The index of a size that differs from an expression by a constant; None if there is none."""
        return next((i for plain, i in self._plain.items() if (expr - plain).as_int() is not None), None)

    def fix(self, *exprs: Expr) -> NoReturn:
        """Learn that the sizes in these expressions are constants."""
        names = {name for e in exprs for name in e.symbols}
        for group in self.groups:
            if group.name in names:
                self.facts.fix(group.members[0])
        raise Retrace


class Extent:
    """A size with its expression. Using it as an integer makes it a constant of the code."""

    __slots__ = ("expr", "trace")

    def __init__(self, trace: Trace, expr: Expr) -> None:
        self.trace = trace
        self.expr = expr

    def __index__(self) -> int:
        self.trace.fix(self.expr)

    __int__ = __index__
    __float__ = __index__
    __hash__ = __index__

    def __bool__(self) -> bool:
        return not self.trace.compare(self.expr, "==", const(0))

    def __repr__(self) -> str:
        return str(self.trace.value(self.expr))

    def __add__(self, other: Any) -> int:
        return self.trace.extent(self.expr + expr_of(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> int:
        return self.trace.extent(self.expr - expr_of(other))

    def __rsub__(self, other: Any) -> int:
        return self.trace.extent(expr_of(other) - self.expr)

    def __neg__(self) -> int:
        return self.trace.extent(-self.expr)

    def __mul__(self, other: Any) -> int:
        if not isinstance(other, int | Extent):
            return NotImplemented  # a sequence can only be repeated a constant number of times
        return self.trace.extent(self.expr * expr_of(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> int:
        return self.trace.extent(self.expr // self._divisor(other))

    def __mod__(self, other: Any) -> int:
        return self.trace.extent(self.expr % self._divisor(other))

    def __rfloordiv__(self, other: Any) -> int:
        self.trace.fix(self.expr)

    __rmod__ = __rfloordiv__

    def _divisor(self, other: Any) -> Expr:
        """The expression of a divisor: a constant, or an expression that divides this extent."""
        divisor = expr_of(other)
        if divisor.as_int() is None and (self.expr % divisor).as_int() is None:
            if self.trace.value(self.expr) == self.trace.value(divisor):
                self.trace.same(self.expr, divisor)
            self.trace.fix(self.expr, divisor)
        return divisor

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | Extent):
            return NotImplemented
        return self.trace.compare(self.expr, "==", expr_of(other))

    def __lt__(self, other: Any) -> bool:
        return self.trace.compare(self.expr, "<", expr_of(other))

    def __le__(self, other: Any) -> bool:
        return self.trace.compare(self.expr, "<=", expr_of(other))

    def __gt__(self, other: Any) -> bool:
        return self.trace.compare(expr_of(other), "<", self.expr)

    def __ge__(self, other: Any) -> bool:
        return self.trace.compare(expr_of(other), "<=", self.expr)


def expr_of(size: Any) -> Expr:
    """The expression of a size: of an extent, an integer, or an expression."""
    if isinstance(size, Extent):
        return size.expr
    return size if isinstance(size, Expr) else const(operator.index(size))


def step_of(size: int) -> int:
    """The largest of `STEPS` that divides a size."""
    return next(step for step in STEPS if size % step == 0)


def range_of(size: int) -> tuple[int, int]:
    """The smallest and the largest size that share code with this one; `ValueError` for more than 2^31."""
    for low, high in itertools.pairwise(RANGES):
        if low < size <= high:
            return low + 1, high
    raise ValueError(f"a size is {size}, expected 2 to {RANGES[-1]}")
