"""Proofs about dim expressions for all values of the dims in their ranges.

Atoms are at first independent variables, each with an interval. A polynomial is bounded by setting each variable in
which it is monotone to an end of its interval. Where intervals prove nothing, the definition of an atom often does:

    n*(a floordiv n) >= a - n + 1      n*(a floordiv n) <= a      a mod n = a - n*(a floordiv n)      for n >= 1
    min(a, b) <= a                     max(a, b) >= a                    2*max(a, b) >= a + b
    i <= n - 1                         i floordiv b <= (n - 1) floordiv b    for the index i of a loop over n
    a ceildiv 8 <= a ceildiv 4         where that is proved

and a small search eliminates atoms by these rules, the outermost first. True means proved; False means unknown.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator
from contextlib import contextmanager

from ait_mlir.dims.errors import DimError
from ait_mlir.dims.expr import Atom, Expr, Monomial, const, content, from_terms, total
from ait_mlir.dims.rules import FLOORDIV, MAX, MIN, MOD, floordiv

Interval = tuple[int, int]
_STEPS = 96  # eliminations tried for one proof
_SIZE = 256  # a larger expression is only bounded term by term
_WORK = 100_000  # parts visited for one question before the answer is "unknown", after some tenths of a second
_POINTS = 256  # a smaller space of values is enumerated


class Prover:
    """Bounds and proofs for dims with `ranges`; a dim without a range has the range `unknown`.

    `uppers` maps dims to expressions that bound them from above.
    """

    def __init__(self, ranges: dict[str, Interval], unknown: Interval, uppers: dict[str, Expr] | None = None):
        self._ranges = ranges
        self._uppers = uppers or {}
        self._unknown = unknown
        self._fixed = {name: const(lo) for name, (lo, hi) in ranges.items() if lo == hi}
        self._bounds: dict[Expr, Interval] = {}
        self._proved: dict[Expr, bool] = {}
        self._steps = 0
        self._work = 0
        self._asked = 0  # nesting depth of questions

    def bounds(self, e: Expr) -> Interval:
        """An interval that holds every value of `e`."""
        if (value := e.as_int()) is not None:
            return value, value
        if (found := self._bounds.get(e)) is None:
            with self._question():
                found = self._bounds[e] = (self._lower(e, 0), -self._lower(-e, 0))
        return found

    def nonnegative(self, e: Expr) -> bool:
        """Whether e >= 0 is proved."""
        if (value := e.as_int()) is not None:
            return value >= 0
        if (found := self._proved.get(e)) is None:
            with self._question():
                found = self._proved[e] = self._prove(e)
        return found

    def zero(self, e: Expr) -> bool:
        """Whether e == 0 is proved."""
        e = _without_mod(e.substitute(self._fixed))
        if (value := e.as_int()) is not None:
            return value == 0
        return self.nonnegative(e) and self.nonnegative(-e)

    def divisible(self, e: Expr, n: int) -> bool:
        """Whether `e` is a multiple of `n`."""
        e = e.substitute(self._fixed)
        left = [(c, mono) for c, mono in e.terms() if c % n]
        if not left:
            return True
        left = [(c, mono) for c, mono in _without_mod(e).terms() if c % n]
        if not left:
            return True
        names = sorted({a.name for _, mono in left for a in mono})
        if any(a.op is not None for _, mono in left for a in mono) or n ** len(names) > 4096:
            return False
        rest = from_terms((c % n, mono) for c, mono in left)
        return all(
            rest.evaluate(dict(zip(names, residues, strict=True))) % n == 0
            for residues in itertools.product(range(n), repeat=len(names))
        )

    @contextmanager
    def _question(self) -> Generator[None]:
        """Count nested questions; only the outermost question resets the work counter."""
        self._work = self._work if self._asked else 0
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1

    def _exhausted(self, e: Expr) -> bool:
        """Add the size of `e` to the work; returns whether the work exceeds its limit."""
        self._work += e.size
        return self._work > _WORK

    # ** intervals **

    def _atom(self, atom: Atom) -> Interval:
        if atom.op is None:
            return self._ranges.get(atom.name, self._unknown)
        parts = [self.bounds(arg) for arg in atom.args]
        if atom.op is MIN:
            return min(lo for lo, _ in parts), min(hi for _, hi in parts)
        if atom.op is MAX:
            return max(lo for lo, _ in parts), max(hi for _, hi in parts)
        (lo, hi), (blo, bhi) = parts
        blo = max(blo, 1)
        bhi = max(bhi, blo)
        if atom.op is FLOORDIV:
            return min(lo // blo, lo // bhi), max(hi // blo, hi // bhi)
        if lo >= 0:
            return (lo, hi) if hi < blo else (0, min(hi, bhi - 1))
        return 0, bhi - 1

    def _naive(self, terms: tuple[tuple[int, Monomial], ...]) -> Interval:
        low = high = 0
        for c, mono in terms:
            lo, hi = c, c
            for atom in mono:
                alo, ahi = self._atom(atom)
                corners = (lo * alo, lo * ahi, hi * alo, hi * ahi)
                lo, hi = min(corners), max(corners)
            low, high = low + lo, high + hi
        return low, high

    def _lower(self, e: Expr, splits: int) -> int:
        naive = self._naive(e.terms())[0]
        if len(e.terms()) < 2 or e.size > _SIZE:
            return naive
        linear: Atom | None = None
        for atom in {a: None for _, mono in e.terms() for a in mono}:
            lo, hi = self._atom(atom)
            if max(abs(lo), abs(hi)) > 2**62:
                continue
            if self._exhausted(e):
                return naive
            try:
                slope = _derivative(e, atom)
                low, high = self._naive(slope.terms())
                if low >= 0 or high <= 0:
                    return max(naive, self._lower(_put(e, atom, const(lo if low >= 0 else hi)), splits))
            except DimError:  # a coefficient beyond 64 bits: no bound this way
                continue
            if linear is None and all(mono.count(atom) < 2 for _, mono in e.terms()):
                linear = atom
        if linear is None or splits == 4:
            return naive
        ends = self._atom(linear)
        try:
            return max(naive, min(self._lower(_put(e, linear, const(end)), splits + 1) for end in ends))
        except DimError:
            return naive

    # ** elimination **

    def _prove(self, e: Expr) -> bool:
        if self.bounds(e)[0] >= 0:
            return True
        self._steps = 0
        try:
            e = _reduced(e.substitute(self._fixed))
            if self.bounds(e)[0] >= 0 or self._eliminate(e, 1, 0):
                return True
            return self._at_upper(e) or self._by_order(e) or self._enumerate(e)
        except DimError:
            return False

    def _at_upper(self, e: Expr) -> bool:
        """Whether e >= 0 is proved, by the upper bound of a dim: `e` decreases in this dim, so it is smallest there."""
        for atom in {a for _, mono in e.terms() for a in mono if a.op is None and a.name in self._uppers}:
            if any(atom.name in other.expr().symbols for _, mono in e.terms() for other in mono if other is not atom):
                continue
            if self.bounds(_derivative(e, atom))[1] <= 0 and all(mono.count(atom) < 2 for _, mono in e.terms()):
                return self.nonnegative(_put(e, atom, self._uppers[atom.name]))
        return False

    def _by_order(self, e: Expr) -> bool:
        """Whether e >= 0 is proved, by two of its quotients: one with a negative factor is replaced by a larger one.

        `3*(a ceildiv 4) - 2*(a ceildiv 8)` is at least `a ceildiv 4`, because `a ceildiv 8` is at most `a ceildiv 4`.
        """
        factors = {mono[0]: c for c, mono in e.terms() if len(mono) == 1 and mono[0].op is FLOORDIV}
        for less, c in factors.items():
            for more, d in factors.items():
                order = more.expr() - less.expr()
                if c < 0 < d and order is not e and self.nonnegative(order):
                    return self.nonnegative(_put(e, less, more.expr()))
        return False

    def _eliminate(self, e: Expr, scale: int, depth: int) -> bool:
        """Whether e > -scale is proved, where `e` is at most `scale` times an integer: that integer is then at least
        0."""
        if self.bounds(e + (scale - 1))[0] >= 0:
            return True
        self._steps += 1
        if self._steps > _STEPS or depth > 8 or e.size > _SIZE:
            return False
        factors = (a for _, mono in e.terms() for a in mono if mono.count(a) == 1)
        atoms = {a for a in factors if a.op is not None or a.name in self._uppers}
        for atom in sorted(atoms, key=lambda a: (-a.nesting, a.key)):
            if self._steps > _STEPS or self._exhausted(e):
                return False
            slope = _derivative(e, atom)
            low, high = self.bounds(slope)
            if low < 0 < high and atom.op is not MOD:
                continue
            try:
                if self._replace(e, atom, slope, low >= 0, scale, depth):
                    return True
            except DimError:  # too large an intermediate: try the next atom
                continue
        return False

    def _replace(self, e: Expr, atom: Atom, slope: Expr, rising: bool, scale: int, depth: int) -> bool:
        if atom.op is MIN or atom.op is MAX:
            cases = (self._eliminate(_put(e, atom, arg), scale, depth + 1) for arg in atom.args)
            if (atom.op is MAX) != rising:
                return all(cases)
            if any(cases):
                return True
            between = slope * total(atom.args) + (e - slope * atom.expr()) * len(atom.args)
            return self._eliminate(between, scale * len(atom.args), depth + 1)
        rest = e - slope * atom.expr()
        if atom.op is None:
            return not rising and self._eliminate(rest + slope * self._uppers[atom.name], scale, depth + 1)
        a, b = atom.args
        if atom.op is MOD:
            return self._eliminate(rest + slope * (a - b * floordiv(a, b)), scale, depth + 1)
        if (n := b.as_int()) is not None:
            times = n // math.gcd(content(slope.terms()), n)
            bound = a - (n - 1) if rising else a
            exact = from_terms((c * times // n, mono) for c, mono in slope.terms())
            return self._eliminate(exact * bound + rest * times, scale * times, depth + 1)
        if not self.nonnegative(b - 1):
            return False
        if not rising and (top := self._at_last_index(a, b)) is not None:
            return self._eliminate(rest + slope * floordiv(top, b), scale, depth + 1)
        bound = a - b + 1 if rising else a
        quotient = floordiv(slope, b)
        if quotient * b is not slope:  # then multiply by b; the bound e > -scale needs a literal b
            return scale == 1 and self._eliminate(slope * bound + rest * b, 1, depth + 1)
        return self._eliminate(quotient * bound + rest, scale, depth + 1)

    def _at_last_index(self, a: Expr, b: Expr) -> Expr | None:
        """`a` with a dim replaced by its upper bound; `a` must not decrease in the dim, and `b` must not contain it.
        None if there is no such dim.
        """
        for atom in {x for _, mono in a.terms() for x in mono if x.op is None and x.name in self._uppers}:
            inner = any(atom.name in x.expr().symbols for _, mono in a.terms() for x in mono if x.op is not None)
            if not inner and atom.name not in b.symbols and self.bounds(_derivative(a, atom))[0] >= 0:
                return _put(a, atom, self._uppers[atom.name])
        return None

    def _enumerate(self, e: Expr) -> bool:
        spaces = [(name, self._ranges.get(name, self._unknown)) for name in sorted(e.symbols)]
        if math.prod(hi - lo + 1 for _, (lo, hi) in spaces) > _POINTS:
            return False
        names = [name for name, _ in spaces]
        values = itertools.product(*(range(lo, hi + 1) for _, (lo, hi) in spaces))
        return all(e.evaluate(dict(zip(names, point, strict=True))) >= 0 for point in values)


def _reduced(e: Expr) -> Expr:
    """`e` divided by the common factor of its terms without the constant, which is rounded down: an expression that is
    at least 0 where `e` is. The elimination then ends closer to its bound."""
    factor = content(term for term in e.terms() if term[1])
    return from_terms((c // factor, mono) for c, mono in e.terms()) if factor > 1 else e


def _derivative(e: Expr, atom: Atom) -> Expr:
    """The derivative by `atom`, with all other atoms constant."""
    terms: list[tuple[int, Monomial]] = []
    for c, mono in e.terms():
        if power := mono.count(atom):
            at = mono.index(atom)
            terms.append((c * power, mono[:at] + mono[at + 1 :]))
    return from_terms(terms)


def _put(e: Expr, atom: Atom, value: Expr) -> Expr:
    """`e` with `value` in place of `atom` as a factor; `atom` inside other atoms stays."""
    result = from_terms((c, mono) for c, mono in e.terms() if atom not in mono)
    for c, mono in e.terms():
        if power := mono.count(atom):
            term = from_terms([(c, tuple(a for a in mono if a is not atom))])
            for _ in range(power):
                term = term * value
            result = result + term
    return result


def _without_mod(e: Expr) -> Expr:
    """`e` with `a - b*(a floordiv b)` in place of each factor `a mod b`."""
    for _ in range(8):
        atom = next((a for _, mono in e.terms() for a in mono if a.op is MOD), None)
        if atom is None:
            return e
        a, b = atom.args
        e = _put(e, atom, a - b * floordiv(a, b))
    return e
