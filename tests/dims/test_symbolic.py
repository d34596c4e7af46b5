"""Dim expressions in SymPy and back; SymPy as the oracle of what expressions are equal."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from ait_mlir.dims import DimError, Expr, Scope, ceildiv, const, floordiv, maximum, minimum, mod, parse, sym
from ait_mlir.dims.symbolic import from_sympy, to_sympy

SCOPE = Scope.parse("a = 0 to 9, b = 1 to 9, c = 2 to 9")
LEAVES = st.sampled_from("abc").map(sym) | st.integers(-5, 5).map(const)
POLYNOMIALS = st.recursive(
    LEAVES, lambda e: st.builds(lambda x, y: x + y, e, e) | st.builds(lambda x, y: x * y, e, e), max_leaves=8
)


def _grown(e: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    divisors = st.integers(1, 7)
    return (
        st.builds(lambda x, y: x - y, e, e)
        | st.builds(floordiv, e, divisors)
        | st.builds(mod, e, divisors)
        | st.builds(minimum, e, e)
        | st.builds(maximum, e, e)
    )


EXPRESSIONS = st.recursive(LEAVES, _grown, max_leaves=6)
ENVS = st.fixed_dictionaries({d.name: st.integers(d.lo, d.hi) for d in SCOPE})


def _value(e: sympy.Expr, env: Mapping[str, int]) -> int:
    return int(e.subs({s: env[s.name] for s in e.free_symbols}))


@given(POLYNOMIALS, POLYNOMIALS)
@settings(max_examples=60, deadline=None)
def test_polynomials_are_one_object_exactly_where_sympy_expands_them_to_one(p: Expr, q: Expr):
    assert (p is q) == (sympy.expand(to_sympy(p, SCOPE) - to_sympy(q, SCOPE)) == 0)
    assert from_sympy(to_sympy(p, SCOPE)) is p


@given(EXPRESSIONS, ENVS)
@settings(max_examples=100, deadline=None)
def test_values_agree_with_sympy_in_both_directions(e: Expr, env: dict[str, int]):
    value = e.evaluate(env)
    assert _value(to_sympy(e, SCOPE), env) == value
    assert from_sympy(to_sympy(e, SCOPE)).evaluate(env) == value


def test_ranges_are_assumptions():
    symbols = {s.name: s for s in to_sympy(parse("a + b + other"), SCOPE).free_symbols}
    assert all(s.is_integer and s.is_nonnegative for s in symbols.values())
    assert [name for name, s in sorted(symbols.items()) if s.is_positive] == ["b"]
    assert to_sympy(sym("b")).is_positive is None


def test_quotients_are_rounded():
    a, b = (sympy.Symbol(n, integer=True, positive=True) for n in "ab")
    assert from_sympy(sympy.floor((2 * a + b) / 4)) is floordiv(parse("2*a + b"), 4)
    assert from_sympy(sympy.ceiling(a / b)) is ceildiv(sym("a"), sym("b"))
    assert from_sympy((a + 1) ** 2) is parse("a*a + 2*a + 1")
    assert from_sympy(7) is const(7)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("__import__('os').system('true')", "expected a SymPy expression or an int, found .* of type str"),
        ("a + 1", "of type str"),
        (True, "of type bool"),
        (1.5, "of type float"),
        (sympy.Symbol("x1"), "the symbol x1 is not an integer"),
        (sympy.Symbol("not a name", integer=True), "cannot name a dim"),
        (sympy.Symbol("a", integer=True) / 2, "Half, which no dim expression has"),
        (1 / sympy.Symbol("a", integer=True), "a quotient is rounded by floor"),
        (sympy.sin(sympy.Symbol("a", integer=True)), "sin, which no dim expression has"),
        (sympy.Symbol("a", integer=True) < 3, "expected a SymPy expression"),
        (sympy.oo, "Infinity, which no dim expression has"),
    ],
)
def test_what_is_no_dim_expression_is_refused(value: object, message: str):
    with pytest.raises(DimError, match=message):
        from_sympy(value)  # pyright: ignore[reportArgumentType]
