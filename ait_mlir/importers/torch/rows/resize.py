"""Resampling, and operations that move elements between channels and spatial dims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32, f64

from ait_mlir.building.formulas import Value
from ait_mlir.compositions import rearrange
from ait_mlir.compositions.rearrange import channels_first, channels_last
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.resize import OUTSIDE, GridSampleOp, ResizeOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.torch.call import Call, NotSupported, Row


def upsample(mode: str, rank: int) -> Row:
    """A row that resamples the last `rank` dims to sizes or by scales, between permutes to channels-last and back."""

    def row(c: Call) -> Value:
        x = c.tensor("input" if "input" in c.arguments else "self")
        sizes = c.dims[-rank:]
        factors = given_scales(c, rank)
        own = tensor_type(x).dims[-rank:]
        if factors is not None and all(
            n.is_integer() and c.w.scope.equal(d * int(n), m) for n, d, m in zip(factors, own, sizes, strict=True)
        ):
            factors = None  # the sizes imply the same factors
        op = ResizeOp(mode, channels_last(c.w, x, rank), sizes, factors, bool(c["align_corners"]))
        return channels_first(c.w, c.w.put(op))

    return row


def given_scales(c: Call, rank: int) -> list[float] | None:
    """The scales that the caller gave, which take precedence over the sizes."""
    if c["scale_factors"]:
        return [float(n) for n in c["scale_factors"]]
    names = ["scales"] if rank == 1 else ["scales_d", "scales_h", "scales_w"][-rank:]
    found: Sequence[float | None] = [c[name] for name in names]
    return None if all(n is None for n in found) else [float(n or 0.0) for n in found]


def antialiased(mode: str) -> Row:
    """A row that resamples the last two dims with a filter that widens with the scale: a product with a matrix for each
    dim.
    """

    def row(c: Call) -> Value:
        x = c.tensor("input" if "input" in c.arguments else "self")
        element = tensor_type(x).element_type
        if not is_float(element):  # PyTorch computes it in fixed point, and rounds twice
            raise NotSupported(f"resampling of {element} with antialias=True is not supported; convert to float first")
        wide = f64 if element == f64 else f32
        factors = given_scales(c, 2) or [0.0, 0.0]
        y = c.w.cast(x, wide)
        for axis in (-1, -2):
            size, own = c.dims[axis].as_int(), tensor_type(x).dims[axis].as_int()
            if size is None or own is None:
                raise NotSupported("resampling with antialias=True is supported for images of one size")
            scale = 1 / factors[axis] if factors[axis] else own / size
            if c["align_corners"]:
                scale = (own - 1) / (size - 1) if size > 1 else 0.0
            matrix = filter_matrix(mode, own, size, scale).astype(np.float64 if wide == f64 else np.float32)
            name = f"constant.resize_{mode}_{own}_{size}_{scale}_{matrix.dtype.name}"
            swapped = [0, 1, 2, 3] if axis == -1 else [0, 1, 3, 2]
            weights = c.w.store(name, matrix, wide)
            y = c.w.op(GemmOp, c.w.permute(y, swapped), weights, properties={"layout": "rcr"}, regions=1)
            y = c.w.permute(y, swapped)
        return c.w.cast(y, element)

    return row


def filter_matrix(mode: str, own: int, size: int, scale: float) -> NDArray[np.float64]:
    """The weights [size, own] of `own` elements in each of `size` results, with sum 1: a triangle, or the cubic with a
    = -1/2 (Keys 1981), around the result's position; `scale` times as wide if the result is smaller.
    """
    centers = scale * (np.arange(size) + 0.5)
    distance = np.abs(np.arange(own) + 0.5 - centers[:, None]) / max(scale, 1.0)
    if mode == "linear":
        weights = np.maximum(1 - distance, 0)
    else:
        near = (1.5 * distance - 2.5) * distance**2 + 1
        far = ((2.5 - 0.5 * distance) * distance - 4) * distance + 2
        weights = np.where(distance < 1, near, np.where(distance < 2, far, 0))
    return weights / weights.sum(1, keepdims=True)


def grid_sample(c: Call) -> Value:
    """x [N, C, H, W] sampled at the points of a grid [N, OH, OW, 2]."""
    x = c.tensor("input")
    mode, outside = ("linear", "nearest", "cubic")[int(c["interpolation_mode"])], OUTSIDE[int(c["padding_mode"])]
    op = GridSampleOp(mode, outside, channels_last(c.w, x, 2), c.tensor("grid"), bool(c["align_corners"]))
    return channels_first(c.w, c.w.put(op))


def pixel_shuffle(c: Call) -> Value:
    """[..., C * r * r, H, W] to [..., C, H * r, W * r]."""
    return rearrange.pixel_shuffle(c.w, c.tensor("self"), int(c["upscale_factor"]), len(c.dims) - 3)


def pixel_unshuffle(c: Call) -> Value:
    """[..., C, H * r, W * r] to [..., C * r * r, H, W]."""
    return rearrange.pixel_unshuffle(c.w, c.tensor("self"), int(c["downscale_factor"]), len(c.dims) - 3)


def channel_shuffle(c: Call) -> Value:
    """`channel_shuffle`: channels [groups, n] in the order [n, groups]."""
    x, groups = c.tensor("self"), c.size("groups")
    batch, channels, *rest = tensor_type(x).dims
    count = groups.as_int() or 1
    known = channels.as_int() or count
    cut = c.w.reshape(x, (batch, count, known // count, *rest))
    moved = c.w.permute(cut, [0, 2, 1, *range(3, 3 + len(rest))])
    return c.w.reshape(moved, (batch, channels, *rest))


def _both(name: str, mode: str, rank: int) -> dict[str, Row]:
    return {f"aten.{name}.{overload}": upsample(mode, rank) for overload in ("default", "vec")}


ROWS: dict[str, Row] = {
    **{k: v for n in (1, 2, 3) for k, v in _both(f"upsample_nearest{n}d", "nearest", n).items()},
    **{k: v for n in (1, 2, 3) for k, v in _both(f"_upsample_nearest_exact{n}d", "nearest_exact", n).items()},
    **_both("upsample_linear1d", "linear", 1),
    **_both("upsample_bilinear2d", "linear", 2),
    **_both("upsample_trilinear3d", "linear", 3),
    **_both("upsample_bicubic2d", "cubic", 2),
    **{f"aten._upsample_bilinear2d_aa.{overload}": antialiased("linear") for overload in ("default", "vec")},
    **{f"aten._upsample_bicubic2d_aa.{overload}": antialiased("cubic") for overload in ("default", "vec")},
    "aten.grid_sampler_2d.default": grid_sample,
    "aten.pixel_shuffle.default": pixel_shuffle,
    "aten.pixel_unshuffle.default": pixel_unshuffle,
    "aten.channel_shuffle.default": channel_shuffle,
}
