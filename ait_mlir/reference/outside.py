"""Calls the references of operators from outside the package; errors and wrong results name the author's line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, Operation

from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.outside import counted, line_of, message_of
from ait_mlir.reference.core import (
    STORAGE,
    Array,
    Arrays,
    DType,
    Evaluation,
    WrongReference,
    element_type_of,
    storage_dtype,
    widen,
)


def call_reference(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    properties: Mapping[str, Any],
    op: Operation,
    ev: Evaluation,
) -> Arrays:
    """The results of an op by its author's function; `WrongReference` with the author's line if they do not fit."""
    try:
        made = function(*arguments, **properties)
        results = list(cast("Sequence[Any]", made)) if isinstance(made, tuple | list) else [made]
        arrays: list[Array] = [np.asarray(result) for result in results]
    except Exception as error:
        raise WrongReference(
            f"the reference of {op.name} failed at {line_of(function, error)}: {message_of(error)}", op
        ) from error
    what = f"the reference of {op.name} at {_place(function)}"
    if len(arrays) != (count := len(op.results)):
        raise WrongReference(f"{what} made {counted(len(arrays), 'result')}, but the op has {count}", op)
    for i, (array, result) in enumerate(zip(arrays, op.results, strict=True)):
        which = f"{what} made" if count == 1 else f"{what} made for result {i}"
        if (why := _misfit(array, result.type, ev)) is not None:
            raise WrongReference(f"{which} {why}", op)
    return [widen(array, element_type_of(result.type)) for array, result in zip(arrays, op.results, strict=True)]


def _misfit(array: Array, type_: Attribute, ev: Evaluation) -> str | None:
    """The reason why an array is not a value of a type; None if it is."""
    element_type = element_type_of(type_)
    allowed = "biuf" if is_float(element_type) else "biu"
    if (kind := _kind(array.dtype)) not in allowed:
        if kind == "f":
            cast_to = f"np.{storage_dtype(element_type)}".replace("np.bool", "bool")
            return f"{array.dtype} where {type_} has no floats; return integers, as with .astype({cast_to})"
        return f"{array.dtype} where the type is {type_}, expected {'numbers' if 'f' in allowed else 'integers'}"
    if isinstance(type_, TensorType) and array.shape != (shape := ev.shape(type_)):
        return f"shape {array.shape} where {type_} is {shape}"
    return None


def _kind(dtype: DType) -> str:
    """The kind letter of a dtype as NumPy defines it, but `f` for bf16, whose kind in NumPy is not that of a number."""
    return "f" if any(dtype == found and is_float(t) for t, found in STORAGE.items()) else dtype.kind


def _place(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "an unknown place" if code is None else f"{code.co_filename}:{code.co_firstlineno}"
