"""The argument struct of a library call, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ait_mlir.dims import Expr
from ait_mlir.lowering.kernels.base import Launch


def assignments(fields: Mapping[str, Expr | int | str], launch: Launch[Any]) -> list[str]:
    """`args.m = d0;` for each field; strings are C++ already."""
    return [f"args.{k} = {launch.cpp(v) if isinstance(v, Expr) else v};" for k, v in fields.items()]
