"""Resampling, and operations that move elements between channels and spatial dims."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.dialects.ait.resize import OUTSIDE, GridSampleOp, ResizeOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.known import Value
from ait_mlir.importers.torch.rows.common import channels_first, channels_last


def upsample(mode: str, rank: int) -> Row:
    """The last `rank` dims resampled to sizes or by scales, with permutes to channels-last and back."""

    def row(c: Call) -> Value:
        x = c.tensor("input" if "input" in c.arguments else "self")
        sizes = c.dims[-rank:]
        factors = given_scales(c, rank)
        own = tensor_type(x).dims[-rank:]
        if factors is not None and all(
            n.is_integer() and c.w.scope.equal(d * int(n), m) for n, d, m in zip(factors, own, sizes, strict=True)
        ):
            factors = None  # the sizes say as much
        op = ResizeOp(mode, channels_last(c.w, x, rank), sizes, factors, bool(c["align_corners"]))
        return channels_first(c.w, c.w.add(op))

    return row


def given_scales(c: Call, rank: int) -> list[float] | None:
    """The scales that the caller gave, which take precedence over the sizes."""
    if c["scale_factors"]:
        return [float(n) for n in c["scale_factors"]]
    names = ["scales"] if rank == 1 else ["scales_d", "scales_h", "scales_w"][-rank:]
    found: Sequence[float | None] = [c[name] for name in names]
    return None if all(n is None for n in found) else [float(n or 0.0) for n in found]


def grid_sample(c: Call) -> Value:
    """x [N, C, H, W] at the places of a grid [N, OH, OW, 2]."""
    x = c.tensor("input")
    if tensor_type(x).rank != 4:
        raise NotSupported("grid_sample is supported over two dims")
    mode, outside = ("linear", "nearest", "cubic")[int(c["interpolation_mode"])], OUTSIDE[int(c["padding_mode"])]
    op = GridSampleOp(mode, outside, channels_last(c.w, x, 2), c.tensor("grid"), bool(c["align_corners"]))
    return channels_first(c.w, c.w.add(op))


def pixel_shuffle(c: Call) -> Value:
    """[..., C * r * r, H, W] to [..., C, H * r, W * r]."""
    x, r = c.tensor("self"), int(c["upscale_factor"])
    *outer, channels, height, width = c.dims
    cut = c.w.reshape(x, (*outer, channels, r, r, *tensor_type(x).dims[-2:]))
    n = len(outer)
    moved = c.w.permute(cut, [*range(n + 1), n + 3, n + 1, n + 4, n + 2])
    return c.w.reshape(moved, (*outer, channels, height, width))


def pixel_unshuffle(c: Call) -> Value:
    """[..., C, H * r, W * r] to [..., C * r * r, H, W]."""
    x, r = c.tensor("self"), int(c["downscale_factor"])
    *outer, channels, height, width = c.dims
    n, depth = len(outer), tensor_type(x).dims[-3]
    cut = c.w.reshape(x, (*outer, depth, height, r, width, r))
    moved = c.w.permute(cut, [*range(n + 1), n + 2, n + 4, n + 1, n + 3])
    return c.w.reshape(moved, (*outer, channels, height, width))


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
    "aten.grid_sampler.default": grid_sample,
    "aten.grid_sampler_2d.default": grid_sample,
    "aten.pixel_shuffle.default": pixel_shuffle,
    "aten.pixel_unshuffle.default": pixel_unshuffle,
    "aten.channel_shuffle.default": channel_shuffle,
}
