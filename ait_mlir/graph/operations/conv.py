"""Convolutions and resampling. Tensors are [N, C, sizes...] in the graph; the IR computes on [N, sizes..., C]."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import StringAttr, UnitAttr, f32, i64
from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.conv import ConvOp, window
from ait_mlir.dialects.ait.index import GatherOp
from ait_mlir.dialects.ait.pool import PoolOp
from ait_mlir.dialects.ait.syntax import int_list_attr
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.graph.enums import FLOATS, SMALL, convolution_mode, padding_mode, resample_mode
from ait_mlir.graph.layout import channels_last, in_order_of
from ait_mlir.graph.lowering import Lowering, product_types
from ait_mlir.graph.nodes import REQUIRED, Dims, Node, Operation, Shapes
from ait_mlir.graph.tensor import as_index, as_indices


def _numbers(node: Node, name: str, default: int, count: int) -> tuple[int, ...]:
    """An attribute with a number for each spatial dim."""
    given: Any = node.attributes.get(name)
    if _is_left_out(given):
        return (default,) * count
    least = 0 if "pad" in name else 1
    found = (given,) * count if as_index(given) is not None else as_indices(given)
    numbers = tuple(n for n in found or () if least <= n < 1 << 31)
    if len(numbers) != count or found is None or len(found) != count:
        raise node.wrong(f"{name} is {given!r}, expected {count} whole numbers, each at least {least} and below 2^31")
    return numbers


def _is_left_out(given: object) -> bool:
    """Whether an attribute with a list of numbers is None or an empty list."""
    return given is None or as_indices(given) == ()


def _pads(node: Node, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The pads before and after each spatial dim."""
    both = _numbers(node, "padding", 0, count)
    before, behind = (node.attributes.get(n) for n in ("pre_padding", "post_padding"))
    return (
        both if _is_left_out(before) else _numbers(node, "pre_padding", 0, count),
        both if _is_left_out(behind) else _numbers(node, "post_padding", 0, count),
    )


def _places(node: Node, dims: Dims, taps: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """The number of positions of a window along each spatial dim."""
    count = len(dims) - 2
    before, behind = _pads(node, count)
    strides = _numbers(node, "stride", 1, count)
    found: list[int] = []
    for i in range(count):
        reach = (taps[i] - 1) * dilation[i] + 1
        room = dims[2 + i] + before[i] + behind[i] - reach
        if room < 0:
            raise node.wrong(f"the window reaches over {reach} along dim {2 + i}, where the input has {dims[2 + i]}")
        found.append(room // strides[i] + 1)
    return tuple(found)


def _infer(node: Node) -> Shapes:
    image, weight = node.dims("image"), node.dims("weight")
    if not 3 <= len(image) <= 5 or len(image) != len(weight):
        raise node.wrong(
            f"image [N, C, sizes...] and weight [K, C / groups, taps...] have one to three sizes, "
            f"found {list(image)} and {list(weight)}"
        )
    if weight[1] == 0 or image[1] % weight[1] or weight[0] % (image[1] // weight[1]):
        raise node.wrong(
            f"{node.inputs['image'].label} has {image[1]} channels, {node.inputs['weight'].label} is for {weight[1]} "
            f"in each group and has {weight[0]} results, which the groups do not divide"
        )
    taps = weight[2:]
    dims = (image[0], weight[0], *_places(node, image, taps, _numbers(node, "dilation", 1, len(taps))))
    strides = node.strides("image")
    like_image = strides[1] != 1 and image[1] > 1
    return {"Y": (dims, in_order_of(dims, strides) if like_image else channels_last(dims))}


def _check(node: Node) -> None:
    for t in node.inputs.values():
        if t.dtype not in (*FLOATS, *SMALL):
            raise node.unsupported(
                f"{t.label} has data type {t.dtype.name}; convolutions are of floats or 8-bit integers"
            )


def _last(w: Lowering, value: SSAValue) -> SSAValue:
    """[N, C, sizes...] as [N, sizes..., C]."""
    rank = tensor_type(value).rank
    return w.permute(value, [0, *range(2, rank), 1])


def _first(w: Lowering, value: SSAValue) -> SSAValue:
    """[N, sizes..., C] as [N, C, sizes...]."""
    rank = tensor_type(value).rank
    return w.permute(value, [0, rank - 1, *range(1, rank - 1)])


def _mirrored(w: Lowering, weight: SSAValue) -> SSAValue:
    """The weight [K, taps..., C] with its taps reversed."""
    dims = w.dims(weight)
    for axis in range(1, len(dims) - 1):
        at = w.constant(range(dims[axis] - 1, -1, -1), [1] * axis + [dims[axis]] + [1] * (len(dims) - axis - 1), i64)
        weight = w.put(GatherOp(weight, [at], [axis], [a for a in range(len(dims)) if a != axis]))
    return weight


def may_round() -> bool:
    """Whether a card may round the factors of a convolution of FLOAT to TF32, as cuDNN does by default; the environment
    variable `NVIDIA_TF32_OVERRIDE=0` forbids it there and here.
    """
    return os.environ.get("NVIDIA_TF32_OVERRIDE") != "0"


def _lower(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    image, weight = node.inputs["image"], node.inputs["weight"]
    narrow, element, is_whole = product_types(node, image, weight, prod(node.dims("weight")[1:]))
    x, taps = (_last(w, w.cast(w.value(t), element)) for t in (image, weight))
    if node["convolution_mode"] is convolution_mode.CONVOLUTION:
        taps = _mirrored(w, taps)
    count = len(node.dims("image")) - 2
    before, behind = _pads(node, count)
    properties = window(
        _numbers(node, "stride", 1, count),
        (*before, *behind),
        _numbers(node, "dilation", 1, count),
        int(node.dims("image")[1] // node.dims("weight")[1]),
        tf32=element == f32 and may_round(),
    )
    result = w.contraction(ConvOp, [x, taps], properties, is_whole or w.is_wide(node.outputs["Y"], narrow))
    return {"Y": _first(w, w.whole(result) if is_whole else result)}


# ** resampling **

_POOLS = (resample_mode.MAXPOOL, resample_mode.AVGPOOL_INCLUDE_PADDING, resample_mode.AVGPOOL_EXCLUDE_PADDING)


def _infer_resample(node: Node) -> Shapes:
    dims = node.dims("input")
    if not 3 <= len(dims) <= 5:
        raise node.wrong(f"the input is [N, C, sizes...] with one to three sizes, found {list(dims)}")
    count = len(dims) - 2
    taps = _numbers(node, "window", 1, count)
    found = (*dims[:2], *_places(node, dims, taps, (1,) * count))
    return {"Y": (found, in_order_of(found, node.strides("input")))}


def _check_resample(node: Node) -> None:
    if node["mode"] not in _POOLS:
        raise node.unsupported(f"mode is {node['mode']}; {', '.join(m.name for m in _POOLS)} have kernels")
    if node["generate_index"]:
        raise node.unsupported("generate_index belongs to training; leave it out")
    wanted = padding_mode.NEG_INF_PAD if node["mode"] is resample_mode.MAXPOOL else padding_mode.ZERO_PAD
    if node["padding_mode"] not in (None, wanted):
        raise node.unsupported(f"padding_mode is {node['padding_mode']}, expected {wanted} for {node['mode'].name}")
    if node.inputs["input"].dtype not in FLOATS:
        raise node.unsupported(f"{node.inputs['input'].label} has data type {node.inputs['input'].dtype.name}")


def _lower_resample(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    mode, count = node["mode"], len(node.dims("input")) - 2
    x = _last(w, w.wide(node.inputs["input"], node.compute_float()))
    before, behind = _pads(node, count)
    properties: dict[str, Any] = {
        "kind": StringAttr("max" if mode is resample_mode.MAXPOOL else "mean"),
        "window": int_list_attr(_numbers(node, "window", 1, count)),
        "stride": int_list_attr(_numbers(node, "stride", 1, count)),
        "pad": int_list_attr((*before, *behind)),
    }
    if mode is resample_mode.AVGPOOL_EXCLUDE_PADDING:
        properties["exclude_pad"] = UnitAttr()
    return {"Y": _first(w, w.op(PoolOp, x, properties=properties))}


_WINDOW = {"padding": None, "pre_padding": None, "post_padding": None, "stride": None}

OPERATIONS = (
    Operation(
        "conv_fprop",
        ("image", "weight"),
        ("Y",),
        _infer,
        _lower,
        attributes={**_WINDOW, "dilation": None, "convolution_mode": convolution_mode.CROSS_CORRELATION},
        check=_check,
        fixed=lambda node: node.dims("weight")[2:],
        decisive=lambda node: [node.dims("image")[1]],
        doc="image [N, C, sizes...], weight [K, C / groups, taps...] -> [N, K, places...], one to three sizes.",
    ),
    Operation(
        "resample",
        ("input",),
        ("Y",),
        _infer_resample,
        _lower_resample,
        attributes={
            "mode": REQUIRED,
            "window": REQUIRED,
            **_WINDOW,
            "padding_mode": None,
            "generate_index": False,
        },
        check=_check_resample,
        doc="The largest element or the mean of windows of [N, C, sizes...].",
    ),
)
