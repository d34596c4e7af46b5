"""Imports Ray Serve with type `Any`, because Ray is an optional package."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ait_mlir.errors import ToolchainError

try:
    serve: Any = import_module("ray.serve")
    metrics: Any = import_module("ray.serve.metrics")
    responses: Any = import_module("starlette.responses")
except ImportError as error:
    raise ToolchainError(f"serving models needs Ray Serve ({error}); pip install 'ait_mlir[ray]'") from error
