"""Helpers for shapes of the builder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import DimLike, IntImm, IntVar, as_dim


def gen_int_var(values: Sequence[int], name: str | None = None) -> IntVar:
    """A constant for one value, a dim for several. Raises `BuildError`, a `RuntimeError`, for an empty list."""
    different = sorted(set(values))
    if not different:
        raise BuildError("a dim needs a value; found an empty list")
    return IntImm(different[0], name=name) if len(different) == 1 else IntVar(different, name=name)


def gen_int_var_min_max(values: Sequence[int], name: str | None = None) -> IntVar:
    """`gen_int_var` of the smallest and the largest value."""
    return gen_int_var([min(values), max(values)] if values else [], name)


def get_broadcast_max_shape(shape1: Sequence[IntVar], shape2: Sequence[IntVar]) -> tuple[bool, list[IntVar] | None]:
    """Whether two shapes broadcast, and the broadcast shape."""
    longer, shorter = (shape1, shape2) if len(shape1) > len(shape2) else (shape2, shape1)
    result = list(longer)
    for axis in range(-len(shorter), 0):
        a, b = shape1[axis], shape2[axis]
        if a != b and a != 1 and b != 1:
            return False, None
        result[axis] = b if a == 1 else a
    return True, result


def get_num_rightmost_static_elements(shape: Sequence[IntVar], num_rightmost_dims: int | None = None) -> int:
    """The number of elements of the last constant dims, at most `num_rightmost_dims` of them."""
    elements = 1
    last = shape if num_rightmost_dims is None else shape[len(shape) - min(num_rightmost_dims, len(shape)) :]
    for dim in reversed(last):
        if not isinstance(dim, IntImm):
            break
        elements *= dim.value()
    return elements


def all_static_dimensions(shape: Sequence[IntVar], from_dim: int = 0) -> bool:
    """Whether all dims from `from_dim` on are constants."""
    return all(isinstance(dim, IntImm) for dim in shape[from_dim:])


def is_static_dimension(shape: Sequence[IntVar], dim: int) -> bool:
    """Whether this dim is a constant."""
    return dim < len(shape) and isinstance(shape[dim], IntImm)


def convert_shape_to_IntVar(shape: Sequence[Any]) -> list[IntVar]:
    """A list of numbers, dims and values of dims, converted to dims."""
    return [IntVar.of(dim.expr, dim.symbols) for dim in map(as_dim, shape)]


def convert_IntVar_to_int(var: DimLike) -> int:
    """The value of a constant dim; `ValueError` for a dynamic dim."""
    if (value := as_dim(var).expr.as_int()) is None:
        raise ValueError(f"the dim {var} is dynamic; it has no one value")
    return value


def is_singleton_dimension(dim: DimLike) -> bool:
    """Whether a dim is the constant 1."""
    return as_dim(dim) == 1


def is_same_shape(shapes1: Sequence[IntVar], shapes2: Sequence[IntVar]) -> bool:
    """Whether two shapes have the same dims."""
    return list(shapes1) == list(shapes2)
