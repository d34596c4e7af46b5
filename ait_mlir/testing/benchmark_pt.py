"""Times a function of PyTorch, to compare a model with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def benchmark_torch_function(iters: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> float:
    """The mean time of a call in milliseconds, over `iters` calls in sequence after one untimed call."""
    import torch

    function(*args, **kwargs)
    if not torch.cuda.is_available():
        begin = time.perf_counter()
        for _ in range(iters):
            function(*args, **kwargs)
        return (time.perf_counter() - begin) * 1e3 / iters
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    for _ in range(iters):
        function(*args, **kwargs)
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / iters
