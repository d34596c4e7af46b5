"""The error of a checkpoint that cannot be read."""

from __future__ import annotations

from ait_mlir.importers.errors import ImportFailure


class CheckpointError(ImportFailure):
    """A checkpoint is damaged, or its tensors disagree with its config. The message names the file and the tensor."""
