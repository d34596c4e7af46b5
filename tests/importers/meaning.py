"""The meaning of an imported module, by the reference of its ops, against PyTorch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.export import Dim

from ait_mlir.importers.torch import from_torch
from ait_mlir.reference.graph import evaluate_graph

B, S = Dim("batch", min=1, max=6), Dim("seq", min=1, max=16)
SIZES = ((2, 5), (1, 1), (3, 7))
"""Batch and length."""


def resized(
    inputs: Sequence[torch.Tensor], shapes: Sequence[Mapping[int, Any] | None], batch: int, seq: int
) -> list[torch.Tensor]:
    """The inputs with other values of the dynamic dims."""
    out: list[torch.Tensor] = []
    for value, spec in zip(inputs, shapes, strict=True):
        size = list(value.shape)
        for axis, dim in (spec or {}).items():
            size[axis] = batch if dim is B else seq
        if value.is_floating_point():
            out.append(torch.randn(*size, dtype=torch.float64))
        else:
            out.append((torch.arange(int(np.prod(size))) + 1).reshape(size) % (int(value.max()) + 1))
    return out


def check_meaning(
    model: torch.nn.Module, inputs: Sequence[torch.Tensor], shapes: Sequence[Mapping[int, Any] | None]
) -> None:
    """Check that a float64 model and its import agree at several sizes; `shapes` has the dims `B` and `S`."""
    takes_all = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(model.forward).parameters.values())
    with torch.no_grad():
        imported = from_torch(model, tuple(inputs), dynamic_shapes=(tuple(shapes),) if takes_all else tuple(shapes))
    imported.module.verify()
    for batch, seq in SIZES if any(shapes) else ((0, 0),):
        given = resized(inputs, shapes, batch, seq)
        with torch.no_grad():
            want = [t for t in torch.utils._pytree.tree_leaves(model(*given)) if isinstance(t, torch.Tensor)]
        names = [item.name for item in imported.inputs.tensors]
        arrays = {n: v.numpy() for n, v in zip(names, given, strict=True)}
        dims = {d.name: batch if d.name == "batch" else seq for d in imported.graph.scope}
        got = evaluate_graph(imported.graph, arrays, imported.constants, dims)
        found = [got[value] for kind, value in imported.outputs if kind == "output"]
        assert len(found) == len(want)
        for a, b in zip(found, want, strict=True):
            assert a.shape == tuple(b.shape)
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-6, atol=1e-6)
