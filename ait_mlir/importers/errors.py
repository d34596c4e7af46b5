"""The errors that every front end raises for models that cannot be imported."""

from __future__ import annotations

from ait_mlir.errors import CompileError


class ImportFailure(CompileError):
    """A model that cannot become an `ait` module. The message names the place in the model."""


class NotSupported(Exception):
    """An unsupported use of an operation; the message has advice."""
