"""Times of PyTorch functions, one for each call."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

__all__ = ["profile_callable"]

WARMUP = 5
"""The calls before the first one that is timed."""


def profile_callable(
    func: Callable[[], object], cache_flush_slab: torch.Tensor, n_iter: int
) -> tuple[list[float], list[float]]:
    """Call a function `n_iter` times, each time after filling a slab of memory, which empties the cache of its device.

    Returns two lists of `n_iter` times in microseconds: the time of the device, and the time from the start to the end
    of the call. Events on the current stream measure both on a card, the clock on the host; so the lists are equal.
    """
    if n_iter <= 0:
        return [], []
    for _ in range(WARMUP):
        func()
    measure = _by_events if cache_flush_slab.is_cuda else _by_clock
    times = [measure(func, cache_flush_slab) for _ in range(n_iter)]
    return times, list(times)


def _by_clock(func: Callable[[], object], slab: torch.Tensor) -> float:
    slab.fill_(3.7)
    start = time.perf_counter()
    func()
    return (time.perf_counter() - start) * 1e6


def _by_events(func: Callable[[], object], slab: torch.Tensor) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    slab.fill_(3.7)
    start.record()
    func()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3
