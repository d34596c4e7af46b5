"""Convolutions, pools, pads and resampling of the builder against torch in float64."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from ait_mlir.frontend import BuildError, IntVar, Tensor, ops
from tests.frontend.support import SEQ, check, graph_of, tensor

CONVOLUTIONS = {
    "conv2d": lambda y: y,
    "conv2d_bias": lambda y, b: y + b,
    "conv2d_bias_relu": lambda y, b: torch.relu(y + b),
    "conv2d_bias_sigmoid": lambda y, b: torch.sigmoid(y + b),
    "conv2d_bias_hardswish": lambda y, b: F.hardswish(y + b),
    "conv2d_bias_add": lambda y, b, r: y + b + r,
    "conv2d_bias_add_relu": lambda y, b, r: torch.relu(y + b + r),
    "conv2d_bias_add_hardswish": lambda y, b, r: F.hardswish(y + b + r),
    "transposed_conv2d": lambda y: y,
    "transposed_conv2d_bias": lambda y, b: y + b,
    "transposed_conv2d_bias_relu": lambda y, b: torch.relu(y + b),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name):
    x, w, out = tensor("x", "batch", 9, 7, 4), tensor("ww", 6, 3, 3, 2), tensor("dddd", "batch", 5, 7, 6)
    options, apply = {"stride": (2, 1), "padding": 1, "groups": 2}, F.conv2d
    if name.startswith("transposed"):
        w, out, apply = tensor("ww", 4, 3, 3, 3), tensor("dddd", "batch", 17, 7, 6), F.conv_transpose2d
    function = CONVOLUTIONS[name]

    def convolved(x, w, *rest):
        y = apply(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), **options)
        return function(y.permute(0, 2, 3, 1), *rest)

    operator = getattr(ops, name)(stride=(2, 1), pad=1, group=2)
    check(operator, convolved, x, w, *[tensor("bbb", 6), out][: function.__code__.co_argcount - 1])


def channels_last(function, **options):
    """A function of PyTorch on channels-last tensors, bias and all."""

    def call(x, w, *bias):
        y = function(x.movedim(-1, 1), w.movedim(-1, 1), *bias, **options)
        return y.movedim(1, -1)

    return call


def test_convolutions_of_other_kinds():
    line, image, volume = tensor("x", "batch", 9, 4), tensor("x", "batch", 9, 7, 4), tensor("x", "batch", 3, 5, 7, 4)
    w1, w2, w3, b = tensor("ww", 6, 3, 4), tensor("ww", 6, 3, 2, 4), tensor("ww", 6, 2, 3, 3, 4), tensor("bbb", 6)
    check(ops.conv1d(2, 1), channels_last(F.conv1d, stride=2, padding=1), line, w1)
    check(ops.conv1d_bias(1, 0, 2), channels_last(F.conv1d, dilation=2), line, w1, b)
    check(ops.conv3d(1, (0, 1, 1)), channels_last(F.conv3d, padding=(0, 1, 1)), volume, w3)
    check(ops.conv3d_bias(2, 1), channels_last(F.conv3d, stride=2, padding=1), volume, w3, b)
    few = channels_last(F.conv2d, padding=1)
    check(ops.conv2d_bias_few_channels(1, 1), few, image, w2, b)
    check(ops.conv2d_bias_relu_few_channels(1, 1), lambda *a: torch.relu(few(*a)), image, w2, b)
    check(ops.conv2d_bias_hardswish_few_channels(1, 1), lambda *a: F.hardswish(few(*a)), image, w2, b)
    d2, d3, c = tensor("ww", 4, 3, 3, 1), tensor("ww", 4, 2, 3, 3, 1), tensor("bbb", 4)
    deep = channels_last(F.conv2d, padding=1, groups=4)
    check(ops.conv2d_depthwise(1, 1, group=4), deep, image, d2)
    check(ops.conv2d_depthwise_bias(1, 1, group=4), deep, image, d2, c)
    deep = channels_last(F.conv3d, stride=2, groups=4)
    check(ops.depthwise_conv3d(2, 0, group=4), deep, volume, d3)
    check(ops.depthwise_conv3d(2, 0, group=4, bias=True), deep, volume, d3, c)
    spread = channels_last(F.conv_transpose2d, stride=2, padding=1, output_padding=(1, 0))
    check(ops.transposed_conv2d(2, 1, output_pad=(1, 0)), spread, image, tensor("ww", 4, 3, 3, 5))


def test_convolutions_refuse_what_does_not_fit():
    x, w = tensor("x", "batch", 9, 7, 4), tensor("ww", 6, 3, 3, 4)
    with pytest.raises(BuildError, match=r"stride is \[1, 2, 3\], expected one number or 2"):
        ops.conv2d((1, 2, 3), 0)
    with pytest.raises(BuildError, match=r"takes 1 more tensors \(b\); 0 were given"):
        ops.conv2d_bias(1, 1)(x, w)
    with pytest.raises(BuildError, match=r"the bias must have shape \[6\]"):
        ops.conv2d_bias(1, 1)(x, w, tensor("b", 5))
    with pytest.raises(BuildError, match="enlarges the result"):
        ops.conv2d_bias_add(1, 1)(x, w, tensor("b", 6), tensor("r", 2, 1, 9, 7, 6))
    with pytest.raises(BuildError, match="x must have 5 dims"):
        ops.conv3d(1, 1)(x, w)
    with pytest.raises(BuildError, match="at most 8 input channels, found 9"):
        ops.conv2d_bias_few_channels(1, 1)(tensor("x", 1, 4, 4, 9), tensor("w", 6, 3, 3, 9), tensor("b", 6))
    with pytest.raises(BuildError, match=r"depthwise_conv3d.*takes 1 more tensors \(b\); 0 were given"):
        ops.depthwise_conv3d(1, 1, bias=True)(x, w)
    with pytest.raises(BuildError, match=r"the weight must be \[Cin, KH, KW, Cout / group\]"):
        ops.transposed_conv2d(1, 1)(x, tensor("w", 4, 3, 3))


def nchw(function):
    """A function on [N, C, H, W] as one on [N, H, W, C]."""
    return lambda x, *rest: function(x.permute(0, 3, 1, 2), *(r.permute(0, 3, 1, 2) for r in rest)).permute(0, 2, 3, 1)


def test_pools():
    x = tensor("x", "batch", 9, 7, 4)
    check(ops.max_pool2d(3, 2, 1), nchw(lambda x: F.max_pool2d(x, 3, 2, 1)), x)
    check(ops.avg_pool2d(kernel_size=(3, 2), stride=2, pad=1), nchw(lambda x: F.avg_pool2d(x, (3, 2), 2, 1)), x)
    excluding = ops.avg_pool2d(3, 2, 1, ceil_mode=True, count_include_pad=False)
    check(excluding, nchw(lambda x: F.avg_pool2d(x, 3, 2, 1, True, False)), x)
    check(ops.adaptive_avg_pool2d((3, 5)), nchw(lambda x: F.adaptive_avg_pool2d(x, (3, 5))), x)
    sizes = (IntVar([1, 16], name="seq"), 2)
    pooled = nchw(lambda x: F.adaptive_max_pool2d(x, (SEQ, 2)))
    check(ops.adaptive_max_pool2d(sizes), pooled, tensor("y", "batch", 9, "seq", 4))


def test_pools_refuse_what_does_not_fit():
    with pytest.raises(BuildError, match=r"max_pool2d: kernel_size is \[1, 2, 3\], expected one number or two"):
        ops.max_pool2d((1, 2, 3), 1)
    with pytest.raises(BuildError, match=r"x is \[N, H, W, C\]"):
        ops.avg_pool2d(2, 2)(tensor("x", "batch", 9, 7))
    with pytest.raises(BuildError, match="output_size has 3 numbers"):
        ops.adaptive_avg_pool2d([1, 2, 3])
    with pytest.raises(BuildError, match=r"x is \[N, H, W, C\]"):
        ops.adaptive_max_pool2d(2)(tensor("x", "batch", 9, 7))
    with pytest.raises(BuildError, match="a window of 2 would hold pad alone"):
        ops.max_pool2d(2, 2, 2)(tensor("x", "batch", 9, 7, 4))


def test_pads():
    x = tensor("x", "batch", "seq", 4)
    seq = IntVar([1, 16], name="seq")
    check(ops.pad((1, -2, 0, seq), value=0.5), lambda x: F.pad(x, (1, -2, 0, SEQ), value=0.5), x)
    check(ops.pad((3, 2), "reflect"), lambda x: F.pad(x, (3, 2), "reflect"), x)
    check(ops.pad((1, 2, 0, 3), "replicate"), lambda x: F.pad(x[None], (1, 2, 0, 3), "replicate")[0], x)
    check(ops.pad((4, 1, 0, seq), "circular"), lambda x: F.pad(x[None], (4, 1, 0, SEQ), "circular")[0], x)
    check(ops.pad_last_dim(3, 7), lambda x: F.pad(x, (0, 3)), x)
    image, volume = tensor("xx", "batch", 5, 2, 3), tensor("xx", "batch", 5, 2, 1, 3)
    check(ops.nhwc3to4(), lambda x: F.pad(x, (0, 1)), image)
    check(ops.nhwc3to8(), lambda x: F.pad(x, (0, 5)), image)
    check(ops.ndhwc3to8(), lambda x: F.pad(x, (0, 5)), volume)


def test_pads_refuse_what_does_not_fit():
    x = tensor("x", "batch", "seq", 4)
    with pytest.raises(BuildError, match="3 pads, expected two for each of at most 3 dims"):
        ops.pad((1, 2, 3))(x)
    with pytest.raises(BuildError, match="by 4, which is not proved to be at most 3, as reflect needs"):
        ops.pad((4, 0), "reflect")(x)
    with pytest.raises(BuildError, match="expected rank 3 and a last dim of at most 3"):
        ops.pad_last_dim(3, 3)(x)
    with pytest.raises(BuildError, match="expected 3 channels as the last dim"):
        ops.nhwc3to4()(tensor("x", "batch", 2, 2, 4))


def test_upsampling():
    x, r = tensor("x", "batch", "seq", 3, 4), tensor("rr", "batch", IntVar([1, 16], name="seq") * 2, 6, 4)
    check(ops.upsampling2d(2, "nearest"), nchw(lambda x: F.interpolate(x, scale_factor=2)), x)
    linear = nchw(lambda x: F.interpolate(x, scale_factor=1.75, mode="bilinear"))
    check(ops.upsampling2d(1.75, "bilinear"), linear, x)
    corners = nchw(lambda x: F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=True))
    check(ops.upsampling2d(2.0, "bicubic", align_corners=True), corners, x)
    added = nchw(lambda x, r: F.interpolate(x, scale_factor=2, mode="bilinear") + r)
    check(ops.upsampling2d_add(2.0, "bilinear"), added, x, r)
    small, other = (
        tensor("x", "batch", 3, 3, 4),
        Tensor(shape=[IntVar([2, 9], name="rows"), 6, 6, 4], name="r", dtype="float64", is_input=True),
    )
    added = ops.upsampling2d_add(2.0, "nearest")(small, other)
    assert graph_of(added).scope["batch"].lo == 2  # the batch of both


def test_upsampling_refuses_what_does_not_fit():
    with pytest.raises(BuildError, match=r"scale_factor is -1\.0, expected a number above 0"):
        ops.upsampling2d(-1.0, "nearest")
    with pytest.raises(BuildError, match=r"x is \[N, H, W, C\]"):
        ops.upsampling2d(2, "nearest")(tensor("x", "batch", 9, 7))
    with pytest.raises(BuildError, match="r must have the shape of the result"):
        ops.upsampling2d_add(2, "nearest")(tensor("x", "batch", 2, 2, 4), tensor("r", "batch", 4, 4, 3))
    for dims in (("batch", 4, 4), ("batch", 4, 1, 4), (1, 4, 4, 4)):
        with pytest.raises(BuildError, match="r must have the shape of the result"):
            ops.upsampling2d_add(2, "nearest")(tensor("x", "batch", 2, 2, 4), tensor("r", *dims))
