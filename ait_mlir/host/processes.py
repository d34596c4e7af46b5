"""Programs that this process starts, each in its own process group; they end when a signal ends this process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE = 5.0
"""Seconds that a program has to end after SIGTERM. Ninja needs them to end its compilers and to remove their files."""


class Ended(BaseException):
    """A signal has told this process to end. Not an `Exception`, so that only clean-up code catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.status = 128 + number
        """The exit status that shells give to a process that a signal ended."""


class _State:
    """The programs that run now, and the signal that ended them."""

    def __init__(self) -> None:
        self.running: set[subprocess.Popen[str]] = set()
        self.ended_by = 0
        self.is_starting = False


_state = _State()


@contextlib.contextmanager
def started(command: Sequence[str], **options: Any) -> Generator[subprocess.Popen[str]]:
    """Start a program without standard input, and wait for it at the end of the block.

    An error in the block, or a signal inside of `ended_by_signals`, ends the program and the processes that it started.
    """
    is_main = threading.current_thread() is threading.main_thread()
    _state.is_starting = _state.is_starting or is_main  # the program is known before the handler raises
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, process_group=0, text=True, errors="replace", **options
        )
        _state.running.add(process)
    finally:
        if is_main:
            _state.is_starting = False
    try:
        with process:
            try:
                if _state.ended_by:
                    raise Ended(_state.ended_by)
                yield process
            except BaseException:
                _end(process)
                raise
    finally:
        _state.running.discard(process)


def run(
    command: Sequence[str], timeout: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with its output as text. After a timeout raises `subprocess.TimeoutExpired`, with the
    program ended."""
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        out, errors = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def _end(process: subprocess.Popen[str]) -> None:
    _signal(process, signal.SIGTERM)
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[str], number: int) -> None:
    """Send a signal to a program's process group; only before it is waited for, while its number cannot be reused."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


@contextlib.contextmanager
def ended_by_signals() -> Generator[None]:
    """A context in which SIGINT, SIGTERM and SIGHUP end all started programs, and raise `Ended`.

    Signals that this process ignores stay ignored, for `nohup`. Has no effect outside of the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, _handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _state.ended_by = 0


def _handle(number: int, frame: FrameType | None) -> None:
    _state.ended_by = number
    for process in list(_state.running):
        _signal(process, signal.SIGTERM)
    if not _state.is_starting:
        raise Ended(number)
