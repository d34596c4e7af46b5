"""Temporary tensors in place of a caller's tensors, where kernels cannot use the caller's memory as it is.

An output may lie in the memory of an input that it updates: kernels write a temporary, which is copied when the plan
has run. A BOOLEAN may be a tensor of uint8, with a byte or a bit for each element: kernels read and write a byte that
is 0 or 1.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ait_mlir.errors import InputError
from ait_mlir.runtime.data import span

BITS = 8
"""The elements of a BOOLEAN in a byte of packed bits; the first is the lowest bit."""


class Stage:
    """The temporaries of one execution, and the copies before and after it."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._before: list[Callable[[], None]] = []
        self._after: list[Callable[[], None]] = []
        self._kept: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self._kept)

    def in_place_of(self, label: str, value: Any, dims: Sequence[int], strides: Sequence[int], is_output: bool) -> int:
        """The address of a temporary for a tensor with these dims and strides, which may be packed or of uint8."""
        torch = sys.modules.get("torch")
        if torch is None or isinstance(value, int) or not hasattr(value, "__dlpack__"):
            raise InputError(f"{label} needs a temporary copy: pass a tensor of PyTorch in place of an address")
        given = value if isinstance(value, torch.Tensor) else torch.from_dlpack(value)
        count = span(dims, strides)
        is_bits = given.dtype is torch.uint8 and _elements(given) * BITS == count == math.prod(dims)
        dtype = torch.bool if given.dtype is torch.uint8 else given.dtype
        memory = torch.empty(count, dtype=dtype, device=given.device)
        flat = given.as_strided((_elements(given),), (1,))
        if is_bits:
            weights = torch.tensor([1 << i for i in range(BITS)], dtype=torch.uint8, device=given.device)
            self._before.append(lambda: memory.copy_((flat[:, None] & weights).ne(0).view(-1)))
            self._after.append(lambda: flat.copy_((memory.view(-1, BITS) * weights).sum(1, dtype=torch.uint8)))
        else:
            shaped = memory.as_strided(tuple(dims), tuple(strides))
            other = given if tuple(given.shape) == tuple(dims) else flat.as_strided(tuple(dims), tuple(strides))
            self._before.append(lambda: shaped.copy_(other))
            self._after.append(lambda: other.copy_(shaped))
        if is_output:
            self._before.pop()
        else:
            self._after.pop()
        self._kept.append(memory)
        return memory.data_ptr()

    def begin(self, stream: int) -> None:
        """Copy the inputs into their temporaries."""
        self._run(self._before, stream)

    def finish(self, stream: int) -> None:
        """Copy the temporaries of outputs to the caller's tensors."""
        self._run(self._after, stream)

    def _run(self, copies: Sequence[Callable[[], None]], stream: int) -> None:
        torch: Any = sys.modules["torch"]
        on_cpu = self._device == "cpu"
        with contextlib.nullcontext() if on_cpu else torch.cuda.stream(torch.cuda.ExternalStream(stream, self._device)):
            for copy in copies:
                copy()


def _elements(tensor: Any) -> int:
    return span(tuple(tensor.shape), tuple(tensor.stride()))


def are_apart(a: tuple[int, Sequence[int], Sequence[int]], b: tuple[int, Sequence[int], Sequence[int]]) -> bool:
    """Whether two tensors, each (first element, dims, strides) in elements of one size, share no element.

    Parts of rows are apart if they are rows of one length and lie in different columns. False if it is not known.
    """
    (start_a, dims_a, strides_a), (start_b, dims_b, strides_b) = a, b
    if start_a + span(dims_a, strides_a) <= start_b or start_b + span(dims_b, strides_b) <= start_a:
        return True
    outer = [s for d, st in ((dims_a, strides_a), (dims_b, strides_b)) for n, s in zip(d, st, strict=True) if n > 1]
    for row in sorted({s for s in outer if s > 1}):
        columns = [_columns(start, dims, strides, row) for start, dims, strides in (a, b)]
        if None not in columns:
            (first_a, end_a), (first_b, end_b) = (c for c in columns if c is not None)
            if end_a <= first_b or end_b <= first_a:
                return True
    return False


def _columns(start: int, dims: Sequence[int], strides: Sequence[int], row: int) -> tuple[int, int] | None:
    """The columns that a tensor takes of rows of this length; None if it takes other shapes."""
    moving = [(n, s) for n, s in zip(dims, strides, strict=True) if n > 1]
    if any(s % row for _, s in moving if s >= row):
        return None
    inner = [(n, s) for n, s in moving if s < row]
    first = start % row
    end = first + span([n for n, _ in inner], [s for _, s in inner])
    return (first, end) if end <= row else None
