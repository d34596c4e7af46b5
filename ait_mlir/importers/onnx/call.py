"""One node of a model, for the rows of the table: its inputs and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue

from ait_mlir.building.formulas import Affine, Mask, Spread, Value, dims_of
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.importers.onnx.dims import Conditions, Narrower, same_dims
from ait_mlir.importers.onnx.errors import NotSupported, ValueNeeded
from ait_mlir.importers.onnx.known import Known, element_type
from ait_mlir.importers.onnx.library import onnx
from ait_mlir.importers.onnx.writer import OnnxWriter

Tensor = Known | Value
"""A tensor of the model: known while importing, a value, or a formula."""
Result = Any
"""Of a row: a tensor, a list of tensors for a sequence, or a tuple with the results of the node."""
Row = Callable[["Call"], Result]
"""Writes one node; returns None for a use that is left to the operator's definition by others."""


class Around(Protocol):
    """The import that a row is part of."""

    folder: Path | None
    """The folder of the model, in which its data are."""

    def may_unite(self, a: Expr, b: Expr) -> bool:
        """Whether two dims are both names of input dims, so that they can become one dim."""
        ...

    def may_be(self, dim: Expr, size: int) -> bool:
        """Whether a dim is the name of an input dim that can have the given size."""
        ...

    def inner(self, graph: Any, env: Mapping[str, Any], arguments: Sequence[Any]) -> list[Any]:
        """The results of a graph of a node, on some arguments."""
        ...


@dataclass
class Call:
    """A node with its inputs."""

    node: Any
    inputs: Sequence[Any]
    version: int
    w: OnnxWriter
    importer: Around
    env: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The tensors around the node by name, for its graphs."""

    # ** inputs **

    def has(self, index: int) -> bool:
        """Whether an input is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def given(self, index: int) -> Any:
        """An input as it is: a tensor, a sequence. Raises `NotSupported` if it is missing."""
        if not self.has(index):
            raise NotSupported(f"input {index} is missing")
        return self.inputs[index]

    def value(self, index: int) -> Tensor:
        """A tensor input: known, a value or a formula."""
        return as_tensor(self.given(index), f"input {index}")

    def natural(self, index: int) -> SSAValue:
        """A tensor input as a value, maybe in a smaller shape that broadcasts to its own."""
        return natural(self.w, self.value(index))

    def tensor(self, index: int) -> SSAValue:
        """A tensor input as a value of its shape."""
        return full(self.w, self.value(index))

    def optional(self, index: int) -> SSAValue | None:
        """A tensor input, or None if it is missing."""
        return self.tensor(index) if self.has(index) else None

    def tensors(self) -> list[SSAValue]:
        """All inputs as values."""
        return [self.tensor(i) for i in range(len(self.inputs))]

    def shape(self, index: int) -> Shape:
        return shape_of(self.value(index))

    def rank(self, index: int = 0) -> int:
        return len(self.shape(index))

    def element(self, index: int = 0) -> Attribute:
        return element_of(self.value(index))

    def known(self, index: int) -> Known:
        """An input whose elements are known; raises `ValueNeeded` otherwise."""
        found = self.value(index)
        if isinstance(found, Known):
            return found
        if isinstance(found, Affine) and not found.moving_axes() and all(d.as_int() is not None for d in found.dims):
            shape = tuple(d.as_int() or 0 for d in found.dims)
            return Known(np.full(shape, found.offset, dtype=object), found.element)
        name = self.formal(index)
        names = sources(found) if isinstance(found, SSAValue) else []
        if names:
            raise ValueNeeded(
                f"its {name} depends on the values of the input {', '.join(map(repr, names))}, expected numbers that "
                "the import knows; give the input a value",
                names,
            )
        raise NotSupported(f"its {name} depends on the values of tensors, expected numbers that the import knows")

    def formal(self, index: int) -> str:
        """The name of an input in the operator's definition."""
        try:
            schema = onnx.defs.get_schema(self.node.op_type, self.version, self.node.domain)
            return str(schema.inputs[min(index, len(schema.inputs) - 1)].name)
        except (onnx.defs.SchemaError, IndexError):
            return f"input {index}"

    def exprs(self, index: int) -> list[Expr]:
        """The whole numbers of an input of one dim."""
        return self.known(index).exprs()

    def array(self, index: int) -> NDArray[Any]:
        """The numbers of a known input; raises `NotSupported` if some depend on the dims."""
        found = self.known(index)
        if found.has_dims:
            raise NotSupported(f"its {self.formal(index)} depends on the dims, expected numbers")
        return found.array

    def ints(self, index: int) -> list[int]:
        """The numbers of an input of one dim."""
        return [int(n) for n in self.array(index).reshape(-1).tolist()]

    # ** attributes, which are inputs in later opsets **

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute as a number, string, list, tensor or graph."""
        found = next((a for a in self.node.attribute if a.name == name), None)
        if found is None:
            return default
        try:
            value = onnx.helper.get_attribute_value(found)
        except (ValueError, TypeError) as error:
            raise NotSupported(f"attribute {name} cannot be read: {error}") from None
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if found.type in _LISTS:
            return [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value]
        if default is not None and not isinstance(value, type(default)) and not isinstance(default, list):
            if isinstance(value, int) and isinstance(default, float):
                return float(value)
            raise NotSupported(f"attribute {name} is {value!r}, expected a {type(default).__name__}")
        return value

    def int_list(self, name: str, index: int | None = None, default: list[int] | None = None) -> list[int] | None:
        """Numbers of an attribute, or of an input; `default` if neither is given."""
        if (found := self.attr(name)) is not None:
            numbers = cast("list[Any]", found if isinstance(found, list) else [None])
            if not all(isinstance(n, int) for n in numbers):
                raise NotSupported(f"attribute {name} is {found!r}, expected whole numbers")
            return numbers
        return self.ints(index) if index is not None and self.has(index) else default

    def axis(self, default: int = 0, rank: int | None = None, name: str = "axis") -> int:
        """The attribute `axis`, counted from the front."""
        return self.placed(self.attr(name, default), self.rank() if rank is None else rank, name)

    def placed(self, axis: Any, rank: int, name: str = "axis") -> int:
        """An axis, counted from the front."""
        if not isinstance(axis, int) or not -rank <= axis < max(rank, 1):
            raise NotSupported(f"{name} is {axis!r}, expected a number from {-rank} to {rank - 1}")
        return axis + rank if axis < 0 else axis

    def same(self, a: Expr, b: Expr) -> None:
        """Require that two dims are equal, by narrowing the dims of the inputs if this makes them equal.

        Otherwise nothing happens here: the op that gets both dims reports the difference.
        """
        if self.w.scope.equal(a, b):
            return
        if self.importer.may_unite(a, b):
            raise same_dims(str(a), str(b))
        for dim, other in ((a, b), (b, a)):  # `seq` and `min(512, seq)`, rows of a table that is long enough
            most = self.w.scope.bounds(other)[1]
            if str(dim) in self.w.scope and self.importer.may_unite(dim, dim) and self.w.scope[str(dim)].lo <= most:
                own = self.w.scope[str(dim)]
                less = replace(own, hi=min(own.hi, most), hints=tuple(h for h in own.hints if h <= most))
                if Scope([less if d is own else d for d in self.w.scope]).equal(a, b):
                    raise Narrower(Conditions(ranges={own.name: less}))
        self.w.restrict(a.symbols | b.symbols, lambda scope: scope.equal(a, b))

    def settle(self, dim: Expr, size: int) -> None:
        """Require that a dim has the size `size`, by fixing a dim of the inputs if it may have this size.

        Otherwise nothing happens here: the caller reports another size.
        """
        if dim.as_int() is None and self.importer.may_be(dim, size):
            raise Narrower(Conditions(values={str(dim): const(size)}))

    def subgraph(self, name: str) -> Any:
        """A graph of the node."""
        if not isinstance(found := self.attr(name), onnx.GraphProto):
            raise NotSupported(f"attribute {name} is missing, expected a graph")
        return found

    def element_attr(self, name: str, default: int | None = None) -> Attribute:
        """An attribute that names an element type."""
        found = self.attr(name, default)
        if not isinstance(found, int):
            raise NotSupported(f"attribute {name} is {found!r}, expected the number of a type")
        return element_type(found)


_LISTS = frozenset(
    (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS, onnx.AttributeProto.STRINGS, onnx.AttributeProto.GRAPHS)
)


def is_tensor_value(found: Any) -> bool:
    return isinstance(found, Known | SSAValue | Affine | Mask | Spread)


def as_tensor(found: Any, title: str = "a value") -> Tensor:
    """A value that must be a tensor of a type of the dialect."""
    if not is_tensor_value(found):
        kind = "a sequence" if isinstance(found, list) else type(found).__name__
        raise NotSupported(f"{title} is {kind}, expected a tensor")
    return cast(Tensor, found)


def natural(w: OnnxWriter, value: Tensor) -> SSAValue:
    """A tensor as a value, maybe in a smaller shape that broadcasts to its own."""
    value = as_tensor(value)
    return w.written(value) if isinstance(value, Known) else w.natural(value)


def full(w: OnnxWriter, value: Tensor) -> SSAValue:
    """A tensor as a value of its shape."""
    value = as_tensor(value)
    return w.written(value) if isinstance(value, Known) else w.full(value)


def shape_of(value: Tensor) -> Shape:
    value = as_tensor(value)
    return value.dims if isinstance(value, Known) else dims_of(value)


def element_of(value: Tensor) -> Attribute:
    """The element type of a tensor."""
    if isinstance(value, Known | Affine):
        return value.element
    if isinstance(value, Mask):
        return i1
    return tensor_type(value.value if isinstance(value, Spread) else value).element_type


def sources(value: SSAValue) -> list[str]:
    """The inputs of the graph that a value is computed from."""
    found: dict[str, None] = {}
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if isinstance(current, BlockArgument):
            parent = current.block.parent_op()
            if isinstance(parent, GraphOp):
                found[parent.input_names.data[current.index].data] = None
        elif isinstance(current, OpResult):
            pending += current.op.operands
    return list(found)


def as_number(e: Expr) -> int:
    """A dim that is a number; `NotSupported` for another."""
    if (found := e.as_int()) is None:
        raise NotSupported(f"a size is {e}, expected a number that is known")
    return found


__all__ = ["Call", "NotSupported", "Result", "Row", "Tensor", "as_number"]
