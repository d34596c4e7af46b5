"""Choosing within a budget: what is timed first, what remains by estimate, what is remembered, errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from ait_mlir.errors import AitError, InputError, ToolchainError
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import Point
from ait_mlir.options import CompileOptions
from ait_mlir.selection.budget import Budget, BudgetSelector
from ait_mlir.selection.ranges import Times
from ait_mlir.selection.shortlist import best_by_estimate, candidates_of
from ait_mlir.selection.tasks import Task
from ait_mlir.selection.timings import TimingCache
from tests.selection.cards import GEMM, SETTING, FakeMeter, tasks_of

H200 = Target("cuda", "sm_90a")


def library_first(candidate: Candidate, dims: dict[str, int]) -> float:
    """The library is best; the rest is in the order of its text."""
    return 1e-6 if candidate.kernels[0][0] == "cublaslt" else 20e-6


@pytest.fixture(autouse=True)
def no_table(monkeypatch):
    """What is timed first depends on estimates: here, on those that are written in the kernels."""
    monkeypatch.setenv("AIT_ESTIMATES", "none")


class Clock:
    """Time passes only while somebody waits, so that no test depends on how fast the machine is."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("ait_mlir.selection.budget.time", found)
    monkeypatch.setattr(SlowCompiler, "clock", found)
    return found


@dataclass
class SlowCompiler(FakeMeter):
    """Candidates of a library are prepared at once, all others if `compiled`."""

    compiled: bool = True
    preparation: float = 0.0
    """Seconds of what a machine builds once."""
    submitted: list[tuple[str, Candidate]] = field(default_factory=list[tuple[str, Candidate]])
    abandoned: bool = False
    clock: ClassVar[Clock] = Clock()

    def prepare(self) -> None:
        self.clock.now += self.preparation

    def build_together(self, wanted: Sequence[tuple[Task, Candidate]]) -> None:
        self.build(wanted)
        self.submitted += [(task.key, candidate) for task, candidate in wanted]

    def is_built(self, task: Task, candidates: Sequence[Candidate]) -> bool:
        return self.compiled or all(candidate.asks_a_library for candidate in candidates)

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.clock.now += min(seconds, 0.01)

    def abandon(self) -> None:
        self.abandoned = True


def budgeted(meter: FakeMeter, cache: Path | None = None, seconds: float = 60.0) -> BudgetSelector:
    known = None if cache is None else TimingCache(cache / "t.sqlite3")
    return BudgetSelector(H200, SETTING, known, None, meter, budget=Budget(seconds))


def products(*widths: int) -> list[Task]:
    text = GEMM.format(lead="batch x 128", hints=" hints [1, 32]").replace("gelu", "relu")
    return [tasks_of(text.replace("1024", str(n)))[0] for n in widths]


def timed(meter: FakeMeter) -> set[Candidate]:
    return {candidate for _, candidates in meter.raced for candidate in candidates}


def test_all_candidates_are_timed_within_the_budget(tmp_path: Path):
    meter = SlowCompiler(library_first)
    (choice,) = budgeted(meter, tmp_path).choose(products(1024))
    assert choice is not None and [w.kernels[0][0] for w in choice.candidates] == ["cublaslt"]
    assert {w.kernels[0][0] for w in timed(meter)} > {"cublaslt", "hopper"}
    assert not meter.abandoned
    again = SlowCompiler(library_first)
    assert budgeted(again, tmp_path).choose(products(1024)) == [choice]
    assert not again.raced and not again.built


def test_what_is_not_compiled_in_time_is_not_waited_for(tmp_path: Path, clock: Clock):
    meter = SlowCompiler(library_first, compiled=False)
    choosing = budgeted(meter, tmp_path, seconds=0.3)
    (choice,) = choosing.choose(products(1024))
    assert choice is not None and choice.candidates[0].kernels[0][0] == "cublaslt"
    assert {w.kernels[0][0] for w in timed(meter)} == {"cublaslt"}
    assert meter.abandoned and clock.now == pytest.approx(0.3, abs=0.02)
    same, more = SlowCompiler(library_first), SlowCompiler(library_first)
    assert budgeted(same, tmp_path, seconds=0.3).choose(products(1024)) == [choice]
    assert not same.raced
    budgeted(more, tmp_path, seconds=60).choose(products(1024))
    assert {w.kernels[0][0] for w in timed(more)} > {"hopper"} and not any(w in timed(meter) for w in timed(more))


def test_an_estimate_far_below_what_was_timed_wins():
    meter = SlowCompiler(lambda candidate, dims: 1.0, compiled=False)
    assert budgeted(meter, seconds=0.3).choose(products(1024)) == [None]
    assert meter.raced


def test_an_estimate_far_below_at_one_size_wins_there():
    def slow_for_few_rows(candidate: Candidate, dims: dict[str, int]) -> float:
        return 20e-6 if dims["batch"] == 1 else 5e-6

    (choice,) = budgeted(SlowCompiler(slow_for_few_rows, compiled=False), seconds=0.3).choose(products(1024))
    assert choice is not None
    few, many = choice.candidates[0], choice.candidates[-1]
    assert few.kernels[0][0] != "cublaslt" and many.kernels[0][0] == "cublaslt"
    assert 1 <= choice.upto[0] < 32


def test_the_op_that_can_gain_most_is_first():
    small, large = products(64, 4096)
    meter = SlowCompiler(library_first)
    budgeted(meter).choose([small, large])
    assert meter.submitted[0][0] == large.key
    meter = SlowCompiler(library_first)
    budgeted(meter).choose([small, large], [10_000, 1])
    assert meter.submitted[0][0] == small.key


def test_the_best_estimate_is_compiled_before_other_candidates():
    (task,) = products(1024)
    meter = SlowCompiler(library_first)
    budgeted(meter).choose([task])
    slow = [candidate for _, candidate in meter.submitted if not candidate.asks_a_library]
    point = {"batch": 32}
    best = best_by_estimate(list(candidates_of(task.at(tuple(point.values())), H200)))
    assert best in slow and slow[0] == best


CONV = """
ait.graph @g(%x: !ait.tensor<45 x 64 x 28 x 28 x f32>) {
  %w = ait.param "w" : !ait.tensor<16 x 4 x 4 x 16 x f32>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<45 x 28 x 28 x 64 x f32>
  %1 = ait.conv %0, %w tf32 pad [1, 1] groups 4 : !ait.tensor<45 x 27 x 27 x 16 x f32>
  ait.output "y" %1 : !ait.tensor<45 x 27 x 27 x 16 x f32>
}
"""


def test_plans_of_a_library_leave_room_for_other_kernels_that_are_only_timed():
    (task,) = (t for t in tasks_of(CONV) if t.op.name == "ait.conv")
    meter = SlowCompiler(lambda candidate, dims: 1e-6 if candidate.kernels[0][0] == "planes" else 20e-6)
    (choice,) = budgeted(meter).choose([task])
    assert {"cudnn", "planes", "mma"} <= {w.kernels[0][0] for w in timed(meter)}
    assert choice is not None and choice.candidates[0].kernels[0][0] == "planes"


def test_what_a_machine_builds_once_does_not_count(clock: Clock):
    meter = SlowCompiler(library_first, preparation=100.0)
    choosing = budgeted(meter, seconds=0.3)
    (choice,) = choosing.choose(products(1024))
    assert choice is not None and {w.kernels[0][0] for w in timed(meter)} > {"cublaslt", "hopper"}
    assert choosing.log[-1].startswith("timed 1 of 1 ops without known times in 0.0 s")


def test_without_a_runtime_library_the_estimate_decides():
    class Refused(SlowCompiler):
        def prepare(self) -> None:
            raise ToolchainError("no nvcc found")

    meter = Refused(library_first)
    with pytest.warns(UserWarning, match=r"chosen by estimate: no nvcc found"):
        assert budgeted(meter).choose(products(1024)) == [None]
    assert not meter.raced


def test_a_budget_that_is_spent_prepares_nothing():
    meter = SlowCompiler(library_first, compiled=False)
    choosing = budgeted(meter, seconds=0.3)
    choosing.choose(products(1024))
    raced, meter.preparation = len(meter.raced), 100.0
    now = meter.clock.now
    assert choosing.choose(products(2048)) == [None]
    assert len(meter.raced) == raced and meter.clock.now == now


def test_no_budget_measures_nothing():
    meter = SlowCompiler(library_first)
    assert budgeted(meter, seconds=0.0).choose(products(1024)) == [None]
    assert not meter.raced and not meter.built


def test_a_card_that_goes_away_leaves_the_estimate():
    class Gone(SlowCompiler):
        def race(
            self, task: Task, point: Point, candidates: Sequence[Candidate], estimate: float
        ) -> dict[Candidate, Times]:
            raise RuntimeError("the device is lost")

    with pytest.warns(UserWarning, match=r"chosen by estimate: the device is lost"):
        assert budgeted(Gone(library_first)).choose(products(1024, 2048)) == [None, None]


def test_options_of_a_compilation(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ait_mlir.options.detect_cuda_arch", lambda: "sm_90a")
    monkeypatch.delenv("AIT_MEASURE_BUDGET", raising=False)
    assert CompileOptions("cuda", measure="auto").selection() == "measure=true budget=20.0"
    assert CompileOptions("cuda", measure="auto", budget=2.5).selection() == "measure=true budget=2.5"
    assert CompileOptions("cuda", measure="auto", budget=0).selection() == ""
    assert CompileOptions("cpu", measure="auto").selection() == ""
    assert CompileOptions("cuda", measure=True).selection() == "measure=true"
    assert CompileOptions("cuda", measure=False, budget=3).selection() == ""
    monkeypatch.setenv("AIT_MEASURE_BUDGET", "7")
    assert CompileOptions("cuda", measure="auto").selection() == "measure=true budget=7.0"
    monkeypatch.setattr("ait_mlir.options.detect_cuda_arch", lambda: None)
    assert CompileOptions("cuda", measure="auto").selection() == ""


@pytest.mark.parametrize("budget", [-1.0, float("nan"), float("inf"), "soon", True, [3]])
def test_wrong_budgets_are_refused(budget, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(AitError, match="expected a number of seconds"):
        CompileOptions("cuda", measure="auto", budget=budget).selection()
    monkeypatch.setenv("AIT_MEASURE_BUDGET", str(budget))
    with pytest.raises(InputError, match="AIT_MEASURE_BUDGET is"):
        CompileOptions("cuda", measure="auto").selection()


def test_wrong_words_are_refused(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(AitError, match='measure is \'sometimes\', expected True, False, "auto" or "known"'):
        CompileOptions("cuda", measure="sometimes").selection()  # type: ignore[arg-type]
    monkeypatch.setenv("AIT_MEASURE_BUDGET", "soon")
    with pytest.raises(InputError, match="AIT_MEASURE_BUDGET is 'soon'"):
        CompileOptions("cuda", measure="auto").selection()


def test_waiting_for_another_process_does_not_count(clock: Clock):
    class Shared(SlowCompiler):
        """Another process times for a second before each race."""

        def race(
            self, task: Task, point: Point, candidates: Sequence[Candidate], estimate: float
        ) -> dict[Candidate, Times]:
            self.waited += 1.0
            self.clock.now += 1.0
            return super().race(task, point, candidates, estimate)

    alone, shared, crowded = SlowCompiler(library_first), Shared(library_first), Shared(library_first)
    for meter, seconds in ((alone, 4.0), (shared, 4.0), (crowded, 0.5)):
        budgeted(meter, seconds=seconds).choose(products(1024))
    assert timed(shared) == timed(alone) > timed(crowded)  # which waits as long as its budget, and then stops
