"""A small graph, relu(x @ w + b), with its data and the expected result."""

from __future__ import annotations

from typing import Any

import torch

import ait_mlir.graph as cudnn

HALF, FLOAT = cudnn.data_type.HALF, cudnn.data_type.FLOAT
A, B, FALLBACK = cudnn.heur_mode.A, cudnn.heur_mode.B, cudnn.heur_mode.FALLBACK


def new(**options: Any) -> Any:
    options = {"io_data_type": FLOAT, "intermediate_data_type": FLOAT, "compute_data_type": FLOAT, **options}
    return cudnn.pygraph(handle=cudnn.create_handle(device="cpu"), **options)


def dense(m: int = 16, **options: Any) -> tuple[Any, dict[str, Any]]:
    """relu(x @ w + b) with UIDs 1 to 4."""
    g = new(**options)
    x, w, b = (
        g.tensor([m, 32], name="x", uid=1),
        g.tensor([32, 24], name="w", uid=2),
        g.tensor([1, 24], name="b", uid=3),
    )
    y = g.relu(g.bias(g.matmul(x, w, name="mm"), b, name="bias"), name="relu").set_output(True).set_name("y").set_uid(4)
    return g, {"x": x, "w": w, "b": b, "y": y}


def data(m: int = 16) -> dict[int, torch.Tensor]:
    torch.manual_seed(0)
    return {1: torch.randn(m, 32), 2: torch.randn(32, 24), 3: torch.randn(1, 24), 4: torch.empty(m, 24)}


def check(pack: dict[Any, torch.Tensor]) -> None:
    expected = torch.relu(pack[1] @ pack[2] + pack[3])
    torch.testing.assert_close(pack[4], expected, atol=1e-4, rtol=1e-4)
    pack[4].fill_(float("nan"))


def workspace(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8)
