"""The verifier refuses what is wrong: planted errors in plans that are right."""

from __future__ import annotations

import random
import re

import pytest

from ait_mlir.dims import Expr, Scope, const, parse
from ait_mlir.passes.checks.memory_plan import verify
from ait_mlir.passes.memory import Buffer, plan

SCOPE = Scope.parse("batch = 1 to 64, seq = 1 to 512")
H = parse("1536*batch*seq")


def _pair(first: str, second: str, arena: str) -> list[str]:
    buffers = [Buffer("first", 0, 3, H), Buffer("second", 1, 4, H)]
    return verify(buffers, {"first": parse(first), "second": parse(second)}, parse(arena), SCOPE)


def test_right_plans_pass():
    assert _pair("0", "1536*batch*seq", "3072*batch*seq") == []
    assert _pair("1536*batch*seq + 64", "0", "3072*batch*seq + 64") == []
    # the lifetimes are what counts: no overlap in time, same bytes
    buffers = [Buffer("a", 0, 2, H), Buffer("b", 2, 4, H)]
    assert verify(buffers, {"a": const(0), "b": const(0)}, H, SCOPE) == []


def test_an_overlap_is_shown_with_both_names_and_the_bytes():
    assert _pair("0", "1536*batch*seq - 64", "3072*batch*seq") == [
        "buffers 'first' and 'second' are both live from position 1 to 2 and overlap: "
        "bytes [0, 1536) and [1472, 3008) at batch = 1, seq = 1"
    ]


def test_an_overlap_at_few_dims_is_found():
    # apart for long sequences, one above the other for short ones
    problems = _pair("0", "1536*batch*seq*seq - 1536*64*batch", "1536*batch*seq*(seq + 1)")
    assert any("'first' and 'second'" in p for p in problems)


def test_what_no_point_shows_is_still_an_error():
    # seq*seq - 600*seq + 90001 is at least 1, but no rule here sees it
    gap = parse("64*(seq*seq - 600*seq + 90001)*batch")
    buffers = [Buffer("a", 0, 3, H), Buffer("b", 0, 3, H)]
    problems = verify(buffers, {"a": const(0), "b": H + gap}, H * 2 + gap + 90001 * 4096, SCOPE)
    assert any("'a' and 'b'" in p and "not provable" in p for p in problems)


@pytest.mark.parametrize(
    ("offset", "arena", "message"),
    [
        ("32", "1536*batch*seq + 32", "not proved to be aligned to 64 bytes"),
        ("2*batch", "1538*batch*seq", "not proved to be aligned to 64 bytes"),
        ("64", "1536*batch*seq", "end within the arena of 1536\\*batch\\*seq bytes: 1600 > 1536 at batch = 1, seq = 1"),
        ("0", "1536*batch", "end within the arena"),
        ("64*batch - 128", "1600*batch*seq", "begin inside the arena: 0 > -64 at batch = 1"),
        ("64*heads", "1600*batch*seq", "dim 'heads' is not declared"),
    ],
)
def test_one_buffer(offset: str, arena: str, message: str):
    problems = verify([Buffer("a", 0, 1, H)], {"a": parse(offset)}, parse(arena), SCOPE)
    assert len(problems) == 1
    assert re.search(message, problems[0]), problems[0]
    assert "'a'" in problems[0]


def test_missing_doubled_and_empty():
    buffers = [Buffer("a", 0, 1, H), Buffer("a", 4, 5, H), Buffer("b", 0, 1, H), Buffer("c", 3, 3, H)]
    problems = verify(buffers, {"a": const(0), "c": const(0)}, H, SCOPE)
    assert problems == [
        "two buffers are called 'a'",
        "buffer 'b' has no offset",
        "buffer 'c' is live from 3 to 3, which is never",
    ]


def test_a_divisor_that_may_be_zero_is_an_error_not_a_crash():
    scope = Scope.parse("n = 0 to 8")
    problems = verify([Buffer("a", 0, 1, parse("64*(5 floordiv n)"))], {"a": const(0)}, const(320), scope)
    assert all("'a'" in p for p in problems)


def _random_plan(rng: random.Random) -> tuple[list[Buffer], dict[int | str, Expr], Expr]:
    sizes = [parse(s) for s in ("1536*batch*seq", "6144*batch*seq", "4*batch*seq", "1536*batch", "4096")]
    buffers: list[Buffer] = []
    for i in range(25):
        start = rng.randrange(20)
        buffers.append(Buffer(i, start, start + rng.randint(1, 5), rng.choice(sizes)))
    made = plan(buffers, SCOPE)
    return buffers, dict(made.offsets), made.arena


def _bad_at(buffers: list[Buffer], offsets: dict[int | str, Expr], env: dict[str, int]) -> bool:
    spans = [(b, offsets[b.id].evaluate(env), offsets[b.id].evaluate(env) + b.size.evaluate(env)) for b in buffers]
    return any(
        a is not b and a.start < b.end and b.start < a.end and la < hb and lb < ha
        for a, la, ha in spans
        for b, lb, hb in spans
    )


def test_every_planted_overlap_is_rejected():
    """One buffer is moved onto another: whenever arithmetic shows an overlap, the verifier must have seen it."""
    rng = random.Random(4)
    planted = 0
    for _ in range(150):
        buffers, offsets, arena = _random_plan(rng)
        a, b = rng.sample(buffers, 2)
        offsets[a.id] = offsets[b.id] + rng.choice([0, 64, -64, 1536])
        envs = [SCOPE.minimum_env(), SCOPE.maximum_env(), {"batch": 3, "seq": 77}]
        if any(_bad_at(buffers, offsets, env) for env in envs):
            planted += 1
            problems = verify(buffers, offsets, arena, SCOPE)
            assert any(repr(a.id) in p for p in problems), problems
    assert planted > 60


def test_the_number_of_problems_is_bounded():
    buffers = [Buffer(i, 0, 2, H) for i in range(500)]
    assert len(verify(buffers, {b.id: const(0) for b in buffers}, H, SCOPE)) == 20
