"""What cumulative ops mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.ir import Operation

from ait_mlir.dialects.ait.cumulative import CumsumOp
from ait_mlir.reference.core import Array, Evaluation, reference


def cumsum(x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    """Return the sums along `axis` up to each element; integers wrap."""
    x = np.flip(x, axis) if reverse else x
    y = np.cumsum(x, axis, dtype=x.dtype)
    if exclusive:
        nothing = np.zeros_like(np.take(y, range(min(1, y.shape[axis])), axis))
        y = np.concatenate((nothing, np.take(y, range(y.shape[axis] - 1), axis)), axis)
    return np.flip(y, axis) if reverse else y


@reference("ait.cumsum")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    c = cast(CumsumOp, op)
    return (cumsum(arrays[0], c.dim.value.data, c.exclusive is not None, c.reverse is not None),)
