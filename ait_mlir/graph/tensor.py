"""Tensors of a graph: names for values, with dims, strides and a data type."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Protocol, Self, SupportsIndex, cast

from ait_mlir.graph.enums import as_data_type, data_type, tensor_reordering
from ait_mlir.graph.errors import GraphArgumentError, GraphError, cudnnGraphNotSupportedError


class Named(Protocol):
    """A thing with a name."""

    @property
    def name(self) -> str: ...


class Producer(Named, Protocol):
    """The parts of a node's interface that its tensors use."""

    @property
    def operation(self) -> Named: ...


class Owner(Protocol):
    """The parts of a graph's interface that its tensors use."""

    name: str

    @property
    def origin(self) -> str: ...
    def give_uid(self, t: tensor, uid: int) -> None: ...
    def uid_of(self, t: tensor) -> int: ...
    def check_open(self, what: str) -> None: ...


class tensor:
    """A value of a graph. A virtual tensor is an intermediate: it has no memory.

    A virtual tensor keeps its data type: a HALF tensor is rounded before other nodes read it, a FLOAT tensor is not
    rounded. The setters return the tensor, so that calls can be chained.
    """

    def __init__(self, graph: Owner, name: str, producer: Producer | None = None) -> None:
        self.graph = graph
        self.producer = producer
        self.name = name
        self.dims: tuple[int, ...] | None = None
        self.strides: tuple[int, ...] | None = None
        self.dtype = data_type.NOT_SET
        self.is_virtual = producer is not None
        self.is_marked = False
        """Whether the caller made it an output; a node must compute it when the graph is validated."""
        self.is_by_value = False
        self.value: float | int | None = None
        """The number of a scalar, if it is known when the graph is made."""
        self.is_constant = False
        """Whether `value` is part of the compiled code."""
        self.ragged_offset: tensor | None = None
        self.ragged_multiplier = 1
        self.alignment = 16
        self.reordering: Any = tensor_reordering.NONE
        self.uid: int | None = None
        self.has_own_uid = False
        self.has_own_dims = False
        self.has_own_strides = False

    # ** setters **

    def set_output(self, value: bool) -> Self:
        """Whether the tensor is an output of the graph: then it has memory, and `execute` writes it."""
        self._change("set_output")
        self.is_marked = flag(value, f"set_output() of {self.label}")
        self.is_virtual = not self.is_marked
        return self

    def set_is_virtual(self, value: bool) -> Self:
        """The opposite of `set_output`."""
        self._change("set_is_virtual")
        self.is_virtual = flag(value, f"set_is_virtual() of {self.label}")
        return self

    def set_data_type(self, data_type: Any) -> Self:
        """The element type: a `data_type`, or a dtype of PyTorch or NumPy."""
        self._change("set_data_type")
        self.dtype = as_data_type(data_type, self.label)
        return self

    def set_dim(self, dim: Sequence[int]) -> Self:
        """The extents."""
        self._change("set_dim")
        self.dims = whole_numbers(dim, f"the dims of {self.label}")
        self.has_own_dims = True
        if not self.has_own_strides:
            self.strides = None
        return self

    def set_stride(self, stride: Sequence[int]) -> Self:
        """The strides, in elements."""
        self._change("set_stride")
        self.strides = whole_numbers(stride, f"the strides of {self.label}")
        self.has_own_strides = True
        return self

    def set_uid(self, uid: int) -> Self:
        """The number by which a variant pack may name the tensor; unique in the graph."""
        self._change("set_uid")
        self.graph.give_uid(self, whole_number(uid, f"the UID of {self.label}", least=-LIMIT))
        return self

    def set_name(self, name: str) -> Self:
        """The name by which a variant pack may name the tensor."""
        self._change("set_name")
        self.name = text(name, f"the name of {self.label}")
        return self

    def set_is_pass_by_value(self, value: bool) -> Self:
        """Whether the tensor is a scalar that the host passes to `execute`."""
        self._change("set_is_pass_by_value")
        self.is_by_value = flag(value, f"set_is_pass_by_value() of {self.label}")
        return self

    def set_ragged_offset(self, ragged_offset: tensor | None) -> Self:
        """The tensor [B + 1, 1, 1, 1] with the offsets at which the sequences of a packed tensor begin."""
        self._change("set_ragged_offset")
        if ragged_offset is not None and not isinstance(ragged_offset, tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError(f"the ragged offset of {self.label} is {ragged_offset!r}, expected a tensor of the graph")
        if ragged_offset is not None and ragged_offset.graph is not self.graph:
            raise GraphError(f"the ragged offset of {self.label} is {ragged_offset.origin}, not of {self.graph.origin}")
        self.ragged_offset = ragged_offset
        return self

    def set_ragged_offset_multiplier(self, multiplier: int) -> Self:
        """The number of elements that one unit of the ragged offset counts."""
        self._change("set_ragged_offset_multiplier")
        self.ragged_multiplier = whole_number(multiplier, f"the ragged offset multiplier of {self.label}", least=1)
        return self

    def set_alignment(self, alignment: int) -> Self:
        """Promise that the address is a multiple of this number of bytes. Kernels need 16; more has no effect."""
        self._change("set_alignment")
        self.alignment = whole_number(alignment, f"the alignment of {self.label}", least=1)
        return self

    def set_reordering_type(self, reordering: Any) -> Self:
        """The order of elements in tiles. Only NONE is supported."""
        self._change("set_reordering_type")
        if reordering is not tensor_reordering.NONE:
            raise cudnnGraphNotSupportedError(f"{self.label} is to be reordered as {reordering}; only NONE has kernels")
        self.reordering = reordering
        return self

    def set_vector_count_and_dimension(self, count: int, dimension: int) -> Self:
        """The number of adjacent elements along a dim (vectorized layouts). Only 1 is supported."""
        self._change("set_vector_count_and_dimension")
        count = whole_number(count, f"the vector count of {self.label}", least=1)
        if count != 1:
            raise cudnnGraphNotSupportedError(f"{self.label} has vectors of {count} elements along dim {dimension}")
        return self

    # ** getters **

    @property
    def data_type(self) -> Any:
        return self.dtype

    @property
    def dim(self) -> list[int]:
        return self.get_dim()

    @property
    def stride(self) -> list[int]:
        return self.get_stride()

    @property
    def is_pass_by_value(self) -> bool:
        return self.is_by_value

    @property
    def pass_by_value(self) -> float | int | None:
        """The number of a scalar that the graph was given."""
        return self.value

    @property
    def ragged_offset_multiplier(self) -> int:
        return self.ragged_multiplier

    @property
    def reordering_type(self) -> Any:
        return self.reordering

    def get_name(self) -> str:
        return self.name

    def get_uid(self) -> int:
        """The UID; a tensor without one gets the next free number."""
        return self.graph.uid_of(self)

    def get_dim(self) -> list[int]:
        return list(self.dims or ())

    def get_stride(self) -> list[int]:
        return list(self.strides or ())

    def get_data_type(self) -> Any:
        return self.dtype

    def get_is_virtual(self) -> bool:
        return self.is_virtual

    def get_is_pass_by_value(self) -> bool:
        return self.is_by_value

    def get_has_compile_time_constant(self) -> bool:
        return self.is_constant

    def get_ragged_offset_multiplier(self) -> int:
        return self.ragged_multiplier

    def get_alignment(self) -> int:
        return self.alignment

    def get_reordering_type(self) -> Any:
        return self.reordering

    def get_vector_count(self) -> int:
        return 1

    def get_vector_dimension(self) -> int:
        return 1

    @property
    def label(self) -> str:
        """The tensor's name in messages."""
        uid = f" (UID {self.uid})" if self.has_own_uid else ""
        if self.producer is not None and not self.name.startswith(f"{self.producer.name}::"):
            return f"tensor '{self.name}'{uid} of node '{self.producer.name}'"
        return f"tensor '{self.name}'{uid}"

    @property
    def origin(self) -> str:
        """The tensor and its graph, in messages about two graphs."""
        return f"{self.label} of {self.graph.origin}"

    def __repr__(self) -> str:
        shape = "?" if self.dims is None else list(self.dims)
        kind = "virtual " if self.is_virtual else ""
        return f"<{kind}tensor '{self.name}' {self.dtype.name} {shape} strides {list(self.strides or ())}>"

    def _change(self, what: str) -> None:
        self.graph.check_open(f"{what} of {self.label}")


def text(value: object, what: str) -> str:
    """The value if it is a string; otherwise raises `GraphError`."""
    if not isinstance(value, str):
        raise GraphError(f"{what} is {value!r}, expected text")
    return value


def flag(value: object, what: str) -> bool:
    """A value as True or False, as far as cuDNN takes it for one: None and numbers, but no text and no list.

    Raises `GraphArgumentError` with `what` for another value.
    """
    try:
        if value is None or hasattr(value, "__bool__"):
            return bool(value)
    except (RuntimeError, ValueError):  # of an array with several elements
        pass
    raise GraphArgumentError(f"{what} takes True or False, found {value!r}")


LIMIT = 1 << 63
"""Numbers of cuDNN's interface have 64 bits: dims, strides, UIDs."""


def whole_number(value: object, what: str, least: int = 0) -> int:
    """A number of 64 bits; `GraphError` with `what` if a value is not an integer, below `least` or too large."""
    number = as_index(value)
    if number is None or not least <= number < LIMIT:
        bound = f", at least {least}" if least > -LIMIT else ""
        raise GraphError(f"{what} is {value!r}, expected a whole number of 64 bits{bound}")
    return number


def whole_numbers(values: Sequence[int], what: str) -> tuple[int, ...]:
    """Extents or strides as integers; `GraphError` if a value is not an integer, is negative or has over 64 bits."""
    try:
        given = list(values)
    except TypeError:
        raise GraphError(f"{what} are {values!r}, expected a list of whole numbers") from None
    found = tuple(n for n in map(as_index, given) if n is not None and 0 <= n < LIMIT)
    if len(found) < len(given):
        bound = ", none below 0" if all(n is None or n < LIMIT for n in map(as_index, given)) else " below 2^63"
        raise GraphError(f"{what} are {given!r}, expected whole numbers{bound}")
    return found


def as_indices(values: object) -> tuple[int, ...] | None:
    """A list of integers; None if a value is no list, or one of its elements no integer."""
    try:
        found = [as_index(value) for value in cast(Sequence[object], values)]
    except TypeError:
        return None
    return None if None in found else tuple(n for n in found if n is not None)


def as_index(value: object) -> int | None:
    """A value as an integer; None for a truth value and for what is no integer, such as a tensor of a float."""
    try:
        return None if isinstance(value, bool) else operator.index(cast(SupportsIndex, value))
    except TypeError:
        return None
