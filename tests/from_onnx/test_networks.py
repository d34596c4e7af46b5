"""Networks that torch.onnx exports, compiled for the CPU and compared with PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxscript", reason="torch.onnx exports with onnxscript, which is not installed")
torch: Any = pytest.importorskip("torch")

import ait_mlir  # noqa: E402
from ait_mlir.importers.onnx import import_model  # noqa: E402


class Block(torch.nn.Module):
    """The residual block of ResNet, with a stem and a head."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.left = nn.Sequential(
            nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, 1, 1), nn.BatchNorm2d(16)
        )
        self.right = nn.Conv2d(8, 16, 1, 2)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        x = torch.relu(self.left(x) + self.right(x))
        return self.head(x.mean((2, 3)))


class Encoder(torch.nn.Module):
    """A layer of a transformer with embeddings of words and positions, and a padding mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = torch.nn.Embedding(50, 32), torch.nn.Embedding(64, 32)
        self.layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")

    def forward(self, ids: Any, mask: Any) -> Any:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.layer(x, src_key_padding_mask=mask == 0)


def mlp() -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1))


def export(module: Any, args: tuple[Any, ...], path: Path, shapes: Any, names: list[str]) -> Path:
    torch.onnx.export(
        module.eval(), args, path, dynamo=True, dynamic_shapes=shapes, input_names=names, verbose=False, report=False
    )
    return path


Dim = torch.export.Dim
CASES: dict[str, Any] = {
    "mlp": (mlp, lambda n: (torch.randn(n, 8),), ({0: Dim("batch")},), ["x"]),
    "resnet": (Block, lambda n: (torch.randn(n, 3, 32, 32),), ({0: Dim("batch")},), ["x"]),
    "transformer": (
        Encoder,
        lambda n: (torch.randint(50, (n, 2 * n)), torch.ones(n, 2 * n, dtype=torch.int64)),
        ({0: Dim("batch"), 1: Dim("seq", max=64)}, {0: Dim("batch"), 1: Dim("seq", max=64)}),
        ["ids", "mask"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_exported_networks_are_right_at_several_sizes(name: str, tmp_path: Path) -> None:
    make, inputs, shapes, names = CASES[name]
    torch.manual_seed(0)
    module = make()
    path = export(module, inputs(3), tmp_path / f"{name}.onnx", shapes, names)
    model = ait_mlir.load_onnx(path)
    for n in (3, 1, 5):
        given = inputs(n)
        with torch.no_grad():
            eager, exact = module(*given), module.double()(*(x.double() if x.is_floating_point() else x for x in given))
        module.float()
        (found,) = model(*(x.numpy() for x in given)).values()
        allowed = 2 * np.abs(eager.numpy() - exact.numpy()).max() + 1e-6
        assert np.abs(np.asarray(found) - exact.numpy()).max() <= allowed


def test_dims_have_the_names_of_the_model(tmp_path: Path) -> None:
    module = mlp()
    path = export(module, (torch.randn(3, 8),), tmp_path / "mlp.onnx", ({0: Dim("rows")},), ["x"])
    assert "rows = 2 to 9" in str(import_model(path, dims={"rows": (2, 9)}).module)
