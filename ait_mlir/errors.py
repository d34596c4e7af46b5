"""The exceptions of ait_mlir. Each message says what was found, what was expected and what to do.

Wrong models and wrong arguments are `ValueError`s and `RuntimeError`s, because scripts written for AITemplate catch
either of them.
"""

from __future__ import annotations

import re

_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""Control characters except tab and line feed, characters that change the direction of text, and halves of surrogate
pairs: a terminal obeys them, or cannot print them.
"""


def printable(text: str) -> str:
    """A text with its control characters as escapes, as in `\\x1b`."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


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
