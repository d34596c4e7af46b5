"""Memory for the interpreter: bytes that know which buffer wrote them last.

The owner of a byte is the buffer through which it was last written; at first it has none. Reading an element with a
byte of another owner gives NaN for a float and an error for an integer. The results therefore show every read of
unwritten bytes, and of bytes that another buffer has overwritten, independent of the values.

In exact mode eight bytes here stand for each byte of the program, and an element's first cells hold a float as float64.
Offsets and overlaps equal the program's; values are not rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ait_mlir.reference.core import Array, DType, EvaluationError, is_integer

EXACT_CELL = 8
"""Bytes held for each byte of the program in exact mode: the size of the widest element."""
CHUNK = 1 << 16
"""Bytes of the program in one chunk; memory records for each chunk whether it was ever written."""


class Memory:
    """Memory. `cell` is the number of bytes held for each byte of the program; `owners` is None if it is read-only."""

    def __init__(self, name: str, size: int, data: Array, cell: int, owners: Array | None) -> None:
        self.name = name
        self.size = size
        self.data = data
        self.cell = cell
        self.owners = owners
        self.chunks = np.zeros(size // CHUNK + 1, np.bool_)

    @classmethod
    def fresh(cls, name: str, size: int, exact: bool) -> Memory:
        """Allocate `size` bytes without an owner. Memory that is never written costs nothing."""
        cell = EXACT_CELL if exact else 1
        return cls(name, size, np.empty(size * cell, np.uint8), cell, np.zeros(size, np.int32))

    @classmethod
    def constant(cls, name: str, array: Array, storage: DType) -> Memory:
        """Make read-only memory that holds an array of a float dtype at least as wide as its storage, or of its
        storage dtype."""
        cell, rest = divmod(array.dtype.itemsize, storage.itemsize)
        if rest:
            array, cell = array.astype(storage), 1
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return cls(name, array.size * storage.itemsize, data, cell, None)


@dataclass(frozen=True)
class View:
    """A buffer's strided view of memory. Offset and limits are in bytes, strides in elements."""

    name: str
    memory: Memory
    owner: int
    low: int
    high: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    storage: DType
    held: DType

    def __post_init__(self) -> None:
        first, last = self.span()
        if first < self.low or last > self.high or self.low < 0 or self.high > self.memory.size:
            raise EvaluationError(
                f"{self.name} reaches bytes [{first}, {last}) of {self.memory.name}, outside of its buffer "
                f"[{self.low}, {self.high}); the memory has {self.memory.size} bytes"
            )

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def span(self) -> tuple[int, int]:
        """Return the range of bytes [first, end) that the view touches; an empty range for a view without elements."""
        if not self.size:
            return self.low, self.low
        reach = [(n - 1) * s * self.storage.itemsize for n, s in zip(self.shape, self.strides, strict=True)]
        return (
            self.offset + sum(r for r in reach if r < 0),
            self.offset + sum(r for r in reach if r > 0) + self.storage.itemsize,
        )

    def values(self) -> Array:
        """Return the elements without a copy, in the dtype in which they are held."""
        if not self.size:
            return np.empty(self.shape, self.held)
        step = self.storage.itemsize * self.memory.cell
        strides = tuple(s * step for s in self.strides)
        return np.ndarray(self.shape, self.held, self.memory.data, self.offset * self.memory.cell, strides)

    def over_bytes(self, per_byte: Array) -> Array:
        """Return the view's part of an array with one element per byte of memory: [*shape, bytes of an element]."""
        width, step = self.storage.itemsize, per_byte.dtype.itemsize
        if not self.size:
            return np.empty((*self.shape, width), per_byte.dtype)
        strides = (*(s * width * step for s in self.strides), step)
        return np.ndarray((*self.shape, width), per_byte.dtype, per_byte, self.offset * step, strides)

    def read(self) -> tuple[Array, int]:
        """Return a copy of the elements, with NaN for each element not owned by this buffer, and the number of
        those."""
        values = self.values()
        if self.memory.owners is None:
            return values, 0
        stray = (self.over_bytes(self.memory.owners) != self.owner).any(axis=-1)
        count = int(np.count_nonzero(stray))
        if not count:
            return values.copy(), 0
        if is_integer(values.dtype) or values.dtype == np.bool_:
            raise EvaluationError(
                f"{count} of the {self.size} integers read from {self.name} were never written or were overwritten "
                "through another buffer"
            )
        return np.where(stray, np.array(np.nan, self.held), values), count

    def write(self, values: Array) -> None:
        """Store values, rounding them to the dtype in which they are held, and own their bytes."""
        if self.memory.owners is None:
            raise EvaluationError(f"{self.name} is read-only, but a launch writes it")
        self.values()[...] = values
        self.over_bytes(self.memory.owners)[...] = self.owner
        first, last = self.span()
        self.memory.chunks[first // CHUNK : -(-last // CHUNK)] = True

    def clobber(self) -> None:
        """Remove the owner of all bytes from the first to the last, as a launch does to its workspace."""
        if self.memory.owners is None:
            raise EvaluationError(f"{self.name} is read-only, but a launch writes it")
        first, last = self.span()
        for chunk in np.flatnonzero(self.memory.chunks[first // CHUNK : -(-last // CHUNK)]) + first // CHUNK:
            self.memory.owners[max(first, chunk * CHUNK) : min(last, (chunk + 1) * CHUNK)] = 0

    def same_place(self, other: View) -> bool:
        """Whether two views have the same elements in the same order."""
        return (self.memory, self.offset, self.shape, self.strides, self.storage) == (
            other.memory,
            other.offset,
            other.shape,
            other.strides,
            other.storage,
        )

    def overlaps(self, other: View) -> bool:
        """Whether two views share a byte; exact, also for interleaved strides."""
        if self.memory is not other.memory or not self.size or not other.size:
            return False
        (a, b), (c, d) = self.span(), other.span()
        if b <= c or d <= a:
            return False
        touched: np.ndarray[Any, np.dtype[np.bool_]] = np.zeros(self.memory.size, np.bool_)
        self.over_bytes(touched)[...] = True
        return bool(other.over_bytes(touched).any())
