"""Times candidates on several cards at the same time: one thread for each card, and one lock around the compiler.

The compiler is not thread-safe. So a thread holds the lock, the turn, while it chooses and writes code, and releases it
while a card works. With one card there are no threads.
"""

from __future__ import annotations

import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")

POLL = 0.01
"""Seconds between two looks, by the thread that hands out work, for newly compiled candidates."""


class Lanes:
    """The cards to time on. `card` hands out a free card, `apart` gives up the turn while the card works."""

    def __init__(self, cards: Sequence[int] = (0,)) -> None:
        self.cards = tuple(dict.fromkeys(cards)) or (0,)
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for card in self.cards:
            self._free.put(card)
        self._turn = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._running: dict[Future[None], Hashable] = {}

    @contextlib.contextmanager
    def card(self) -> Generator[int]:
        """A card that no other thread uses until the end of the block. There are as many cards as threads."""
        card = self._free.get()
        try:
            yield card
        finally:
            self._free.put(card)

    @contextlib.contextmanager
    def apart(self) -> Generator[None]:
        """A context that only waits or runs code of the runtime library: another thread may have the turn."""
        if self._pool is None:
            yield
            return
        self._turn.release()
        try:
            yield
        finally:
            self._turn.acquire()

    @contextlib.contextmanager
    def open(self) -> Generator[None]:
        """A context in which `start` hands out work. It has the turn, and its end waits for all started work. Raises
        the first error of that work.
        """
        if len(self.cards) == 1:
            yield
            return
        with ThreadPoolExecutor(len(self.cards), "ait-card") as pool:
            self._pool = pool
            self._turn.acquire()
            try:
                yield
            finally:
                try:
                    while self._running:
                        self.wait(None)
                finally:
                    self._turn.release()
                    pool.shutdown(wait=True, cancel_futures=True)
                    self._running.clear()
                    self._pool = None

    def is_busy(self, key: Hashable) -> bool:
        """Whether work with this key is under way, or no card is free."""
        return len(self._running) == len(self.cards) or key in self._running.values()

    @property
    def is_idle(self) -> bool:
        """Whether no work is under way."""
        return not self._running

    def start(self, key: Hashable, work: Callable[[], None]) -> None:
        """Run `work`: at once with one card, otherwise in a thread."""
        if self._pool is None:
            work()
        else:
            self._running[self._pool.submit(contextvars.copy_context().run, self._in_turn, work)] = key

    def wait(self, seconds: float | None = POLL) -> None:
        """Wait until some work has ended, at most `seconds`. Raises its error."""
        with self.apart():
            done = wait(self._running, seconds, FIRST_COMPLETED).done
        for future in done:
            self._running.pop(future)
        for future in done:
            future.result()

    def each(self, values: Iterable[T], work: Callable[[T], None]) -> None:
        """Run `work` for each value, on all cards."""
        with self.open():
            for i, value in enumerate(values):
                while self.is_busy(i):
                    self.wait(None)
                self.start(i, lambda value=value: work(value))

    def _in_turn(self, work: Callable[[], None]) -> None:
        with self._turn:
            work()


__all__ = ["Lanes"]
