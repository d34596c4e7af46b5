"""What quantising changed: the error of each layer, and how far the results are from those of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ait_mlir.importers.checkpoints.stored import Array


@dataclass(frozen=True)
class LayerReport:
    """A quantised layer. Errors are root mean squares, divided by that of the exact values."""

    name: str
    shape: tuple[int, int]
    bytes_before: int
    bytes_after: int
    weight_error: float
    result_error: float
    """Of the layer's results in the quantised model, with the errors of the layers before it."""


@dataclass(frozen=True)
class Report:
    """The layers, and the results of the quantised model on the examples beside those of the model.

    `kl` is the mean Kullback-Leibler divergence of the softmax along the last dim of the first result, in nats, and
    `top1` the share of its rows whose largest element is at the same place; None where the result has no last dim of
    at least 2.
    """

    recipe: str
    layers: tuple[LayerReport, ...]
    left_out: tuple[str, ...]
    bytes_before: int
    bytes_after: int
    error: float
    kl: float | None
    top1: float | None

    def as_json(self) -> dict[str, Any]:
        """The report as values of JSON."""
        return {**vars(self), "layers": [vars(layer) for layer in self.layers], "left_out": list(self.left_out)}

    def __str__(self) -> str:
        rows = [("layer", "shape", "bytes", "weight error", "result error")]
        for layer in self.layers:
            size = f"{layer.bytes_before} -> {layer.bytes_after}"
            shape = "x".join(map(str, layer.shape))
            rows.append((layer.name, shape, size, f"{layer.weight_error:.2e}", f"{layer.result_error:.2e}"))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        kl = "" if self.kl is None else f", KL {self.kl:.2e}, top-1 {self.top1:.1%}"
        lines.append(f"weights: {self.bytes_before} -> {self.bytes_after} bytes; results: error {self.error:.2e}{kl}")
        return "\n".join(lines)


def relative_error(found: Sequence[Array], exact: Sequence[Array]) -> float:
    """The root mean square of the differences, divided by that of the exact values."""
    pairs = [(a.astype(np.float64), b.astype(np.float64)) for a, b in zip(found, exact, strict=True)]
    error = sum(float(((a - b) ** 2).sum()) for a, b in pairs)
    return float(np.sqrt(error / max(sum(float((b**2).sum()) for _, b in pairs), 1e-300)))


def divergence(found: Sequence[Array], exact: Sequence[Array]) -> tuple[float, float] | tuple[None, None]:
    """The mean KL divergence of the softmax along the last dim, and the share of rows with the same largest element."""
    if any(b.ndim == 0 or b.shape[-1] < 2 or not b.size for b in exact):
        return None, None
    kl: list[Array] = []
    same: list[Array] = []
    for a, b in zip(found, exact, strict=True):
        q, p = (_log_softmax(v.astype(np.float64)) for v in (a, b))
        kl.append((np.exp(p) * (p - q)).sum(-1).reshape(-1))
        same.append((a.argmax(-1) == b.argmax(-1)).reshape(-1))
    return float(np.concatenate(kl).mean()), float(np.concatenate(same).mean())


def _log_softmax(x: Array) -> Array:
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))
