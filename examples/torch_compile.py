"""`torch.compile(model, backend="ait")`: what can be compiled is, the rest stays with PyTorch.

    python examples/torch_compile.py

The model sorts, which the importer does not know: its graph runs in PyTorch, the encoder before it is compiled. The log
says which graph went which way.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.importers.torch.dynamo import register


class Ranker(torch.nn.Module):
    """An encoder, a decision that depends on values, and a sort."""

    def __init__(self) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.score = torch.nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.score(self.encoder(x)).squeeze(-1)
        if bool(scores.isnan().any()):
            scores = torch.zeros_like(scores)
        return torch.sort(scores, dim=-1, descending=True).values


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    register()  # needless where ait_mlir is installed
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # nn.TransformerEncoder shows what it is made of, not one op
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Ranker().to(device).eval()
    fast = torch.compile(model, backend="ait")
    worst = 0.0
    with torch.no_grad():
        for batch, length in ((2, 7), (3, 20), (4, 33)):
            x = torch.randn(batch, length, 64, device=device)
            worst = max(worst, (fast(x) - model(x)).abs().max().item())
    print(f"largest difference from PyTorch: {worst:.1e}")
    return int(worst > 1e-3)


if __name__ == "__main__":
    sys.exit(main())
