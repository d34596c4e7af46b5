"""Dims counted from the end."""

from __future__ import annotations


def wrap_dim(idx: int, rank: int) -> int:
    """The dim `idx` of a tensor of this rank, counted from the end if it is negative; `ValueError` if there is none."""
    if not -rank <= idx < rank:
        raise ValueError(f"dim {idx} of a tensor of rank {rank}, expected {-rank} to {rank - 1}")
    return idx % rank
