"""Operations and nodes: an `Operation` is a method of the graph, a `Node` is one call of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import SSAValue

from ait_mlir.graph.enums import FLOATS, NodeType, data_type
from ait_mlir.graph.errors import GraphError, cudnnGraphNotSupportedError
from ait_mlir.graph.tensor import tensor

Dims = tuple[int, ...]
Shapes = Mapping[str, tuple[Dims, Dims | None]]
"""The dims and strides of each output; strides of None are row-major."""


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Any = _Required()
"""Marks an attribute without a default."""


@dataclass(frozen=True)
class Operation:
    """A method of the graph.

    `tensors` are its tensor arguments in order; arguments in `optional` may be None; `lists` take a list of tensors;
    `attributes` have defaults. `infer` gives the dims of the outputs, `lower` writes `ait` ops and returns the values
    of the outputs. `present` gives the outputs that a node has; the caller gets None for other outputs.
    """

    name: str
    tensors: tuple[str, ...]
    outputs: tuple[str, ...]
    infer: Callable[[Node], Shapes]
    lower: Callable[[Node, Any], Mapping[str, SSAValue]]
    """Writes the node with a `Lowering`; its outputs by name."""
    optional: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    adopted: tuple[str, ...] = ()
    """Arguments that are tensors computed by the node."""
    positional: tuple[str, ...] = ()
    """The arguments that may follow the tensors by position, in order; all attributes if this is empty."""
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The defaults of other arguments. Those with the default True or False are flags."""
    flags: tuple[str, ...] = ()
    """The attributes that are True, False or None."""
    counts: tuple[str, ...] = ()
    """The attributes that are a whole number from 0, or None."""
    present: Callable[[Node], Sequence[str]] | None = None
    check: Callable[[Node], None] | None = None
    fixed: Callable[[Node], Sequence[int]] | None = None
    """The sizes that kernels must know when they are compiled."""
    faster: Callable[[Node], Sequence[int]] | None = None
    """The sizes that make kernels faster if they are known at compile time."""
    decisive: Callable[[Node], Sequence[int]] | None = None
    """The sizes that some kernels must know; they become constants if kernels for any sizes would be slow."""
    takes_number: Callable[[Node], bool] | None = None
    """Whether kernels take the number of a scalar as an argument."""
    expand: Callable[[Any, str, dict[str, Any]], Any] | None = None
    """Adds several nodes to a graph, with a name and arguments, in place of one; None if one node does."""
    doc: str = ""


@dataclass(eq=False)
class Node:
    """One operation of a graph with its tensors."""

    name: str
    operation: Operation
    inputs: dict[str, tensor]
    lists: dict[str, list[tensor]]
    attributes: dict[str, Any]
    compute: data_type = data_type.NOT_SET
    outputs: dict[str, tensor] = field(default_factory=dict[str, tensor])

    @property
    def label(self) -> str:
        """The node's name in messages."""
        return f"node '{self.name}' ({self.operation.name})"

    @property
    def node_type(self) -> Any:
        """The kind of the operation: POINTWISE, MATMUL, ..."""
        return NodeType.__members__.get(self.operation.name.upper(), NodeType.POINTWISE)

    def reads(self) -> list[tensor]:
        """All tensors that the node reads, including the ragged offsets of its inputs and outputs."""
        found = [*self.inputs.values(), *(t for several in self.lists.values() for t in several)]
        ragged = [t.ragged_offset for t in (*found, *self.outputs.values()) if t.ragged_offset is not None]
        return [*found, *ragged]

    def dims(self, name: str) -> Dims:
        """The dims of an input."""
        found = self.inputs[name].dims
        if found is None:
            raise self.wrong(f"{self.inputs[name].label} has no dims: call set_dim")
        return found

    def strides(self, name: str) -> Dims:
        """The strides of an input."""
        found = self.inputs[name].strides
        if found is None:
            raise self.wrong(f"{self.inputs[name].label} has no strides: call set_stride")
        return found

    def __getitem__(self, attribute: str) -> Any:
        return self.attributes[attribute]

    def has(self, name: str) -> bool:
        """Whether an optional input is there."""
        return name in self.inputs

    def compute_float(self) -> data_type:
        """The float type that the node computes in: DOUBLE if asked for or if an input is, else FLOAT."""
        inputs = [t.dtype for t in (*self.inputs.values(), *(t for ts in self.lists.values() for t in ts))]
        wide = self.compute is data_type.DOUBLE or data_type.DOUBLE in inputs
        return data_type.DOUBLE if wide else data_type.FLOAT

    def compute_type(self) -> data_type:
        """The type that the node computes in; an integer type only if requested, or if all inputs have it."""
        if self.compute in (data_type.INT32, data_type.INT64, data_type.INT8, data_type.UINT8):
            return self.compute
        inputs = {t.dtype for t in (*self.inputs.values(), *(t for ts in self.lists.values() for t in ts))}
        if self.compute is data_type.NOT_SET and not inputs & {*FLOATS, data_type.BOOLEAN}:
            return data_type.INT64 if data_type.INT64 in inputs else data_type.INT32
        return self.compute_float()

    def wrong(self, message: str) -> GraphError:
        """An error of this node."""
        return GraphError(f"{self.label}: {message}")

    def unsupported(self, message: str) -> cudnnGraphNotSupportedError:
        """An error of this node because of a missing kernel."""
        return cudnnGraphNotSupportedError(f"{self.label}: {message}")


def broadcast(node: Node, names: Sequence[str]) -> Dims:
    """The dims of inputs that broadcast against each other from the last dim on."""
    found: list[int] = []
    for name in names:
        dims = node.dims(name)
        found = [1] * (len(dims) - len(found)) + found
        for i in range(1, len(dims) + 1):
            if found[-i] != dims[-i] and 1 not in (found[-i], dims[-i]):
                shapes = ", ".join(f"{node.inputs[n].label} {list(node.dims(n))}" for n in names)
                raise node.wrong(f"the inputs do not broadcast: {shapes}")
            if found[-i] == 1:
                found[-i] = dims[-i]
    return tuple(found)
