"""The planner: cases worked by hand, random ones against brute force, symbolic sizes, effort."""

from __future__ import annotations

import itertools
import random

import pytest

from ait_mlir.dims import Dim, Scope, const, parse, total
from ait_mlir.passes.checks.memory_plan import verify
from ait_mlir.passes.memory import Buffer, MemoryPlanError, naive, plan
from ait_mlir.passes.memory.planner import peak_bytes
from tests.effort import at_most

NONE = Scope()
BERT = Scope.parse("batch = 1 to 64, seq = 1 to 512")


def _fixed(rows: list[tuple[int, int, int]]) -> list[Buffer]:
    return [Buffer(i, start, end, const(size)) for i, (start, end, size) in enumerate(rows)]


def _offsets(buffers: list[Buffer], scope: Scope = NONE) -> list[str]:
    made = plan(buffers, scope)
    assert verify(buffers, made.offsets, made.arena, scope) == []
    return [str(made.offsets[b.id]) for b in buffers]


def test_a_chain_ping_pongs():
    # each is read by the next only: two places of 256 bytes are enough
    buffers = _fixed([(i, i + 2, 256) for i in range(6)])
    assert _offsets(buffers) == ["0", "256", "0", "256", "0", "256"]
    assert plan(buffers, NONE).arena is const(512)


def test_the_smallest_gap_that_fits():
    # at position 4 the gaps are [0, 768) and [1024, 1280): the last buffer takes the smaller one
    buffers = _fixed([(0, 3, 768), (0, 9, 256), (0, 3, 256), (0, 9, 256), (4, 6, 256)])
    made = plan(buffers, NONE)
    assert verify(buffers, made.offsets, made.arena, NONE) == []
    assert made.arena is const(1536)


def test_lifetimes_are_half_open():
    assert _offsets(_fixed([(0, 4, 512), (4, 8, 512)])) == ["0", "0"]
    assert _offsets(_fixed([(0, 5, 512), (4, 8, 512)])) == ["0", "512"]


def test_constants_are_aligned_to_256():
    buffers = _fixed([(0, 2, 100), (0, 2, 1), (0, 2, 300)])
    assert sorted(_offsets(buffers)) == ["0", "512", "768"]
    assert plan(buffers, NONE).arena is const(1024)


def test_nothing_and_empty_buffers():
    assert plan([], NONE).arena is const(0)
    buffers = [Buffer("none", 0, 3, const(0)), Buffer("some", 0, 3, const(64))]
    made = plan(buffers, NONE)
    assert verify(buffers, made.offsets, made.arena, NONE) == []
    assert made.arena is const(256)


def test_one_symbolic_size():
    h = parse("1536*batch*seq")
    buffers = [Buffer(i, i, i + 2, h) for i in range(5)]
    assert _offsets(buffers, BERT) == ["0", "1536*batch*seq", "0", "1536*batch*seq", "0"]
    assert str(plan(buffers, BERT).arena) == "3072*batch*seq"


def test_a_feed_forward_layer_by_hand():
    # x and the residual of 1536 bytes a token, hidden of 6144, mask of 4 bytes a token, a workspace of 1 MiB
    sizes = {"x": "1536*batch*seq", "h": "6144*batch*seq", "y": "1536*batch*seq", "m": "4*batch*seq", "w": "1048576"}
    lives = {"x": (0, 4), "h": (1, 3), "y": (2, 5), "m": (0, 5), "w": (1, 2)}
    buffers = [Buffer(n, *lives[n], parse(sizes[n])) for n in sizes]
    made = plan(buffers, BERT)
    assert verify(buffers, made.offsets, made.arena, BERT) == []
    assert {n: str(made.offsets[n]) for n in sizes} == {
        "w": "0",
        "h": "1048576",
        "x": "6144*batch*seq + 1048576",
        "y": "7680*batch*seq + 1048576",
        "m": "9216*batch*seq + 1048576",  # its base is rounded up to 64 bytes
    }
    assert str(made.arena) == "9216*batch*seq + 64*((batch*seq) ceildiv 16) + 1048576"


def test_small_sizes_go_into_gaps_of_a_larger_base():
    # nothing else lives with the mask when it does, so it lies in the hidden buffer's bytes
    buffers = [Buffer("h", 0, 2, parse("6144*batch*seq")), Buffer("m", 3, 5, parse("4*batch*seq"))]
    made = plan(buffers, BERT)
    assert verify(buffers, made.offsets, made.arena, BERT) == []
    assert str(made.arena) == "6144*batch*seq"
    buffers = [Buffer("h", 0, 2, parse("6144*batch*seq")), Buffer("s", 3, 5, parse("1536*batch*(seq + 1)"))]
    made = plan(buffers, BERT)
    assert verify(buffers, made.offsets, made.arena, BERT) == []
    assert str(made.arena) == "6144*batch*seq"


def test_coefficients_that_are_no_multiple_of_64():
    for size in (
        "2*batch",
        "6*batch*seq",
        "100*seq",
        "1000*batch",
        "1544*seq",
        "2*batch*seq + 2*batch",
        "7*(seq mod 5)",
    ):
        buffers = [Buffer(i, 0, 2, parse(size)) for i in range(3)] + [Buffer(3, 1, 4, parse(size) * 3)]
        made = plan(buffers, BERT)
        assert verify(buffers, made.offsets, made.arena, BERT) == [], size
        # rounding costs at most 6 %, or 64 bytes for each unit of the coefficient
        env = BERT.maximum_env()
        assert made.arena.evaluate(env) <= 6 * (1.06 * parse(size).evaluate(env) + 64 * parse(size).terms()[0][0]), size


def test_naive_shares_nothing():
    sizes = ["6144*batch*seq", "4*batch*seq", "1536*batch*(seq + 1)", "1000"]
    buffers = [Buffer(i, 2 * i, 2 * i + 2, parse(size)) for i, size in enumerate(sizes)]
    made = naive(buffers, BERT)
    always = [Buffer(b.id, 0, 8, b.size) for b in buffers]
    assert verify(always, made.offsets, made.arena, BERT) == []
    assert not made.optimal
    assert made.peak == peak_bytes(buffers, BERT) == parse(sizes[0]).evaluate(BERT.maximum_env())
    assert naive([], NONE).arena is const(0)


def test_a_plan_says_whether_it_is_the_smallest():
    chain = [Buffer(i, i, i + 2, parse("1536*batch*seq")) for i in range(5)]
    assert plan(chain, BERT).optimal
    assert naive(chain[:2], BERT).optimal
    # 1, 100 and 300 bytes: none smaller is possible with places that are multiples of 256
    assert plan(_fixed([(0, 2, 100), (0, 2, 1), (0, 2, 300)]), NONE).optimal
    # nothing is proved for two bases, unless the arena is the peak
    bases = ["6144*batch*seq", "64*seq"]
    assert plan([Buffer(i, 0, 2, parse(s)) for i, s in enumerate(bases)], BERT).optimal
    assert not plan([Buffer(i, 0, 2, parse(s)) for i, s in enumerate([*bases, "1000"])], BERT).optimal


def _brute_force(rows: list[tuple[int, int, int]]) -> int:
    """The smallest arena over all orders of first-fit placement, which always contains an optimal one."""
    best = sum(size for _, _, size in rows)
    for order in itertools.permutations(range(len(rows))):
        placed: list[tuple[int, int, int, int]] = []
        for i in order:
            start, end, size = rows[i]
            spans = sorted((low, high) for s, e, low, high in placed if s < end and start < e)
            at = 0
            for low, high in spans:
                if low - at >= size:
                    break
                at = max(at, high)
            placed.append((start, end, at, at + size))
        best = min(best, max(high for *_, high in placed))
    return best


def test_against_brute_force():
    rng = random.Random(5)
    optimal = 0
    for _ in range(60):
        rows: list[tuple[int, int, int]] = []
        for _ in range(6):
            start = rng.randrange(8)
            rows.append((start, start + rng.randint(1, 5), 256 * rng.randint(1, 6)))
        buffers = _fixed(rows)
        made = plan(buffers, NONE)
        assert verify(buffers, made.offsets, made.arena, NONE) == []
        arena = made.arena.as_int()
        assert arena is not None
        best = _brute_force(rows)
        assert best <= arena <= 1.5 * best
        optimal += arena == best
    assert optimal >= 50


def _overlapping_at(buffers: list[Buffer], offsets: dict[int | str, int], env: dict[str, int]) -> bool:
    """All pairs, by arithmetic alone."""
    spans = [(b.start, b.end, offsets[b.id], offsets[b.id] + b.size.evaluate(env)) for b in buffers]
    return any(a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3] for a, b in itertools.combinations(spans, 2))


SIZES = [
    "1536*batch*seq",
    "6144*batch*seq",
    "2*batch*seq",
    "4*batch*seq*seq",
    "24*batch*seq*seq",
    "1536*batch",
    "1538*batch*(seq + 1)",
    "64*(seq ceildiv 64)*batch",
    "4096",
    "1000",
    "8*min(seq, 128)",
    "1536*batch*seq + 1024",
]


def test_random_symbolic_plans_hold_at_every_point_tried():
    rng = random.Random(9)
    scope = Scope([Dim("batch", 1, 5), Dim("seq", 1, 130)])
    for _ in range(40):
        buffers: list[Buffer] = []
        for i in range(rng.randint(1, 40)):
            start = rng.randrange(30)
            buffers.append(Buffer(i, start, start + rng.randint(1, 6), parse(rng.choice(SIZES))))
        made = plan(buffers, scope)
        assert verify(buffers, made.offsets, made.arena, scope) == []
        for batch, seq in itertools.product((1, 2, 5), (1, 2, 3, 63, 64, 65, 130)):
            env = {"batch": batch, "seq": seq}
            offsets = {name: offset.evaluate(env) for name, offset in made.offsets.items()}
            assert not _overlapping_at(buffers, offsets, env)
            assert all(offset % 64 == 0 for offset in offsets.values())
            top = max(offsets[b.id] + b.size.evaluate(env) for b in buffers)
            assert peak_bytes(buffers, scope) <= made.arena.evaluate(scope.maximum_env())
            assert top <= made.arena.evaluate(env)
        slack = 256 * len(buffers)
        assert (
            made.arena.evaluate(scope.maximum_env())
            <= 1.1 * total(b.size for b in buffers).evaluate(scope.maximum_env()) + slack
        )


def _layers(count: int) -> list[Buffer]:
    """Buffers as a stack of transformer layers makes them: short lives, a mask that lives throughout."""
    rng = random.Random(1)
    sizes = [parse(s) for s in ("1536*batch*seq", "6144*batch*seq", "4608*batch*seq", "4*batch*seq*seq")]
    buffers = [Buffer("mask", 0, count + 8, parse("4*batch*seq"))]
    for i in range(count):
        buffers.append(Buffer(i, i, i + rng.randint(1, 7), rng.choice(sizes)))
    return buffers


def test_effort_is_linear():
    for count in (1000, 4000):
        buffers = _layers(count)
        with at_most(150 * count):
            made = plan(buffers, BERT)
        assert verify(buffers, made.offsets, made.arena, BERT) == []


def test_a_long_dense_instance_is_planned_and_verified_quickly():
    rng = random.Random(2)
    buffers = [
        Buffer(i, rng.randrange(400), 400 + rng.randrange(400), const(rng.randint(1, 99999))) for i in range(1000)
    ]
    with at_most(1_000_000):
        made = plan(buffers, NONE)
        assert verify(buffers, made.offsets, made.arena, NONE) == []


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        ([Buffer("a", 0, 1, const(1)), Buffer("a", 2, 3, const(1))], "two buffers are called 'a'"),
        ([Buffer("a", 2, 2, const(1))], "'a' is live from 2 to 2, which is never"),
        ([Buffer("a", 0, 2, parse("64*seq - 128"))], "'a' has 64\\*seq - 128 bytes, which is not proved"),
        ([Buffer("a", 0, 2, const(-4))], "-4 bytes"),
    ],
)
def test_bad_buffers(buffers: list[Buffer], message: str):
    with pytest.raises(MemoryPlanError, match=message):
        plan(buffers, BERT)
