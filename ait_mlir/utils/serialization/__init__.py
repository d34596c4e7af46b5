"""Models as files, under their documented names."""

from __future__ import annotations

from ait_mlir.utils.serialization import serdes_code

__all__ = ["serdes_code"]
