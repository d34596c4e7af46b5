"""Recurrent layers and a classifier in plain PyTorch."""

from __future__ import annotations

import torch
from torch import nn


class Lstm(nn.Module):
    """Two recurrent layers and a classifier of the last step."""

    def __init__(self, inputs: int = 256, hidden: int = 256) -> None:
        super().__init__()
        self.layers, self.head = nn.LSTM(inputs, hidden, 2, batch_first=True), nn.Linear(hidden, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(x)[0][:, -1])
