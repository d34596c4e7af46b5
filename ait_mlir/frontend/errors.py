"""What the builder says when a model cannot be built."""

from __future__ import annotations

from ait_mlir.errors import CompileError


class BuildError(CompileError, ValueError):
    """A model that cannot be: shapes that disagree, a dim with two ranges, two inputs of one name.

    The message names the operator, its inputs and both sides of the disagreement.
    """
