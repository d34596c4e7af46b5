"""The exceptions of the graph API. Each message names the node and the tensor, and the expected value."""

from __future__ import annotations

from ait_mlir.errors import AitError, ArtifactError, InputError


class cudnnGraphNotSupportedError(AitError):
    """The graph is well formed, but an op, a mode, a data type or a layout in it has no kernel here."""


class GraphError(AitError, ValueError):
    """The graph is wrong: dims, strides or data types that disagree, a UID twice, a cycle, no output."""


class StepError(AitError, RuntimeError):
    """A step was called before its required steps, or a graph was changed after it was lowered."""


__all__ = ["ArtifactError", "GraphError", "InputError", "StepError", "cudnnGraphNotSupportedError"]
