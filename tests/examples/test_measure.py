"""What the benchmarks measure with: errors as ratios, medians, tables."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from benchmarks import measure


def test_twice_the_error_is_a_ratio_of_two():
    exact = torch.linspace(-1, 1, 101, dtype=torch.float64)
    eager = (exact + 1e-3).float()
    result = measure.accuracy((exact + 2e-3).float(), eager, exact)
    assert abs(result.max_ratio - 2) < 1e-3
    assert abs(result.rmse_ratio - 2) < 1e-3
    assert not result.passed
    assert measure.accuracy(eager, eager, exact).passed


def test_an_exact_peer_counts_as_one_ulp():
    exact = torch.ones(8, dtype=torch.float64)
    one_ulp = torch.full((8,), 1 + torch.finfo(torch.float16).eps, dtype=torch.float16)
    result = measure.accuracy(one_ulp, exact.half(), exact)
    assert result.max_ratio == result.rmse_ratio == 1


def test_nan_where_there_is_none_never_passes():
    exact = torch.ones(8, dtype=torch.float64)
    broken = exact.float()
    broken[3] = float("nan")
    assert not measure.accuracy(broken, exact.float(), exact).passed
    assert not measure.accuracy(exact.float(), exact.float(), torch.full_like(exact, float("nan"))).passed


def test_elements_that_overflow_in_eager_are_left_out():
    exact = torch.randn(8, dtype=torch.float64)
    eager, ours = exact.half(), exact.half()
    eager[3], ours[3] = float("nan"), float("inf")
    assert measure.accuracy(ours, eager, exact).passed
    ours[4] = float("nan")
    assert not measure.accuracy(ours, eager, exact).passed
    assert not measure.accuracy(exact.half(), torch.full_like(eager, float("inf")), exact).passed


def test_one_wrong_element_of_many_does_not_pass():
    exact = torch.randn(10000, dtype=torch.float64)
    eager, ours = exact.half(), exact.half()
    ours[17] += 0.1
    assert not measure.accuracy(ours, eager, exact).passed


@pytest.mark.parametrize("own", [False, True])
def test_medians_take_turns(own: bool, monkeypatch: pytest.MonkeyPatch):
    calls: list[str] = []
    now = 0.0

    def run(name: str, seconds: float) -> None:
        nonlocal now
        calls.append(name)
        now += 0.5 if len(calls) == 7 else seconds  # the first measured turn is disturbed

    monkeypatch.setattr(measure.time, "thread_time" if own else "perf_counter", lambda: now)
    runs = {"slow": lambda: run("slow", 0.25), "fast": lambda: run("fast", 0.125)}
    assert measure.median_seconds(runs, "cpu", budget=2.0, own_clock=own) == {"slow": 0.25, "fast": 0.125}
    assert calls == ["slow", "fast"] * (len(calls) // 2)


def test_floor_is_the_larger_term():
    ceilings = measure.Ceilings(flops=100.0, bytes=10.0)
    assert ceilings.floor(flops=200.0, bytes=10.0) == 2.0
    assert ceilings.floor(flops=200.0, bytes=50.0) == 5.0


def test_columns_are_aligned():
    assert measure.table([["a", "long"], ["1.25", "2"]]).splitlines() == ["   a  long", "----  ----", "1.25     2"]


def test_processes_make_the_same_calls_and_time_the_slowest(monkeypatch: pytest.MonkeyPatch):
    """Another process is ten times as slow: its times count, and they say how often both run."""
    calls: list[str] = []
    now = 0.0

    def run() -> None:
        nonlocal now
        calls.append("run")
        now += 0.01

    def agreed(seconds: Sequence[float]) -> list[float]:
        calls.append("agreed")
        return [10 * s for s in seconds]

    monkeypatch.setattr(measure.time, "perf_counter", lambda: now)
    found = measure.median_seconds({"run": run}, "cpu", budget=1.0, warmup=0, agreed=agreed)
    assert abs(found["run"] - 0.1) < 1e-9
    assert calls == ["run", "agreed", *["agreed", "run"] * 10, "agreed"]
