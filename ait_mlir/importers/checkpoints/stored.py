"""A weight as a checkpoint stores it: numbers in few bits, scales, zero points, and ops that make values of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.compositions.index import slices_at
from ait_mlir.compositions.quantize import dequantize, rounded, unpack
from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.dialects.ait.types import TensorType, as_shape
from ait_mlir.dtypes import numpy_dtype

Array = NDArray[Any]


@dataclass(frozen=True)
class Scaled:
    """A matrix of numbers in few bits: (q - zero) * scale.

    `numbers` are [rows, columns]. Those of 4 bits lie two in a byte, the lower half first: [rows, (columns + 1) // 2]
    of uint8. Without `blocks` the scale and the zero point broadcast; else there is a number for each block.
    """

    element: str
    """The element type of the numbers: "int4", "uint4", "int8", "uint8" or "float8_e4m3fn"."""
    columns: int
    numbers: Array
    scale: Array | Scaled
    blocks: tuple[int, int] | None = None
    zero: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.numbers.shape[0], self.columns

    def parts(self, name: str) -> dict[str, Array]:
        """The arrays that are stored, by the names of their params."""
        scale = self.scale.parts(f"{name}.scale") if isinstance(self.scale, Scaled) else {f"{name}.scale": self.scale}
        zero = {} if self.zero is None else {f"{name}.zero": self.zero}
        return {f"{name}.numbers": self.numbers, **scale, **zero}

    def values(self) -> NDArray[np.float32]:
        """The numbers that are meant, in f32."""
        q = self.whole_numbers().astype(np.float32)
        if self.zero is not None:
            q -= spread(self.zero, self.blocks, self.shape).astype(np.float32)
        scale = self.scale.values() if isinstance(self.scale, Scaled) else self.scale.astype(np.float32)
        return q * spread(scale, self.blocks, self.shape)

    def whole_numbers(self) -> Array:
        """The stored numbers, an element each."""
        if self.element not in ("int4", "uint4"):
            return self.numbers
        found = nibbles(self.numbers)[:, : self.columns]
        return found if self.element == "uint4" else (found.view(np.int8) ^ 8) - 8

    def with_columns(self, order: Array) -> Scaled:
        """The same scales on the stored numbers in another order of columns."""
        found = self.whole_numbers()[:, order]
        return replace(self, numbers=packed(found) if self.element in ("int4", "uint4") else found)

    def with_rows(self, rows: Array) -> Scaled:
        """These rows, in this order; each row must have its own scales."""
        assert self.blocks is None or self.blocks[0] == 1
        scale = self.scale.with_rows(rows) if isinstance(self.scale, Scaled) else self.scale[rows]
        zero = None if self.zero is None else self.zero[rows]
        return replace(self, numbers=self.numbers[rows], scale=scale, zero=zero)

    def joined(self, other: Scaled) -> Scaled:
        """The rows of this matrix, then those of another one that is stored in the same way."""
        scale = self.scale
        if isinstance(scale, Scaled) and isinstance(other.scale, Scaled):
            scale = scale.joined(other.scale)
        elif isinstance(scale, np.ndarray) and isinstance(other.scale, np.ndarray):
            scale = np.concatenate([scale, other.scale])
        zero = None if self.zero is None or other.zero is None else np.concatenate([self.zero, other.zero])
        return replace(self, numbers=np.concatenate([self.numbers, other.numbers]), scale=scale, zero=zero)

    def write(self, w: Writer, name: str, element: Attribute) -> SSAValue:
        """The ops that compute the values in a float type."""
        numbers = _param(w, f"{name}.numbers", self.numbers)
        if self.element in ("int4", "uint4"):
            numbers = unpack(w, numbers, self.columns, BY_NAME[self.element].ir)
        if isinstance(self.scale, Scaled):
            scale = self.scale.write(w, f"{name}.scale", f32)
        else:
            scale = _param(w, f"{name}.scale", self.scale)
        zero = None if self.zero is None else _param(w, f"{name}.zero", self.zero)
        return dequantize(w, numbers, scale, element, zero, self.blocks)


@dataclass(frozen=True)
class Activations:
    """How a factor of products with a quantised weight is rounded: to numbers of 8 bits with a scale.

    There is a scale for each row, or for each `group` numbers along a row, found in the run; or one for all runs:
    `scale`, which a recipe finds by examples.
    """

    element: str
    """The element type of the numbers: "int8" or "float8_e4m3fn"."""
    group: int | None = None
    is_static: bool = False
    scale: float | None = None

    def rounded(self, w: Writer, x: SSAValue) -> SSAValue:
        """x, rounded and back."""
        scale = None if self.scale is None else w.scalar(self.scale, f32)
        return rounded(w, x, BY_NAME[self.element].ir, self.group, scale)


@dataclass(frozen=True)
class StoredWeight:
    """A weight of a checkpoint: [rows, columns], as `torch.nn.Linear` has it.

    `less` are numbers that are subtracted from the values, one for each block. Column i of the weight is column
    `order[i]` of the stored one.
    """

    dtype: str
    """The type of the values: "float16", "bfloat16" or "float32"."""
    scaled: Scaled
    less: Scaled | Array | None = None
    order: NDArray[np.int64] | None = None
    activations: Activations | None = None
    """How products with the weight round their other factor; None leaves floats."""
    lead: tuple[int, ...] = ()
    """The dims before the columns, whose product is the number of rows; () for a matrix. Experts are [experts, rows,
    columns]."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.lead, self.scaled.columns) if self.lead else self.scaled.shape

    def with_rows(self, rows: Array, lead: tuple[int, ...] = ()) -> StoredWeight:
        """These rows, in this order; each row must have its own scales."""
        less = self.less.with_rows(rows) if isinstance(self.less, Scaled) else self.less
        less = less[rows] if isinstance(less, np.ndarray) else less
        return replace(self, scaled=self.scaled.with_rows(rows), less=less, lead=lead)

    def with_more(self, other: StoredWeight) -> StoredWeight | None:
        """The rows of each expert, then those of this expert of another weight; None if they are stored otherwise."""
        (experts, first, _), (others, second, _) = self.shape, other.shape
        parts, more = self.parts(""), other.parts("")
        alike = experts == others and self.scaled.columns == other.scaled.columns and parts.keys() == more.keys()
        if not alike or any(parts[n].dtype != more[n].dtype or parts[n].shape[1:] != more[n].shape[1:] for n in parts):
            return None
        both = self.joined(other)
        mine = np.arange(experts * first).reshape(experts, first)
        theirs = experts * first + np.arange(experts * second).reshape(experts, second)
        return both.with_rows(np.concatenate([mine, theirs], 1).reshape(-1), (experts, first + second))

    def joined(self, other: StoredWeight) -> StoredWeight:
        """The rows of this weight, then those of another one."""
        less = self.less
        if isinstance(less, Scaled) and isinstance(other.less, Scaled):
            less = less.joined(other.less)
        elif isinstance(less, np.ndarray) and isinstance(other.less, np.ndarray):
            less = np.concatenate([less, other.less])
        return replace(self, scaled=self.scaled.joined(other.scaled), less=less, lead=())

    def parts(self, name: str) -> dict[str, Array]:
        """The arrays that are stored, by the names of their params."""
        less = {} if self.less is None else {f"{name}.less": self.less}
        found = less if not isinstance(self.less, Scaled) else self.less.parts(f"{name}.less")
        order = {} if self.order is None else {f"{name}.order": self.order}
        return {**self.scaled.parts(name), **found, **order}  # type: ignore[dict-item]

    @property
    def nbytes(self) -> int:
        """The bytes of the stored arrays."""
        return sum(array.nbytes for array in self.parts("").values())

    def values(self) -> Array:
        """The values of the weight, bitwise as the library of the checkpoint's format computes them."""
        found = self.scaled.values()
        if self.less is not None:
            less = self.less.values() if isinstance(self.less, Scaled) else self.less.astype(np.float32)
            found = found - spread(less, self.scaled.blocks, self.scaled.shape)
        found = found if self.order is None else found[:, self.order]
        return found.astype(numpy_dtype(self.dtype)).reshape(self.shape)

    def write(self, w: Writer, name: str, element: Attribute) -> SSAValue:
        """The ops that compute the weight in a float type, from params of the names of `parts`."""
        if self.less is None:
            value = self.scaled.write(w, name, element)
        else:
            assert self.scaled.blocks is not None
            (rows, columns), size = self.scaled.shape, self.scaled.blocks[1]
            value = self.scaled.write(w, name, f32)
            stored = self.less
            less = (
                stored.write(w, f"{name}.less", f32)
                if isinstance(stored, Scaled)
                else _param(w, f"{name}.less", stored)
            )
            groups = columns // size
            value = w.reshape(value, as_shape([rows, groups, size]))
            value = w.sub(value, w.reshape(w.cast(less, f32), as_shape([rows, groups, 1])))
            value = w.cast(w.reshape(value, as_shape(self.scaled.shape)), element)
        if self.order is not None:
            value = w.full(slices_at(w, value, 1, _param(w, f"{name}.order", self.order)))
        return w.reshape(value, as_shape(self.shape))


def _param(w: Writer, name: str, data: Array) -> SSAValue:
    """A param in the type of its data."""
    return w.param(name, TensorType.get(as_shape(data.shape), BY_NAME[data.dtype.name].ir))


def spread(numbers: Array, blocks: tuple[int, int] | None, shape: Sequence[int]) -> Array:
    """A number for each element of a matrix: of its block, or by broadcasting."""
    if blocks is None:
        return np.broadcast_to(numbers, tuple(shape))
    return numbers.repeat(blocks[0], 0)[: shape[0]].repeat(blocks[1], 1)[:, : shape[1]]


def nibbles(data: Array) -> Array:
    """The two numbers of each byte along the last dim, the lower half first."""
    data = np.ascontiguousarray(data).view(np.uint8)
    return np.stack([data & 15, data >> 4], -1).reshape(*data.shape[:-1], -1)


def packed(numbers: Array) -> Array:
    """Numbers of 4 bits in bytes, two of each along the last dim, the first in the lower half."""
    data = numbers.astype(np.int8).view(np.uint8) & np.uint8(15)
    if data.shape[-1] % 2:
        data = np.concatenate([data, np.zeros_like(data[..., :1])], -1)
    return data[..., ::2] | data[..., 1::2] << np.uint8(4)
