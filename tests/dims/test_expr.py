"""Normal forms, text, values."""

from __future__ import annotations

import copy
import operator
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ait_mlir.dims import (
    DimError,
    Expr,
    ceildiv,
    const,
    floordiv,
    forget_unused,
    from_terms,
    interned,
    maximum,
    minimum,
    mod,
    parse,
    product,
    sym,
    total,
)
from tests.effort import at_most

NAMES = ("a", "b", "seq")


Env = Mapping[str, int]
Oracle = Callable[[Env], int]


def _both(f: Callable[[int, int], int], a: Oracle, b: Oracle) -> Oracle:
    return lambda env: f(a(env), b(env))


def _divided(f: Callable[[int], int], a: Oracle) -> Oracle:
    return lambda env: f(a(env))


def _symbol(name: str) -> tuple[Expr, Oracle]:
    return sym(name), lambda env: env[name]


def _constant(value: int) -> tuple[Expr, Oracle]:
    return const(value), lambda env: value


# (ours, the same expression in Python's own integers), built side by side
LEAVES = st.one_of(st.sampled_from(NAMES).map(_symbol), st.integers(-9, 9).map(_constant))
DIVISORS = st.integers(1, 12)
PAIRS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: (p[0][0] + p[1][0], _both(operator.add, p[0][1], p[1][1]))),
        st.tuples(inner, inner).map(lambda p: (p[0][0] - p[1][0], _both(operator.sub, p[0][1], p[1][1]))),
        st.tuples(inner, inner).map(lambda p: (p[0][0] * p[1][0], _both(operator.mul, p[0][1], p[1][1]))),
        st.tuples(inner, DIVISORS).map(lambda p: (floordiv(p[0][0], p[1]), _divided(lambda x: x // p[1], p[0][1]))),
        st.tuples(inner, DIVISORS).map(lambda p: (ceildiv(p[0][0], p[1]), _divided(lambda x: -(-x // p[1]), p[0][1]))),
        st.tuples(inner, DIVISORS).map(lambda p: (mod(p[0][0], p[1]), _divided(lambda x: x % p[1], p[0][1]))),
        st.tuples(inner, inner).map(lambda p: (minimum(p[0][0], p[1][0]), _both(min, p[0][1], p[1][1]))),
        st.tuples(inner, inner).map(lambda p: (maximum(p[0][0], p[1][0]), _both(max, p[0][1], p[1][1]))),
    ),
    max_leaves=8,
)
ANY_TIME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ENVS = st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES})


@settings(ANY_TIME, max_examples=400)
@given(PAIRS, ENVS)
def test_values_agree_with_python(pair: tuple[Expr, Oracle], env: dict[str, int]):
    ours, theirs = pair
    assert ours.evaluate(env) == theirs(env)


@settings(ANY_TIME, max_examples=400)
@given(PAIRS)
def test_text_reads_back_as_the_same_object(pair: tuple[Expr, Oracle]):
    e = pair[0]
    # around the cache of texts: one more pair of parentheses is another text
    assert parse(f"({e})") is e
    assert parse(str(e)) is e
    assert pickle.loads(pickle.dumps(e)) is e
    assert copy.deepcopy([e])[0] is e


@settings(ANY_TIME, max_examples=200)
@given(PAIRS, PAIRS, ENVS)
def test_substitute_then_evaluate(outer: tuple[Expr, Oracle], inner: tuple[Expr, Oracle], env: dict[str, int]):
    replaced = outer[0].substitute({"a": inner[0], "b": 7})
    assert replaced.evaluate(env) == outer[0].evaluate({**env, "a": inner[0].evaluate(env), "b": 7})
    assert "b" not in outer[0].substitute({"b": 7}).symbols


@settings(ANY_TIME, max_examples=200)
@given(PAIRS, PAIRS, PAIRS)
def test_ring_laws_give_the_same_object(p: tuple[Expr, object], q: tuple[Expr, object], r: tuple[Expr, object]):
    a, b, c = p[0], q[0], r[0]
    assert a + b is b + a
    assert a * b is b * a
    assert a * (b + c) is a * b + a * c
    assert (a + b) + c is a + (b + c)
    assert a - a is const(0)
    assert minimum(a, b) is minimum(b, a)
    assert from_terms(a.terms()) is a


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("2*seq + 1", "1 + seq + seq"),
        ("(6*b) floordiv 3", "2*b"),
        ("(7*b) floordiv 3", "2*b + b floordiv 3"),
        ("(a floordiv 4) floordiv 8", "a floordiv 32"),
        ("(4*a + 6) floordiv 8", "(2*a + 3) floordiv 4"),
        ("(seq + 63) floordiv 64", "seq ceildiv 64"),
        ("(seq - 1) floordiv 2 + 1", "(seq + 1) floordiv 2"),
        ("(a*b + b) floordiv b", "a + 1"),
        ("(a*a - b*b) floordiv (a + b)", "a - b"),
        ("(a*b) floordiv (c*b)", "a floordiv c"),
        ("(6*a) mod 4", "2*(a mod 2)"),
        ("(a mod 12) mod 4", "a mod 4"),
        ("(a mod 4) mod 12", "a mod 4"),
        ("(a mod 4) floordiv 8", "0"),
        ("(a*b + 3) mod b", "3 mod b"),
        ("min(a, min(b, a))", "min(a, b)"),
        ("min(a + 1, a, b)", "min(a, b)"),
        ("max(a, 3, 5)", "max(5, a)"),
        ("min(a, max(a, b))", "a"),
        ("a floordiv 1", "a"),
        ("a mod 1", "0"),
        ("-a floordiv 2", "(0 - a) floordiv 2"),
        ("2 * a floordiv 3 * b", "((2 * a) floordiv 3) * b"),
    ],
)
def test_rules(left: str, right: str):
    assert parse(left) is parse(right)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1+2*seq", "2*seq + 1"),
        ("seq - 1", "seq - 1"),
        ("batch * 6144", "6144*batch"),
        ("64*(seq ceildiv 64)", "64*(seq ceildiv 64)"),
        ("seq floordiv 64 + 1", "seq floordiv 64 + 1"),
        ("0 - seq floordiv 64", "-(seq floordiv 64)"),
        ("min(seq, 128)*2", "2*min(128, seq)"),
        ("(a + b) mod (c + 1)", "(a + b) mod (c + 1)"),
        ("3 - 3", "0"),
    ],
)
def test_printed_form(text: str, printed: str):
    assert str(parse(text)) == printed


def test_terms_group_by_monomial():
    e = parse("6144*batch*seq + 4*seq*seq - 8")
    assert [(c, tuple(map(str, mono))) for c, mono in e.terms()] == [
        (6144, ("batch", "seq")),
        (4, ("seq", "seq")),
        (-8, ()),
    ]
    assert parse("a floordiv b").divisors() == {sym("b")}


def test_constants_symbols_and_helpers():
    assert const(5).as_int() == 5
    assert sym("seq").as_int() is None
    assert parse("min(a, b) mod (c + 1)").symbols == {"a", "b", "c"}
    assert total([1, sym("a"), sym("a")]) is parse("2*a + 1")
    assert product([2, sym("a"), 3]) is parse("6*a")
    assert total([]) is const(0)
    assert product([]) is const(1)
    assert 3 - sym("a") is parse("3 - a")


def test_a_missing_dim_is_named():
    with pytest.raises(DimError, match="dim 'seq' has no value here; known: batch"):
        parse("batch*seq").evaluate({"batch": 2})
    with pytest.raises(DimError, match="dim 'seq' has no value"):
        parse("seq + 1").cpp({})


def test_division_by_what_is_below_one():
    with pytest.raises(DimError, match="divisor must be at least 1"):
        parse("a floordiv b").evaluate({"a": 1, "b": 0})
    for divide in (floordiv, ceildiv, mod):
        with pytest.raises(DimError, match="division by zero"):
            divide(sym("a"), 0)
        with pytest.raises(DimError, match="at least 1"):
            divide(sym("a"), -2)


def test_growth_is_bounded():
    wide = total(sym(f"d{i}") for i in range(200))
    with pytest.raises(DimError, match=r"too large|at most"):
        product([wide, wide, wide])
    deep = sym("a")
    with pytest.raises(DimError, match="too large"):
        for i in range(100):
            deep = floordiv(deep * deep + i, 7)
    with pytest.raises(DimError, match="beyond 64 bits"):
        product([2**40, 2**40])


def test_threads_see_one_object_for_one_expression():
    texts = [f"{k}*t{k % 7} + (u{k % 5} ceildiv {k % 9 + 2})" for k in range(300)]

    def make(seed: int) -> list[Expr]:
        shuffled = list(texts)
        random.Random(seed).shuffle(shuffled)
        made = {text: parse(text) for text in shuffled}
        return [made[text] for text in texts]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(make, range(8)))
    assert all(x is y for other in results[1:] for x, y in zip(results[0], other, strict=True))


def test_expressions_that_are_used_stay_the_same_objects_when_others_are_forgotten():
    used = [parse(text) for text in ("2*b*s + s floordiv 64 + min(b, s) + 1", "q*q", "7", "(b mod 3)*s")]
    before = interned()
    for i in range(100):
        parse(f"forgotten{i} + {i}*b + (b + {i}) floordiv 7")
    forget_unused()
    assert interned() <= before
    assert [parse(str(e)) for e in used] == used
    b, s, q = sym("b"), sym("s"), sym("q")
    assert [2 * b * s + floordiv(s, const(64)) + minimum(b, s) + 1, q * q, const(6) + 1, b % 3 * s] == used


def test_what_is_known_is_looked_up():
    a, b = sym("batch"), sym("seq")
    product = a * b
    line = 2 * product + 1
    assert parse("2*batch*seq + 1") is line
    with at_most(15):
        assert parse("2*batch*seq + 1") is line
    with at_most(15):
        assert a * b is product


def test_import_is_light():
    code = "import sys, ait_mlir.dims; sys.exit(bool({'torch', 'scipy', 'sympy', 'numpy', 'xdsl'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
