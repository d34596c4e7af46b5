"""Measures times and errors for all benchmarks.

Times are medians over interleaved rounds, so that a machine that slows down slows all candidates. Errors are taken
against float64 and judged as a ratio to the error of the framework's own eager run (a fixed tolerance hides bugs).
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from ait_mlir.host.card import alone_on_card

MAX_RATIO, RMSE_RATIO = 2.0, 1.5
"""The largest max error and RMSE that pass, as multiples of eager's."""

Run = Callable[[], object]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the choice of our kernels: the default, all by time, or by estimate."""
    parser.add_argument(
        "--measure", action="store_true", default="auto", help="all by time (default: as `ait compile` does)"
    )
    parser.add_argument("--no-measure", dest="measure", action="store_false", help="by estimate and known times")
    parser.add_argument("--tuning", type=float, metavar="SECONDS", help="for choosing by time (default: 20)")


def alone(device: str) -> contextlib.AbstractContextManager[object]:
    """A block in which no other process of the compiler or of the benchmarks times on the card."""
    return alone_on_card() if device == "cuda" else contextlib.nullcontext()


@dataclass(frozen=True)
class Accuracy:
    """Our error over eager's, both against float64."""

    max_error: float
    max_ratio: float
    rmse_ratio: float

    @property
    def passed(self) -> bool:
        return self.max_ratio <= MAX_RATIO and self.rmse_ratio <= RMSE_RATIO


def accuracy(ours: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> Accuracy:
    """Compare two results of one dtype with the float64 result.

    An error of eager's below one ulp of the results' size counts as one ulp. NaN or Inf where `exact` has none, or the
    other way round, makes the ratio infinite. Elements for which eager's intermediates leave the range of the dtype, so
    that eager has NaN or Inf where `exact` has a number, have no error to compare with and are left out.
    """
    ulp = torch.finfo(eager.dtype).eps
    known = eager.isfinite() | ~exact.isfinite()
    ours, eager, exact = ours[known], eager[known], exact[known]
    if exact.numel() == 0 or not torch.equal(ours.isfinite(), exact.isfinite()):
        return Accuracy(float("inf"), float("inf"), float("inf"))
    exact = exact.double()
    mine, theirs = (ours.double() - exact).abs(), (eager.double() - exact).abs()
    largest = max(theirs.max().item(), ulp * exact.abs().max().item())
    typical = max(_rms(theirs), ulp * _rms(exact))
    if largest == 0:  # all is 0, so that any error is one
        ratio = 0.0 if mine.max().item() == 0 else float("inf")
        return Accuracy(mine.max().item(), ratio, ratio)
    return Accuracy(mine.max().item(), mine.max().item() / largest, _rms(mine) / typical)


def _rms(values: torch.Tensor) -> float:
    return values.square().mean().sqrt().item()


def median_seconds(
    runs: Mapping[str, Run],
    device: str,
    budget: float = 2.0,
    warmup: int = 2,
    shortest: bool = False,
    own_clock: bool = False,
    agreed: Callable[[Sequence[float]], Sequence[float]] | None = None,
) -> dict[str, float]:
    """The median time of one call of each candidate, in seconds, taking turns.

    On a GPU each turn is a batch of calls between two events. `budget` is the time to spend on each candidate, in
    seconds. `shortest`: the shortest time instead, for a machine with other work. `own_clock`: on a CPU, the seconds
    that the calling thread has run, which leaves out those in which other work ran; for runs with one thread.
    `agreed`: for several processes that must make the same calls: it waits for all of them and returns, of each time,
    that of the slowest.
    """
    for _ in range(warmup):
        for run in runs.values():
            run()
    turn = _gpu_turn if device == "cuda" else _own_turn if own_clock else _cpu_turn
    single = {name: turn(run, 1) for name, run in runs.items()}
    if agreed is not None:
        single = dict(zip(single, agreed(list(single.values())), strict=True))
    times: dict[str, list[float]] = {name: [] for name in runs}
    batch = {name: max(1, min(50, int(0.005 / max(s, 1e-7)))) if device == "cuda" else 1 for name, s in single.items()}
    slowest = max(single[name] * batch[name] for name in runs)
    for _ in range(max(5, min(200, int(budget / max(slowest, 1e-7))))):
        for name, run in runs.items():
            if agreed is not None:
                agreed([0.0])
            times[name].append(turn(run, batch[name]))
    if agreed is not None:
        times = {name: list(agreed(values)) for name, values in times.items()}
    return {name: min(values) if shortest else statistics.median(values) for name, values in times.items()}


def _cpu_turn(run: Run, calls: int) -> float:
    return _clocked(run, calls, time.perf_counter)


def _own_turn(run: Run, calls: int) -> float:
    return _clocked(run, calls, time.thread_time)


def _clocked(run: Run, calls: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(calls):
        run()
    return (clock() - start) / calls


def _gpu_turn(run: Run, calls: int) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(calls):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / calls


@dataclass(frozen=True)
class Ceilings:
    """The measured limits of the machine: floating-point operations and bytes a second."""

    flops: float
    bytes: float

    def floor(self, flops: float, bytes: float) -> float:
        """The shortest time in seconds for this many operations and bytes."""
        return max(flops / self.flops, bytes / self.bytes)


def ceilings(device: str, dtype: torch.dtype) -> Ceilings:
    """Measure a large matrix product and a large copy (bytes read plus bytes written)."""
    n = 8192 if device == "cuda" else 1024
    a, b = (torch.randn(n, n, dtype=torch.float32).to(device, dtype) for _ in range(2))
    source = torch.randn((1 << 28) if device == "cuda" else (1 << 24), device=device)
    target = torch.empty_like(source)
    runs: dict[str, Run] = {"product": lambda: torch.mm(a, b), "copy": lambda: target.copy_(source)}
    times = median_seconds(runs, device, budget=0.5)
    return Ceilings(2.0 * n**3 / times["product"], 2.0 * source.nbytes / times["copy"])


def table(rows: list[list[str]]) -> str:
    """Rows of cells as text in aligned columns; the first row has the heads."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
