"""Samples of images between their elements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine
from ait_mlir.building.writer import Writer
from ait_mlir.compositions import functions
from ait_mlir.compositions.index import picked
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const


def sampled(w: Writer, x: SSAValue, at: Sequence[SSAValue], nearest: bool = False) -> SSAValue:
    """Samples [B, C, P] of images [B, C, sizes...] at P points, interpolated linearly, or from the nearest element.

    `at` has a tensor of coordinates [B, P] for each spatial dim, in elements. Elements outside of the image are 0.
    """
    batch, channels, *sizes = tensor_type(x).dims
    points = tensor_type(at[0]).dims[1]
    images = w.full(Affine((batch, const(1), const(1)), (const(1), const(0), const(0)), const(0), i64))
    lows = [functions.round_to_even(w, a) if nearest else w.pointwise("floor", a) for a in at]
    total: SSAValue | None = None
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        if nearest and any(corner):
            break
        weight: SSAValue | None = None
        indices = [images]
        for a, low, size, step in zip(at, lows, sizes, corner, strict=True):
            place = w.add(low, step)
            last = w.sub(w.number(size, tensor_type(a).element_type), 1)
            inside = w.both(w.compare("ge", place, 0), w.compare("le", place, last))
            if nearest:
                own = w.cast(inside, tensor_type(a).element_type)
            else:
                own = w.where(inside, w.sub(1, w.pointwise("abs", w.sub(a, place))), 0)
            weight = own if weight is None else w.mul(weight, own)
            index = w.cast(w.where(inside, place, 0), i64)
            indices.append(w.reshape(index, (batch, points, 1)))
        assert weight is not None
        dims = [0, *range(2, 2 + len(sizes))]
        found = w.full(picked(w, x, indices, dims, [2], (batch, points, channels)))
        part = w.mul(found, w.cast(w.reshape(weight, (batch, points, 1)), tensor_type(x).element_type))
        total = part if total is None else w.add(total, part)
    assert total is not None
    return total
