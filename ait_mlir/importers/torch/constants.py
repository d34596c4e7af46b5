"""Imports params, buffers and constants of a program: each storage once, and integers as formulas if possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import i1

from ait_mlir.building.formulas import INTEGERS, Affine, Mask, Value
from ait_mlir.dialects.ait.types import TensorType, as_shape
from ait_mlir.dims import MAX_LITERAL, const
from ait_mlir.importers.torch.call import NotSupported, element_type
from ait_mlir.importers.torch.errors import ImportFailure
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.writer import ImportWriter
from ait_mlir.runtime.data import to_numpy

LARGEST_LITERAL = 64
"""The most elements of a constant that is written into the module as text."""


@dataclass(frozen=True)
class Stored:
    """A tensor that belongs to the program: its data, and its name, taken from the first user of its storage."""

    name: str
    tensor: Any
    is_weight: bool


def is_code(tensor: Any) -> bool:
    """Whether the numbers of a tensor that is no parameter can become a part of the code, instead of its data."""
    if tensor.is_floating_point():
        return False
    if tensor.is_complex() or tensor.numel() <= LARGEST_LITERAL:
        return True
    return bool(tensor.all()) if tensor.dtype == torch.bool else affine(to_numpy(tensor)) is not None


def stored_value(w: ImportWriter, stored: Stored, constants: dict[str, NDArray[Any]]) -> Value:
    """The value of a stored tensor; the data of params are added to `constants`."""
    tensor = stored.tensor
    try:
        element = element_type(tensor.dtype)
    except NotSupported as error:
        raise ImportFailure(f"the tensor {stored.name!r} of the model: {error}") from error
    dims = as_shape(tuple(tensor.shape))
    if not stored.is_weight and element in INTEGERS and (found := affine(to_numpy(tensor))) is not None:
        offset, steps = found
        return Affine(dims, tuple(const(s) for s in steps), const(offset), element)
    if not stored.is_weight and element == i1 and bool(tensor.all()):
        return Mask(dims)
    if not stored.is_weight and tensor.numel() <= LARGEST_LITERAL and tensor.numel() > 0:
        numbers = to_numpy(tensor).reshape(-1).tolist()
        if element == i1:
            numbers = [int(n) for n in numbers]
        if tensor.dim() == 0:
            return w.scalar(numbers[0], element)
        key = ("literal", stored.name)
        return w.once(key, lambda: w.constant(numbers, dims, element))
    if stored.name not in constants:
        constants[stored.name] = np.ascontiguousarray(to_numpy(tensor)).reshape(tuple(tensor.shape))
    return w.param(stored.name, TensorType.get(dims, element))


def affine(array: NDArray[Any]) -> tuple[int, list[int]] | None:
    """`offset` and `steps` if an integer array is `offset` plus `steps` times its indices, within 64 bits; else
    None."""
    if array.size == 0 or array.size > 1 << 20:
        return None
    corner = (0,) * array.ndim
    offset = int(array[corner])
    if (reach := abs(offset)) > MAX_LITERAL:
        return None
    steps: list[int] = []
    expected = np.full(array.shape, offset, dtype=np.int64)
    for axis, extent in enumerate(array.shape):
        at = tuple(1 if a == axis else 0 for a in range(array.ndim))
        step = int(array[at]) - offset if extent > 1 else 0
        steps.append(step)
        reach += abs(step) * (extent - 1)
        if reach > MAX_LITERAL:
            return None
        counts = np.arange(extent, dtype=np.int64) * step
        expected += counts.reshape([-1 if a == axis else 1 for a in range(array.ndim)])
    return (offset, steps) if np.array_equal(expected, array) else None
