"""Functions of tensors of PyTorch beside the graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from tests.graph.bad_input import Input, NotSupported, raises


def expected(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    padded = torch.nn.functional.pad(x, (weight.shape[1] - 1, 0))
    y = torch.nn.functional.conv1d(padded, weight[:, None], bias, groups=x.shape[1])
    return torch.nn.functional.silu(y) if activation == "silu" else y


@pytest.mark.parametrize(("activation", "has_bias"), [("silu", True), ("identity", False)])
def test_causal_convolution_of_each_channel(activation: str, has_bias: bool):
    x, weight = torch.randn(2, 8, 20), torch.randn(8, 4)
    bias = torch.randn(8) if has_bias else None
    for _ in range(2):  # the second call finds the graph
        y = cudnn.ops.causal_conv1d(x, weight, bias, activation=activation)
        torch.testing.assert_close(y, expected(x, weight, bias, activation), atol=1e-5, rtol=1e-5)
        x = 2 * x


def test_bad_arguments():
    x, weight, bias = torch.randn(2, 8, 20), torch.randn(8, 4), torch.randn(8)
    cases: dict[str, tuple[Any, ...]] = {
        "x is a Tensor of shape [2, 8], expected a torch tensor with 3 dims": (x[:, :, 0], weight, bias),
        "weight is a Tensor of shape [7, 4], but x has 8 channels": (x, weight[:7], bias),
        "bias is a int": (x, weight, 3),
        "activation is 'relu', expected one of silu, identity": (x, weight, bias, "relu"),
    }
    for words, arguments in cases.items():
        with raises(Input, words):
            cudnn.ops.causal_conv1d(*arguments)
    with raises(NotSupported, "no gradient"):
        cudnn.ops.causal_conv1d(x.requires_grad_(), weight)
