"""State that a forked process must recreate: it has its parent's memory, but only the thread that forked."""

from __future__ import annotations

import os
import threading


class ForkLock:
    """A lock that is free in a forked process, even if another thread of the parent held it."""

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), threading.Lock()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
