"""How a command ends: after signals, and where its output cannot be written."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator, Iterable
from typing import Any, TextIO, cast

from ait_mlir.errors import printable
from ait_mlir.host.processes import Ended, ended_by_signals

BROKEN_PIPE = 141
"""The exit status of a program whose reader is gone, as shells give it: 128 + SIGPIPE."""


class _OutputError(BaseException):
    """Standard output cannot be written."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output: {error.strerror or error}")
        self.is_broken_pipe = isinstance(error, BrokenPipeError)


def ended_cleanly(name: str, command: Callable[[], int]) -> int:
    """Run a command; returns its exit code.

    After SIGINT, SIGTERM and SIGHUP nothing that it started goes on and no scratch is left; the code is 128 + the
    signal. If standard output cannot be written, a message says so, and the code is 1.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  (closed by the caller: `>&-`)
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    output, errors = _Output(sys.stdout), _Printable(sys.stderr)
    try:
        with ended_by_signals(), contextlib.redirect_stdout(cast(TextIO, output)):
            try:
                with contextlib.redirect_stderr(cast(TextIO, errors)):
                    return command()
            finally:
                output.flush()
    except _OutputError as error:
        _drop_output()
        if error.is_broken_pipe:
            return BROKEN_PIPE
        _tell(f"{name}: error: {error}")
        return 1
    except Ended as error:
        _tell(f"{name}: {error}")
        return error.status


class _Printable:
    """A stream that writes the control characters of names, paths and texts as escapes: a terminal obeys none."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(printable(text))

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Output(_Printable):
    """Standard output whose errors reach `ended_cleanly`, past commands and argparse, which ignores them."""

    def write(self, text: str) -> int:
        with _told():
            return super().write(text)

    def flush(self) -> None:
        with _told():
            self._stream.flush()


@contextlib.contextmanager
def _told() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise _OutputError(error) from error


def _drop_output() -> None:
    """Let go of the text that cannot be written: the interpreter would try again at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(text: str) -> None:
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)
