"""PyTorch's setting for convolutions of f32, which an imported convolution keeps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from ait_mlir.driver import run_to_phase
from ait_mlir.importers.torch import from_torch
from ait_mlir.importers.torch.rows import conv
from ait_mlir.options import CompileOptions

X = torch.zeros(2, 8, 12, 12)


def text_of(module: nn.Module, *inputs: torch.Tensor) -> str:
    return str(from_torch(module.eval().requires_grad_(False), inputs or (X,)).module)


def test_it_is_the_one_of_pytorch() -> None:
    module = nn.Conv2d(8, 16, 3)
    assert "tf32" in text_of(module)
    with torch.backends.cudnn.flags(allow_tf32=False):
        assert "tf32" not in text_of(module)


@pytest.mark.parametrize(
    ("cudnn", "rounds"),
    [
        (SimpleNamespace(allow_tf32=True), True),
        (SimpleNamespace(allow_tf32=True, conv=SimpleNamespace(fp32_precision="ieee")), False),
        (SimpleNamespace(allow_tf32=False, conv=SimpleNamespace(fp32_precision="tf32")), True),
        (SimpleNamespace(allow_tf32=False, conv=SimpleNamespace(fp32_precision="none")), False),
    ],
    ids=["old", "exact", "rounded", "inherited"],
)
def test_the_setting_of_convolutions_comes_first(
    cudnn: SimpleNamespace, rounds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch itself cannot export while its settings for convolutions and recurrent layers differ."""
    monkeypatch.setattr(conv, "torch", SimpleNamespace(backends=SimpleNamespace(cudnn=cudnn)))
    assert conv.rounds_convolutions() == rounds


@pytest.mark.parametrize(
    ("module", "x", "op"),
    [
        (nn.Conv1d(8, 8, 3, groups=4), X[..., 0], "ait.conv"),
        (nn.Conv3d(8, 8, 3), X[:, :, None].expand(2, 8, 4, 12, 12), "ait.conv"),
        (nn.ConvTranspose2d(8, 4, 4, stride=2), X, "ait.conv"),
        (nn.Conv2d(3, 8, 4, stride=4), X[:, :3], "ait.gemm rcr"),  # the windows do not overlap
    ],
    ids=["grouped line", "volume", "transposed", "patches"],
)
def test_every_kind_of_convolution(module: nn.Module, x: torch.Tensor, op: str) -> None:
    lines = [line for line in text_of(module, x).splitlines() if f"{op} " in line]
    assert lines and all(" tf32 " in line for line in lines)


@pytest.mark.parametrize(
    ("module", "x"),
    [(nn.Conv2d(8, 16, 3, groups=8), X), (nn.Conv2d(8, 16, 3).half(), X.half()), (nn.Linear(12, 4), X)],
    ids=["depthwise", "half", "product"],
)
def test_others_are_exact(module: nn.Module, x: torch.Tensor) -> None:
    assert "tf32" not in text_of(module, x)


def test_a_window_of_one_element_stays_rounded_as_a_product() -> None:
    for module in (nn.Conv2d(8, 16, 1), nn.ConvTranspose2d(8, 16, 1)):
        imported = from_torch(module.eval().requires_grad_(False), (X,)).module
        text = str(run_to_phase(imported, "fused", CompileOptions("cuda", "sm_90a")))
        assert "ait.gemm rcr tf32 " in text and "ait.conv" not in text
