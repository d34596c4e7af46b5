"""Serves compiled models over HTTP with Ray Serve: see docs/serving.md."""

from __future__ import annotations

from ait_mlir.serve.deploy import deployment

__all__ = ["deployment"]
