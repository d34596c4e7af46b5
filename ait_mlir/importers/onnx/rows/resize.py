"""Resampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import SSAValue

from ait_mlir.compositions import resize as composed
from ait_mlir.compositions.index import slices_at
from ait_mlir.compositions.rearrange import channels_first, channels_last
from ait_mlir.compositions.sampling import sampled
from ait_mlir.dialects.ait.dtypes import BY_IR, is_float
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.pool import MAX_DIMS
from ait_mlir.dialects.ait.resize import GridSampleOp, ResizeOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, floordiv, product
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.importers.onnx.call import Call, NotSupported, Row, as_number
from ait_mlir.importers.onnx.known import Known

LARGEST_DENOMINATOR = 1 << 10
"""Of the ratio that a scale stands for."""
Places = NDArray[np.float64]
NEAREST: dict[str, Callable[[Places], Places]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": lambda x: np.floor(x),
    "ceil": lambda x: np.ceil(x),
}


def resize(c: Call) -> SSAValue:
    """A tensor resampled along some axes, to sizes or by scales."""
    x = c.tensor(0)
    dims = tensor_type(x).dims
    axes = [c.placed(a, len(dims), "axes") for a in c.attr("axes", list(range(len(dims))))]
    scales, sizes = _wanted(c, axes)
    moving = [i for i, a in enumerate(axes) if scales[i] != 1 or not c.w.scope.equal(sizes[i], dims[a])]
    if not moving:
        return x
    if (found := _as_op(c, x, axes, scales, sizes, moving)) is not None:
        return found
    roi = c.array(1).reshape(-1) if c.has(1) and c.shape(1) and c.shape(1)[0].as_int() else None
    for i in moving:
        span = (float(roi[i]), float(roi[len(axes) + i])) if roi is not None else (0.0, 1.0)
        x = _along(c, x, axes[i], scales[i], sizes[i], span)
    return x


def _wanted(c: Call, axes: Sequence[int]) -> tuple[list[float], list[Expr]]:
    """The scale and the size of each axis. A scale of 0 is the quotient of the sizes."""
    dims = c.shape(0)
    old = c.node.op_type == "Upsample" or c.version < 11
    scales_at, sizes_at = (1, None) if old else (2, 3)
    if sizes_at is not None and c.has(sizes_at) and c.shape(sizes_at)[0].as_int() != 0:
        sizes = c.exprs(sizes_at)
        policy = c.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            ratios = [as_number(s) / as_number(dims[a]) for s, a in zip(sizes, axes, strict=True)]
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            sizes = [const(int(ratio * as_number(dims[a]) + 0.5)) for a in axes]
            return [ratio] * len(axes), sizes
        return [_quotient(s, dims[a]) for s, a in zip(sizes, axes, strict=True)], sizes
    given = c.attr("scales")
    numbers = [float(n) for n in (c.array(scales_at).reshape(-1).tolist() if given is None else given)]
    if len(numbers) != len(axes):
        raise NotSupported(f"{len(numbers)} scales for {len(axes)} axes")
    return numbers, [_scaled(dims[a], n) for n, a in zip(numbers, axes, strict=True)]


def _quotient(size: Expr, own: Expr) -> float:
    """The scale of two sizes; 0 if it depends on the dims."""
    if size is own:
        return 1.0
    n, m = size.as_int(), own.as_int()
    return n / m if n is not None and m else 0.0


def _scaled(size: Expr, scale: float) -> Expr:
    """floor(size * scale)"""
    if (known := size.as_int()) is not None:
        return const(int(np.floor(np.float32(known) * np.float32(scale))))
    ratio = Fraction(scale).limit_denominator(LARGEST_DENOMINATOR)
    return floordiv(size * ratio.numerator, const(ratio.denominator))


def _as_op(
    c: Call, x: SSAValue, axes: Sequence[int], scales: list[float], sizes: list[Expr], moving: list[int]
) -> SSAValue | None:
    """The resampling as `ait.resize`, if that takes elements at the same positions; else None."""
    mode, where, align = _mode(c), _coordinates(c), False
    taken = sorted(axes[i] for i in moving)
    rank = tensor_type(x).rank
    if min(taken) < 2 or rank > 2 + MAX_DIMS or c.attr("antialias", 0) or c.attr("exclude_outside", 0):
        return None
    if mode == "nearest":
        rounding = c.attr("nearest_mode", "round_prefer_floor") if c.node.op_type == "Resize" else "floor"
        ups = all((f := scales[i]) > 1 and f.is_integer() and int(f) % 2 == 0 for i in moving)
        if where == "asymmetric" and rounding == "floor":
            kind = "nearest"
        elif where in ("half_pixel", "pytorch_half_pixel") and (
            rounding == "round_prefer_ceil" or (ups and rounding == "round_prefer_floor")
        ):
            kind = "nearest_exact"
        else:
            return None
    elif where == "align_corners":
        kind, align = mode, True
        exact = (
            scales[i] and (d := tensor_type(x).dims[axes[i]].as_int()) and d * scales[i] == sizes[i].as_int()
            for i in moving
        )
        if not all(scales[i] == 0 for i in moving) and not all(exact):
            return None
    elif where in ("half_pixel", "pytorch_half_pixel"):
        kind = mode
        single = any((sizes[i].as_int() or 2) == 1 for i in moving)
        if (single and where == "pytorch_half_pixel") or not is_float(tensor_type(x).element_type):
            return None
    else:
        return None
    if mode == "cubic" and c.attr("cubic_coeff_a", -0.75) != -0.75:
        return None
    whole = list(tensor_type(x).dims[2:])
    factors = [0.0] * (rank - 2)
    for i in moving:
        whole[axes[i] - 2] = sizes[i]
        own = tensor_type(x).dims[axes[i]]
        implied = scales[i] in (0, _quotient(sizes[i], own))
        exact = scales[i].is_integer() and c.w.scope.equal(own * int(scales[i]), sizes[i])
        factors[axes[i] - 2] = 0.0 if implied or exact else scales[i]
    given = factors if any(factors) else None
    op = ResizeOp(kind, channels_last(c.w, x, rank - 2), whole, given, align)
    return channels_first(c.w, c.w.put(op))


def _mode(c: Call) -> str:
    mode = c.attr("mode", "nearest")
    if mode not in ("nearest", "linear", "cubic", "bilinear"):
        raise NotSupported(f"mode is {mode!r}, expected nearest, linear or cubic")
    return "linear" if mode == "bilinear" else mode


def _coordinates(c: Call) -> str:
    if c.node.op_type == "Upsample" or c.version < 11:
        return "asymmetric"
    return c.attr("coordinate_transformation_mode", "half_pixel")


def _along(c: Call, x: SSAValue, axis: int, scale: float, size: Expr, roi: tuple[float, float]) -> SSAValue:
    """x resampled along one axis of a known size, by indices or by a product with weights."""
    dims, element = tensor_type(x).dims, tensor_type(x).element_type
    own, count = as_number(dims[axis]), as_number(size)
    scale = scale or count / own
    at = positions(_coordinates(c), own, count, scale, roi)
    mode = _mode(c)
    if mode == "nearest":
        name = c.attr("nearest_mode", "round_prefer_floor") if c.node.op_type == "Resize" else "floor"
        if name not in NEAREST:
            raise NotSupported(f"nearest_mode is {name!r}, expected one of {', '.join(NEAREST)}")
        places = np.clip(NEAREST[name](at), 0, own - 1).astype(np.int64)
        y = c.w.full(slices_at(c.w, x, axis, c.w.written(Known(places, i64)), from_end=True))
    else:
        widened = scale if c.attr("antialias", 0) else 1.0
        weight = composed.linear if mode == "linear" else composed.cubic(c.attr("cubic_coeff_a", -0.75))
        excluded = bool(c.attr("exclude_outside", 0))
        matrix = composed.weights(at, own, weight, 1 if mode == "linear" else 2, widened, excluded)
        wide = f64 if element == f64 else f32
        table = c.w.written(Known(matrix.astype(numpy_dtype(BY_IR[wide].name)), wide, is_weight=matrix.size > 64))
        order = [*(a for a in range(len(dims)) if a != axis), axis]
        turned = c.w.permute(c.w.cast(x, wide), order)
        y = c.w.op(GemmOp, turned, table, properties={"layout": "rcr"}, regions=1)
        y = c.w.cast(c.w.permute(y, [order.index(a) for a in range(len(dims))]), element)
    if _coordinates(c) != "tf_crop_and_resize":
        return y
    outside = (at < 0) | (at > own - 1)
    if not outside.any():
        return y
    shape = [1] * len(dims)
    shape[axis] = count
    hidden = c.w.compare("ne", c.w.written(Known(outside.astype(np.int64).reshape(shape), i64)), 0)
    return c.w.where(hidden, c.attr("extrapolation_value", 0.0), y)


def positions(mode: str, own: int, count: int, scale: float, roi: tuple[float, float]) -> NDArray[np.float64]:
    """Where the elements of the result lie in the input, along one axis."""
    i = np.arange(count, dtype=np.float64)
    length = own * scale  # the size before it is rounded down
    if mode == "align_corners":
        return i * (own - 1) / (length - 1) if length != 1 else np.zeros(count)
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if length != 1:
            return start * (own - 1) + i * (end - start) * (own - 1) / (length - 1)
        return np.full(count, 0.5 * (start + end) * (own - 1))
    if mode == "pytorch_half_pixel":
        return (i + 0.5) / scale - 0.5 if length != 1 else np.full(count, -0.5)
    if mode == "half_pixel_symmetric":
        adjustment = count / (scale * own)
        center = own / 2
        return center * (1 - adjustment) + (i + 0.5) / scale - 0.5
    if mode == "half_pixel":
        return (i + 0.5) / scale - 0.5
    raise NotSupported(f"coordinate_transformation_mode is {mode!r}, which no row knows")


def grid_sample(c: Call) -> SSAValue:
    """x [N, C, H, W] sampled at the points of a grid [N, OH, OW, 2]."""
    x, grid = c.tensor(0), c.tensor(1)
    if tensor_type(x).rank != 4:
        return _volumes_sampled(c, x, grid)
    given = str(c.attr("mode", "linear"))
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(given, given)
    outside = c.attr("padding_mode", "zeros")
    op = GridSampleOp(mode, outside, channels_last(c.w, x, 2), grid, bool(c.attr("align_corners", 0)))
    return channels_first(c.w, c.w.put(op))


def _volumes_sampled(c: Call, x: SSAValue, grid: SSAValue) -> SSAValue:
    """x [N, C, sizes...] at the points of a grid [N, result..., dims], as gathers."""
    batch, channels, *sizes = tensor_type(x).dims
    *outer, count = tensor_type(grid).dims
    mode, outside = str(c.attr("mode", "linear")), c.attr("padding_mode", "zeros")
    if count.as_int() != len(sizes) or mode not in ("linear", "bilinear", "nearest") or outside != "zeros":
        raise NotSupported(
            f"volumes with the mode {mode} and padding_mode {outside}, expected linear or nearest, zeros"
        )
    element = tensor_type(grid).element_type
    points = product(outer[1:])
    at: list[SSAValue] = []
    for axis, size in enumerate(sizes):  # the last coordinate is that of the first dim
        one = c.w.reshape(c.w.slice(grid, len(outer), len(sizes) - 1 - axis, 1), (batch, points))
        span = c.w.number(size, element)
        moved = c.w.add(one, 1)
        if c.attr("align_corners", 0):
            at.append(c.w.mul(c.w.mul(moved, 0.5), c.w.sub(span, 1)))
        else:
            at.append(c.w.mul(c.w.sub(c.w.mul(moved, span), 1), 0.5))
    found = sampled(c.w, x, at, nearest=mode == "nearest")
    return c.w.reshape(c.w.permute(found, [0, 2, 1]), (batch, channels, *outer[1:]))


ROWS: dict[str, Row] = {"Resize Upsample": resize, "GridSample": grid_sample}
