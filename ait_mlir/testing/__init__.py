"""Helpers of tests and benchmarks of models, under their documented names."""

from __future__ import annotations

from ait_mlir.testing.benchmark_pt import benchmark_torch_function
from ait_mlir.testing.detect_target import detect_target

__all__ = ["benchmark_torch_function", "detect_target"]
