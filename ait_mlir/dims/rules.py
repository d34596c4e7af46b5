"""The operators that make atoms, and the rules for their normal form. No rule depends on the range of a dim.

Every divisor is at least 1: literals are checked here, other divisors are proved by the verifier. Then

    floordiv    (n*q + r) floordiv n = q + r floordiv n     coefficients of r smaller than n, its constant in [0, n)
                (g*p + k) floordiv (g*n) = (p + k floordiv g) floordiv n
                (p floordiv m) floordiv n = p floordiv (m*n)
                (b*q + r) floordiv b = q + r floordiv b       b one term, or b a divisor of the whole
    mod         (n*q + r) mod n = r mod n;  (g*p) mod (g*n) = g*(p mod n);  (p mod (n*m)) mod n = p mod n
    min, max    flat, sorted, without repetition; of arguments that differ by a constant one is left
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ait_mlir.dims.errors import DimError
from ait_mlir.dims.expr import OPERATORS, Atom, Expr, Monomial, Operator, const, content, from_terms, make_atom, merge


def floordiv(a: Expr | int, b: Expr | int) -> Expr:
    """`a / b` rounded down; `b` a literal >= 1 or an expression. Raises DimError for a literal below 1."""
    a, b = _expr(a), _expr(b)
    n = _literal_divisor(b, "floordiv")
    quotient, rest = _split(a, b) if n is None else _split_literal(a, n)
    return quotient + _floordiv_rest(rest, b, n)


def ceildiv(a: Expr | int, b: Expr | int) -> Expr:
    """`a / b` rounded up: `(a + b - 1) floordiv b`."""
    a, b = _expr(a), _expr(b)
    _literal_divisor(b, "ceildiv")
    return floordiv(a + b - 1, b)


def mod(a: Expr | int, b: Expr | int) -> Expr:
    """`a - b*(a floordiv b)`, in [0, b); `b` a literal >= 1 or an expression. Raises DimError for a literal below 1."""
    a, b = _expr(a), _expr(b)
    n = _literal_divisor(b, "mod")
    if n is None:
        rest = _split(a, b)[1]
        return rest if not rest.terms() else make_atom(MOD, (rest, b))
    rest = _split_literal(a, n)[1]
    if (value := rest.as_int()) is not None:
        return const(value % n)
    if (inner := _single(rest, MOD)) is not None and (m := inner.args[1].as_int()) is not None:
        if m % n == 0:
            return mod(inner.args[0], n)
        if m <= n:
            return rest
    g = math.gcd(content(rest.terms()), n)
    reduced = from_terms((c // g, mono) for c, mono in rest.terms())
    if g > 1:
        return mod(reduced, n // g) * g
    return const(0) if n == 1 else make_atom(MOD, (rest, b))


def minimum(*args: Expr | int) -> Expr:
    """The smallest of one or more expressions."""
    return _extreme(MIN, MAX, [_expr(a) for a in args])


def maximum(*args: Expr | int) -> Expr:
    """The largest of one or more expressions."""
    return _extreme(MAX, MIN, [_expr(a) for a in args])


# ** division **


def _literal_divisor(b: Expr, what: str) -> int | None:
    n = b.as_int()
    if n is not None and n < 1:
        raise DimError(f"{what} by {n}: {'division by zero' if n == 0 else 'a divisor must be at least 1'}")
    return n


def _split_literal(a: Expr, n: int) -> tuple[Expr, Expr]:
    """`(q, r)` with a = n*q + r, where coefficients of r keep their sign and its constant is in [0, n)."""
    quotient: list[tuple[int, Monomial]] = []
    rest: list[tuple[int, Monomial]] = []
    for c, mono in a.terms():
        q = -(-c // n) if mono and c < 0 else c // n
        quotient.append((q, mono))
        rest.append((c - q * n, mono))
    return from_terms(quotient), from_terms(rest)


def _split(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """`(q, r)` with a = b*q + r: term by term if `b` has one term, else only if `b` divides `a` exactly."""
    if len(b.terms()) > 1:
        whole = _exact(a, b)
        return (const(0), a) if whole is None else (whole, const(0))
    divisor, dmono = b.terms()[0]
    quotient: list[tuple[int, Monomial]] = []
    rest: list[tuple[int, Monomial]] = []
    for c, mono in a.terms():
        left = _without(mono, dmono)
        if left is not None and c % divisor == 0:
            quotient.append((c // divisor, left))
        else:
            rest.append((c, mono))
    return from_terms(quotient), from_terms(rest)


def _exact(a: Expr, b: Expr) -> Expr | None:
    """`a / b` by long division; None if there is a remainder."""
    quotient = const(0)
    divisor, dmono = b.terms()[0]
    for _ in range(64):
        if not a.terms():
            return quotient
        c, mono = a.terms()[0]
        left = _without(mono, dmono)
        if left is None or c % divisor:
            return None
        step = from_terms([(c // divisor, left)])
        quotient, a = quotient + step, a - step * b
    return None


def _without(mono: Monomial, part: Monomial) -> Monomial | None:
    left = list(mono)
    for atom in part:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _floordiv_rest(rest: Expr, b: Expr, n: int | None) -> Expr:
    if n is None:
        return _floordiv_symbolic(rest, b)
    if (value := rest.as_int()) is not None:
        return const(value // n)
    inner = [(c, m) for c, m in rest.terms() if m]
    g = math.gcd(content(inner), n)
    if g > 1:
        constant = rest.terms()[-1][0] if not rest.terms()[-1][1] else 0
        return floordiv(from_terms([*((c // g, m) for c, m in inner), (constant // g, ())]), n // g)
    if n == 1:
        return rest
    if len(inner) == 1 and inner[0][0] == 1 and len(inner[0][1]) == 1:
        atom = inner[0][1][0]
        if atom.op is FLOORDIV and (m := atom.args[1].as_int()) is not None:
            return floordiv(atom.args[0] + (rest - atom.expr()) * m, n * m)
        if atom.op is MOD and rest is atom.expr() and (m := atom.args[1].as_int()) is not None and m <= n:
            return const(0)
    return make_atom(FLOORDIV, (rest, b))


def _floordiv_symbolic(rest: Expr, b: Expr) -> Expr:
    if not rest.terms():
        return rest
    common = _common_dims([mono for _, mono in (*rest.terms(), *b.terms())])
    g = math.gcd(content(rest.terms()), content(b.terms()))
    if common or g > 1:
        smaller = [from_terms((c // g, _without(m, common) or ()) for c, m in e.terms()) for e in (rest, b)]
        return floordiv(smaller[0], smaller[1])
    return make_atom(FLOORDIV, (rest, b))


def _common_dims(monos: list[Monomial]) -> Monomial:
    """The dims (not other atoms) that occur in each monomial: they are at least 0, and not 0 if the divisor is not."""
    common: Monomial = ()
    left = [list(m) for m in monos]
    for atom in list(left[0]):
        if atom.op is None and all(atom in m for m in left):
            for m in left:
                m.remove(atom)
            common = merge(common, (atom,))
    return common


# ** minimum and maximum **


def _extreme(op: Operator, dual: Operator, args: list[Expr]) -> Expr:
    flat: list[Expr] = []
    for arg in args:
        inner = _single(arg, op)
        flat.extend((arg,) if inner is None else inner.args)
    kept: dict[Expr, Expr] = {}  # by the part without the constant
    for arg in flat:
        terms = arg.terms()
        base = arg if not terms or terms[-1][1] else arg - terms[-1][0]
        other = kept.get(base)
        kept[base] = arg if other is None else _pick(op, arg, other)
    chosen = set(kept.values())
    # min(a, max(a, b)) = a
    chosen = {a for a in chosen if (inner := _single(a, dual)) is None or chosen.isdisjoint(inner.args)}
    if len(chosen) == 1:
        return chosen.pop()
    return make_atom(op, sorted(chosen, key=str))


def _pick(op: Operator, a: Expr, b: Expr) -> Expr:
    difference = (a - b).as_int() or 0
    return a if (difference < 0) == (op is MIN) else b


def _single(e: Expr, op: Operator) -> Atom | None:
    """The atom that `e` consists of, if it has the operator `op`; else None."""
    terms = e.terms()
    if len(terms) == 1 and terms[0][0] == 1 and len(terms[0][1]) == 1 and terms[0][1][0].op is op:
        return terms[0][1][0]
    return None


def _expr(value: Expr | int) -> Expr:
    return value if isinstance(value, Expr) else const(value)


# ** the operators **


def _divide(compute: Callable[[int, int], int]) -> Callable[[Sequence[int]], int]:
    def apply(values: Sequence[int]) -> int:
        if values[1] < 1:
            raise DimError(f"{values[0]} divided by {values[1]}: a divisor must be at least 1")
        return compute(values[0], values[1])

    return apply


FLOORDIV = Operator("floordiv", True, _divide(lambda a, b: a // b), lambda e: floordiv(e[0], e[1]))
MOD = Operator("mod", True, _divide(lambda a, b: a % b), lambda e: mod(e[0], e[1]))
MIN = Operator("min", False, min, lambda e: minimum(*e))
MAX = Operator("max", False, max, lambda e: maximum(*e))

OPERATORS.update({op.name: op for op in (FLOORDIV, MOD, MIN, MAX)})
