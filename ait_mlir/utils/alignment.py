"""The number of elements that a kernel may load at once from rows of a given length. Our kernels do not need it."""

from __future__ import annotations

from collections.abc import Iterable

from ait_mlir.dtypes import DTYPES

LOAD_BYTES = 16
"""The widest load."""


def get_alignments(dtype: str) -> list[int]:
    """The possible numbers of elements of one load, largest first: [8, 4, 2, 1] for float16. `ValueError` for other
    dtypes.
    """
    size = next((row.bytes for row in DTYPES if row.name == dtype), None)
    if size is None:
        raise ValueError(f"no tensor of a model has the dtype {dtype}; expected one of {[row.name for row in DTYPES]}")
    return [LOAD_BYTES // size >> i for i in range((LOAD_BYTES // size).bit_length())]


def find_max_alignment(number: int, dtype: str) -> int:
    """The most elements of one load that divide a length."""
    return next(n for n in get_alignments(dtype) if number % n == 0)


def find_max_alignment_from(numbers: Iterable[int], dtype: str) -> int:
    """The most elements of one load that divide all of these lengths."""
    return min((find_max_alignment(n, dtype) for n in numbers), default=get_alignments(dtype)[0])


def valid_alignment(align: int, dtype: str) -> bool:
    """Whether a load may have `align` elements."""
    return align in get_alignments(dtype)
