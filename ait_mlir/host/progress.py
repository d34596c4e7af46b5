"""Shows on a terminal which step of a long command runs. Without a terminal, and in the first two seconds, nothing is
printed."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Generator
from contextvars import ContextVar
from typing import TextIO

PATIENCE = 2.0
"""Seconds that a command may take before its steps are shown."""
_PERIOD = 0.2


class _Line:
    """The last line of a terminal, which a thread writes again and again until it is closed."""

    def __init__(self, stream: TextIO, patience: float) -> None:
        self._stream = stream
        self._begin = time.monotonic() + patience
        self._text, self._since = "", time.monotonic()
        self._is_shown = False
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self, text: str) -> None:
        with self._lock:
            self._text, self._since = text, time.monotonic()
            if not text:
                self._erase()

    def hide(self) -> None:
        with self._lock:
            self._erase()

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self._erase()

    def _run(self) -> None:
        while not self._end.wait(_PERIOD):
            now = time.monotonic()
            with self._lock:
                if self._text and now >= self._begin:
                    width = shutil.get_terminal_size().columns
                    seconds = f", {now - self._since:.0f} s" if now - self._since >= 1 else ""
                    self._write(f"\r\x1b[K{self._text}{seconds}"[: max(10, width + 3)])
                    self._is_shown = True

    def _erase(self) -> None:
        if self._is_shown:
            self._write("\r\x1b[K")
            self._is_shown = False

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal is gone
            self._stream.write(text)
            self._stream.flush()


_line: ContextVar[_Line | None] = ContextVar("_line", default=None)


def step(text: str) -> None:
    """Say which step begins, as in `pass select`; the empty text hides the line until the next step."""
    line = _line.get()
    if line is not None:
        line.step(text)


def hide() -> None:
    """Erase the line before other text is written; it comes back if the step goes on."""
    line = _line.get()
    if line is not None:
        line.hide()


@contextlib.contextmanager
def shown(stream: TextIO | None = None, patience: float = PATIENCE) -> Generator[None]:
    """Show the steps of the block on a terminal, by default stderr's; the line is erased at the end."""
    stream = sys.__stderr__ if stream is None else stream
    if stream is None or not stream.isatty():
        yield
        return
    line = _Line(stream, patience)
    token = _line.set(line)
    try:
        yield
    finally:
        _line.reset(token)
        line.close()
