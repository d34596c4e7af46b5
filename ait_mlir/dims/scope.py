"""The dims of one graph: their ranges, and proofs about expressions of them.

batch = 1 to 64, seq = 1 to 512 hints [64, 128], count = 0 to 8*batch bound
total = 0 to 6400, words = jagged(total, batch, 0 to 100)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from ait_mlir.dims.errors import DimError, DimSyntaxError
from ait_mlir.dims.expr import Expr, check_name, const
from ait_mlir.dims.parser import Tokens, parse_expr
from ait_mlir.dims.prover import Prover
from ait_mlir.dims.simplify import simplified

MAX_DIM = 2**40


@dataclass(frozen=True)
class Jagged:
    """The declaration of a jagged dim: `batch` sequences packed one after the other in `total` rows.

    `levels` has the least and the greatest length of a sequence for each level, the greatest as an expression of dims;
    the rows of a level are the sequences of the next level.
    """

    total: Expr
    batch: Expr
    levels: tuple[tuple[int, Expr], ...]

    def __str__(self) -> str:
        return f"jagged({', '.join([str(self.total), str(self.batch), *(f'{lo} to {hi}' for lo, hi in self.levels)])})"


@dataclass(frozen=True)
class Dim:
    """A declared dim: `lo <= value <= hi`, both within 0 and 2^40; `hints` are values to tune for.

    If `is_given`, the caller of a run passes the value; it does not come from the shape of an input. Without a value it
    is `usual`.

    A dim with an `upper`, an expression of dims declared before it, gets its value from an op at run time, at most
    `upper`; `hi` is the largest value of `upper`. The value of a `jagged` dim is its total, which is also its `upper`.
    Proofs treat a jagged dim as different from its total, so only tensors with the same sequences match.

    A dim that `is_index` counts the iterations of a loop, from 0 to `upper`.
    """

    name: str
    lo: int
    hi: int
    hints: tuple[int, ...] = ()
    upper: Expr | None = None
    jagged: Jagged | None = None
    is_given: bool = False
    is_index: bool = False

    @property
    def usual(self) -> int:
        """The first hint, else the least value."""
        return self.hints[0] if self.hints else self.lo

    def __post_init__(self) -> None:
        check_name(self.name)
        if not 0 <= self.lo <= MAX_DIM or not 0 <= self.hi <= MAX_DIM:
            raise DimError(f"dim {self.name!r} ranges from {self.lo} to {self.hi}; a dim is between 0 and 2^40")
        if self.lo > self.hi:
            raise DimError(f"dim {self.name!r} has an empty range: {self.lo} to {self.hi}")
        for hint in self.hints:
            if not self.lo <= hint <= self.hi:
                raise DimError(f"dim {self.name!r} has the hint {hint} outside its range {self.lo} to {self.hi}")

    def __str__(self) -> str:
        hints = f" hints [{', '.join(map(str, self.hints))}]" if self.hints else ""
        if self.jagged is not None:
            return f"{self.name} = {self.jagged}{hints}"
        if self.upper is not None:
            return f"{self.name} = {self.lo} to {self.upper}{hints} bound"
        given = " given" if self.is_given else ""
        return f"{self.name} = {self.lo} to {self.hi}{hints}{given}"


class Scope:
    """The declared dims of a graph, in order. Immutable.

    Each proof answers True (it holds for all values in range) or False (unknown). An expression may name an undeclared
    dim, whose range is then 0 to 2^40; the verifier calls `undeclared` and `unproved_divisors`.
    """

    def __init__(self, dims: Iterable[Dim] = ()):
        self.dims = tuple(dims)
        self._by_name: dict[str, Dim] = {}
        for dim in self.dims:
            if dim.name in self._by_name:
                raise DimError(f"dim {dim.name!r} is declared twice: {self._by_name[dim.name]} and {dim}")
            self._by_name[dim.name] = dim
        self.memo: dict[object, object] = {}
        """Cached answers that depend on this scope, for other modules; it lives as long as the scope."""
        self.bound = tuple(d for d in self.dims if d.upper is not None and not d.is_index)
        """The dims that ops bind, and the jagged dims."""
        uppers = {d.name: d.upper for d in self.dims if d.upper is not None}
        self._prover = Prover({d.name: (d.lo, d.hi) for d in self.dims}, (0, MAX_DIM), uppers)

    @staticmethod
    def parse(text: str) -> Scope:
        """The scope that `text` declares. Raises DimSyntaxError with the offset of the error."""
        tokens = Tokens(text)
        dims: list[Dim] = []
        if tokens.kind != "end":
            dims.append(_parse_dim(tokens, dims))
            while tokens.accept(","):
                dims.append(_parse_dim(tokens, dims))
        if tokens.kind != "end":
            tokens.fail(f"expected ',' or the end of the dims, found {tokens.describe()}")
        return Scope(dims)

    def __str__(self) -> str:
        return ", ".join(map(str, self.dims))

    def __repr__(self) -> str:
        return f"Scope({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scope) and self.dims == other.dims

    def __hash__(self) -> int:
        return hash(self.dims)

    def __getitem__(self, name: str) -> Dim:
        if (dim := self._by_name.get(name)) is None:
            raise DimError(f"dim {name!r} is not declared; declared: {', '.join(self._by_name) or 'none'}")
        return dim

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Dim]:
        return iter(self.dims)

    def __len__(self) -> int:
        return len(self.dims)

    def minimum_env(self) -> dict[str, int]:
        """Each dim at its minimum."""
        return {d.name: d.lo for d in self.dims}

    def maximum_env(self) -> dict[str, int]:
        """Each dim at its maximum."""
        return {d.name: d.hi for d in self.dims}

    def upper(self, e: Expr) -> Expr:
        """`e` with each bound dim replaced by its upper bound and each jagged dim by its total: the size to allocate.
        Sizes grow with their dims.
        """
        for dim in reversed(self.bound):
            if dim.upper is not None and dim.name in e.symbols:
                e = e.substitute({dim.name: dim.upper})
        return e

    def simplified(self, e: Expr) -> Expr:
        """A shorter form of `e` that is equal for all values of the dims: `64 - seq` for `max(64 - seq, 0)`."""
        return simplified(e, self)

    def complete(self, values: Mapping[str, int]) -> dict[str, int]:
        """The values of the dims, with the totals of the jagged dims added."""
        jagged = {d.name: self.upper(d.upper) for d in self.bound if d.jagged is not None and d.upper is not None}
        return {**values, **{name: total.evaluate(values) for name, total in jagged.items()}}

    def host_symbols(self, e: Expr) -> frozenset[str]:
        """The dims of `e` that ops bind; the host knows their values only after the op."""
        return e.symbols.intersection(d.name for d in self.bound if d.jagged is None) if self.bound else frozenset()

    def undeclared(self, e: Expr) -> frozenset[str]:
        """The dims in `e` that this scope does not declare."""
        return e.symbols.difference(self._by_name)

    def unproved_divisors(self, e: Expr) -> tuple[Expr, ...]:
        """The divisors within `e` that cannot be proved to be at least 1."""
        return tuple(sorted((d for d in e.divisors() if not self.positive(d)), key=str))

    def bounds(self, e: Expr | int) -> tuple[int, int]:
        """`(lo, hi)` with lo <= e <= hi for all values of the dims; not always the tightest."""
        return self._prover.bounds(_expr(e))

    def magnitude(self, e: Expr) -> int:
        """A bound on the absolute value of `e` and of all intermediate numbers when it is computed term by term."""
        key = ("magnitude", e)
        if (found := self.memo.get(key)) is None:
            found = self.memo[key] = self._magnitude(e)
        return cast(int, found)

    def _magnitude(self, e: Expr) -> int:
        inside = largest = 0
        for coefficient, mono in e.terms():
            factor = abs(coefficient)
            for atom in mono:
                factor *= max(1, *map(abs, self.bounds(atom.expr())))
                inside = max(inside, *(self.magnitude(arg) for arg in atom.args), 0)
            largest += factor
        return max(inside, largest)

    def equal(self, a: Expr | int, b: Expr | int) -> bool:
        """Whether a == b is proved."""
        a, b = _expr(a), _expr(b)
        return a is b or self._prover.zero(a - b)

    def le(self, a: Expr | int, b: Expr | int) -> bool:
        """Whether a <= b is proved."""
        return self._prover.nonnegative(_expr(b) - _expr(a))

    def lt(self, a: Expr | int, b: Expr | int) -> bool:
        """Whether a < b is proved."""
        return self._prover.nonnegative(_expr(b) - _expr(a) - 1)

    def positive(self, e: Expr | int) -> bool:
        """Whether e >= 1 is proved."""
        return self._prover.nonnegative(_expr(e) - 1)

    def divisible(self, e: Expr | int, n: int) -> bool:
        """Whether `e` is proved to be a multiple of the literal `n >= 1`."""
        if n < 1:
            raise DimError(f"asked whether {e} is divisible by {n}: a divisor must be at least 1")
        return self._prover.divisible(_expr(e), n)


def _expr(value: Expr | int) -> Expr:
    return value if isinstance(value, Expr) else const(value)


def _parse_dim(tokens: Tokens, before: list[Dim]) -> Dim:
    offset, name = tokens.offset, tokens.text
    if tokens.kind != "name":
        tokens.fail(f"expected the name of a dim, found {tokens.describe()}")
    tokens.next()
    for dim in before:
        if dim.name == name:
            tokens.fail(f"dim {name!r} is declared twice; it was declared as {dim}", offset)
    tokens.expect("=", f"after the dim {name!r}, as in 'batch = 1 to 64'")
    if tokens.kind == "name" and tokens.text == "jagged":
        return _parse_jagged(tokens, name, offset, before)
    lo = tokens.number(f"as the least value of {name!r}")
    tokens.expect("to", f"after the least value of {name!r}, as in 'batch = 1 to 64'")
    upper_at = tokens.offset
    if str(tokens.kind) == "end" or (str(tokens.kind) == "sign" and tokens.text not in "(-"):
        tokens.number(f"as the greatest value of {name!r}")
    upper = parse_expr(tokens)
    hints = _parse_hints(tokens)
    is_bound = tokens.accept("bound")
    is_given = not is_bound and tokens.accept("given")
    hi = upper.as_int()
    if hi is None and not is_bound:
        tokens.fail(
            f"the greatest value of {name!r} is {upper}, expected a number; "
            "a dim that an op binds when it runs ends with 'bound'",
            upper_at,
        )
    if is_bound:
        scope = Scope(before)
        if unknown := sorted(scope.undeclared(upper)):
            tokens.fail(f"the bound of {name!r} names {unknown[0]!r}, which is not declared before it", upper_at)
        hi = scope.bounds(upper)[1]
    assert hi is not None
    try:
        return Dim(name, lo, hi, hints, upper if is_bound else None, is_given=is_given)
    except DimSyntaxError:
        raise
    except DimError as error:
        tokens.fail(str(error), offset)


def _parse_hints(tokens: Tokens) -> tuple[int, ...]:
    hints: list[int] = []
    if tokens.accept("hints"):
        tokens.expect("[", "after 'hints', as in 'hints [64, 128]'")
        hints.append(tokens.number("as a hint"))
        while tokens.accept(","):
            hints.append(tokens.number("as a hint"))
        tokens.expect("]", "to close the hints")
    return tuple(hints)


def _parse_jagged(tokens: Tokens, name: str, offset: int, before: list[Dim]) -> Dim:
    """Parse `jagged(total, batch, 0 to 100)`, with the range of lengths of each level."""
    example = "as in 'words = jagged(total, batch, 0 to 100)'"
    tokens.next()
    tokens.expect("(", f"after 'jagged', {example}")
    scope = Scope(before)
    parts: list[Expr] = []
    for what in ("total", "batch"):
        at = tokens.offset
        parts.append(parse_expr(tokens))
        if unknown := sorted(scope.undeclared(parts[-1])):
            tokens.fail(f"the {what} of {name!r} names {unknown[0]!r}, which is not declared before it", at)
        if what == "total":
            tokens.expect(",", f"after the total of {name!r}, {example}")
    levels: list[tuple[int, Expr]] = []
    while tokens.accept(","):
        lo = tokens.number(f"as the least length of a sequence of {name!r}")
        tokens.expect("to", f"after the least length of a sequence of {name!r}, {example}")
        at = tokens.offset
        longest = parse_expr(tokens)
        if unknown := sorted(scope.undeclared(longest)):
            tokens.fail(f"the lengths of {name!r} name {unknown[0]!r}, which is not declared before it", at)
        if lo > scope.bounds(longest)[1]:
            tokens.fail(f"the lengths of {name!r} have an empty range: {lo} to {longest}", at)
        levels.append((lo, longest))
    if not levels:
        tokens.fail(f"expected the lengths of the sequences of {name!r}, {example}, found {tokens.describe()}")
    tokens.expect(")", f"to close the jagged dim {name!r}")
    jagged = Jagged(parts[0], parts[1], tuple(levels))
    hints = _parse_hints(tokens)
    try:
        return jagged_dim(name, jagged, scope, hints)
    except DimSyntaxError:
        raise
    except DimError as error:
        tokens.fail(str(error), offset)


def jagged_dim(name: str, jagged: Jagged, scope: Scope, hints: tuple[int, ...] = ()) -> Dim:
    """The declaration of a jagged dim; `scope` declares its total, its batch and the dims of its lengths."""
    lo, hi = scope.bounds(jagged.total)
    return Dim(name, max(0, lo), hi, hints, jagged.total, jagged)
