"""The exceptions of the graph API. Each message names the node and the tensor, and the expected value."""

from __future__ import annotations

import threading

from ait_mlir.errors import AitError, ArtifactError, InputError

_last = threading.local()


class _Remembered(AitError):
    """An error whose message `get_last_error_string` gives."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        _last.message = str(self)


class cudnnGraphNotSupportedError(_Remembered):
    """The graph is well formed, but an op, a mode, a data type or a layout in it has no kernel here."""


class GraphError(_Remembered, ValueError):
    """The graph is wrong: dims, strides or data types that disagree, a UID twice, a cycle, no output."""


class GraphArgumentError(GraphError, TypeError):
    """A call has an argument of a wrong kind, or not those that it needs."""


class StepError(_Remembered, RuntimeError):
    """A step was called before its required steps, or a graph was changed after it was lowered."""


def get_last_error_string() -> str:
    """The message of the last error about a graph in this thread, "" without one: of a graph that is wrong or not
    supported, or a step out of order."""
    return getattr(_last, "message", "")


__all__ = [
    "ArtifactError", "GraphArgumentError", "GraphError", "InputError", "StepError", "cudnnGraphNotSupportedError",
]  # fmt: skip
