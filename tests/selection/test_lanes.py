"""Timing on several cards at the same time: each card has one race at a time, and one thread runs the compiler."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from ait_mlir.host.settings import MEASURE_DEVICES
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.points import Point
from ait_mlir.selection.budget import Budget, BudgetSelector
from ait_mlir.selection.lanes import Lanes
from ait_mlir.selection.measure import Selector
from ait_mlir.selection.meter import timing_cards
from ait_mlir.selection.ranges import Times
from ait_mlir.selection.tasks import Task
from tests.selection.cards import SETTING, FakeMeter
from tests.selection.test_budget import H200, library_first, products


@dataclass
class Cards(FakeMeter):
    """Each race notes its card and task; the first ones wait for one another, so they are under way together."""

    together: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))
    used: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    working: set[int] = field(default_factory=set[int])

    def race(
        self, task: Task, point: Point, candidates: Sequence[Candidate], estimate: float
    ) -> dict[Candidate, Times]:
        with self.lanes.card() as card:
            found = super().race(task, point, candidates, estimate)
            assert card not in self.working
            self.working.add(card)
            self.used.append((card, task.key))
            with self.lanes.apart():
                if len(self.used) <= self.together.parties:
                    self.together.wait(60)
            self.working.remove(card)
            return found

    def build_together(self, wanted: Sequence[tuple[Task, Candidate]]) -> None:
        self.build(wanted)

    def is_built(self, task: Task, candidates: Sequence[Candidate]) -> bool:
        return True

    def wait(self, seconds: float) -> None: ...

    def abandon(self) -> None: ...


def two_cards() -> Cards:
    return Cards(library_first, lanes=Lanes([2, 5]), together=threading.Barrier(2))


@pytest.mark.parametrize("budget", [None, 60.0])
def test_two_cards_time_two_ops_at_once_and_choose_as_one(budget: float | None) -> None:
    def selector(meter: Cards) -> Selector:
        if budget is None:
            return Selector(H200, SETTING, None, None, meter)
        return BudgetSelector(H200, SETTING, None, None, meter, budget=Budget(budget))

    tasks = products(64, 1024, 2048)
    one, two = Cards(library_first), two_cards()
    assert selector(two).choose(tasks) == selector(one).choose(tasks)
    assert {card for card, _ in two.used} == {2, 5} and {card for card, _ in one.used} == {0}
    assert sorted(key for _, key in two.used) == sorted(key for _, key in one.used)
    (first, one_key), (second, other_key) = two.used[:2]
    assert first != second and one_key != other_key
    assert two.lanes.is_idle


def test_an_error_on_one_card_ends_the_timing() -> None:
    class Gone(Cards):
        def race(
            self, task: Task, point: Point, candidates: Sequence[Candidate], estimate: float
        ) -> dict[Candidate, Times]:
            raise RuntimeError("the device is lost")

    meter = Gone(library_first, lanes=Lanes([0, 1]))
    selector = BudgetSelector(H200, SETTING, None, None, meter, budget=Budget(60.0))
    with pytest.warns(UserWarning, match="chosen by estimate: the device is lost"):
        assert selector.choose(products(1024, 2048)) == [None, None]
    done: list[int] = []
    meter.lanes.each(range(5), done.append)  # usable again
    assert sorted(done) == [0, 1, 2, 3, 4]


def test_one_thread_at_a_time_has_the_turn() -> None:
    lanes, inside, most = Lanes([0, 1, 2]), [0], [0]

    def work(_: int) -> None:
        for _ in range(50):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            inside[0] -= 1
            with lanes.apart():
                pass

    lanes.each(range(9), work)
    assert most == [1]


def test_settings_are_those_of_the_thread_that_hands_out_work() -> None:
    token = MEASURE_DEVICES.set((3,))
    try:
        found: list[tuple[int, ...]] = []
        Lanes([0, 1]).each(range(4), lambda _: found.append(MEASURE_DEVICES.get()))
        assert found == [(3,)] * 4
    finally:
        MEASURE_DEVICES.reset(token)


def test_cards_of_another_kind_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ait_mlir.host.card.card_name", {0: "NVIDIA H200", 1: "NVIDIA A100", 3: "NVIDIA H200"}.get)
    token = MEASURE_DEVICES.set((0, 1, 3))
    try:
        with pytest.warns(UserWarning, match=r"on cards like 0 \(NVIDIA H200\) alone, not on 1 \(NVIDIA A100\)"):
            assert timing_cards() == [0, 3]
    finally:
        MEASURE_DEVICES.reset(token)
