"""`Tensor._attrs`: the documented attributes of a tensor, to read and to set."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.ir import Block, OpResult

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.frontend.emit import make_constant, make_param
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import DimLike, as_dim, merge_symbols
from ait_mlir.frontend.stable_set import StableSet

if TYPE_CHECKING:
    from ait_mlir.frontend.tensor import Tensor

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
    from ait_mlir.frontend.tensor import tensor_type

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
