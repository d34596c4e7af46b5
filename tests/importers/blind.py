"""Models with rows of attention that see no column, for the CPU and for a card."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from benchmarks.measure import Accuracy, accuracy
from tests.importers.function import Function

sdpa = torch.nn.functional.scaled_dot_product_attention
INF = -math.inf


def written(q: Any, k: Any, change: Callable[[Any], Any]) -> Any:
    """Attention as two products with a softmax between them."""
    return change(q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ (k + 1)


def bottom_right(q: Any, k: Any) -> Any:
    """The mask of columns that a row sees if the last row stands at the last column."""
    rows, columns = torch.arange(q.shape[-2], device=q.device), torch.arange(k.shape[-2], device=q.device)
    return columns[None, :] <= rows[:, None] + (k.shape[-2] - q.shape[-2])


def least(x: Any) -> float:
    return torch.finfo(x.dtype).min


# Functions of q, k and `hidden`, which is true for columns that a row does not see; some rows see none.
ZEROS: dict[str, Callable[..., Any]] = {
    "bool": lambda q, k, hidden: sdpa(q, k, k + 1, ~hidden),
    "masked_fill": lambda q, k, hidden: sdpa(q, k, k + 1, torch.zeros_like(hidden, dtype=q.dtype).masked_fill(hidden, INF)),
    "where": lambda q, k, hidden: sdpa(q, k, k + 1, torch.where(hidden, INF, 0.0).to(q.dtype)),
    "of all heads": lambda q, k, hidden: sdpa(q, k, k + 1, ~hidden[:, :1]),
    "bottom right": lambda q, k, hidden: sdpa(q, k[..., :2, :], k[..., :2, :] + 1, bottom_right(q, k[..., :2, :])),
    "top left": lambda q, k, hidden: sdpa(q, k[..., :2, :], k[..., :2, :] + 1, is_causal=True),
    "causal and padding": lambda q, k, hidden: sdpa(q, k, k + 1, bottom_right(q, k) & ~hidden[:, :, :1]),
    "large heads": lambda q, k, hidden: sdpa(q.repeat(1, 1, 1, 40) / 9, k.repeat(1, 1, 1, 40), k.repeat(1, 1, 1, 40), ~hidden),
}  # fmt: skip
NANS: dict[str, Callable[..., Any]] = {
    "masked_fill": lambda q, k, hidden: written(q, k, lambda s: s.masked_fill(hidden, INF)),
    "where": lambda q, k, hidden: written(q, k, lambda s: torch.where(hidden, INF, s)),
    "added": lambda q, k, hidden: written(q, k, lambda s: s + torch.where(hidden, INF, 0.0).to(s.dtype)),
    "soft cap": lambda q, k, hidden: written(q, k, lambda s: torch.where(hidden, INF, s.tanh() * 3)),
    "bottom right": lambda q, k, hidden: written(
        q, k[..., :2, :], lambda s: s.masked_fill(~bottom_right(q, k[..., :2, :]), INF)
    ),
}  # fmt: skip
MEANS: dict[str, Callable[..., Any]] = {
    "masked_fill": lambda q, k, hidden: written(q, k, lambda s: s.masked_fill(hidden, least(s))),
    "where": lambda q, k, hidden: written(q, k, lambda s: torch.where(hidden, least(s), s)),
    "-1e4": lambda q, k, hidden: written(q, k, lambda s: torch.where(hidden, -1e4, s)),
    "soft cap": lambda q, k, hidden: written(q, k, lambda s: torch.where(hidden, least(s), s.tanh() * 3)),
}
GROUPS = {"zeros": ZEROS, "nans": NANS, "means": MEANS}
NAMES = [(group, name) for group, cases in GROUPS.items() for name in cases]


def inputs_of(dtype: Any, device: str = "cpu") -> tuple[Any, Any, Any]:
    """q, k and `hidden`: rows that see nothing, some columns, all columns; large scores."""
    torch.manual_seed(0)
    q, k = (torch.randn(2, 3, 5, 8, device=device) * 3 for _ in range(2))
    hidden = torch.zeros(2, 3, 5, 5, dtype=torch.bool, device=device)
    hidden[0, :, :2] = True
    hidden[0, :, :, :2] = True
    hidden[1, 1, 3] = True
    return q.to(dtype), k.to(dtype), hidden


def exact_of(model: Function, inputs: Sequence[Any]) -> Any:
    """The result in float64, on the CPU."""
    return model(*(t.cpu().double() if t.is_floating_point() else t.cpu() for t in inputs))


def accuracy_of(ours: Any, model: Function, inputs: Sequence[Any]) -> Accuracy:
    """Our errors against float64 beside those of eager on the CPU, which does not choose between kernels with different
    rows; a NaN is where float64 has one."""
    ours, eager, exact = ours.cpu(), model(*(t.cpu() for t in inputs)), exact_of(model, inputs)
    number = ~exact.isnan()
    assert torch.equal(~ours.isnan(), number) and torch.equal(~eager.isnan(), number)
    return accuracy(ours[number], eager[number], exact[number])


class Encoder(nn.Module):
    """Two layers with a causal mask; rows of padding in front see no column."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Any, mask: Any, padding: Any) -> Any:
        return self.layers(x, mask=mask, src_key_padding_mask=padding)


def of_encoder(device: str = "cpu") -> Sequence[Any]:
    torch.manual_seed(0)
    padding = torch.zeros(2, 5).masked_fill(torch.tensor([[1, 1, 0, 0, 0], [0] * 5]).bool(), INF)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    return [t.to(device) for t in (torch.randn(2, 5, 16), mask, padding)]
