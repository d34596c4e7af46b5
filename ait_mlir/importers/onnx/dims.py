"""The dims of the inputs of a model, by their names in the model or by input and axis."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ait_mlir.dims import RESERVED, Dim, DimError, Expr, Scope, const, parse, sym
from ait_mlir.frontend.assume import AssumingScope, Solution, as_multiples, within_range
from ait_mlir.frontend.intvar import Symbol
from ait_mlir.importers.errors import ImportFailure
from ait_mlir.rewrites.engine.errors import unknown

MOST = 4096
"""The largest value of a dim without a range of its own."""
MOST_BATCH = 16
"""The least value to which the largest one of the first dim is lowered before that of others."""
MOST_ELEMENTS = 1 << 26
"""The most elements of an input; dims without a range get smaller largest values to keep it."""
LARGEST_LEAST = 1 << 16
"""The largest least value of a dim that `large_enough` tries."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"[^\W\d]")


@dataclass
class Conditions:
    """Conditions of nodes on the dims of the inputs; a call whose sizes do not meet them is an error."""

    values: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """Dims that are expressions of others: another dim, or a multiple of one."""
    ranges: dict[str, Dim] = field(default_factory=dict[str, Dim])
    """Dims whose ranges are not those that the user gave."""

    def add(self, more: Conditions) -> None:
        self.values = {name: value.substitute(more.values) for name, value in self.values.items()} | more.values
        self.ranges |= more.ranges


class Narrower(Exception):
    """A node needs more conditions on the dims of the inputs; the import starts again with them."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        super().__init__(f"conditions on dims: {conditions}")


def same_dims(a: str, b: str) -> Narrower:
    """Two dims are one dim."""
    return Narrower(Conditions({b: sym(a)}))


class _ImportScope(AssumingScope):
    """A scope that solves equations of dims by assumptions: dims are equal, are multiples of a power of two, or are
    within a range.
    """

    def _assume(self, left: Expr, right: Expr) -> bool:
        if (found := as_multiples(self.solution, left, right)) is None:
            if super()._assume(left, right):
                return True
            if (found := within_range(self.solution, left, right)) is None:
                return False
        self.solution = found
        self.equations.append((left, right))
        return True


def conditions_for(scope: Scope, names: Iterable[str], holds: Callable[[Scope], bool]) -> Conditions | None:
    """Conditions on dims under which something holds that does not hold in `scope`: equal dims, multiples, ranges, or
    larger least values of the dims `names`. None if there are none.
    """
    symbols = {d.name: Symbol(d.name, d.name, d.lo, d.hi, d.hints, d.upper, d.jagged) for d in scope}
    assuming = _ImportScope(symbols)
    if holds(assuming) and assuming.equations:
        return _of_solution(assuming.solution)
    return large_enough(scope, names, holds)


def _of_solution(solution: Solution) -> Conditions:
    free = {n: s.declaration() for n, s in solution.symbols.items() if s.upper is None and s.jagged is None}
    return Conditions(dict(solution.values), free)


def large_enough(scope: Scope, names: Iterable[str], holds: Callable[[Scope], bool]) -> Conditions | None:
    """The smallest minima of the dims `names` for which `holds` is true of the scope; None if there are no such minima.
    """
    dims = [scope[name] for name in names if name in scope and scope[name].upper is None]

    def with_least(lows: Mapping[str, int]) -> Scope:
        return Scope([_at_least(d, lows[d.name]) if d.name in lows else d for d in scope])

    least = 2
    lows = {d.name: d.lo for d in dims}
    while not (found := holds(with_least(lows))) and least <= LARGEST_LEAST and any(least <= d.hi for d in dims):
        lows = {d.name: max(d.lo, min(least, d.hi)) for d in dims}
        least *= 2
    if not found:
        return None
    for dim in dims:
        low, high = dim.lo, lows[dim.name]
        while low < high:
            middle = (low + high) // 2
            if holds(with_least({**lows, dim.name: middle})):
                high = middle
            else:
                low = middle + 1
        lows[dim.name] = high
    changed = {d.name: _at_least(d, lows[d.name]) for d in dims if lows[d.name] > d.lo}
    return Conditions(ranges=changed) if changed else None


def _at_least(dim: Dim, low: int) -> Dim:
    return replace(dim, lo=low, hints=tuple(h for h in dim.hints if h >= low))


class InputDims:
    """Gives each dim of the inputs its expression; dims of one name are one dim."""

    def __init__(
        self,
        ranges: Mapping[str, tuple[int, int]],
        hints: Mapping[str, Sequence[int]],
        conditions: Conditions | None = None,
    ) -> None:
        self._ranges, self._hints, self._conditions = ranges, hints, conditions or Conditions()
        self._dims: dict[str, Dim] = {}
        self._names: dict[str, str] = {}
        """The names of all dims of the inputs, by their names in the model."""
        self._texts: set[str] = set()
        self._most: dict[str, int] = {}
        """The largest values of dims without ranges, by the names in the model; others have `MOST`."""

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Record the names of all dims of the inputs, and the upper limits of their sizes.

        A formula of named dims is then recognised whatever the order of the inputs.
        """
        for item in inputs:
            for dim in item.type.tensor_type.shape.dim:
                if dim.WhichOneof("value") == "dim_param" and _NAME.fullmatch(dim.dim_param):
                    self._texts.add(dim.dim_param)
        for item in inputs:
            self._limit([_text(f"{item.name}_{a}", d) for a, d in enumerate(item.type.tensor_type.shape.dim)])

    def _limit(self, texts: Sequence[str | int]) -> None:
        """Lower the largest values of dims without ranges until an input has few elements: first that of its first
        dim, usually the batch.
        """
        free = [t for t in dict.fromkeys(texts) if isinstance(t, str) and not {t, _name(t)} & self._ranges.keys()]

        def most(t: str | int) -> int:
            if isinstance(t, int):
                return t
            return self._ranges.get(t, self._ranges.get(_name(t), (1, self._most.get(t, MOST))))[1]

        while math.prod(map(most, texts)) > MOST_ELEMENTS:
            first = [t for t in free if t == texts[0] and most(t) > MOST_BATCH]
            chosen = first or [t for t in free if most(t) > MOST_BATCH]
            if not chosen:
                return
            largest = max(chosen, key=most)
            self._most[largest] = most(largest) // 2

    def shape(self, name: str, shape: Any) -> tuple[Expr, ...]:
        """The dims of an input."""
        return tuple(self._expr(f"{name}_{axis}", dim) for axis, dim in enumerate(shape.dim))

    def _expr(self, unnamed: str, dim: Any) -> Expr:
        text = _text(unnamed, dim)
        if isinstance(text, int):
            return const(text)
        if not _NAME.fullmatch(text):
            try:
                found = parse(text)
                if found.symbols and found.symbols <= self._texts:  # a formula of dims that are sizes of their own
                    return found.substitute({name: self._named(name) for name in found.symbols})
            except DimError:
                pass
        return self._named(text)

    def _named(self, text: str) -> Expr:
        name = _name(text)
        self._names.setdefault(text, name)
        value = self._conditions.values.get(name, sym(name))
        return value.substitute({s: self._declared(s) for s in sorted(value.symbols)})

    def _declared(self, name: str) -> Expr:
        """A dim of the module; one with a single value is a number."""
        if name not in self._dims:
            text = next((t for t, n in self._names.items() if n == name), name)
            lo, hi = self._ranges.get(text, self._ranges.get(name, (1, self._most.get(text, MOST))))
            try:
                hints = tuple(self._hints.get(text, self._hints.get(name, ())))
                self._dims[name] = self._conditions.ranges.get(name) or Dim(name, lo, hi, hints)
            except (DimError, TypeError) as error:
                raise ImportFailure(f"dims: {error}") from None
        dim = self._dims[name]
        return const(dim.lo) if dim.lo == dim.hi else sym(name)

    def may_be(self, name: str, size: int) -> bool:
        """Whether a dim may have a size: one in the range that the user gives, if there is one."""
        text = next((t for t, n in self._names.items() if n == name), name)
        lo, hi = self._ranges.get(text, self._ranges.get(name, (0, self._most.get(text, MOST))))
        return lo <= size <= hi

    def check_given(self) -> None:
        """Refuse ranges and hints of dims that the inputs lack."""
        names = {*self._names, *self._names.values()}
        for given in (self._ranges, self._hints):
            if wrong := [n for n in given if n not in names]:
                raise ImportFailure(f"dims: {unknown('dim', wrong[0], [*dict.fromkeys(self._names.values())])}")

    def __iter__(self) -> Iterator[str]:
        return (name for name, dim in self._dims.items() if dim.lo < dim.hi)

    def scope(self) -> Scope:
        return Scope(self._dims[name] for name in self)


def _text(unnamed: str, dim: Any) -> str | int:
    """A dim as the model writes it: a number, a name or a formula; `unnamed` for a dim without a name."""
    kind = dim.WhichOneof("value")
    if kind == "dim_value" and dim.dim_value >= 0:
        return int(dim.dim_value)
    text = str(dim.dim_param) if kind == "dim_param" else ""
    return text if _WORD.search(text) else unnamed  # exporters write -1 or ? for a dim without a name


def _name(text: str) -> str:
    """The name of a dim in the module."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)[:64] or "dim"
    return f"dim_{name}" if name[0].isdigit() or name in RESERVED else name
