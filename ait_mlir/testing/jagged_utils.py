"""Jagged tensors of PyTorch and their padded forms, for tests."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import torch

from ait_mlir.utils.torch_utils import string_to_torch_dtype


def jagged_to_dense(
    jagged: torch.Tensor, offsets_list: Sequence[torch.Tensor], dense_shape: Sequence[int], padding_value: float = 0.0
) -> torch.Tensor:
    """The padded form, [batch, longest ..., inner ...], of rows [total, inner ...] with the offsets of each level.

    Raises `ValueError` for offsets that do not fit the rows or the shape.
    """
    offsets = _checked(offsets_list)
    if tuple(jagged.shape[1:]) != tuple(dense_shape[1 + len(offsets) :]):
        raise ValueError(f"rows of shape {list(jagged.shape[1:])} do not fit into {list(dense_shape)}")
    if offsets[-1][-1] != jagged.shape[0]:
        raise ValueError(f"the offsets end at {offsets[-1][-1]}, expected {jagged.shape[0]}, the number of rows")
    result = torch.full(tuple(dense_shape), padding_value, dtype=jagged.dtype, device=jagged.device)
    for row, place in _places(offsets):
        if any(i >= size for i, size in zip(place, dense_shape, strict=False)):
            raise ValueError(f"a sequence of the offsets is longer than the shape {list(dense_shape)} has room for")
        result[place] = jagged[row]
    return result


def dense_to_jagged(
    dense: torch.Tensor, offsets_list: Sequence[torch.Tensor], padding_value: float = 0.0
) -> torch.Tensor:
    """The rows [total, inner ...] of the sequences; `padding_value` for rows beyond the end of the dense tensor."""
    offsets = _checked(offsets_list)
    shape = (offsets[-1][-1], *dense.shape[1 + len(offsets) :])
    result = torch.full(shape, padding_value, dtype=dense.dtype, device=dense.device)
    for row, place in _places(offsets):
        if all(i < size for i, size in zip(place, dense.shape, strict=False)):
            result[row] = dense[place]
    return result


def add_jagged_dense_ref(
    jagged: torch.Tensor,
    offsets_list: Sequence[torch.Tensor],
    dense: torch.Tensor,
    jagged_max_shape: Sequence[int] | None = None,
) -> torch.Tensor:
    """The sum of a jagged and a dense tensor, as jagged rows; the padded form of the jagged tensor broadcasts with the
    dense.
    """
    padded = jagged_to_dense(jagged, offsets_list, dense.shape if jagged_max_shape is None else jagged_max_shape)
    return dense_to_jagged(dense + padded, offsets_list, -1.0)


def batched_dense_vec_jagged_2d_mul_ref(
    vectors: torch.Tensor, matrices: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    """The products [B, H, D] of vectors [B, H, N] and the matrices [rows, H, D] of each sequence."""
    batch, heads, longest = vectors.shape
    padded = jagged_to_dense(matrices, [offsets], [batch, longest, heads, matrices.shape[2]])
    return torch.einsum("bhn,bnhd->bhd", vectors, padded)


def generate_offsets(
    batch_size: int, max_seq_len: int, load_factor: float, offsets_dtype: str, spread_radius: float = 0.1
) -> torch.Tensor:
    """Offsets of random sequences, about `load_factor` of `max_seq_len` long, spread by `spread_radius` of it."""
    for name, value in (("load_factor", load_factor), ("spread_radius", spread_radius)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is {value}, expected 0 to 1")
    offsets = [0]
    for _ in range(batch_size):
        spread = int(max_seq_len * spread_radius) if load_factor < 1 else 0
        length = int(max_seq_len * load_factor) + random.randint(-spread, spread)
        offsets.append(offsets[-1] + max(0, min(length, max_seq_len)))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.tensor(offsets, dtype=string_to_torch_dtype(offsets_dtype), device=device)


def _checked(offsets_list: Sequence[torch.Tensor]) -> list[list[int]]:
    """The offsets as numbers; `ValueError` if they do not rise from 0, or levels do not fit together."""
    levels = [cast("list[int]", tensor.tolist()) for tensor in cast(Sequence[Any], offsets_list)]
    for i, offsets in enumerate(levels):
        if offsets[0] != 0 or any(a > b for a, b in pairwise(offsets)):
            raise ValueError(f"the offsets of level {i} are {offsets}, expected numbers that rise from 0")
        if i and len(offsets) != levels[i - 1][-1] + 1:
            raise ValueError(f"level {i} has {len(offsets)} offsets, expected {levels[i - 1][-1] + 1}")
    return levels


def _places(offsets: Sequence[Sequence[int]], rows: range | None = None) -> Iterator[tuple[int, tuple[int, ...]]]:
    """For each row, its index in the padded form: its sequence, and its place in the sequence at each level."""
    first, *rest = offsets
    sequences = range(len(first) - 1) if rows is None else rows
    for place, sequence in enumerate(sequences):
        inner = range(first[sequence], first[sequence + 1])
        found = _places(rest, inner) if rest else ((row, (i,)) for i, row in enumerate(inner))
        yield from ((row, (place, *index)) for row, index in found)
