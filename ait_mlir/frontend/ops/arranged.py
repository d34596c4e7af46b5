"""Operators that arrange elements anew: flip, roll, triangles, repetitions, pixels into channels and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from ait_mlir.frontend.intvar import DimLike, IntVar, as_dim, merge_symbols, product, scope_from
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum, cast, elementwise, eq, ge, le, where
from ait_mlir.frontend.ops.index import index_select, scatter
from ait_mlir.frontend.ops.ranges import arange
from ait_mlir.frontend.ops.view import dynamic_slice, expand, permute, reshape, unsqueeze
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
        super().__init__()
        self.dims = _each(dims)

    def __call__(self, x: Tensor) -> Tensor:
        self.begin(x)
        for axis in (self.axis(x, dim) for dim in self.dims):
            x = index_select(axis)(x, arange()(x.shape()[axis] - 1, -1, -1))
        return self.finish(x)


class roll(Operator):
    """`x` with the elements along each of `dims` moved by its shift; those beyond the end come back at the start."""

    def __init__(self, shifts: int | Sequence[int], dims: int | Sequence[int]):
        super().__init__()
        self.shifts, self.dims = _each(shifts), _each(dims)

    def __call__(self, x: Tensor) -> Tensor:
        self.begin(x)
        if len(self.shifts) != len(self.dims):
            raise self.fail(f"has {len(self.shifts)} shifts for {len(self.dims)} dims")
        for shift, dim in zip(self.shifts, self.dims, strict=True):
            axis = self.axis(x, dim)
            size = x.shape()[axis]
            # size * |shift| is a multiple of the size that keeps places from being negative
            first = arange()(size) + arange().number(size * abs(shift) - shift)
            x = index_select(axis)(x, elementwise(FuncEnum.REM)(first, arange().number(size)))
        return self.finish(x)


class _triangle(Operator):
    """`x` with 0 on one side of a diagonal of its last two dims; `diagonal` counts from the main one upwards."""

    lower: ClassVar[bool]

    def __init__(self, diagonal: int = 0):
        super().__init__()
        self.diagonal = diagonal

    def __call__(self, x: Tensor) -> Tensor:
        self.begin(x)
        if x.rank < 2:
            raise self.fail(f"needs two dims, found {x.describe()}")
        rows, columns = (arange()(size) for size in x.shape()[-2:])
        compare = ge if self.lower else le
        kept = compare()(unsqueeze(1)(rows + self.diagonal), unsqueeze(0)(columns))
        return self.finish(where()(kept, x, 0.0 if "float" in x.dtype() else 0))


class tril(_triangle):
    """`x` with 0 above a diagonal of its last two dims; `diagonal` counts from the main one upwards."""

    lower = True


class triu(_triangle):
    """`x` with 0 below a diagonal of its last two dims; `diagonal` counts from the main one upwards."""

    lower = False


class as_strided(Operator):
    """Elements of `x`, taken as row-major without gaps, at `storage_offset` plus the sum of index * stride of each dim.

    Sizes may be dims; strides are numbers of elements. Elements that no place of `x` has are a `BuildError` where the
    dims show it, else as those of `index_select`.
    """

    def __init__(self, size: Sequence[DimLike], stride: Sequence[DimLike], storage_offset: DimLike = 0):
        super().__init__()
        self.size, self.stride = [as_dim(n) for n in size], [as_dim(n) for n in stride]
        self.offset = as_dim(storage_offset)

    def __call__(self, x: Tensor) -> Tensor:
        self.begin(x)
        if len(self.size) != len(self.stride):
            raise self.fail(f"has {len(self.size)} sizes and {len(self.stride)} strides")
        if any((known := n.expr.as_int()) is not None and known < 0 for n in (*self.size, *self.stride, self.offset)):
            raise self.fail("sizes, strides and the offset must be at least 0")
        flat, total = reshape()(x, [-1]), product(x.shape())
        last = self.offset
        for size, stride in zip(self.size, self.stride, strict=True):
            last = last + (size - 1) * stride
        if last.lower_bound() >= total.upper_bound() and product(self.size).lower_bound() > 0:
            raise self.fail(f"reads up to element {last} of {total}")
        end = self.offset + product(self.size)
        if self._is_dense() and scope_from(merge_symbols(end.symbols, total.symbols)).le(end.expr, total.expr):
            part = dynamic_slice()(flat, [self.offset], [end])
            return self.finish(reshape()(part, self.size))
        places = arange().number(self.offset)
        for axis, (size, stride) in enumerate(zip(self.size, self.stride, strict=True)):
            along = arange()(size) * arange().number(stride)
            places = places + reshape()(along, [size, *[1] * (len(self.size) - axis - 1)])
        picked = index_select(0)(flat, reshape()(expand()(places, self.size), [-1]))
        return self.finish(reshape()(picked, self.size))

    def _is_dense(self) -> bool:
        """Whether the result has the row-major strides of its sizes."""
        return all(stride == product(self.size[axis + 1 :]) for axis, stride in enumerate(self.stride))


class one_hot(Operator):
    """int64 [..., num_classes]: 1 at the place that an index names, else 0. Other indices have no 1."""

    def __init__(self, num_classes: int):
        super().__init__()
        self.classes = num_classes

    def __call__(self, indices: Tensor) -> Tensor:
        self.begin(indices)
        if self.classes < 1:
            raise self.fail(f"num_classes is {self.classes}, expected at least 1")
        classes = arange(indices.dtype())(self.classes)
        return self.finish(cast()(eq()(unsqueeze(-1)(indices), classes), "int64"))


class meshgrid(Operator):
    """The places of a grid: of tensors of one dim each, all of the shape of their sizes, one for each.

    `indexing` "xy" exchanges the first two dims.
    """

    def __init__(self, indexing: Literal["ij", "xy"] = "ij"):
        super().__init__()
        self.indexing = indexing

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        self.begin(*tensors)
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
        super().__init__()
        self.repeats, self.dim = repeats, dim

    def __call__(self, x: Tensor) -> Tensor:
        self.begin(x)
        axis, shape = self.axis(x, self.dim), x.shape()
        if self.repeats < 1:
            raise self.fail(f"repeats is {self.repeats}, expected at least 1")
        wide = expand()(unsqueeze(axis + 1)(x), [*shape[: axis + 1], self.repeats, *shape[axis + 1 :]])
        return self.finish(reshape()(wide, [*shape[:axis], shape[axis] * self.repeats, *shape[axis + 1 :]]))


class scatter_add(Operator):
    """`x` with the elements of `src` added along `dim`: `scatter` with `reduce="add"`."""

    def __init__(self, dim: int = 0):
        super().__init__()
        self.scatter = scatter(dim, "add")

    def __call__(self, x: Tensor, index: Tensor, src: Tensor) -> Tensor:
        self.begin(x, index, src)
        return self.finish(self.scatter(x, index, src))


class pixel_shuffle(Operator):
    """[N, H, W, C * r * r] as [N, H * r, W * r, C], r = `upscale_factor` (arXiv:1609.05158).

    The channels are ordered as in PyTorch: those of one result channel, row by row, follow each other.
    """

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.factor = upscale_factor

    def __call__(self, x: Tensor) -> Tensor:
        self.begin(x)
        r = self.factor
        channels = x.shape()[-1].expr.as_int() if x.rank == 4 else None
        if r < 1 or channels is None or channels % (r * r) != 0:
            raise self.fail(f"needs [N, H, W, a multiple of {r * r}], found {x.describe()}")
        batch, height, width, _ = x.shape()
        parts = reshape()(x, [batch, height, width, channels // (r * r), r, r])
        turned = permute()(parts, [0, 1, 4, 2, 5, 3])
        return self.finish(reshape()(turned, [batch, height * r, width * r, channels // (r * r)]))


class pixel_unshuffle(Operator):
    """[N, H * r, W * r, C] as [N, H, W, C * r * r], r = `downscale_factor`: the reverse of `pixel_shuffle`."""

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.factor = downscale_factor

    def __call__(self, x: Tensor) -> Tensor:
        self.begin(x)
        r = self.factor
        if x.rank != 4 or r < 1:
            raise self.fail(f"needs [N, H, W, C], found {x.describe()}")
        batch, height, width, channels = x.shape()
        parts = reshape()(x, [batch, height // r, r, width // r, r, channels])
        turned = permute()(parts, [0, 1, 3, 5, 2, 4])
        return self.finish(reshape()(turned, [batch, height // r, width // r, product([channels]) * (r * r)]))
