"""The exceptions of ait_mlir. Each message says what was found, what was expected and what to do.

Wrong models and wrong arguments are `ValueError`s and `RuntimeError`s, because scripts written for AITemplate catch
either of them.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""Control characters except tab and line feed, characters that change the direction of text, and halves of surrogate
pairs: a terminal obeys them, or cannot print them.
"""


def printable(text: str) -> str:
    """A text with its control characters as escapes, as in `\\x1b`."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


@dataclass(frozen=True)
class Fix:
    """A change of a text that mends an error, as the hint of its message says; editors offer it.

    `place` says where `text` goes: `word`: instead of the word or name at the error. `result`: instead of the type of
    result `index` of the op. `dim`: instead of the name of a dim in the op; `text` is `NAME>OTHER`. `dims`: into the
    dims that the graph around the op declares. `swap`: the first two operands of the op are swapped, without a text.
    `after`: after the op. `end`: after the last line.
    """

    title: str
    text: str
    place: Literal["word", "result", "dim", "dims", "swap", "after", "end"] = "word"
    index: int = 0


E = TypeVar("E", bound=BaseException)


def with_fixes(error: E, *fixes: Fix) -> E:
    """The error, which remembers the changes that mend it."""
    error.__dict__["fixes"] = fixes
    return error


@contextmanager
def fixing(*fixes: Fix) -> Generator[None]:
    """A block whose errors remember the changes that mend them."""
    try:
        yield
    except Exception as error:
        with_fixes(error, *fixes)
        raise


def fixes_of(error: BaseException) -> tuple[Fix, ...]:
    """The changes that mend an error."""
    return error.__dict__.get("fixes", ())


class SlowLaunchWarning(UserWarning):
    """A launch of a compiled model is estimated far above the time that its bytes or its operations take."""


class AitError(Exception):
    """Base of every error that ait_mlir raises on purpose. Its text has names and paths without control characters."""

    def __str__(self) -> str:
        return printable(super().__str__())


class CompileError(AitError, RuntimeError):
    """A model cannot be compiled: the IR is wrong, or a C++ compiler refused the generated code."""


class ToolchainError(CompileError):
    """A compiler or another tool of the build is missing."""


class ArtifactError(AitError, RuntimeError):
    """An artifact or a model library is damaged, of another version or for another target. It was not loaded."""


class InputError(AitError, ValueError, RuntimeError):
    """A tensor, dim or name given to a model is wrong. Nothing was launched and the model can be used again."""


class ArgumentTypeError(InputError, TypeError):
    """An argument of a call of a model has another type than expected."""


class RunError(AitError, RuntimeError):
    """A model or its device failed, or the device does not exist."""


class OutOfMemoryError(AitError, MemoryError):
    """There is not enough memory for the constants or the arena of a model. The model can be used again."""


class UnknownTimeError(AitError, RuntimeError):
    """No time of a kernel is known, and measuring is forbidden."""
