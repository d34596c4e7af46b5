"""The documented import path of helpers for operators with their own templates: names only, from
`ait_mlir.frontend`.
"""

from __future__ import annotations

from ait_mlir.backend import backend_spec, registry, target

__all__ = ["backend_spec", "registry", "target"]
