"""Imports Ray with type `Any`, because it is an optional package."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ait_mlir.errors import ToolchainError

try:
    ray: Any = import_module("ray")
    exceptions: Any = import_module("ray.exceptions")
    scheduling: Any = import_module("ray.util.scheduling_strategies")
except ImportError as error:
    raise ToolchainError(f"building on a cluster needs Ray ({error}); pip install 'ait_mlir[ray]'") from error
