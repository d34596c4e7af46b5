"""Programs that this process starts, each in a process group of its own: they end when this process is told to end."""

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
    """A signal tells this process to end. Not an `Exception`: only cleaning up happens on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.status = 128 + number
        """The exit status that shells give to a process that a signal ended."""


class _State:
    """What runs now."""

    def __init__(self) -> None:
        self.running: set[subprocess.Popen[str]] = set()
        self.ended_by = 0
        self.is_starting = False


_state = _State()


@contextlib.contextmanager
def started(command: Sequence[str], **options: Any) -> Generator[subprocess.Popen[str]]:
    """Start a program without standard input, and wait for it at the end of the block.

    An error in the block, or a signal inside of `ended_by_signals`, ends the program and what it started.
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
    """Run a program to its end, with its output as text. Raises `subprocess.TimeoutExpired`; nothing is left then."""
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
    """Send a signal to the group of a program that has not been waited for, so that its number is still its own."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


@contextlib.contextmanager
def ended_by_signals() -> Generator[None]:
    """Inside of the block SIGINT, SIGTERM and SIGHUP end the programs that were started, and raise `Ended`.

    A signal that this process ignores stays ignored, as `nohup` wants it. Without effect outside of the main thread.
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
