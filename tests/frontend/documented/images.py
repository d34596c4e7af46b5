"""Convolutions, pooling, resampling: NHWC, weights [out, height, width, in / groups]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional as F

from tests.frontend.documented.row import Row

X, W, B, OUT = "2 x 7 x 6 x 4", "6 x 3 x 3 x 4", "6", "2 x 4 x 3 x 6"


def first(function: Callable[..., Any], *weights: Any, **options: Any) -> Any:
    """A function of PyTorch, whose channels are dim 1, on tensors whose channels are last; 1-dim operands stay."""
    moved = [w.movedim(-1, 1) if w.ndim > 1 else w for w in weights]
    return function(*moved, **options).movedim(1, -1)


def convolutions() -> Iterator[Row]:
    options = {"stride": 2, "padding": 1}
    bias: dict[str, Callable[[Any], Any]] = {
        "": lambda y: y,
        "_relu": torch.relu,
        "_sigmoid": torch.sigmoid,
        "_hardswish": F.hardswish,
    }
    yield Row(
        "conv2d",
        ["2 x 7 x 6 x 4", "6 x 3 x 3 x 2"],
        lambda op, x, w: op(stride=2, pad=1, dilate=1, group=2)(x, w),
        lambda x, w: first(F.conv2d, x, w, **options, groups=2),
    )
    for name, function in bias.items():
        yield Row(
            f"conv2d_bias{name}",
            [X, W, B],
            lambda op, x, w, b: op(stride=2, pad=1)(x, w, b),
            lambda x, w, b, f=function: f(first(F.conv2d, x, w, b, **options)),
        )
    for name in ("", "_relu", "_hardswish"):
        yield Row(
            f"conv2d_bias_add{name}",
            [X, W, B, OUT],
            lambda op, x, w, b, r: op(stride=2, pad=1)(x, w, b, r),
            lambda x, w, b, r, f=bias[name]: f(first(F.conv2d, x, w, b, **options) + r),
        )
        yield Row(
            f"conv2d_bias{name}_few_channels",
            ["2 x 7 x 6 x 3", "6 x 3 x 3 x 3", B],
            lambda op, x, w, b: op(stride=2, pad=1, dilate=1, auto_padding=True)(x, w, b),
            lambda x, w, b, f=bias[name]: f(first(F.conv2d, x, w, b, **options)),
        )
    yield Row(
        "conv2d_depthwise",
        [X, "4 x 3 x 3 x 1"],
        lambda op, x, w: op(stride=1, pad=1, dilate=1, group=4)(x, w),
        lambda x, w: first(F.conv2d, x, w, padding=1, groups=4),
    )
    yield Row(
        "conv2d_depthwise_bias",
        [X, "4 x 3 x 3 x 1", "4"],
        lambda op, x, w, b: op(stride=1, pad=1, dilate=1, group=4)(x, w, b),
        lambda x, w, b: first(F.conv2d, x, w, b, padding=1, groups=4),
    )
    yield Row(
        "conv2d_groups",
        [X, "6 x 3 x 3 x 2"],
        lambda op, x, w: op(stride=1, pad=1, dilate=1, group=2)(x, w),
        lambda x, w: first(F.conv2d, x, w, padding=1, groups=2),
    )
    turned, result = "4 x 2 x 2 x 6", {"stride": 2, "padding": 0}
    yield Row(
        "transposed_conv2d",
        [X, turned],
        lambda op, x, w: op(stride=2, pad=0)(x, w),
        lambda x, w: first(F.conv_transpose2d, x, w, **result),
    )
    for name in ("", "_relu"):
        yield Row(
            f"transposed_conv2d_bias{name}",
            [X, turned, B],
            lambda op, x, w, b: op(stride=2, pad=0)(x, w, b),
            lambda x, w, b, f=bias[name]: f(first(F.conv_transpose2d, x, w, b, **result)),
        )
    volume, kernel = "1 x 3 x 5 x 4 x 4", "6 x 3 x 3 x 3 x 4"
    yield Row(
        "conv3d",
        [volume, kernel],
        lambda op, x, w: op(stride=1, pad=1)(x, w),
        lambda x, w: first(F.conv3d, x, w, padding=1),
    )
    yield Row(
        "conv3d_bias",
        [volume, kernel, B],
        lambda op, x, w, b: op(stride=1, pad=1)(x, w, b),
        lambda x, w, b: first(F.conv3d, x, w, b, padding=1),
    )
    yield Row(
        "depthwise_conv3d",
        [volume, "4 x 3 x 3 x 3 x 1", "4"],
        lambda op, x, w, b: op(stride=1, pad=1, dilate=1, group=4, bias=True)(x, w, b),
        lambda x, w, b: first(F.conv3d, x, w, b, padding=1, groups=4),
    )


def pools() -> Iterator[Row]:
    yield Row(
        "max_pool2d",
        [X],
        lambda op, x: op(kernel_size=3, stride=2, pad=1)(x),
        lambda x: first(F.max_pool2d, x, kernel_size=3, stride=2, padding=1),
    )
    yield Row(
        "avg_pool2d",
        [X],
        lambda op, x: op(kernel_size=2, stride=2, pad=0)(x),
        lambda x: first(F.avg_pool2d, x, kernel_size=2, stride=2),
    )
    grown = {"scale_factor": 2, "mode": "bilinear", "align_corners": False}
    yield Row(
        "upsampling2d",
        [X],
        lambda op, x: op(scale_factor=2, mode="bilinear")(x),
        lambda x: first(F.interpolate, x, **grown),
    )
    yield Row(
        "upsampling2d_add",
        [X, "2 x 14 x 12 x 4"],
        lambda op, x, r: op(scale_factor=2, mode="bilinear")(x, r),
        lambda x, r: first(F.interpolate, x, **grown) + r,
    )


ROWS = [*convolutions(), *pools()]
