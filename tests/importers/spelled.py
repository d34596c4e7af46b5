"""A layer as users write it, and the ops that it must become."""

from __future__ import annotations

import re
from collections import Counter

import torch
from torch import nn


class Spelled(nn.Module):
    """Attention as a user spells it: heads of keys repeated, padding hidden by -inf, from the left."""

    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(256, 256), nn.Linear(256, 128)
        self.up, self.down = nn.Linear(256, 512), nn.Linear(512, 256)

    def forward(self, x, seen):
        b, s, _ = x.shape
        q = self.q(x).view(b, s, 4, 64).transpose(1, 2)
        kv = self.kv(x).view(b, s, 2, 64).transpose(1, 2)
        kv = kv[:, :, None].expand(-1, -1, 2, -1, -1).reshape(b, 4, s, 64)
        scores = (q @ kv.transpose(2, 3) / 8).masked_fill(~seen[:, None, None], -torch.inf)
        y = (scores.softmax(-1) @ kv).transpose(1, 2).reshape(b, s, 256)
        h = self.up(y)
        return y + self.down(h * torch.sigmoid(1.702 * h))


SPELLED = {"gemm": 3, "attention": 1, "fused_elementwise": 1}
"""Products, with q and kv as one, the attention, and its mask."""


def operations(text: str) -> dict[str, int]:
    """How many operations of each kind compute something in the text of a fused module."""
    views = {"reshape", "permute", "split", "slice", "param", "constant", "concat"}
    return dict(Counter(op for op in re.findall(r"^    %.*? = ait\.(\w+)", text, re.M) if op not in views))
