"""Convolutions on cuDNN on the card: the service itself, beside PyTorch and against float64."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ait_mlir.dialects.ait.dtypes import BY_MLIR
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.runtime.loading import cudnn_candidates
from tests.kernels.library_gemm import SRC, whole_source

pytestmark = pytest.mark.gpu

GLUE = """
#include <stdio.h>
#include "cuda/cudnn_services.h"
extern "C" int32_t run_conv(const ait_conv_v1* args, char* message) {
  std::string error;
  const int32_t status = ait::runtime::compute_conv(*args, nullptr, &error);
  if (status != 0) snprintf(message, 2048, "%s", error.c_str());
  return status;
}
"""
WORKSPACE = 64 << 20
ACTIVATIONS = {"none": 0, "relu": 1, "silu": 4}


class ConvCall(ctypes.Structure):
    """`ait_conv_v1` of runtime/include/ait/conv_service.h."""

    _fields_ = (
        *((n, ctypes.c_int32) for n in ("dtype", "activation", "algo", "groups")),
        *((n, ctypes.c_int64) for n in ("batch", "in_height", "in_width", "in_channels")),
        *((n, ctypes.c_int64) for n in ("out_height", "out_width", "out_channels")),
        *((n, ctypes.c_int64 * 2) for n in ("kernel", "stride", "dilation", "pad_before", "pad_after")),
        *((n, ctypes.c_int64 * 3) for n in ("strides_x", "strides_y", "strides_residual")),
        *((n, ctypes.c_void_p) for n in ("x", "w", "bias", "residual", "y", "workspace")),
        ("workspace_bytes", ctypes.c_int64),
    )


@dataclass(frozen=True)
class Conv:
    """A convolution of x [batch, height, width, channels]."""

    dtype: str = "f16"
    batch: int = 2
    size: tuple[int, int] = (14, 17)
    channels: tuple[int, int] = (32, 64)
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    bias: bool = False
    residual: bool = False
    activation: str = "none"
    wide: int = 0
    """Channels behind those of a pixel of x that belong to something else."""


CASES = {
    "plain": Conv(),
    "plain-bf16": Conv("bf16"),
    "plain-f32": Conv("f32"),
    "one-by-one": Conv(kernel=(1, 1), pad=(0, 0), stride=(2, 2)),
    "strided": Conv(stride=(2, 1), pad=(1, 0), size=(15, 16)),
    "dilated": Conv(dilation=(2, 3), pad=(2, 3)),
    "groups": Conv(groups=4),
    "slice-of-channels": Conv(wide=32),
    "bias-relu": Conv(bias=True, activation="relu"),
    "bias-residual-silu": Conv(bias=True, residual=True, activation="silu"),
    "residual-bf16": Conv("bf16", residual=True),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    os.environ.setdefault("AIT_CUDNN", cudnn_candidates()[0])
    workdir = tmp_path_factory.mktemp("conv")
    files = ("dynamic_library.cc", "cuda/cudnn_conv.cc", "cuda/cudnn_plans.cc")
    sources = {Path(file).name: whole_source(SRC / file) for file in files}
    (workdir / "glue.cc").write_text(GLUE)
    sources["glue.cc"] = whole_source(workdir / "glue.cc")
    return ctypes.CDLL(str(build_library(sources, Target("cuda", default_arch("cuda")), workdir / "built")))


def tensors(conv: Conv) -> tuple[Any, ...]:
    """x, w, bias, residual and y on the card; bias and residual may be None."""
    import torch

    torch.manual_seed(0)
    kind = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[conv.dtype]
    make = lambda *shape: torch.randn(shape, device="cuda").to(kind)  # noqa: E731
    (height, width), (depth, channels) = conv.size, conv.channels
    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(conv.size, conv.pad, conv.dilation, conv.kernel, conv.stride, strict=True)
    ]
    x = make(conv.batch, height, width, depth + conv.wide)[..., :depth]
    w = make(channels, *conv.kernel, depth // conv.groups) * (depth * 9 / conv.groups) ** -0.5
    y = torch.full((conv.batch, *out, channels), float("nan"), device="cuda", dtype=kind)
    return x, w, make(channels) if conv.bias else None, make(*y.shape) if conv.residual else None, y


def call_of(conv: Conv, x: Any, w: Any, bias: Any, residual: Any, y: Any, workspace: Any) -> ConvCall:
    call = ConvCall(dtype=BY_MLIR[conv.dtype].abi, activation=ACTIVATIONS[conv.activation], groups=conv.groups)
    call.batch, call.in_height, call.in_width, call.in_channels = x.shape
    _, call.out_height, call.out_width, call.out_channels = y.shape
    call.kernel, call.stride, call.dilation = (ctypes.c_int64 * 2)(*conv.kernel), conv.stride, conv.dilation
    call.pad_before = call.pad_after = (ctypes.c_int64 * 2)(*conv.pad)
    call.strides_x, call.strides_y = x.stride()[:3], y.stride()[:3]
    call.x, call.w, call.y = x.data_ptr(), w.data_ptr(), y.data_ptr()
    call.workspace, call.workspace_bytes = workspace.data_ptr(), workspace.numel()
    if bias is not None:
        call.bias = bias.data_ptr()
    if residual is not None:
        call.residual, call.strides_residual = residual.data_ptr(), residual.stride()[:3]
    return call


def reference(conv: Conv, x: Any, w: Any, bias: Any, residual: Any) -> Any:
    from torch.nn import functional as F

    apply = {"none": lambda t: t, "relu": F.relu, "silu": F.silu}[conv.activation]
    options = {"stride": conv.stride, "padding": conv.pad, "dilation": conv.dilation, "groups": conv.groups}
    sums = F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), bias, **options).permute(0, 2, 3, 1)
    return apply(sums if residual is None else sums + residual)


@pytest.mark.parametrize("name", CASES)
def test_convolution(library: ctypes.CDLL, name: str) -> None:
    import torch

    conv = CASES[name]
    given = tensors(conv)
    workspace = torch.empty(WORKSPACE, dtype=torch.uint8, device="cuda")
    message = ctypes.create_string_buffer(2048)
    status = library.run_conv(ctypes.byref(call_of(conv, *given, workspace)), message)
    assert status == 0, message.value.decode()
    torch.cuda.synchronize()
    *operands, y = given
    exact = reference(conv, *(None if t is None else t.double() for t in operands))
    ours, theirs = (y.double() - exact).abs(), (reference(conv, *operands).double() - exact).abs()
    floor = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-6}[conv.dtype]
    assert ours.max() <= 2 * theirs.max() + floor


def test_what_is_refused(library: ctypes.CDLL) -> None:
    import torch

    conv = Conv()
    workspace = torch.empty(256, dtype=torch.uint8, device="cuda")
    message = ctypes.create_string_buffer(2048)
    for change, reason in (
        ({"groups": 3}, "needs channels that are multiples of the groups"),
        ({"out_height": 3}, "a result whose height or width is not what the kernel gives"),
        ({"dtype": BY_MLIR["i32"].abi}, "takes f16, bf16 and f32"),
    ):
        call = call_of(conv, *tensors(conv), workspace)
        for field, value in change.items():
            setattr(call, field, value)
        assert library.run_conv(ctypes.byref(call), message) != 0
        assert reason in message.value.decode()
