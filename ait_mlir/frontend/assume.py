"""Assumptions that dims are equal or divisible, if that cannot be proved; they are checked when the model runs.

An operator on dims `m` and `n` that must agree assumes `m == n`; a reshape of `6*m` elements to rows of 4 assumes
that 2 divides `m`. Such an equation is solved for a dim: `n` becomes `m`, `m` becomes `2*m_by_2`. The inputs of the
graph get these dims, so the check of the inputs is the check of the assumption, and everything after it is proved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation

from ait_mlir import dims
from ait_mlir.dims import Expr, Scope
from ait_mlir.dims.expr import Atom
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import DimLike, IntVar, Symbol, Symbols, as_dim, merge_symbols, scope_from

EQUATIONS = "_ait_equations"
"""The attribute of an op that holds its assumed equations."""

MOST_EVERY = 256
"""The largest number of which `as_multiples` makes dims multiples."""

MOST_TRIED = 1 << 13
"""The most values of a dim that `within_range` tries."""

Equation = tuple[Expr, Expr]


@dataclass(frozen=True)
class Solution:
    """A substitution of dims: an expression by symbol, and the remaining symbols with their ranges."""

    values: Mapping[str, Expr]
    symbols: Symbols

    def of(self, expr: Expr) -> Expr:
        """An expression in terms of the remaining symbols."""
        changed = {name: self.values[name] for name in expr.symbols if name in self.values}
        return expr.substitute(changed) if changed else expr

    def and_then(self, name: str, value: Expr, symbols: Symbols) -> Solution:
        """This solution, with one more symbol replaced."""
        values = {known: found.substitute({name: value}) for known, found in self.values.items()}
        return Solution({**values, name: value}, symbols)


class AssumingScope(Scope):
    """A scope that assumes an equation if it can be solved; `equations` are the assumed equations."""

    def __init__(self, symbols: Symbols):
        super().__init__([symbol.declaration() for symbol in symbols.values()])
        self.solution = Solution({}, symbols)
        self.equations: list[Equation] = []

    def equal(self, a: Expr | int, b: Expr | int) -> bool:
        left, right = (dims.const(e) if isinstance(e, int) else e for e in (a, b))
        return super().equal(left, right) or self._assume(left, right)

    def divisible(self, e: Expr | int, n: int) -> bool:
        expr = dims.const(e) if isinstance(e, int) else e
        return super().divisible(expr, n) or self._assume(expr, dims.floordiv(expr, dims.const(n)) * n)

    def _assume(self, left: Expr, right: Expr) -> bool:
        if (found := solved(self.solution, left, right)) is None:
            return False
        self.solution = found
        self.equations.append((left, right))
        return True


def as_multiples(solution: Solution, left: Expr, right: Expr) -> Solution | None:
    """The solution under which two expressions are also equal because dims are multiples of a power of two; None if
    there is none up to `MOST_EVERY`.
    """
    e = solution.of(left - right)
    names = [name for name in solution.symbols if name in e.symbols and _is_free(solution.symbols[name])]
    every = 2
    while every <= MOST_EVERY:
        for chosen in ([name] for name in names) if len(names) == 1 else (*([name] for name in names), names):
            found: Solution | None = solution
            for name in chosen:
                found = None if found is None else _divided(found, name, every)
            if found is not None and scope_from(found.symbols).equal(found.of(e), 0):
                return found
        every *= 2
    return None


def within_range(solution: Solution, left: Expr, right: Expr) -> Solution | None:
    """The solution under which two expressions are also equal because one dim is within a smaller range; None if no
    range of its first `MOST_TRIED` values is the only one.
    """
    e = _reduced(solution.of(left - right), scope_from(solution.symbols))
    if len(e.symbols) != 1:
        return None
    (name,) = e.symbols
    symbol = solution.symbols.get(name)
    if symbol is None or not _is_free(symbol):
        return None
    fits = [n for n in range(symbol.lo, min(symbol.hi, symbol.lo + MOST_TRIED) + 1) if e.evaluate({name: n}) == 0]
    if not fits or fits[-1] - fits[0] != len(fits) - 1:
        return None
    low, high = fits[0], fits[-1]
    hints = tuple(h for h in symbol.hints if low <= h <= high)
    found = Solution(solution.values, {**solution.symbols, name: replace(symbol, lo=low, hi=high, hints=hints)})
    return found if scope_from(found.symbols).equal(e, 0) else None


def _divided(solution: Solution, name: str, every: int) -> Solution | None:
    """The solution under which a dim is also a multiple of a number."""
    part = _part_of(solution.symbols[name], every, 0, solution.symbols)
    if part is None:
        return None
    rest = {s: found for s, found in solution.symbols.items() if s != name}
    return solution.and_then(name, dims.sym(part.symbol) * every, {**rest, part.symbol: part})


def solve_all(symbols: Symbols, equations: Iterable[Equation]) -> Solution:
    """The substitution of dims for which all equations hold; `BuildError` if there is no such expression of dims."""
    solution = Solution({}, symbols)
    for left, right in equations:
        if (found := solved(solution, left, right)) is None:
            raise BuildError(
                f"{left} must be {right}, which follows from nothing and cannot be checked together with the other "
                "conditions on dims; use one IntVar where dims are the same"
            )
        solution = found
    return solution


def solved(solution: Solution, left: Expr, right: Expr) -> Solution | None:
    """The solution under which two expressions are also equal; None if no substitution of dims makes them equal."""
    e = solution.of(left - right)
    for _ in range(8):
        scope = scope_from(solution.symbols)
        if scope.equal(e, 0):
            return solution
        step = next(_steps(e, solution.symbols, scope), None)
        if step is None:
            return None
        solution = solution.and_then(*step)
        e = solution.of(e)
    return None


def exact_quotient(a: DimLike, b: DimLike) -> IntVar:
    """a / b without remainder: proved, or checked when the model runs; `BuildError` if neither is possible."""
    dividend, quotient = as_dim(a), as_dim(a) // b
    symbols = merge_symbols(dividend.symbols, quotient.symbols)
    if solved(Solution({}, symbols), (quotient * b).expr, dividend.expr) is None:
        raise BuildError(f"{a} / {b} may leave a rest; use // to round down")
    return quotient


def _steps(e: Expr, symbols: Symbols, scope: Scope) -> Iterator[tuple[str, Expr, Symbols]]:
    """Possible steps towards e == 0: a symbol, the expression that replaces it, and the symbols after that."""
    for atom in _rounded(e):
        yield from _without_rest(atom, symbols)
    e = _reduced(e, scope)
    plain = [name for name in symbols if name in e.symbols and _is_free(symbols[name])]
    for name in reversed(plain):
        yield from _eliminated(e, name, symbols, scope)


def _rounded(e: Expr) -> list[Atom]:
    """The quotients and remainders within an expression."""
    found: dict[Atom, None] = {}
    for _, atoms in e.terms():
        for atom in atoms:
            if atom.op is not None and atom.op.name in ("floordiv", "mod"):
                found[atom] = None
            for inner in atom.args:
                found.update(dict.fromkeys(_rounded(inner)))
    return list(found)


def _without_rest(atom: Atom, symbols: Symbols) -> Iterator[tuple[str, Expr, Symbols]]:
    """Steps that make n divide `k*s + d`: s becomes a multiple of n / gcd(k, n), plus a number."""
    dividend, divisor = atom.args
    n, linear = divisor.as_int(), _linear(dividend)
    if n is None or linear is None:
        return
    name, k, d = linear
    common = math.gcd(k, n)
    every = n // common
    if d % common or every == 1 or not _is_free(symbols[name]):
        return
    start = next(r for r in range(every) if (k * r + d) % n == 0)
    symbol = symbols[name]
    part = _part_of(symbol, every, start, symbols)
    if part is not None:
        rest = {s: found for s, found in symbols.items() if s != name}
        yield name, dims.sym(part.symbol) * every + start, {**rest, part.symbol: part}


def _part_of(symbol: Symbol, every: int, start: int, taken: Symbols) -> Symbol | None:
    """The dim that counts the steps of a dim that is `start` and a multiple of `every`."""
    lo, hi = -(-(symbol.lo - start) // every), (symbol.hi - start) // every
    if max(lo, 0) > hi:
        return None
    name = f"{symbol.symbol}_by_{every}"
    while name in taken:
        name += "_"
    hints = tuple(sorted({(h - start) // every for h in symbol.hints if (h - start) % every == 0}))
    label = None if symbol.name is None else name
    return Symbol(name, label, max(lo, 0), hi, tuple(h for h in hints if max(lo, 0) <= h <= hi))


def _eliminated(e: Expr, name: str, symbols: Symbols, scope: Scope) -> Iterator[tuple[str, Expr, Symbols]]:
    """The step that solves `s + rest == 0`: s becomes -rest; if rest has a single dim, its range is intersected."""
    alone = [c for c, atoms in e.terms() if [a.name for a in atoms if a.op is None] == [name] and len(atoms) == 1]
    if len(alone) != 1 or abs(alone[0]) != 1:
        return
    value = (dims.sym(name) * alone[0] - e) * alone[0]
    if name in value.symbols or value.as_int() is not None:
        return
    symbol = symbols[name]
    lo, hi = scope.bounds(value)
    if hi < symbol.lo or lo > symbol.hi:
        return
    rest = {s: found for s, found in symbols.items() if s != name}
    if (linear := _linear(value)) is not None:
        other, k, d = linear
        narrowed = _narrowed(rest[other], symbol, k, d)
        if narrowed is None:
            return
        rest[other] = narrowed
    elif lo < symbol.lo or hi > symbol.hi:
        return  # the ranges of the other symbols do not keep s within its own range
    yield name, value, rest


def _narrowed(other: Symbol, symbol: Symbol, k: int, d: int) -> Symbol | None:
    """The dim `other`, restricted so that k*other + d is within the range of `symbol`; None if that is impossible."""
    ends = sorted(((symbol.lo - d) / k, (symbol.hi - d) / k))
    lo, hi = max(other.lo, math.ceil(ends[0])), min(other.hi, math.floor(ends[1]))
    if lo > hi or ((lo, hi) != (other.lo, other.hi) and not _is_free(other)):
        return None
    hints = {*other.hints, *((h - d) // k for h in symbol.hints if (h - d) % k == 0)}
    return replace(other, lo=lo, hi=hi, hints=tuple(sorted(h for h in hints if lo <= h <= hi)))


def _reduced(e: Expr, scope: Scope) -> Expr:
    """`e` without the common factors of its terms: a number, and dims that are at least 1."""
    terms = e.terms()
    number = math.gcd(*(c for c, _ in terms))
    common = [a for a in terms[0][1] if scope.positive(a.expr()) and all(a in atoms for _, atoms in terms)]
    found: list[tuple[int, tuple[Atom, ...]]] = []
    for c, atoms in terms:
        left = list(atoms)
        for atom in common:
            if atom in left:
                left.remove(atom)
        found.append((c // number, tuple(left)))
    return dims.from_terms(found)


def _linear(e: Expr) -> tuple[str, int, int] | None:
    """(s, k, d) if `e` is k*s + d with a single dim s; else None."""
    k, d, name = 0, 0, ""
    for c, atoms in e.terms():
        if not atoms:
            d = c
        elif len(atoms) == 1 and atoms[0].op is None and not name:
            k, name = c, atoms[0].name
        else:
            return None
    return (name, k, d) if name else None


def _is_free(symbol: Symbol) -> bool:
    """Whether a dim is determined by inputs only, so that the check of the inputs can check an assumption about it."""
    return symbol.upper is None and symbol.jagged is None


def equations_of(ops: Sequence[Operation]) -> list[Equation]:
    """The assumed equations of the ops, also of those in their regions."""
    return [equation for op in ops for inner in op.walk() for equation in getattr(inner, EQUATIONS, ())]
