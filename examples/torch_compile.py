"""`torch.compile(model, backend="ait")`: compiles the parts of a model that it can import; PyTorch runs the rest.

    python examples/torch_compile.py                     # on the GPU if there is one, else on the CPU
    python examples/torch_compile.py --device cpu

The model decides by values, so PyTorch cuts it into two graphs. The encoder before the decision is compiled; the second
asks for singular values, which the importer does not know, and runs in PyTorch. The log says so, and where: each graph
appears twice, at the first sizes and once more for all sizes. A `FallbackWarning`, which this example hides, has the
same text.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.importers.torch.dynamo import FallbackWarning, register


class Rank(torch.nn.Module):
    """An encoder, a decision that depends on values, and the singular values of the scores."""

    def __init__(self) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.score = torch.nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.score(self.encoder(x))
        if bool(scores.isnan().any()):
            scores = torch.zeros_like(scores)
        return torch.linalg.svdvals(scores)


def main() -> int:
    parser = argparse.ArgumentParser(description="torch.compile with this compiler as its backend, beside PyTorch.")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is one, else cpu")
    args = parser.parse_args()
    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("ait_mlir.torch_compile").setLevel(logging.INFO)
    warnings.simplefilter("ignore", FallbackWarning)  # the log has the same text
    torch._logging.set_logs(dynamo=logging.ERROR)  # PyTorch's own advice about the decision
    register()  # needless where ait_mlir is installed
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # nn.TransformerEncoder shows what it is made of, not one op
    model = Rank().to(device).eval()
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
