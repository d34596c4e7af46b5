"""Extents: what a comparison of sizes learns, and the sizes that code is valid for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ait_mlir.graph.extents import Facts, Group, Guard, Retrace, Trace, range_of, step_of

SIZES = [24, 100, 24, 48]


def learned(sizes: list[int], use: Callable[[list[Any]], object], aligned: tuple[int, ...] = ()) -> Trace:
    """The last pass of a function over sizes, as `traced` makes them."""
    facts = Facts(sizes, [i in aligned for i in range(len(sizes))])
    for _ in range(10):
        trace = Trace(facts)
        try:
            use([trace.size(i) for i in range(len(sizes))])
        except Retrace:
            continue
        return trace
    raise AssertionError("no end of facts")


def valid(trace: Trace, sizes: list[int]) -> bool:
    """Whether the facts of a trace are true of other sizes."""
    values = [g.value(sizes) for g in trace.groups]
    dims = {g.name: n for g, n in zip(trace.groups, values, strict=True) if n is not None}
    return None not in values and all(guard.holds(dims) for guard in trace.guards)


def facts(trace: Trace) -> tuple[list[tuple[int, ...]], list[int]]:
    """The groups of equal sizes, and the constants."""
    groups = [g.members for g in trace.groups if g.constant is None]
    return groups, [g.members[0] for g in trace.groups if g.constant is not None]


def test_nothing_is_learned_from_arithmetic():
    trace = learned(SIZES, lambda s: (s[0] * s[1] + 3 * s[2] - s[3], -s[0], 5 - s[1], s[0] * s[1] // s[1], s[0] % 2))
    assert facts(trace) == ([(0,), (1,), (2,), (3,)], [])
    assert not trace.guards
    assert valid(trace, [3, 1000, 64, 2])


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s[0] == s[2],
        lambda s: s[0] != s[2],
        lambda s: s[0] in (1, s[2]),
        lambda s: (s[0], s[1]) == (s[2], s[1]),
        lambda s: s[0] <= s[2],
        lambda s: s[0] > s[2],
        lambda s: s[0] % s[2],
        lambda s: s[0] // s[2],
    ],
)
def test_equal_sizes_that_are_compared_are_one(use: Callable[[list[Any]], object]):
    trace = learned(SIZES, use)
    assert facts(trace) == ([(0, 2), (1,), (3,)], [])
    assert valid(trace, [30, 100, 30, 40])
    assert not valid(trace, [30, 100, 31, 40])


@pytest.mark.parametrize(
    "use", [lambda s: s[0] + 1 == s[1], lambda s: s[1] - 3 != s[0] - 2, lambda s: s[1] <= s[0] + 1]
)
def test_sizes_that_are_apart_by_a_constant_are_one(use: Callable[[list[Any]], object]):
    trace = learned([24, 25, 40], use, aligned=(0, 1))
    assert facts(trace) == ([(0, 1), (2,)], [])
    assert str(trace.groups[0]) == str(Group((0, 1), None, "d0", 1, 2, 64, False, (0, 1)))
    assert valid(trace, [30, 31, 40])
    assert not valid(trace, [30, 30, 40])
    assert not valid(trace, [30, 32, 40])


def test_a_constant_and_a_size_apart_from_it():
    trace = learned([24, 25], lambda s: (s[0] + 1 == s[1], int(s[1])))
    assert facts(trace) == ([], [0])
    assert [valid(trace, sizes) for sizes in ([24, 25], [25, 26], [24, 24])] == [True, False, False]


@pytest.mark.parametrize(
    ("use", "constants"),
    [
        (lambda s: range(s[1]), [1]),
        (lambda s: int(s[1]), [1]),
        (lambda s: float(s[1]), [1]),
        (lambda s: hash(s[1]), [1]),
        (lambda s: [0] * s[1], [1]),
        (lambda s: s[1] == 100, [1]),
        (lambda s: s[0] + s[2] == s[3], [0, 2, 3]),
        (lambda s: s[1] % s[0], [0, 1]),
        (lambda s: 200 // s[1], [1]),
        (lambda s: 200 % s[1], [1]),
    ],
)
def test_sizes_that_must_be_known_are_constants(use: Callable[[list[Any]], object], constants: list[int]):
    trace = learned(SIZES, use)
    assert facts(trace)[1] == constants
    assert valid(trace, SIZES)
    for i in constants:
        assert not valid(trace, [n + 2 * (j == i) for j, n in enumerate(SIZES)])


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s[0] == 1 or s[0] < 2 or not s[0] or s[0] <= 1,
        lambda s: s[0] > 64 or s[1] < 65 or s[1] <= s[0],  # by their ranges
        lambda s: s[0] * s[1] == s[0] or s[0] * s[1] < s[1],
        lambda s: s[0] + 1 == s[0] or s[0] + 1 <= s[0],
    ],
)
def test_what_holds_for_all_sizes_is_no_fact(use: Callable[[list[Any]], object]):
    trace = learned(SIZES, lambda s: pytest.fail("proved otherwise") if use(s) else None)
    assert facts(trace) == ([(0,), (1,), (2,), (3,)], [])
    assert not trace.guards


@pytest.mark.parametrize(
    ("use", "other"),
    [
        (lambda s: s[0] < s[3], [48, 100, 24, 24]),
        (lambda s: s[3] <= s[0], [48, 100, 24, 24]),
        (lambda s: s[3] > s[0], [48, 100, 24, 24]),
        (lambda s: s[0] >= s[3], [48, 100, 24, 24]),
        (lambda s: s[0] == s[3], [48, 100, 24, 48]),
        (lambda s: s[1] % 3 == 0, [24, 99, 24, 48]),
        (lambda s: s[1] - 99, None),
        (lambda s: bool(s[1] - 99), [24, 99, 24, 48]),
    ],
)
def test_other_comparisons_are_guards(use: Callable[[list[Any]], object], other: list[int] | None):
    trace = learned(SIZES, use)
    assert facts(trace) == ([(0,), (1,), (2,), (3,)], [])
    assert len(trace.guards) == (other is not None)
    assert valid(trace, SIZES)
    if other is not None:
        assert not valid(trace, other)


def test_lengths_of_rows_keep_their_step():
    trace = learned(SIZES, lambda s: None, aligned=(0, 1))
    assert [(g.name, g.step, g.low, g.high) for g in trace.groups[:3]] == [
        ("d0", 8, 1, 8),
        ("d1", 4, 17, 256),
        ("d2", 1, 2, 64),
    ]
    assert valid(trace, [8, 1004, 23, 47])
    for other in ([12, 100, 24, 48], [24, 104, 24, 48], [24, 101, 24, 48], [72, 100, 24, 48], [24, 100, 24, 65]):
        assert not valid(trace, other)


def test_steps_and_ranges():
    assert [step_of(n) for n in (1, 2, 4, 12, 24, 30)] == [1, 1, 4, 4, 8, 1]
    assert [range_of(n) for n in (2, 64, 65, 1024, 2**31 - 1)] == [
        (2, 64),
        (2, 64),
        (65, 1024),
        (65, 1024),
        (2**26 + 1, 2**31 - 1),
    ]
    for n in (1, 2**31):
        with pytest.raises(ValueError, match="a size is"):
            range_of(n)


def test_a_guard_says_what_it_compares():
    trace = learned(SIZES, lambda s: s[0] < s[3])
    (guard,) = trace.guards
    assert (str(guard.left), guard.relation, str(guard.right), guard.answer) == ("d0", "<", "d3", True)
    assert isinstance(guard, Guard)
    assert repr(trace.size(1)) == "100"
