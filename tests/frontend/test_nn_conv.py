"""Convolutions and batch norm as layers, against torch with the same weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ait_mlir.frontend import IntVar, Tensor, nn
from tests.frontend.support import evaluate
from tests.frontend.test_nn import weights_of

SAME = {"kernel_size": 3, "padding": 1, "dtype": "float64"}
CASES: dict[str, tuple[nn.Module, tuple[int, ...], Callable[..., Any], bool]] = {
    "Conv1d": (nn.Conv1d(4, 6, **SAME), (7,), F.conv1d, False),
    "Conv1dBias": (nn.Conv1dBias(4, 6, **SAME), (7,), F.conv1d, False),
    "Conv2d": (nn.Conv2d(4, 6, **SAME), (7, 5), F.conv2d, False),
    "Conv2d_with_bias": (nn.Conv2d(4, 6, **SAME, bias=True), (7, 5), F.conv2d, False),
    "Conv2dBias": (nn.Conv2dBias(4, 6, **SAME), (7, 5), F.conv2d, False),
    "Conv2dBiasRelu": (nn.Conv2dBiasRelu(4, 6, **SAME), (7, 5), lambda *a, **k: F.conv2d(*a, **k).relu(), False),
    "Conv2dBiasSigmoid": (nn.Conv2dBiasSigmoid(4, 6, **SAME), (7, 5), lambda *a, **k: F.conv2d(*a, **k).sigmoid(), False),
    "Conv2dBiasHardswish": (nn.Conv2dBiasHardswish(4, 6, **SAME), (7, 5), lambda *a, **k: F.hardswish(F.conv2d(*a, **k)), False),
    "Conv2dBiasAdd": (nn.Conv2dBiasAdd(4, 6, **SAME), (7, 5), F.conv2d, True),
    "Conv2dBiasAddRelu": (nn.Conv2dBiasAddRelu(4, 6, **SAME), (7, 5), lambda *a, **k: F.conv2d(*a, **k), True),
    "Conv2dBiasAddHardswish": (nn.Conv2dBiasAddHardswish(4, 6, **SAME), (7, 5), lambda *a, **k: F.conv2d(*a, **k), True),
    "Conv2dBiasFewChannels": (nn.Conv2dBiasFewChannels(3, 6, **SAME), (7, 5), F.conv2d, False),
    "Conv2dBiasReluFewChannels": (nn.Conv2dBiasReluFewChannels(3, 6, **SAME), (7, 5), lambda *a, **k: F.conv2d(*a, **k).relu(), False),
    "Conv2dBiasHardswishFewChannels": (nn.Conv2dBiasHardswishFewChannels(3, 6, **SAME), (7, 5), lambda *a, **k: F.hardswish(F.conv2d(*a, **k)), False),
    "Conv3d": (nn.Conv3d(4, 6, **SAME), (3, 4, 5), F.conv3d, False),
    "Conv3dBias": (nn.Conv3dBias(4, 6, **SAME), (3, 4, 5), F.conv3d, False),
    "ConvTranspose2d": (nn.ConvTranspose2d(4, 6, **SAME), (7, 5), F.conv_transpose2d, False),
    "ConvTranspose2dBias": (nn.ConvTranspose2dBias(4, 6, **SAME), (7, 5), F.conv_transpose2d, False),
    "ConvTranspose2dBiasRelu": (nn.ConvTranspose2dBiasRelu(4, 6, **SAME), (7, 5), lambda *a, **k: F.conv_transpose2d(*a, **k).relu(), False),
}  # fmt: skip
AFTER = {"Conv2dBiasAddRelu": F.relu, "Conv2dBiasAddHardswish": F.hardswish}


def given(*shape: int, name: str = "x") -> Tensor:
    return Tensor(shape=[IntVar([1, 4], name="batch"), *shape], dtype="float64", name=name, is_input=True)


@pytest.mark.parametrize("name", CASES)
def test_convolution(name: str):
    layer, sizes, function, adds = CASES[name]
    weights = weights_of(layer)
    layer.name_parameter_tensor(separator=".")
    rng = np.random.default_rng(1)
    channels = 3 if "Few" in name else 4
    x, r = rng.standard_normal((2, *sizes, channels)), rng.standard_normal((2, *sizes, 6))
    inputs, tensors = {"x": x}, [given(*sizes, channels)]
    if adds:
        inputs["r"] = r
        tensors.append(given(*sizes, 6, name="r"))
    (got,) = evaluate(layer(*tensors), inputs, weights, batch=2)
    bias = torch.tensor(weights["bias"]) if "bias" in weights else None
    first = [torch.tensor(v).movedim(-1, 1) for v in (x, weights["weight"])]
    want = function(*first, bias, padding=1).movedim(1, -1)
    if adds:
        want = AFTER.get(name, lambda y: y)(want + torch.tensor(r))
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-9)


def test_depthwise():
    for layer in (nn.Conv2dDepthwise(4, 4, **SAME, groups=4), nn.Conv2dDepthwiseBias(4, 4, **SAME, groups=4)):
        weights = weights_of(layer)
        layer.name_parameter_tensor(separator=".")
        x = np.random.default_rng(1).standard_normal((2, 7, 5, 4))
        (got,) = evaluate(layer(given(7, 5, 4)), {"x": x}, weights, batch=2)
        bias = torch.tensor(weights["bias"]) if "bias" in weights else None
        first = [torch.tensor(v).movedim(-1, 1) for v in (x, weights["weight"])]
        want = F.conv2d(*first, bias, padding=1, groups=4).movedim(1, -1)
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sizes", [(), (7,), (7, 5), (7, 5, 3)])
def test_batch_norm_of_channels_in_dim_1(sizes: tuple[int, ...]):
    layer = nn.BatchNorm1d(4, dtype="float64", permute_input_output=True)
    weights = {name: np.abs(value) for name, value in weights_of(layer).items()}
    layer.name_parameter_tensor(separator=".")
    x = np.random.default_rng(1).standard_normal((2, 4, *sizes))
    (got,) = evaluate(layer(given(4, *sizes)), {"x": x}, weights, batch=2)
    order = [torch.tensor(weights[name]) for name in ("running_mean", "running_var", "weight", "bias")]
    np.testing.assert_allclose(got, F.batch_norm(torch.tensor(x), *order).numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(affine: bool):
    layer = nn.BatchNorm2d(4, eps=0.1, affine=affine, dtype="float64")
    weights = {name: np.abs(value) for name, value in weights_of(layer).items()}
    layer.name_parameter_tensor(separator=".")
    x = np.random.default_rng(1).standard_normal((2, 7, 5, 4))
    (got,) = evaluate(layer(given(7, 5, 4)), {"x": x}, weights, batch=2)
    found = {name: torch.tensor(value) for name, value in weights.items()}
    order = [found["running_mean"], found["running_var"], found.get("weight"), found.get("bias")]
    want = F.batch_norm(torch.tensor(x).movedim(-1, 1), *order, eps=0.1).movedim(1, -1)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-9)


def test_weights_of_a_convolution_along_one_dim_have_names_at_once():
    def names(layer: nn.Module) -> list[str | None]:
        return [parameter.tensor().name for parameter in layer.parameters()]

    assert names(nn.Conv1d(4, 6, 3, bias=True)) == ["conv1d_weight", "conv1d_bias"]
    assert names(nn.Conv1d(4, 6, 3, name="stem")) == ["stem_weight"]
    layer = nn.Sequential(nn.Conv1d(4, 6, 3))
    layer.name_parameter_tensor()
    assert names(layer) == ["0_weight"]
