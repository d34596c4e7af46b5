"""Text that is no dim expression: a clear error with a place, at once."""

from __future__ import annotations

import random

import pytest

from ait_mlir.dims import DimSyntaxError, parse
from tests.effort import at_most

BAD = [
    ("", 0, "the end of the text"),
    ("1 +", 3, "the end of the text"),
    ("2 * )", 4, "found '\\)'"),
    ("a b", 2, "expected an operator"),
    ("a)", 1, "expected an operator"),
    ("(a", 2, "expected '\\)'"),
    ("min(a", 5, "to close 'min'"),
    ("min a", 4, "expected '\\(' after 'min'"),
    ("min()", 4, "expected a number, a dim"),
    ("a floordiv 0", 2, "division by zero"),
    ("a mod 0", 2, "division by zero"),
    ("a ceildiv (b - b)", 2, "division by zero"),
    ("a floordiv -2", 2, "at least 1"),
    ("0x10", 0, "no decimal number"),
    ("1_000", 0, "no decimal number"),
    ("1.5", 0, "no decimal number"),
    ("a + f16", 4, "reserved word"),
    ("x", 0, "reserved word"),
    ("hints", 0, "reserved word"),
    ("mod", 0, "reserved word"),
    ("²", 0, "found '²'"),
    ("a + é", 4, "found 'é'"),
    ("a\x00b", 1, "expected an operator"),
    ('a"; system("rm")', 1, "expected an operator"),
    ("9" * 6000, 0, "beyond 64 bits"),
    ("9223372036854775808", 0, "beyond 64 bits"),
    ("9223372036854775807 + 1", 23, "beyond 64 bits"),
    ("a" * 200, 0, "1 to 128"),
    ("(" * 20000 + "a" + ")" * 20000, 100, "nested more than 100"),
    ("min(" * 20000, 400, "nested more than 100"),
]


@pytest.mark.parametrize(("text", "offset", "message"), BAD, ids=[repr(t[:18]) for t, _, _ in BAD])
def test_bad_text(text: str, offset: int, message: str):
    with pytest.raises(DimSyntaxError, match=message) as caught, at_most(10_000):
        parse(text)
    assert caught.value.offset == offset
    assert len(caught.value.message) < 200


def test_the_largest_number_is_read():
    assert parse("9223372036854775807").as_int() == 2**63 - 1


def test_long_text_is_quick():
    with at_most(50 * 20000):
        assert parse("+".join(["seq"] * 20000)) is parse("20000*seq")
    with pytest.raises(DimSyntaxError, match="at most 1024"), at_most(50 * 20000):
        parse("+".join(f"d{i}" for i in range(20000)))
    with at_most(50 * 20000):
        assert parse("-" * 20000 + "seq") is parse("seq")


def test_mutated_text_raises_only_syntax_errors():
    rng = random.Random(0)
    seeds = ["2*seq + min(batch, 7) floordiv (seq mod 5 + 1)", "max(a, b - 3)*(a ceildiv 64)", "(((a))) - -b"]
    alphabet = "ab*+-() ,0123456789x_²\n\"'\\floordivmax"
    accepted = 0
    for _ in range(4000):
        text = list(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.randint(0, 2)] = rng.choice(alphabet)
        try:
            e = parse("".join(text))
        except DimSyntaxError as error:
            assert 0 <= error.offset <= len(text)
        else:
            accepted += 1
            assert parse(str(e)) is e
    assert 100 < accepted < 3000
