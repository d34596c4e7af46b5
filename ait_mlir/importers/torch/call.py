"""One call of an exported graph, for the rows of the table: its arguments by name, and its result's type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import Affine, Mask, Spread, Value, dims_of
from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.dialects.ait.types import Shape, TensorType
from ait_mlir.dims import Expr, const
from ait_mlir.importers.torch.dims import DimTable
from ait_mlir.importers.torch.errors import NotSupported, place_of
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.size_floats import size_float
from ait_mlir.importers.torch.writer import ImportWriter

Row = Callable[["Call"], "Value | Sequence[Value] | Expr | float | None"]
"""Writes one operation: returns its value, its values, a number, or None for an operation without a result."""


def element_type(dtype: Any) -> Attribute:
    """The element type of a `torch.dtype`; `NotSupported` for one that the dialect lacks."""
    name = str(dtype).removeprefix("torch.")
    if name not in BY_NAME:
        raise NotSupported(f"tensors of {name} are not supported; convert to one of {', '.join(sorted(BY_NAME))}")
    return BY_NAME[name].ir


@dataclass(frozen=True)
class Call:
    """A node of the graph with its arguments; sizes are expressions, tensors are values."""

    node: Any
    arguments: Mapping[str, Any]
    w: ImportWriter
    table: DimTable

    def __getitem__(self, name: str) -> Any:
        """An argument that is not a tensor: a number, a list, None. Raises `NotSupported` for a number that only
        the run knows."""
        if self._is_run_number(name):
            raise NotSupported(f"{name} is a number that a tensor holds, expected a number that is known")
        return self.arguments.get(name)

    def _is_run_number(self, name: str) -> bool:
        """Whether the operation takes a number by this name, and the call gives it a number that is known only in a
        run.
        """
        if not isinstance(self.arguments.get(name), SSAValue):
            return False
        return any(a.name == name and "Tensor" not in str(a.type) for a in self.node.target._schema.arguments)

    @property
    def place(self) -> str:
        return place_of(self.node)

    # ** the result **

    def type(self, index: int | None = None) -> TensorType:
        """The type of the result, or of one of several."""
        meta = self.node.meta["val"]
        return self.type_of(meta if index is None else meta[index])

    def type_of(self, tensor: Any) -> TensorType:
        return TensorType.get(self.table.shape(tensor.shape), element_type(tensor.dtype))

    @property
    def dims(self) -> Shape:
        return self.type().dims

    @property
    def element(self) -> Attribute:
        return self.type().element_type

    # ** arguments **

    def operand(self, name: str) -> Any:
        """An argument as the node has it: a node, a number, None."""
        return bind(self.node, lambda argument: argument)[name]

    def value(self, name: str) -> Value:
        """A tensor argument: an SSA value, or a formula, mask or broadcast that is not in the IR yet."""
        found = self.arguments.get(name)
        if isinstance(found, torch.SymFloat):
            return size_float(self.w, found, self.table)
        if not isinstance(found, SSAValue | Affine | Mask | Spread):
            raise NotSupported(f"{name} is {found!r}, expected a tensor")
        return cast(Value, found)

    def natural(self, name: str) -> SSAValue:
        """A tensor argument as an SSA value, maybe in a smaller shape that broadcasts to the argument's."""
        return self.w.natural(self.value(name))

    def tensor(self, name: str) -> SSAValue:
        """A tensor argument as an SSA value of the argument's shape."""
        return self.w.full(self.value(name))

    def optional(self, name: str) -> SSAValue | None:
        """A tensor argument or None."""
        return None if self.arguments.get(name) is None else self.tensor(name)

    def shape(self, name: str) -> Shape:
        """The dims of a tensor argument."""
        return dims_of(self.value(name))

    def axis(self, name: str, rank: int | None = None) -> int:
        """An axis, counted from the front; `rank` is by default the rank of `self`. PyTorch allows axis 0 of a
        scalar."""
        axis = int(self.arguments[name])
        rank = len(self.shape("self")) if rank is None else rank
        return axis + max(rank, 1) if axis < 0 else axis

    def size(self, name: str) -> Expr:
        """A number that may depend on the dims."""
        return as_expr(self.arguments[name])


def as_expr(value: Any) -> Expr:
    """An argument that is an int or already an expression."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, SSAValue):
        raise NotSupported("a number that a tensor holds is found, expected a number that is known")
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotSupported(f"found {value!r}, expected a whole number")
    return const(value)


def bind(node: Any, resolve: Callable[[Any], Any]) -> dict[str, Any]:
    """The arguments of an ATen call by the names of its schema, defaults filled in."""
    schema = node.target._schema
    bound: dict[str, Any] = {}
    for i, argument in enumerate(schema.arguments):
        if i < len(node.args):
            bound[argument.name] = resolve(node.args[i])
        elif argument.name in node.kwargs:
            bound[argument.name] = resolve(node.kwargs[argument.name])
        else:
            bound[argument.name] = argument.default_value
    return bound


__all__ = ["Call", "NotSupported", "Row", "as_expr", "bind", "element_type"]
