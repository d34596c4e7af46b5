"""Declarations, bounds and proofs."""

from __future__ import annotations

import itertools
import random

import pytest

from ait_mlir.dims import (
    Dim,
    DimError,
    DimSyntaxError,
    Expr,
    Jagged,
    Scope,
    ceildiv,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    parse,
    sym,
)
from tests.effort import at_most

SCOPE = Scope.parse("batch = 1 to 64, seq = 1 to 512 hints [64, 128]")


def test_round_trip():
    text = "batch = 1 to 64, seq = 1 to 512 hints [64, 128]"
    scope = Scope.parse(text)
    assert str(scope) == text
    assert Scope.parse(str(scope)) == scope
    assert scope.dims == (Dim("batch", 1, 64), Dim("seq", 1, 512, (64, 128)))
    assert scope["seq"].hints == (64, 128)
    assert "batch" in scope
    assert "heads" not in scope
    assert scope.minimum_env() == {"batch": 1, "seq": 1}
    assert scope.maximum_env() == {"batch": 64, "seq": 512}
    assert len(Scope.parse("")) == 0
    with pytest.raises(DimError, match="'heads' is not declared; declared: batch, seq"):
        scope["heads"]


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("a = 2 to 1", 0, "empty range: 2 to 1"),
        ("a = 1 to 2, b = 1 to 3, a = 3 to 4", 24, "declared twice; it was declared as a = 1 to 2"),
        ("a = 1 to 1099511627777", 0, "between 0 and 2\\^40"),
        ("a = 1 to " + "9" * 6000, 9, "beyond 64 bits"),
        ("x = 1 to 2", 0, "reserved word"),
        ("f16 = 1 to 2", 0, "reserved word"),
        ("a 1 to 2", 2, "expected '='"),
        ("a = 1 2", 6, "expected 'to'"),
        ("a = -1 to 2", 4, "expected a number as the least value"),
        ("a = 1 to 5 hints [7]", 0, "hint 7 outside its range 1 to 5"),
        ("a = 1 to 5 hints []", 18, "expected a number as a hint"),
        ("a = 1 to 5 hints [2", 19, "to close the hints"),
        ("a = 1 to 5,", 11, "expected the name of a dim"),
        ("a = 1 to 5 b = 1 to 2", 11, "expected ','"),
        ("words = jagged(total, batch, 0 to 100)", 15, "total of 'words' names 'total', which is not declared before"),
        ("t = 0 to 9, w = jagged(t, b, 0 to 5)", 26, "batch of 'w' names 'b', which is not declared before"),
        ("t = 0 to 9, w = jagged t", 23, "expected '\\(' after 'jagged'"),
        ("t = 0 to 9, w = jagged(t)", 24, "expected ',' after the total"),
        ("t = 0 to 9, w = jagged(t, 2)", 27, "expected the lengths of the sequences of 'w'"),
        ("t = 0 to 9, w = jagged(t, 2, 5 to 4)", 34, "empty range: 5 to 4"),
        ("t = 0 to 9, w = jagged(t, 2, 11 to t)", 35, "empty range: 11 to t"),
        ("t = 0 to 9, w = jagged(t, 2, 0 to s)", 34, "lengths of 'w' name 's', which is not declared before"),
        ("t = 0 to 9, w = jagged(t, 2, 0 to)", 33, "expected a number, a dim or '\\('"),
        ("t = 0 to 9, w = jagged(t, 2, 0 to 4", 35, "expected '\\)' to close the jagged dim"),
    ],
)
def test_bad_declarations(text: str, offset: int, message: str):
    with pytest.raises(DimSyntaxError, match=message) as caught:
        Scope.parse(text)
    assert caught.value.offset == offset


def test_the_lengths_of_a_jagged_dim_may_be_dims():
    text = "t = 0 to 9, s = 1 to 4, w = jagged(t, 2, 0 to s, 1 to 2*s + 1)"
    scope = Scope.parse(text)
    assert str(scope) == text and Scope.parse(str(scope)) == scope
    assert scope["w"].jagged == Jagged(parse("t"), const(2), ((0, parse("s")), (1, parse("2*s + 1"))))


def test_a_jagged_dim_is_its_total_but_not_equal_to_it():
    text = "t = 2 to 9, b = 1 to 4, w = jagged(t, b, 0 to 5) hints [3], v = jagged(t + 1, 2*b, 1 to 2, 0 to 3)"
    scope = Scope.parse(text)
    assert str(scope) == text and Scope.parse(str(scope)) == scope
    w, v, t = (parse(name) for name in "wvt")
    assert scope["w"].jagged == Jagged(t, parse("b"), ((0, const(5)),))
    assert scope.upper(w * 2 + v) == 3 * t + 1
    assert scope.bounds(w) == (2, 9) and scope.bounds(v) == (3, 10)
    assert scope.le(w, t) and not scope.equal(w, t) and not scope.equal(w, v)
    assert scope.host_symbols(w) == frozenset()
    assert scope.complete({"t": 4, "b": 2}) == {"t": 4, "b": 2, "w": 4, "v": 5}


def test_bad_declarations_in_python():
    with pytest.raises(DimError, match="declared twice"):
        Scope([Dim("a", 1, 2), Dim("a", 1, 3)])
    with pytest.raises(DimError, match="empty range"):
        Dim("a", 3, 2)
    with pytest.raises(DimError, match="between 0 and"):
        Dim("a", -3, 2)
    with pytest.raises(DimError, match="cannot name a dim"):
        Dim('a"; int y', 1, 2)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("7", (7, 7)),
        ("2*batch*seq - batch", (1, 65472)),
        ("seq - 1", (0, 511)),
        ("512 - seq", (0, 511)),
        ("batch*(512 - seq)", (0, 64 * 511)),
        ("seq ceildiv 64", (1, 8)),
        ("seq mod 64", (0, 63)),
        ("batch mod 100", (1, 64)),
        ("min(seq, 128)", (1, 128)),
        ("max(seq, 128) - min(batch, 3)", (125, 511)),
        ("batch*seq - seq - batch + 1", (0, 63 * 511)),
    ],
)
def test_bounds(text: str, bounds: tuple[int, int]):
    assert SCOPE.bounds(parse(text)) == bounds


@pytest.mark.parametrize(
    ("small", "large"),
    [
        ("seq", "64*(seq ceildiv 64)"),
        ("64*(seq floordiv 64)", "seq"),
        ("64*(seq ceildiv 64)", "seq + 63"),
        ("seq mod 7", "seq"),
        ("4*batch*seq", "64*((batch*seq) ceildiv 16)"),
        ("8*(max(seq - 7, 0) ceildiv 16)", "64*(max(seq - 7, 0) ceildiv 128)"),
        ("8*(seq ceildiv 16)", "64*(seq ceildiv 128) + 3"),
        ("14*(seq ceildiv 8)", "18*(seq ceildiv 4) + 2"),
        ("min(seq, batch)*batch", "batch*max(seq, 3)"),
        ("min(seq, batch)", "max(seq, batch)"),
        ("max(seq, batch)", "seq + batch"),
        ("batch", "batch*seq"),
        ("batch*seq", "batch*512"),
        ("1536*batch*seq + 64*batch", "1600*batch*seq"),
        ("(seq floordiv 2) floordiv 3", "seq floordiv 6"),
        ("(batch*seq) floordiv batch", "seq"),
        ("batch*(seq floordiv batch)", "seq"),
        ("seq - batch*(seq floordiv batch)", "batch - 1"),
        ("(seq - 1) floordiv 2 + 1", "seq"),
        ("(seq + 2) floordiv 3", "max(seq, batch)"),
    ],
)
def test_true_inequalities_are_proved(small: str, large: str):
    assert SCOPE.le(parse(small), parse(large))
    assert SCOPE.lt(parse(small), parse(large) + 1)
    if small != large:
        assert not SCOPE.le(parse(large) + 600 * 600, parse(small))


def test_equal():
    assert SCOPE.equal(parse("64*(seq floordiv 64) + seq mod 64"), sym("seq"))
    assert SCOPE.equal(parse("min(seq, 512)"), sym("seq"))
    assert SCOPE.equal(parse("min(a, b) + max(a, b)"), parse("a + b"))
    assert SCOPE.equal(parse("seq floordiv 1000"), 0)
    assert not SCOPE.equal(parse("seq"), parse("batch"))
    fixed = Scope.parse("heads = 12 to 12, n = 1 to 4")
    assert fixed.equal(parse("768 floordiv heads"), 64)
    assert fixed.equal(parse("heads*n"), parse("12*n"))


def test_divisible():
    assert SCOPE.divisible(parse("1536*batch*seq + 64"), 64)
    assert SCOPE.divisible(parse("64*(seq ceildiv 64)"), 32)
    assert SCOPE.divisible(parse("batch*batch + batch"), 2)
    assert SCOPE.divisible(parse("seq - seq mod 16"), 16)
    assert not SCOPE.divisible(parse("batch"), 2)
    assert not SCOPE.divisible(parse("8*(seq floordiv 2)"), 16)
    assert Scope.parse("n = 8 to 8").divisible(parse("3*n"), 12)
    with pytest.raises(DimError, match="at least 1"):
        SCOPE.divisible(parse("batch"), 0)


def test_positive_and_divisors():
    assert SCOPE.positive(parse("batch*seq"))
    assert not SCOPE.positive(parse("seq - 1"))
    e = parse("seq floordiv batch + seq mod (seq - 1)")
    assert SCOPE.unproved_divisors(e) == (parse("seq - 1"),)
    assert SCOPE.undeclared(parse("seq*heads")) == {"heads"}


def test_undeclared_dims_are_any_dims():
    empty = Scope()
    a = sym("a")
    assert empty.le(0, a)
    assert empty.equal(a, a)
    assert not empty.positive(a)
    assert empty.bounds(a) == (0, 2**40)


RANGES = {"a": (0, 5), "b": (1, 7), "c": (2, 6)}
SMALL = Scope(Dim(name, lo, hi) for name, (lo, hi) in RANGES.items())
POINTS = [
    dict(zip(RANGES, values, strict=True))
    for values in itertools.product(*(range(lo, hi + 1) for lo, hi in RANGES.values()))
]


def _random(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.2:
        return sym(rng.choice("abc")) if rng.random() < 0.7 else const(rng.randint(-4, 12))
    a, b = _random(rng, depth - 1), _random(rng, depth - 1)
    match rng.randrange(8):
        case 0 | 1:
            return a + b
        case 2:
            return a - b
        case 3:
            return a * b
        case 4:
            return floordiv(a, rng.choice([rng.randint(1, 8), sym("b"), sym("c")]))
        case 5:
            return mod(a, rng.choice([rng.randint(1, 8), sym("c")]))
        case 6:
            return ceildiv(a, rng.randint(1, 8))
        case _:
            return minimum(a, b) if rng.random() < 0.5 else maximum(a, b)


def test_proofs_are_sound_and_mostly_found():
    """Random expressions against all 210 points of a small space: no false proof, and most that is true is proved."""
    rng = random.Random(7)
    true = proved = 0
    for _ in range(600):
        a, b = _random(rng, 3), _random(rng, 2)
        values = [(a.evaluate(p), b.evaluate(p)) for p in POINTS]
        lo, hi = SMALL.bounds(a)
        assert lo <= min(v for v, _ in values) <= max(v for v, _ in values) <= hi, str(a)
        holds = all(x <= y for x, y in values)
        assert holds or not SMALL.le(a, b), f"{a} <= {b}"
        assert not SMALL.lt(a, b) or all(x < y for x, y in values), f"{a} < {b}"
        assert not SMALL.equal(a, b) or all(x == y for x, y in values), f"{a} == {b}"
        n = rng.randint(2, 9)
        assert not SMALL.divisible(a, n) or all(x % n == 0 for x, _ in values), f"{n} | {a}"
        true += holds
        proved += holds and SMALL.le(a, b)
    assert true > 50
    assert proved >= 0.95 * true


def test_most_true_inequalities_are_proved_without_enumeration():
    """The same over a space too large to enumerate; what is true is what holds at 300 sampled points."""
    large = Scope.parse("a = 0 to 5000, b = 1 to 7000, c = 2 to 6000")
    rng = random.Random(11)
    points = [{d.name: rng.choice([d.lo, d.lo + 1, d.hi, rng.randint(d.lo, d.hi)]) for d in large} for _ in range(300)]
    true = proved = 0
    for _ in range(600):
        a, b = _random(rng, 2), _random(rng, 2)
        holds = all(a.evaluate(p) <= b.evaluate(p) for p in points)
        with at_most(200_000):
            claim = large.le(a, b)
        assert holds or not claim, f"{a} <= {b}"
        true += holds
        proved += holds and claim
    assert true > 50
    assert proved >= 0.85 * true


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("64 - max(0, 64 - length)", "length"),
        ("1 - max(0, 1 - length)", "1"),
        ("max(64 - length, 0, length)", "max(64 - length, length)"),
        ("min(length, 48, batch*length)", "length"),
        ("min(2*length, 48)", "min(2*length, 48)"),
        ("max(length, length + batch - 1)", "batch + length - 1"),
        ("(length - 1) floordiv 48", "0"),
        ("length floordiv 48", "length floordiv 48"),
        ("length mod 64 + length mod 48", "length + length mod 48"),
        ("3*max(0, min(length - 1, 60))*batch", "3*(length - 1)*batch"),
    ],
)
def test_ranges_shorten_expressions(text, shorter):
    scope = Scope.parse("batch = 1 to 8, length = 1 to 48")
    assert scope.simplified(parse(text)) is parse(shorter)


def test_shorter_expressions_are_equal():
    scope = Scope.parse("a = 0 to 5, b = 1 to 4")
    rng = random.Random(0)

    def expression(depth):
        if depth == 0:
            return rng.choice([sym("a"), sym("b"), const(rng.randint(-3, 6))])
        x, y = expression(depth - 1), expression(depth - 1)
        make = rng.choice(
            [
                minimum,
                maximum,
                lambda p, q: p + q,
                lambda p, q: p - q,
                lambda p, q: floordiv(p, 3),
                lambda p, q: mod(p, 4),
            ]
        )
        return make(x, y)

    for _ in range(300):
        e = expression(3)
        short = scope.simplified(e)
        for a, b in itertools.product(range(6), range(1, 5)):
            assert short.evaluate({"a": a, "b": b}) == e.evaluate({"a": a, "b": b}), (e, short)


NEST = Scope(
    [
        *(Dim(name, lo, hi) for name, (lo, hi) in RANGES.items()),
        Dim("i", 0, 6, upper=sym("b") - 1, is_index=True),
        Dim("j", 0, 29, upper=sym("a") * sym("c") - 1, is_index=True),
    ]
)
INSIDE = [
    {**point, "i": i, "j": j} for point in POINTS for i in range(point["b"]) for j in range(point["a"] * point["c"])
]


def test_proofs_about_indices_are_sound():
    """Random expressions of dims and of indices below them, against all points of a nest."""
    rng = random.Random(5)
    proved = 0
    for _ in range(300):
        a, b = (_random(rng, 2).substitute({"a": sym(rng.choice("aij")), "b": sym(rng.choice("bij"))}) for _ in "ab")
        if any(not NEST.positive(d) for d in (a - b).divisors()):
            continue
        claim = NEST.le(a, b)
        proved += claim
        if claim:
            assert all(a.evaluate(p) <= b.evaluate(p) for p in INSIDE), f"{a} <= {b}"
    assert proved > 30


@pytest.mark.parametrize(
    ("index", "size"),
    [
        ("b - 1 - i", "b"),
        ("j floordiv c", "a"),
        ("j mod c", "c"),
        ("(2*i + 1) floordiv 2", "b"),
        ("max(min(i + 3, b - 1), 0)", "b"),
        ("b - 1 - max(b - 1 - max(i, -i), max(i, -i) - b + 1)", "b"),
        ("i * c + j mod c", "b*c"),
    ],
)
def test_indices_are_within_a_dim(index: str, size: str):
    assert NEST.le(0, parse(index))
    assert NEST.lt(parse(index), parse(size))
    assert not NEST.lt(parse(index) + 1, parse(size))
