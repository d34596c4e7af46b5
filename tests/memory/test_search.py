"""The strategies that take time: they are never worse than the greedy one, and they end when the clock says so."""

from __future__ import annotations

import random
import sys

import pytest

from ait_mlir.dims import Scope, const, parse
from ait_mlir.passes.checks.memory_plan import verify
from ait_mlir.passes.memory import Buffer, plan
from ait_mlir.passes.memory.exact import Exact, MissingSolver
from ait_mlir.passes.memory.search import Search
from ait_mlir.passes.plan_memory import STRATEGIES, planner_of

NONE = Scope()
BERT = Scope.parse("batch = 1 to 64, seq = 1 to 512")


class Clock:
    """A second passes at each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def _hard(seed: int, count: int = 30, base: str = "256") -> list[Buffer]:
    rng = random.Random(seed)
    buffers: list[Buffer] = []
    for i in range(count):
        start = rng.randrange(20)
        buffers.append(Buffer(i, start, start + rng.randint(1, 9), parse(base) * rng.randint(1, 40)))
    return buffers


def _arena(buffers: list[Buffer], scope: Scope, strategy: Search | Exact) -> int:
    made = plan(buffers, scope, strategy)
    assert verify(buffers, made.offsets, made.arena, scope) == []
    return made.arena.evaluate(scope.maximum_env())


@pytest.mark.parametrize(("scope", "base"), [(NONE, "256"), (BERT, "1536*batch*seq")])
def test_the_search_is_never_worse_and_often_better(scope: Scope, base: str):
    better = harder = 0
    for seed in range(8):
        buffers = _hard(seed, base=base)
        first = plan(buffers, scope)
        arena = _arena(buffers, scope, Search(300, Clock()))
        before = first.arena.evaluate(scope.maximum_env())
        assert first.peak <= arena <= before
        harder += not first.optimal
        better += arena < before
    assert harder >= 4
    assert better >= 3


def test_the_time_limit_gives_the_best_so_far():
    buffers = next(b for b in map(_hard, range(20)) if not plan(b, NONE).optimal)
    clock = Clock()
    none = Search(0, clock)
    assert _arena(buffers, NONE, none) == plan(buffers, NONE).arena.evaluate({})
    assert none.stopped
    assert clock.now <= 3
    clock = Clock()
    some = Search(45, clock)  # ends at its 45th step
    assert _arena(buffers, NONE, some) <= plan(buffers, NONE).arena.evaluate({})
    assert clock.now <= 50


def test_nothing_is_searched_where_the_peak_is_reached():
    chain = [Buffer(i, i, i + 2, parse("1536*batch*seq")) for i in range(5)]
    clock = Clock()
    search = Search(100, clock)
    made = plan(chain, BERT, search)
    assert made.optimal
    assert not search.stopped
    assert clock.now == 1  # when it was made


def test_every_strategy_on_symbolic_sizes():
    sizes = ["1536*batch*seq", "6144*batch*seq", "4*batch*seq", "1536*batch*(seq + 1)", "4096", "0"]
    rng = random.Random(4)
    buffers = [Buffer(i, i, i + rng.randint(1, 5), parse(rng.choice(sizes))) for i in range(24)]
    arenas = {}
    for strategy in STRATEGIES:
        made = planner_of(strategy, 0.5)(buffers, BERT)
        assert verify(buffers, made.offsets, made.arena, BERT) == []
        arenas[strategy] = made.arena.evaluate(BERT.maximum_env())
    assert arenas["exact"] <= arenas["greedy"] < arenas["naive"]
    assert arenas["search"] <= arenas["greedy"]


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
def test_ordered_sizes_share(strategy: str):
    buffers = [Buffer("h", 0, 2, parse("6144*batch*seq")), Buffer("s", 3, 5, parse("1536*batch*(seq + 1)"))]
    made = planner_of(strategy, 1.0)(buffers, BERT)
    assert verify(buffers, made.offsets, made.arena, BERT) == []
    assert str(made.arena) == "6144*batch*seq"


def test_the_solver_proves_what_is_above_the_peak():
    # five units of 256 bytes are live at each position; no placement of them fits into five
    rows = [(0, 4, 3), (0, 2, 1), (0, 2, 1), (2, 5, 2), (4, 6, 1), (4, 7, 2), (5, 8, 1), (5, 7, 1), (6, 8, 1)]
    rows += [(7, 9, 3), (8, 10, 2)]
    buffers = [Buffer(i, start, end, const(256 * units)) for i, (start, end, units) in enumerate(rows)]
    made = plan(buffers, NONE, Exact(60, Clock()))
    assert verify(buffers, made.offsets, made.arena, NONE) == []
    assert made.peak == 5 * 256
    assert made.arena is const(6 * 256)
    assert made.optimal
    assert not plan(buffers, NONE).optimal


def test_a_missing_solver_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(MissingSolver, match=r"needs OR-Tools .*pip install 'ait_mlir\[planner\]', or use 'search'"):
        planner_of("exact", 1.0)
