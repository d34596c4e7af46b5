"""Results that are places of elements. Of equal elements PyTorch may take any, so the elements at
the places are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]

PLACES: dict[str, tuple[int, int, int | None]] = {
    "argmax": (0, 1, None),
    "argmin": (0, 1, None),
    "argsort": (0, 1, -1),
    "cummax": (1, 1, -1),
    "cummin": (1, 1, -1),
    "kthvalue": (1, 2, -1),
    "max.reduction_with_dim": (1, 1, -1),
    "median": (1, 1, -1),
    "min.reduction_with_dim": (1, 1, -1),
    "mode": (1, 1, -1),
    "nanmedian": (1, 1, -1),
    "sort": (1, 1, -1),
    "topk": (1, 2, -1),
}
"""By operation: the result that has places, the position of the argument `dim`, and its default; None for all dims."""

DISTINCT = {"argsort", "sort", "topk"}
"""Operations that give no place twice."""


def are_places(name: str, result: int, kwargs: Mapping[str, Any]) -> bool:
    """Whether a result of an operation has places that equal elements may exchange: a stable order has no such."""
    return name in PLACES and PLACES[name][0] == result and not kwargs.get("stable")


def misplaced(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], got: Array, want: torch.Tensor) -> str | None:
    """The error in a result of indices: shape, range, an index twice, or other elements than at PyTorch's; None if
    correct.
    """
    if got.shape != tuple(want.shape):
        return f"shape {got.shape} instead of {tuple(want.shape)}"
    _, position, default = PLACES[name]
    dim = kwargs.get("dim", args[position] if len(args) > position else default)
    x, found = args[0].detach(), torch.from_numpy(np.array(got, np.int64))
    if x.dim() == 0 or dim is None:
        x, found, want, dim = x.reshape(-1), found.reshape(-1), want.reshape(-1), 0
    elif found.dim() < x.dim():
        found, want = found.unsqueeze(dim), want.unsqueeze(dim)
    if bool(((found < 0) | (found >= x.shape[dim])).any()):
        return "places outside of the tensor"
    ordered = found.sort(dim)[0]
    if name in DISTINCT and bool((ordered.diff(dim=dim) == 0).any()):
        return "a place twice"
    ours, theirs = x.gather(dim, found), x.gather(dim, want)
    wrong = int(((ours != theirs) & ~((ours != ours) & (theirs != theirs))).sum())
    return f"other elements at {wrong} of {got.size} places" if wrong else None
