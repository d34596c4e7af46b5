"""`Tensor`: a handle on a value of the model that is being built."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any, ClassVar, cast

from numpy.typing import NDArray
from xdsl.ir import Block, BlockArgument, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import BY_IR, BY_NAME
from ait_mlir.dialects.ait.layouts import problem_of
from ait_mlir.dialects.ait.types import Shape, TensorType, shape_text
from ait_mlir.frontend.constant_data import ConstantTensorData, check_data
from ait_mlir.frontend.emit import make_constant, make_param
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import DimLike, IntVar, Symbols, as_dim, at_least_0, merge_symbols, scope_from
from ait_mlir.frontend.stable_set import StableSet

Operator = Any
"""An `Operator`; operator.py defines it, on tensors."""

_HANDLE = "_ait_handle"
STEP = "step of a scan"
"""Key in `extra` of the tensors that the step of a scan is given."""
_serial = itertools.count()


def normalize_dtype(dtype: object) -> str:
    """The full name of a dtype: `"float"` and `"int"` are short forms. `BuildError` for a dtype without tensors."""
    if not isinstance(dtype, str) or (found := BY_NAME.get(dtype)) is None:
        raise BuildError(f'unknown dtype "{dtype}"; expected one of {", ".join(sorted(BY_NAME))}')
    return found.name


class Tensor:
    """A tensor of a model: an input, a weight, a constant, or the result of an operator.

    >>> x = Tensor(shape=[IntVar([1, 64], name="batch"), 768], dtype="float16", name="x", is_input=True)

    Without `is_input` and `value` it is a weight: its data are bound by name, in `compile_model(constants=...)` or with
    `bind`. `value` makes a constant filled with one number, no input. `strides`, in elements, describe the memory of an
    input (by default row-major). A run computes dims that occur only in the strides from them, and copies tensors with
    other strides. A difference in the shape counts as 0 if it is negative. Shape and dtype are read from the value
    behind the handle. Raises `BuildError` for a shape or dtype that no tensor can have.
    """

    value: SSAValue
    symbols: Symbols
    name: str | None
    is_output: bool
    in_place_of: Tensor | None
    or_copy: bool
    strides: Shape | None
    data: NDArray[Any] | None
    constant_data: Any
    serial: int
    sources: StableSet[Operator]
    users: StableSet[Operator]
    made_by: Operator | None
    depth: int
    arithmetic: ClassVar[Callable[[str, Sequence[Tensor | float]], Tensor]]
    """The result of an elementwise function, by name; `ops/elementwise.py` sets it."""

    def __init__(
        self,
        shape: Sequence[DimLike],
        name: str | None = None,
        src_ops: Iterable[Operator] | None = None,
        dst_ops: Iterable[Operator] | None = None,
        dtype: str = "float16",
        is_input: bool = False,
        is_output: bool = False,
        value: float | int | None = None,
        is_view_of: Tensor | None = None,
        is_internal_constant: bool = False,
        skip_constant_folding: bool = False,
        check_nan_and_inf: bool = False,
        check_outputs: bool = False,
        original_name: str | None = None,
        strides: Sequence[DimLike] | None = None,
    ):
        type = tensor_type(shape, dtype if is_view_of is None else is_view_of.dtype())
        dims = [as_dim(dim) for dim in (*shape, *(strides or ()))]
        if strides is not None and (not is_input or value is not None):
            raise BuildError("only an input has strides: say where a result is to lie with mark_as_output")
        if value is not None:
            source: SSAValue = make_constant(type, value)
        elif is_input:
            source = Block(arg_types=[type]).args[0]
        else:
            source = make_param(type)
        self._attach(source, merge_symbols(*(dim.symbols for dim in dims)))
        if self.is_input:
            for symbol in self.symbols.values():
                symbol.inputs.append(weakref.ref(self))
        self.name = name
        self.strides = self._laid_out(strides)
        self.is_output = is_output
        self.sources.update(_operators(src_ops, "src_ops", name))
        self.users.update(_operators(dst_ops, "dst_ops", name))
        self.depth = max((1 + op.depth for op in self.sources), default=0)
        given = {
            "is_view_of": is_view_of,
            "is_internal_constant": is_internal_constant,
            "skip_constant_folding": skip_constant_folding,
            "check_nan_and_inf": check_nan_and_inf,
            "check_outputs": check_outputs,
            "original_name": original_name,
        }
        self.extra.update({key: entry for key, entry in given.items() if entry})

    @classmethod
    def of(cls, value: SSAValue, symbols: Symbols) -> Tensor:
        """The handle on `value`, made if there is none yet."""
        if (found := handle_of(value)) is not None:
            return found
        self = cls.__new__(cls)
        self._attach(value, symbols)
        return self

    def _attach(self, value: SSAValue, symbols: Symbols) -> None:
        self.symbols = symbols
        self.name, self.is_output, self.data, self.constant_data = None, False, None, None
        self.in_place_of, self.or_copy, self.strides = None, False, None
        self.serial = next(_serial)
        self.extra: dict[str, Any] = {}
        self.sources, self.users, self.made_by, self.depth = StableSet(), StableSet(), None, 0
        self.replace_value(value)

    def replace_value(self, value: SSAValue) -> None:
        """Make this the handle on `value`."""
        self.value = value
        setattr(value, _HANDLE, self)

    @property
    def type(self) -> TensorType:
        return cast(TensorType, self.value.type)

    @property
    def _attrs(self) -> TensorAttrs:
        return TensorAttrs(self)

    @property
    def attrs(self) -> TensorAttrs:
        """`_attrs`, which users of the documented API write."""
        return TensorAttrs(self)

    def src_ops(self) -> StableSet[Operator]:
        """The operators that compute this tensor: one, or none for an input, a weight or a constant."""
        return self.sources

    def dst_ops(self) -> StableSet[Operator]:
        """The operators that read this tensor."""
        return self.users

    def shape(self) -> list[IntVar]:
        """The dims: an `IntImm` where constant, else an `IntVar`."""
        return [IntVar.of(dim, self.symbols) for dim in self.type.dims]

    def dtype(self) -> str:
        return BY_IR[self.type.element_type].name

    @property
    def rank(self) -> int:
        return self.type.rank

    def _rank(self) -> int:
        return self.rank

    def _size(self, dim: int) -> IntVar:
        """A dim, counted from the end where negative."""
        if not -self.rank <= dim < self.rank:
            raise BuildError(f"dim {dim} is out of range for {self.describe()}")
        return self.shape()[dim]

    @property
    def is_input(self) -> bool:
        return isinstance(self.value, BlockArgument)

    @property
    def is_param(self) -> bool:
        """Whether this is a weight, whose data are bound by name."""
        return isinstance(self.value, OpResult) and self.value.op.name == "ait.param"

    def number(self) -> float | int | None:
        """The number that fills a constant; None for other tensors."""
        source = self.value.owner
        return source.splat() if isinstance(source, ConstantOp) else None

    def is_a_const_num(self) -> bool:
        """Whether this is a constant of rank 0."""
        return self.rank == 0 and self.number() is not None

    def is_jagged(self) -> bool:
        """Whether the first dim is a `JaggedIntVar`."""
        symbol = self.symbols.get(str(self.type.dims[0])) if self.rank else None
        return symbol is not None and symbol.jagged is not None

    def size_bytes(self, alignment: int = 1) -> int:
        """The largest size in bytes, rounded up to a multiple of `alignment`."""
        return aligned_size(self.shape(), self.dtype(), alignment)

    def mark_as_output(
        self,
        name: str | None = None,
        in_place_of: Tensor | None = None,
        or_copy: bool = False,
        strides: Sequence[DimLike] | None = None,
    ) -> Tensor:
        """Make this a result of the model, called `name`; returns the tensor.

        `in_place_of` is an input of the same shape and dtype. This input is then state: a run overwrites it with this
        result. If the result cannot be computed in place, compilation fails; with `or_copy` the model computes it
        elsewhere and copies it. `strides`, in elements, describe the caller's memory (by default row-major).
        """
        if in_place_of is not None and not in_place_of.is_input:
            raise BuildError(f"a result takes the place of an input, and {in_place_of.describe()} is none")
        if strides is not None and self.is_input:
            raise BuildError(f"{self.describe()} is an input, whose strides are given when it is made")
        laid_out = self._laid_out(strides)
        self.is_output, self.in_place_of, self.or_copy = True, in_place_of, or_copy
        self.name = self.name if name is None else name
        self.strides = self.strides if laid_out is None else laid_out
        return self

    def _laid_out(self, strides: Sequence[DimLike] | None) -> Shape | None:
        """Strides as the IR has them; `BuildError` for strides that the tensor cannot have."""
        if strides is None:
            return None
        dims = [as_dim(stride) for stride in strides]
        found = tuple(dim.expr for dim in dims)
        scope = scope_from(merge_symbols(self.symbols, *(dim.symbols for dim in dims)))
        if (problem := problem_of(scope, self.describe(), self.type, found)) is not None:
            raise BuildError(problem)
        return found

    def bind(self, data: NDArray[Any] | ConstantTensorData) -> None:
        """Give a weight its data, once. Raises `BuildError` for another shape or dtype, for a weight that has data, and
        for a tensor that is no weight."""
        if not self.is_param or self.sources:
            raise BuildError(f"data can be bound to weights only, and {self.describe()} is none")
        if self.data is not None:
            raise BuildError(f"the weight {self.describe()} is already bound! Make another tensor for other data")
        if isinstance(data, ConstantTensorData):
            array = data.array_for(self.describe(), self.type)
        else:
            array = data
            check_data(self.describe(), self.type, array)
        self.data, self.constant_data = array, data

    _bind_data = bind

    def describe(self) -> str:
        """The tensor in an error message: its name if it has one, shape and dtype."""
        name = f'"{self.name}" ' if self.name else ""
        return f"{name}{shape_text(self.type.dims)} {self.dtype()}"

    def pseudo_code(self, with_shape: bool = True) -> str:
        """The tensor in pseudo code: its name, or its number; `with_shape` adds the shape and the dtype."""
        number = self.number()
        name = self.name or ("None" if number is None else str(number))
        return f"{name}: {shape_text(self.type.dims)} {self.dtype()}" if with_shape else name

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


def tensor_type(shape: Sequence[DimLike], dtype: str) -> TensorType:
    """The IR type of a shape of dims and ints. Raises `BuildError` for another shape."""
    if isinstance(shape, str) or not hasattr(shape, "__iter__"):
        raise BuildError(f"a shape is a list of dims; found {shape!r}")
    try:
        return TensorType.get([at_least_0(as_dim(dim)) for dim in shape], BY_NAME[normalize_dtype(dtype)].ir)
    except VerifyException as error:
        raise BuildError(str(error)) from None


def aligned_size(shape: Sequence[DimLike], dtype: str, alignment: int = 64) -> int:
    """The largest size of a tensor in bytes, rounded up to a multiple of `alignment`."""
    size = BY_NAME[normalize_dtype(dtype)].bytes
    for dim in shape:
        size *= as_dim(dim).upper_bound()
    return -(-size // alignment) * alignment


def _operators(given: object, role: str, name: str | None) -> list[Operator]:
    """The operators that `src_ops` or `dst_ops` of a new tensor names; `BuildError` for anything else."""
    ops: list[Any] = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(cast(Any, given))
    if given is None or all(hasattr(op, "depth") for op in ops):
        return [] if given is None else ops
    raise BuildError(f"{role} of tensor {name!r} is {given!r}, expected operators; dtype= names an element type")


def handle_of(value: SSAValue) -> Tensor | None:
    """The tensor that stands for `value`, if one was made."""
    return getattr(value, _HANDLE, None)


def _arithmetic(func: str, *args: Tensor | float) -> Tensor:
    return Tensor.arithmetic(func, args)


# ** `_attrs` **

DEFAULTS: dict[str, Any] = {
    "nop": False,
    "is_view_of": None,
    "is_internal_constant": False,
    "skip_constant_folding": False,
    "has_output_aliases": False,
    "external_tensor": None,
    "offset": None,
    "constant_folding_output_idx": None,
    "check_nan_and_inf": False,
    "check_outputs": False,
    "original_name": None,
}
"""The default entries of every tensor."""

FROM_TENSOR = (
    "name",
    "depth",
    "is_output",
    "is_input",
    "is_param",
    "src_ops",
    "dst_ops",
    "shape",
    "dtype",
    "value",
    "data",
)


class TensorAttrs(MutableMapping[str, Any]):
    """A live view of a tensor under the documented keys; other keys hold values that the user set.

    `src_ops` and `dst_ops` are sets that may be changed: `build_module` follows them. `shape` and `dtype` can be set as
    long as no operator has read the tensor, `is_input` on a weight or an input.
    """

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
                return tensor.src_ops()
            case "dst_ops":
                return tensor.dst_ops()
            case "value":
                return tensor.number()
            case "data":
                return tensor.constant_data
            case "name" | "depth" | "is_output" | "is_input" | "is_param":
                return getattr(tensor, key)
            case _:
                return tensor.extra[key] if key in tensor.extra else DEFAULTS[key]

    def __setitem__(self, key: str, value: Any) -> None:
        tensor = self._tensor
        match key:
            case "name" | "depth":
                setattr(tensor, key, value)
            case "is_output":
                tensor.is_output = bool(value)
            case "is_input":
                set_is_input(tensor, bool(value))
            case "src_ops":
                tensor.sources = StableSet(value)
            case "dst_ops":
                tensor.users = StableSet(value)
            case "shape":
                set_shape(tensor, value)
            case "dtype":
                set_dtype(tensor, value)
            case "data":
                tensor.bind(value)
            case "is_param" | "value":
                if value != self[key]:
                    raise BuildError(
                        f'"{key}" of {tensor.describe()} is {self[key]!r} because of how the tensor was made; '
                        f"it cannot be set to {value!r}"
                    )
            case _:
                tensor.extra[key] = value

    def __delitem__(self, key: str) -> None:
        del self._tensor.extra[key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*FROM_TENSOR, *DEFAULTS, *self._tensor.extra]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))


def set_is_input(tensor: Tensor, is_input: bool) -> None:
    """Turn a weight into an input, or an input into a weight."""
    if is_input == tensor.is_input:
        return
    if not tensor.is_input and (tensor.sources or not (tensor.is_param or tensor.made_by)):
        raise BuildError(f"{tensor.describe()} is computed or has a value; it cannot be an input")
    old = tensor.value
    tensor.replace_value(Block(arg_types=[tensor.type]).args[0] if is_input else make_param(tensor.type))
    tensor.made_by = None
    old.replace_all_uses_with(tensor.value)


def set_shape(tensor: Tensor, shape: Sequence[DimLike]) -> None:
    """Change the shape of a tensor that no operator has read."""
    if list(map(as_dim, shape)) != tensor.shape():
        _retype(tensor, shape, tensor.dtype(), "shape")


def set_dtype(tensor: Tensor, dtype: str) -> None:
    """Change the dtype of a tensor that no operator has read."""
    if dtype not in BY_NAME or BY_NAME[dtype].name != tensor.dtype():
        _retype(tensor, tensor.shape(), dtype, "dtype")


def _retype(tensor: Tensor, shape: Sequence[DimLike], dtype: str, what: str) -> None:
    type = tensor_type(shape, dtype)
    if any(tensor.value.uses):
        raise BuildError(f'"{what}" of {tensor.describe()} cannot be set: operators were called on the tensor before')
    value = tensor.value
    if isinstance(value, OpResult) and isinstance(value.op, ConstantOp):
        tensor.replace_value(make_constant(type, cast(float, value.op.values()[0])))
    elif isinstance(value, OpResult) and not tensor.is_param:
        raise BuildError(f'"{what}" of {tensor.describe()} is what its operator computes; it cannot be set')
    else:
        value._type = type  # pyright: ignore[reportPrivateUsage]
    tensor.symbols = merge_symbols(*(as_dim(dim).symbols for dim in shape))
