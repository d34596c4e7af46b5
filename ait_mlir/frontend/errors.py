"""The error of the builder."""

from __future__ import annotations

from ait_mlir.errors import CompileError


class BuildError(CompileError, ValueError):
    """The model is invalid: shapes disagree, a dim has two ranges, or two inputs have the same name.

    The message names the operator, its inputs and both sides of the disagreement. It is a `ValueError` and a
    `RuntimeError`.
    """


class ArgumentError(BuildError, TypeError):
    """An argument of an operator has another type than declared."""
