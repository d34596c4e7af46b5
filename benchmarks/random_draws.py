"""What draws networks at random: the generator, activations, and what is drawn."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh_gelu": lambda: nn.GELU(approximate="tanh"),
    "silu": nn.SiLU,
    "hardswish": nn.Hardswish,
    "elu": nn.ELU,
}
Draw = random.Random


@dataclass(frozen=True)
class Drawn:
    """A network: its description, its constructor, its inputs at a batch, the batch, and whether it suits a CPU."""

    text: str
    make: Callable[[], nn.Module]
    inputs: Callable[[int, torch.dtype], list[torch.Tensor]]
    batch: int
    dynamic: tuple[int, ...] = (0,)


def ids(batch: int, count: int, words: int) -> torch.Tensor:
    """Whole numbers below `words`: (batch, count)."""
    return torch.randint(0, words, (batch, count))
