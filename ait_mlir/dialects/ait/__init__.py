"""The `ait` dialect: pure values over tensors with dynamic dims in their types."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import TypeGuard

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect, Operation

from ait_mlir import hooks
from ait_mlir.dialects.ait.loops import IndicesAttr
from ait_mlir.dialects.ait.types import DimsAttr, InductionAttr, IterationsAttr, KernelAttr, ShapeAttr, TensorType
from ait_mlir.families import modules


def ops_of(families: Iterable[ModuleType]) -> list[type[Operation]]:
    """The op classes of all families, each in `OPS` of its module.

    `ValueError` if two have the same name, or if a module defines an op that is not in its `OPS`.
    """
    found: dict[str, tuple[type[Operation], str]] = {}
    for family in families:
        for cls in family.OPS:
            if (other := found.get(cls.name)) is not None:
                raise ValueError(
                    f"two ops are called {cls.name}: {other[0].__name__} in {other[1]}.OPS "
                    f"and {cls.__name__} in {family.__name__}.OPS; rename one or remove one row"
                )
            found[cls.name] = cls, family.__name__
        for name, cls in vars(family).items():
            if _is_op(cls) and cls.__module__ == family.__name__ and cls not in family.OPS:
                raise ValueError(
                    f"{name} ({cls.name}) is defined in {family.__file__}, but not in its OPS; add it there"
                )
    return [cls for cls, _ in found.values()]


def _is_op(value: object) -> TypeGuard[type[Operation]]:
    return isinstance(value, type) and issubclass(value, Operation) and "name" in vars(value)


AIT = Dialect(
    "ait",
    ops_of(modules(__name__)),
    [TensorType, ShapeAttr, DimsAttr, KernelAttr, InductionAttr, IterationsAttr, IndicesAttr],
)


def _repr_html(module: ModuleOp) -> str:
    return hooks.module_html(module)


setattr(ModuleOp, "_repr_html_", _repr_html)  # noqa: B010  # notebooks call it; pyright knows xDSL's class without it
