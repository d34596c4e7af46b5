"""The error of the builder."""

from __future__ import annotations

from ait_mlir.errors import CompileError


class BuildError(CompileError, ValueError, AssertionError):
    """The model is invalid: shapes disagree, a dim has two ranges, or two inputs have the same name.

    The message names the operator, its inputs and both sides of the disagreement. It is a `ValueError`, a
    `RuntimeError` and an `AssertionError`, as AITemplate raises any of these for such mistakes.
    """


class ArgumentError(BuildError, TypeError):
    """An argument of an operator has another type than declared."""
