"""Ends commands cleanly: after signals, after internal errors, and if their output cannot be written."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator, Iterable
from typing import Any, TextIO, cast

from ait_mlir.errors import printable
from ait_mlir.host import progress
from ait_mlir.host.processes import Ended, ended_by_signals

BROKEN_PIPE = 141
"""The exit status, as in shells, of a program whose output nobody reads any more: 128 + SIGPIPE."""


class _OutputError(BaseException):
    """Standard output cannot be written."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output: {error.strerror or error}")
        self.is_broken_pipe = isinstance(error, BrokenPipeError)


def ended_cleanly(name: str, command: Callable[[], int]) -> int:
    """Run a command; returns its exit code.

    SIGINT, SIGTERM and SIGHUP also end the programs that it started, and scratch folders are removed; the code is then
    128 + the signal. If standard output cannot be written, a message says so, and the code is 1.
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


def internal_error(tool: str, error: BaseException) -> str:
    """The message for a bug of the compiler: the error, its notes with the place in the program, and advice."""
    notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
    return f"{tool}: internal error: {type(error).__name__}: {error}; AIT_TRACEBACK=1 shows where{notes}"


class _Printable:
    """A stream that writes control characters as escapes, so that a terminal does not interpret them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        progress.hide()
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
    """Discard text that cannot be written; otherwise the interpreter would try again when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(text: str) -> None:
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)
