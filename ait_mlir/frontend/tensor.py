"""`Tensor`: a handle on a value of the model that is being built."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Block, BlockArgument, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.dtypes import BY_IR, BY_NAME
from ait_mlir.dialects.ait.types import TensorType, shape_text
from ait_mlir.frontend.emit import make_constant, make_param
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import DimLike, IntVar, Symbols, as_dim, merge_symbols

if TYPE_CHECKING:
    from ait_mlir.frontend.operator import Operator

_HANDLE = "_ait_handle"
STEP = "step of a scan"
"""Key in `extra` of the tensors that the step of a scan is given."""
_serial = itertools.count()


def normalize_dtype(dtype: str) -> str:
    """The full name of a dtype: `"float"` and `"int"` are short forms. `BuildError` for a dtype without tensors."""
    if (found := BY_NAME.get(dtype)) is None:
        raise BuildError(f'unknown dtype "{dtype}"; expected one of {", ".join(sorted(BY_NAME))}')
    return found.name


class Tensor:
    """A tensor of a model: an input, a weight, a constant, or the result of an operator.

    >>> x = Tensor(shape=[IntVar([1, 64], name="batch"), 768], dtype="float16", name="x", is_input=True)

    Without `is_input` and `value` it is a weight: its data are bound by name, in `compile_model(constants=...)` or with
    `bind`. `value` makes a constant filled with one number. Shape and dtype are read from the value behind the handle.
    Raises `BuildError` for a shape or dtype that no tensor can have.
    """

    value: SSAValue
    symbols: Symbols
    name: str | None
    is_output: bool
    in_place_of: Tensor | None
    or_copy: bool
    data: NDArray[Any] | None
    serial: int

    def __init__(
        self,
        shape: Sequence[DimLike],
        name: str | None = None,
        src_ops: object = None,
        dst_ops: object = None,
        dtype: str = "float16",
        is_input: bool = False,
        is_output: bool = False,
        value: float | int | None = None,
    ):
        if src_ops or dst_ops:
            raise BuildError(
                "src_ops and dst_ops follow from the operators that are called; build the tensor from those in `ops`"
            )
        type = tensor_type(shape, dtype)
        dims = [as_dim(dim) for dim in shape]
        if is_input and value is not None:
            raise BuildError(f'the input "{name}" cannot have a value; leave out is_input to make a constant')
        if is_input:
            source: SSAValue = Block(arg_types=[type]).args[0]
        elif value is not None:
            source = make_constant(type, value)
        else:
            source = make_param(type)
        self._attach(source, merge_symbols(*(dim.symbols for dim in dims)))
        self.name = name
        self.is_output = is_output

    @classmethod
    def of(cls, value: SSAValue, symbols: Symbols) -> Tensor:
        """The handle on `value`, made if there is none yet."""
        if (found := handle_of(value)) is not None:
            return found
        self = cls.__new__(cls)
        self._attach(value, symbols)
        return self

    def _attach(self, value: SSAValue, symbols: Symbols) -> None:
        self.value, self.symbols = value, symbols
        self.name, self.is_output, self.data = None, False, None
        self.in_place_of, self.or_copy = None, False
        self.serial = next(_serial)
        self.extra: dict[str, Any] = {}
        setattr(value, _HANDLE, self)

    @property
    def type(self) -> TensorType:
        return cast(TensorType, self.value.type)

    @property
    def _attrs(self) -> TensorAttrs:
        return TensorAttrs(self)

    def shape(self) -> list[IntVar]:
        """The dims: an `IntImm` where constant, else an `IntVar`."""
        return [IntVar.of(dim, self.symbols) for dim in self.type.dims]

    def dtype(self) -> str:
        return BY_IR[self.type.element_type].name

    @property
    def rank(self) -> int:
        return self.type.rank

    @property
    def is_input(self) -> bool:
        return isinstance(self.value, BlockArgument)

    @property
    def is_param(self) -> bool:
        """Whether this is a weight, whose data are bound by name."""
        return isinstance(self.value, OpResult) and self.value.op.name == "ait.param"

    def mark_as_output(
        self, name: str | None = None, in_place_of: Tensor | None = None, or_copy: bool = False
    ) -> Tensor:
        """Make this a result of the model, called `name`; returns the tensor.

        `in_place_of` is an input of the same shape and dtype. This input is then state: a run overwrites it with
        this result. If the result cannot be computed in place, compilation fails; with `or_copy` the model computes it
        elsewhere and copies it.
        """
        if in_place_of is not None and not in_place_of.is_input:
            raise BuildError(f"a result takes the place of an input, and {in_place_of.describe()} is none")
        self.is_output, self.in_place_of, self.or_copy = True, in_place_of, or_copy
        self.name = self.name if name is None else name
        return self

    def bind(self, data: NDArray[Any]) -> None:
        """Give a weight its data. Raises `BuildError` for another shape or dtype, or a tensor that is no weight."""
        if not self.is_param:
            raise BuildError(f"data can be bound to weights only, and {self.describe()} is none")
        check_data(self.describe(), self.type, data)
        self.data = data

    def describe(self) -> str:
        """The tensor in an error message: its name if it has one, shape and dtype."""
        name = f'"{self.name}" ' if self.name else ""
        return f"{name}{shape_text(self.type.dims)} {self.dtype()}"

    def __repr__(self) -> str:
        role = "input " if self.is_input else "weight " if self.is_param else ""
        return f"Tensor({role}{self.describe()})"

    def __add__(self, other: Tensor | float) -> Tensor:
        return _arithmetic("ADD", self, other)

    def __radd__(self, other: float) -> Tensor:
        return _arithmetic("ADD", other, self)

    def __sub__(self, other: Tensor | float) -> Tensor:
        return _arithmetic("SUB", self, other)

    def __rsub__(self, other: float) -> Tensor:
        return _arithmetic("SUB", other, self)

    def __mul__(self, other: Tensor | float) -> Tensor:
        return _arithmetic("MUL", self, other)

    def __rmul__(self, other: float) -> Tensor:
        return _arithmetic("MUL", other, self)

    def __truediv__(self, other: Tensor | float) -> Tensor:
        return _arithmetic("DIV", self, other)

    def __rtruediv__(self, other: float) -> Tensor:
        return _arithmetic("DIV", other, self)

    def __neg__(self) -> Tensor:
        return _arithmetic("NEG", self)


class TensorAttrs(MutableMapping[str, Any]):
    """`Tensor._attrs`: a live view of the value and its handle, under the documented keys."""

    KEYS = ("name", "shape", "dtype", "is_input", "is_output", "is_param", "src_ops", "dst_ops", "data")
    WRITABLE = ("name", "is_output", "data")

    def __init__(self, tensor: Tensor):
        self._tensor = tensor

    def __getitem__(self, key: str) -> Any:
        tensor = self._tensor
        match key:
            case "shape":
                return tensor.shape()
            case "dtype":
                return tensor.dtype()
            case "src_ops":
                return _source_operators(tensor)
            case "dst_ops":
                return _user_operators(tensor)
            case _:
                return getattr(tensor, key) if key in self.KEYS else tensor.extra[key]

    def __setitem__(self, key: str, value: Any) -> None:
        match key:
            case "name":
                self._tensor.name = value
            case "is_output":
                self._tensor.is_output = bool(value)
            case "data":
                self._tensor.bind(value)
            case _ if key in self.KEYS:
                raise BuildError(f'"{key}" of {self._tensor.describe()} follows from how it is made; it is not set')
            case _:
                self._tensor.extra[key] = value

    def __delitem__(self, key: str) -> None:
        del self._tensor.extra[key]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.KEYS, *self._tensor.extra])

    def __len__(self) -> int:
        return len(self.KEYS) + len(self._tensor.extra)


def tensor_type(shape: Sequence[DimLike], dtype: str) -> TensorType:
    """The IR type of a shape of dims and ints."""
    try:
        return TensorType.get([as_dim(dim).expr for dim in shape], BY_NAME[normalize_dtype(dtype)].ir)
    except VerifyException as error:
        raise BuildError(str(error)) from None


def handle_of(value: SSAValue) -> Tensor | None:
    """The tensor that stands for `value`, if one was made."""
    return getattr(value, _HANDLE, None)


def check_data(what: str, type: TensorType, data: NDArray[Any]) -> None:
    """`BuildError` unless `data` has the shape and dtype of `type`."""
    shape = type.static_shape()
    if shape is None:
        raise BuildError(f"{what} has a dynamic dim; the shape of a weight is fixed")
    dtype = BY_IR[type.element_type].name
    if tuple(np.shape(data)) != shape or data.dtype.name != dtype:
        found = f"shape {list(np.shape(data))} and dtype {data.dtype.name}"
        raise BuildError(f"{what} has shape {list(shape)} and dtype {dtype}, but the data have {found}")


def _arithmetic(func: str, *args: Tensor | float) -> Tensor:
    from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise

    return elementwise(FuncEnum[func])(*args)


def _source_operators(tensor: Tensor) -> set[Operator]:
    from ait_mlir.frontend.operator import operator_of

    source = tensor.value
    found = operator_of(source.op) if isinstance(source, OpResult) else None
    return set() if found is None else {found}


def _user_operators(tensor: Tensor) -> set[Operator]:
    from ait_mlir.frontend.operator import operator_of

    found = (operator_of(use.operation) for use in tensor.value.uses)
    return {operator for operator in found if operator is not None}
