"""What quantising changed: the error of each layer, and how far the results are from those of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ait_mlir.importers.checkpoints.stored import Array


@dataclass(frozen=True)
class LayerReport:
    """A quantised layer. Errors are root mean squares, divided by that of the exact values."""

    name: str
    shape: tuple[int, ...]
    bytes_before: int
    bytes_after: int
    weight_error: float
    result_error: float
    """Of the layer's results in the quantised model, with the errors of the layers before it."""
    kl: float | None = None
    """The divergence of the model's results with this layer quantised and no other; None without a bound."""


@dataclass(frozen=True)
class Times:
    """The seconds of a run on the CPU, of the model and of the quantised one: the median of several on one example."""

    before: float
    after: float


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
    harm: dict[str, float] = field(default_factory=dict[str, float])
    """The divergence with a layer quantised and no other, for the layers that a bound left out."""
    times: Times | None = None

    def as_json(self) -> dict[str, Any]:
        """The report as values of JSON."""
        times = None if self.times is None else vars(self.times)
        layers = [vars(layer) for layer in self.layers]
        return {**vars(self), "layers": layers, "left_out": list(self.left_out), "times": times}

    def __str__(self) -> str:
        bounded = any(layer.kl is not None for layer in self.layers)
        rows = [["layer", "shape", "bytes", "weight error", "result error", *(["KL alone"] if bounded else [])]]
        for layer in self.layers:
            size = f"{layer.bytes_before} -> {layer.bytes_after}"
            errors = [f"{layer.weight_error:.2e}", f"{layer.result_error:.2e}"]
            alone = [] if layer.kl is None else [f"{layer.kl:.2e}"]
            rows.append([layer.name, "x".join(map(str, layer.shape)), size, *errors, *alone])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        if self.left_out:
            harm = {name: f" (KL alone {self.harm[name]:.2e})" for name in self.harm}
            lines.append("not quantised: " + ", ".join(name + harm.get(name, "") for name in self.left_out))
        kl = "" if self.kl is None else f", KL {self.kl:.2e}, top-1 {self.top1:.1%}"
        lines.append(f"weights: {self.bytes_before} -> {self.bytes_after} bytes; results: error {self.error:.2e}{kl}")
        if self.times is not None:
            lines.append(f"time of a run: {self.times.before * 1e3:.2f} -> {self.times.after * 1e3:.2f} ms")
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
