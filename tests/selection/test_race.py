"""Candidates are timed fairly, and their order does not depend on the noise."""

from __future__ import annotations

import random

from ait_mlir.dims import sym
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.selection.race import ENOUGH, ROUNDS, race, summary
from ait_mlir.selection.ranges import Times, axis_of, choose

A, B, C = (Candidate.of(None, [("native", {"tile": n})]) for n in (1, 2, 3))
AXIS = sym("batch") * sym("seq")


def exact(**seconds: float) -> dict[Candidate, Times]:
    names = {"a": A, "b": B, "c": C}
    return {names[k]: Times(s, 0.001) for k, s in seconds.items()}


def test_the_order_is_that_of_the_true_times_whatever_the_noise():
    true = [5.0e-6, 5.3e-6, 8e-6, 5.6e-6]
    for seed in range(200):
        rng = random.Random(seed)
        times = race(
            lambda i, rng=rng: true[i] * rng.uniform(0.95, 1.05) * (3 if rng.random() < 0.05 else 1), len(true)
        )
        assert min(range(4), key=lambda i: times[i].seconds) == 0
        assert abs(times[0].seconds / true[0] - 1) < 0.05


def test_candidates_take_turns_and_the_slow_ones_stop():
    calls: list[int] = []
    true = [1.0, 1.005, 2.0]
    rng = random.Random(1)

    def sample(i: int) -> float:
        calls.append(i)
        return true[i] * rng.uniform(0.95, 1.05)

    race(sample, 3)
    assert calls[:6] == [0, 1, 2, 0, 1, 2]
    assert calls.count(2) == 1 + ROUNDS[0][0]
    assert calls.count(0) == calls.count(1) == 1 + ROUNDS[-1][0]


def test_exact_times_need_few_samples():
    calls: list[int] = []

    def sample(i: int) -> float:
        calls.append(i)
        return 1.0 + 0.001 * i

    race(sample, 2)
    assert calls.count(0) == calls.count(1) == 1 + ENOUGH


def test_the_first_sample_does_not_count():
    first = {0: True, 1: True}

    def sample(i: int) -> float:
        was, first[i] = first[i], False
        return 100.0 if was and i == 0 else 1.0 + i

    assert race(sample, 2)[0] == Times(1.0, 0.0)


def test_a_card_that_slows_down_slows_all():
    clock = [0.0]

    def sample(i: int) -> float:
        clock[0] += 0.01
        return (1.0 + 0.02 * i) * (1 + clock[0])

    times = race(sample, 3)
    assert times[0].seconds < times[1].seconds < times[2].seconds


def test_the_spread_falls_with_the_samples_and_ignores_a_spike():
    assert summary([1.0, 1.0, 1.0, 9.0]).spread == 0.0
    assert 2.9 < summary([1.0, 1.1, 0.9]).spread / summary([1.0, 1.1, 0.9] * 9).spread < 3.1


def test_one_candidate_where_it_is_best_everywhere():
    found = choose([(128, exact(a=1, b=2)), (4096, exact(a=5, b=6))], [B, A], AXIS)
    assert found is not None and found.candidates == (A,) and found.axis is None


def test_two_candidates_and_a_limit_between_the_points():
    found = choose([(4096, exact(a=9, b=6)), (128, exact(a=1, b=2))], [A, B], AXIS)
    assert found is not None
    assert found.candidates == (A, B) and found.upto == (724,) and found.axis is AXIS


def test_equal_times_follow_the_order_and_the_neighbour():
    near = [(1, exact(a=1.005, b=1.0)), (64, exact(a=1.0, b=1.005))]
    for order in ([A, B], [B, A]):
        found = choose(near, order, AXIS)
        assert found is not None and found.candidates == (order[0],)
    found = choose([(1, exact(a=1.0, b=1.001)), (64, exact(a=2.0, b=1.0))], [A, B], AXIS)
    assert found is not None and found.candidates == (B,)  # as good at 1, so no branch


def test_a_branch_must_pay():
    small = [(1, exact(a=1.0, b=1.03)), (64, exact(a=1.009, b=1.0))]
    found = choose(small, [A, B], AXIS)
    assert found is not None and found.candidates == (A,)
    large = [(1, exact(a=1.0, b=1.2)), (64, exact(a=1.2, b=1.0))]
    found = choose(large, [A, B], AXIS)
    assert found is not None and found.candidates == (A, B)


def test_a_candidate_that_cannot_run_somewhere_is_not_taken_there():
    for last in (exact(b=9), {A: None, **exact(b=9)}):
        found = choose([(1, exact(a=1, b=9)), (64, last)], [A, B], AXIS)
        assert found is not None and found.candidates == (A, B)
    assert choose([(1, exact(a=1)), (64, {})], [A], AXIS) is None
    assert choose([(1, exact(a=1)), (8, {A: None}), (64, exact(a=1))], [A], AXIS) is None
    assert choose([], [A], AXIS) is None


def test_a_candidate_that_was_not_timed_is_taken_as_its_neighbours_say():
    """Between two places where it is best; beside one where it cannot run it may not run either."""
    ends = [(16, exact(a=1, b=2)), (256, exact(a=1, b=2))]
    found = choose([*ends, (64, exact(b=2))], [A, B], AXIS)
    assert found is not None and found.candidates == (A,)
    slower = [(16, exact(a=1, b=2)), (256, exact(a=4, b=2))]
    found = choose([*slower, (255, exact(b=2))], [A, B], AXIS)
    assert found is not None and found.candidates == (A, B) and found.upto == (63,)  # at 255 nearly as slow as at 256
    refused = [(16, exact(a=1, b=2)), (256, {A: None, **exact(b=2)})]
    found = choose([*refused, (64, exact(b=2))], [A, B], AXIS)
    assert found is not None and found.candidates == (A, B) and found.upto == (32,)


def test_two_points_of_one_size_are_one_place():
    """8 x 128 and 1 x 1024: each candidate counts with what is known of it, so that neither point hides the other's best."""
    found = choose([(1024, exact(a=1, b=1.2)), (1024, exact(b=1, c=2))], [C, B, A], AXIS)
    assert found is not None and found.candidates == (A,)
    found = choose([(1024, exact(a=1, b=1.2)), (1024, exact(a=2, b=1))], [A, B], AXIS)
    assert found is not None and found.candidates == (B,)  # lost: log 2 / 2 against log 1.2 / 2
    found = choose([(1024, exact(a=1, b=1.2)), (1024, {A: None, **exact(b=1)})], [A, B], AXIS)
    assert found is not None and found.candidates == (B,)


def test_three_ranges():
    points = [
        (1, exact(a=1, b=2, c=3)),
        (16, exact(a=2, b=1, c=3)),
        (256, exact(a=3, b=2, c=1)),
    ]
    found = choose(points, [A, B, C], AXIS)
    assert found is not None and found.candidates == (A, B, C) and found.upto == (4, 64)


def test_the_axis_is_what_varies():
    batch, seq = sym("batch"), sym("seq")
    assert str(axis_of([batch, seq, batch * 0 + 768])) == "batch*seq"
    assert str(axis_of([batch * 4, seq * 0 + 2])) == "batch"
    assert axis_of([seq * 0 + 7]).as_int() == 1


def test_a_candidate_survives_as_text():
    candidate = Candidate.of("epilogue 2", [("cublaslt", {"algo": 3}), ("native", {})])
    assert Candidate.read(candidate.text) == candidate
    assert Candidate.of(None, [("x", {"b": 1, "a": 2})]) == Candidate.of(None, [("x", {"a": 2, "b": 1})])
