"""Reads quantised checkpoints as they are published, and puts their weights into imported models."""

from __future__ import annotations

from ait_mlir.importers.checkpoints.checkpoint import Checkpoint, read_checkpoint
from ait_mlir.importers.checkpoints.errors import CheckpointError
from ait_mlir.importers.checkpoints.params import Replaced, use_checkpoint
from ait_mlir.importers.checkpoints.stored import Scaled, StoredWeight

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Replaced",
    "Scaled",
    "StoredWeight",
    "read_checkpoint",
    "use_checkpoint",
]
