"""Operators that rearrange elements: flip, roll, triangles, repetitions, pixels to channels and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from ait_mlir.compositions import rearrange
from ait_mlir.dims import Expr, const
from ait_mlir.frontend.intvar import DimLike, IntVar, as_dim
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import cast, eq
from ait_mlir.frontend.ops.index import scatter
from ait_mlir.frontend.ops.ranges import arange
from ait_mlir.frontend.ops.view import expand, reshape, unsqueeze
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "as_strided", "flip", "meshgrid", "one_hot", "pixel_shuffle", "pixel_unshuffle", "repeat_interleave", "roll",
    "scatter_add", "tril", "triu",
]  # fmt: skip


def _each(given: int | Sequence[int]) -> list[int]:
    return [given] if isinstance(given, int) else list(given)


class flip(Operator):
    """`x` with the elements along `dims`, one or several, in reverse order."""

    def __init__(self, dims: int | Sequence[int]):
        self.dims = _each(dims)

    def __call__(self, x: Tensor) -> Tensor:
        return self.write(rearrange.flip, x, [self.axis(x, dim) for dim in self.dims])


class roll(Operator):
    """`x` with the elements along each of `dims` moved by its shift; elements moved beyond the end return
    at the start.
    """

    def __init__(self, shifts: int | Sequence[int], dims: int | Sequence[int]):
        self.shifts, self.dims = _each(shifts), _each(dims)

    def __call__(self, x: Tensor) -> Tensor:
        if len(self.shifts) != len(self.dims):
            raise self.fail(f"has {len(self.shifts)} shifts for {len(self.dims)} dims")
        shifts: dict[int, Expr] = {}
        for shift, axis in zip(self.shifts, (self.axis(x, dim) for dim in self.dims), strict=True):
            shifts[axis] = shifts.get(axis, const(0)) + shift
        return self.write(rearrange.roll, x, shifts)


class _triangle(Operator):
    """`x` with 0 on one side of a diagonal of its last two dims; `diagonal` counts upwards from the main diagonal."""

    lower: ClassVar[bool]

    def __init__(self, diagonal: int = 0):
        self.diagonal = diagonal

    def __call__(self, x: Tensor) -> Tensor:
        if x.rank < 2:
            raise self.fail(f"needs two dims, found {x.describe()}")
        return self.write(rearrange.triangle, x, self.diagonal, self.lower)


class tril(_triangle):
    """`x` with 0 above a diagonal of its last two dims; `diagonal` counts upwards from the main diagonal."""

    lower = True


class triu(_triangle):
    """`x` with 0 below a diagonal of its last two dims; `diagonal` counts upwards from the main diagonal."""

    lower = False


class as_strided(Operator):
    """Elements of `x` (as row-major memory without gaps) at `storage_offset` plus the sum of index * stride over the
    dims.

    Sizes may be dims; strides are numbers of elements. Offsets outside of `x` raise a `BuildError` if the dims prove
    it; in a run they are treated like indices of `index_select`.
    """

    def __init__(self, size: Sequence[DimLike], stride: Sequence[DimLike], storage_offset: DimLike = 0):
        self.size, self.stride = [as_dim(n) for n in size], [as_dim(n) for n in stride]
        self.offset = as_dim(storage_offset)

    def __call__(self, x: Tensor) -> Tensor:
        if len(self.size) != len(self.stride):
            raise self.fail(f"has {len(self.size)} sizes and {len(self.stride)} strides")
        if any((known := n.expr.as_int()) is not None and known < 0 for n in (*self.size, *self.stride, self.offset)):
            raise self.fail("sizes, strides and the offset must be at least 0")
        return self.write(rearrange.as_strided, reshape()(x, [-1]), self.size, self.stride, self.offset)


class one_hot(Operator):
    """int64 [..., num_classes]: 1 at the position of the index, else 0; only zeros for an index out of range."""

    def __init__(self, num_classes: int):
        self.classes = num_classes

    def __call__(self, indices: Tensor) -> Tensor:
        if self.classes < 1:
            raise self.fail(f"num_classes is {self.classes}, expected at least 1")
        classes = arange(indices.dtype())(self.classes)
        return self.finish(cast()(eq()(unsqueeze(-1)(indices), classes), "int64"))


class meshgrid(Operator):
    """The coordinates of a grid: each tensor of rank 1 broadcast along its dim to the shape of all sizes.

    `indexing` "xy" exchanges the first two dims.
    """

    def __init__(self, indexing: Literal["ij", "xy"] = "ij"):
        self.indexing = indexing

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        if not tensors or any(t.rank != 1 for t in tensors):
            raise self.fail("needs tensors of one dim each")
        order = list(range(len(tensors)))
        if self.indexing == "xy" and len(tensors) > 1:
            order[:2] = 1, 0
        shape = [tensors[order.index(d)].shape()[0] for d in range(len(tensors))]
        ones: list[list[IntVar | int]] = [[1] * len(tensors) for _ in tensors]
        for n, t in enumerate(tensors):
            ones[n][order[n]] = t.shape()[0]
        self.outputs = [expand()(reshape()(t, view), shape) for t, view in zip(tensors, ones, strict=True)]
        return self.outputs


class repeat_interleave(Operator):
    """`x` with each element along `dim` `repeats` times, side by side."""

    def __init__(self, repeats: int, dim: int):
        self.repeats, self.dim = repeats, dim

    def __call__(self, x: Tensor) -> Tensor:
        if self.repeats < 1:
            raise self.fail(f"repeats is {self.repeats}, expected at least 1")
        return self.write(rearrange.repeat_interleave, x, const(self.repeats), self.axis(x, self.dim))


class scatter_add(Operator):
    """`x` with the elements of `src` added along `dim`: `scatter` with `reduce="add"`."""

    def __init__(self, dim: int = 0):
        self.scatter = scatter(dim, "add")

    def __call__(self, x: Tensor, index: Tensor, src: Tensor) -> Tensor:
        return self.finish(self.scatter(x, index, src))


class pixel_shuffle(Operator):
    """[N, H, W, C * r * r] as [N, H * r, W * r, C], r = `upscale_factor` (arXiv:1609.05158).

    The channels are ordered as in PyTorch: the r * r channels of one result channel are neighbours, row by row.
    """

    def __init__(self, upscale_factor: int):
        self.factor = upscale_factor

    def __call__(self, x: Tensor) -> Tensor:
        r = self.factor
        channels = x.shape()[-1].expr.as_int() if x.rank == 4 else None
        if r < 1 or channels is None or channels % (r * r) != 0:
            raise self.fail(f"needs [N, H, W, a multiple of {r * r}], found {x.describe()}")
        return self.write(rearrange.pixel_shuffle, x, r, 3)


class pixel_unshuffle(Operator):
    """[N, H * r, W * r, C] as [N, H, W, C * r * r], r = `downscale_factor`: the reverse of `pixel_shuffle`."""

    def __init__(self, downscale_factor: int):
        self.factor = downscale_factor

    def __call__(self, x: Tensor) -> Tensor:
        r = self.factor
        if x.rank != 4 or r < 1:
            raise self.fail(f"needs [N, H, W, C], found {x.describe()}")
        return self.write(rearrange.pixel_unshuffle, x, r, 3)
