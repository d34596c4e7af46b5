"""The C++ of tensors [batch, one to three spatial dims, channels]; kernels always see three spatial dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ait_mlir.dims import Expr
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.kernels.base import Arg, Launch
from ait_mlir.lowering.kernels.loops import ZERO, braces

MAX_DIMS = 3


def with_spatial_dims(sizes: Sequence[Expr], missing: Expr) -> tuple[Expr, ...]:
    """The sizes of [batch, three spatial dims, channels]; the leading spatial dims that do not exist are `missing`."""
    return (sizes[0], *[missing] * (MAX_DIMS + 2 - len(sizes)), *sizes[1:])


def tensor_cpp(launch: Launch[Any], arg: Arg, qualifier: str = "") -> str:
    """`ait::SpatialTensor<const ait::half>{input0, {...}}`"""
    t = qualifier + element_type(arg.type.element_type)
    return f"ait::SpatialTensor<{t}>{{{arg.name}, {braces(with_spatial_dims(arg.strides, ZERO), launch.dims)}}}"
