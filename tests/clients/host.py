"""What stands for `torch.cuda` in scripts that run on the CPU: one device, without streams, where all work is done when a
call returns.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any


class Stream:
    """The one stream; its number is 0."""

    cuda_stream = 0

    def __init__(self, *_: object, **__: object) -> None:
        self.device = "cpu"

    def synchronize(self) -> None: ...

    def wait_stream(self, other: object) -> None: ...

    def wait_event(self, event: object) -> None: ...


class Event:
    """A moment."""

    def __init__(self, *_: object, **__: object) -> None:
        self.moment = 0.0

    def record(self, *_: object, **__: object) -> None:
        self.moment = time.perf_counter()

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds until another event."""
        return 1e3 * (end.moment - self.moment)


class HostCuda:
    """The functions of `torch.cuda` that scripts call, with a CPU behind them that answers as an H200 would."""

    Stream, Event = Stream, Event
    OutOfMemoryError = MemoryError
    nvtx = SimpleNamespace(range_push=print, range_pop=print)

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 0  # none whose random state is kept

    def current_device(self) -> int:
        return 0

    def synchronize(self, *_: object) -> None: ...

    def empty_cache(self) -> None: ...

    def manual_seed(self, _: int) -> None: ...

    def current_stream(self, *_: object) -> Stream:
        return Stream()

    default_stream = current_stream

    def stream(self, _: object) -> Any:
        return nullcontext()

    def get_device_capability(self, *_: object) -> tuple[int, int]:
        return 9, 0

    def get_device_name(self, *_: object) -> str:
        return "CPU"

    def get_device_properties(self, *_: object) -> SimpleNamespace:
        return SimpleNamespace(name="CPU", major=9, minor=0, multi_processor_count=132, total_memory=141 << 30)

    def mem_get_info(self, *_: object) -> tuple[int, int]:
        return 64 << 30, 141 << 30
