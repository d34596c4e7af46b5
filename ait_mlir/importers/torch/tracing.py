"""Keeps what only checks a model's arguments out of its trace.

PyTorch refuses to trace a decision by the values of tensors. These decisions change no result of a program that eager
PyTorch runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

from ait_mlir.importers.torch.library import torch


def _is_causal(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
    """What the caller says of a mask. Without a word, PyTorch compares its numbers to choose a faster kernel; the mask
    is applied in any case.
    """
    return is_causal is True


@contextlib.contextmanager
def without_checks() -> Generator[None]:
    """During a trace, distributions do not check their parameters, and layers do not compare their masks."""
    layers, distribution = torch.nn.modules.transformer, torch.distributions.Distribution
    kept = layers._detect_is_causal_mask, distribution._validate_args
    layers._detect_is_causal_mask, distribution._validate_args = _is_causal, False
    try:
        yield
    finally:
        layers._detect_is_causal_mask, distribution._validate_args = kept
