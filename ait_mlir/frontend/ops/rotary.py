"""Rotary position embedding, from ops that fuse into one pass."""

from __future__ import annotations

from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.view import concatenate, split
from ait_mlir.frontend.tensor import Tensor

__all__ = ["rotary_embedding"]


class rotary_embedding(Operator):
    """Rotate pairs of elements of the last dim by angles, given by their cosines and sines (arXiv:2104.09864).

    x is [..., D]; element i and element i + D / 2 are a pair, as in the published Llama checkpoints. `cos` and `sin`
    are [..., D / 2] and broadcast.
    """

    def __call__(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        size = x.type.dims[-1].as_int() if x.rank else None
        if size is None or size % 2:
            raise self.fail("the last dim of x must be an even number")
        for what, table in (("cos", cos), ("sin", sin)):
            if not table.rank or table.type.dims[-1].as_int() != size // 2:
                raise self.fail(f"the last dim of {what} must be {size // 2}, half of that of x")
        a, b = split()(x, size // 2, -1)
        return self.finish(concatenate()([a * cos - b * sin, b * cos + a * sin], -1))
