"""Converts tensors of any framework to arguments of the runtime library, without copies."""

from __future__ import annotations

import ctypes
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ait_mlir.dtypes import BEYOND_NUMPY, DTYPES, numpy_dtype
from ait_mlir.errors import InputError, OutOfMemoryError


class AITData(NamedTuple):
    """A contiguous tensor by its address.

    `data_ptr` is not owned: it must stay valid for the whole of a call, and points to memory of the model's device.
    """

    data_ptr: int
    shape: Sequence[int]
    dtype: str


class _DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    """DLTensor of DLPack."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_UINT = 1
_DTYPES: dict[str, tuple[int, int]] = {
    **{d.name: (d.dlpack, 8 * d.bytes) for d in DTYPES},
    **{f"uint{bits}": (_UINT, bits) for bits in (16, 32, 64)},
}
"""DLPack's type code and bits: of the element types, and of others that a tensor may have."""
_EXPORTED = frozenset(np.dtype(name) for name in _DTYPES if name not in BEYOND_NUMPY)
CPU = (1, 0)
"""The DLPack device (type, number) of host memory."""


def torch_module() -> Any:
    """PyTorch if this process has imported it, else None. Without PyTorch no value can be a `torch.Tensor`."""
    return sys.modules.get("torch")


def is_torch(value: object) -> bool:
    """Whether `value` is a `torch.Tensor`."""
    torch = torch_module()
    return torch is not None and isinstance(value, torch.Tensor)


def torch_to_ait_data(tensor: Any) -> AITData:
    """The address, shape and dtype of a contiguous `torch.Tensor`, which must stay alive while the result is used."""
    if not is_torch(tensor):
        raise InputError(f"expected a torch.Tensor, found {type(tensor).__name__}")
    if not tensor.is_contiguous():
        raise InputError(f"a tensor with strides {list(tensor.stride())} is not contiguous: call .contiguous() first")
    return AITData(tensor.data_ptr(), list(tensor.shape), str(tensor.dtype).removeprefix("torch."))


def to_numpy(value: Any) -> np.ndarray[Any, Any]:
    """A NumPy view of a torch tensor (a copy if it is on a device), or of anything `np.asarray` takes."""
    if not is_torch(value):
        return np.asarray(value)
    torch = torch_module()
    tensor = value.detach().cpu().contiguous()
    if (name := str(tensor.dtype).removeprefix("torch.")) in BEYOND_NUMPY:
        bits = torch.int16 if tensor.element_size() == 2 else torch.uint8
        return cast("np.ndarray[Any, Any]", tensor.view(bits).numpy()).view(numpy_dtype(name))
    return tensor.numpy()


def copy_of(value: Any, copy_data: Callable[[AITData], AITData]) -> Any:
    """A copy of a tensor, of the same kind; `copy_data` copies an `AITData`."""
    if isinstance(value, AITData):
        return copy_data(value)
    if is_torch(value):
        return value.detach().clone()
    return np.array(value, copy=True) if hasattr(value, "__array__") else np.from_dlpack(value).copy()


def address_of(label: str, value: Any) -> tuple[int, tuple[int, ...]]:
    """The address and shape of a torch or NumPy tensor or an `AITData`; `InputError` for other values."""
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        if not array.flags.writeable or not array.flags.c_contiguous:
            raise InputError(f"{label} cannot be written in place: pass a contiguous array that is not read-only")
        return int(array.ctypes.data), array.shape
    if isinstance(value, AITData):
        return value.data_ptr, tuple(value.shape)
    if is_torch(value) and value.is_contiguous():
        return int(value.data_ptr()), tuple(value.shape)
    raise InputError(f"{label} is a {type(value).__name__}, expected a contiguous torch or NumPy tensor, or AITData")


def owner_of(value: Any) -> Any:
    """The object that owns the memory of a torch or NumPy tensor, which may be a view; None for other values."""
    if is_torch(value):
        return value if value._base is None else value._base
    if not isinstance(value, np.ndarray):
        return None
    owner: Any = cast("np.ndarray[Any, Any]", value)
    while isinstance(owner.base, np.ndarray):
        owner = cast("np.ndarray[Any, Any]", owner.base)
    return owner


def are_plain(values: Sequence[Any]) -> bool:
    """Whether tvm-ffi takes all of these tensors without conversion by `Arguments`: torch tensors without gradients and
    writable NumPy arrays.
    """
    torch = sys.modules.get("torch")
    tensor_type: Any = None if torch is None else torch.Tensor
    for value in values:
        if type(value) is tensor_type:
            if value.requires_grad or value.is_neg() or value.is_conj():
                return False
        elif type(value) is not np.ndarray or value.dtype not in _EXPORTED or not value.flags.writeable:
            return False
        elif not value.flags.c_contiguous and any(stride % value.itemsize for stride in value.strides):
            return False  # fields of records: DLPack cannot express their strides
    return True


class Arguments:
    """The tensors of one call as arguments of the runtime library. Keeps their owners alive until the call returns."""

    def __init__(self, device: tuple[int, int]) -> None:
        self._device = device
        self._alive: list[object] = []

    def add(self, label: str, value: Any, *, written: bool = False) -> Any:
        """`value` as an argument. Raises `InputError` with `label` ("input 'x'") if it is not a tensor."""
        if isinstance(value, np.ndarray):
            return self._from_numpy(label, cast("np.ndarray[Any, Any]", value), written)
        if _is_scalar(value) and not written:
            self._alive.append(array := cast("np.ndarray[Any, Any]", np.asarray(value)))
            return self._from_numpy(label, array, written)
        if is_torch(value):
            if value.is_neg() or value.is_conj():  # a lazy negation or conjugate: the memory holds other values
                raise InputError(f"{label} is a lazy negation or conjugate: pass .resolve_neg().resolve_conj() of it")
            return value.detach() if value.requires_grad else value
        if isinstance(value, AITData):
            try:
                shape = [_extent(n) for n in value.shape]
                return self._from_address(label, as_address(value.data_ptr), shape, None, value.dtype, self._device)
            except (TypeError, ctypes.ArgumentError, OverflowError) as error:
                raise InputError(f"{label} is {value}, expected AITData(address, extents, dtype): {error}") from None
        if hasattr(value, "__dlpack__"):
            if written and type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
                raise InputError(f"{label} is a JAX array, which cannot be written: pass no outputs, or NumPy arrays")
            return value
        kind = "None" if value is None else f"a {type(value).__name__}"
        raise InputError(f"{label} is {kind}, expected a torch, NumPy or DLPack tensor, or AITData")

    def _from_numpy(self, label: str, array: np.ndarray[Any, Any], written: bool) -> Any:
        if (
            array.flags.writeable
            and array.dtype in _EXPORTED
            and (array.flags.c_contiguous or not any(stride % array.itemsize for stride in array.strides))
        ):
            return array  # tvm-ffi takes it as it is, in a tenth of the time
        if written and not array.flags.writeable:
            raise InputError(f"{label} is a read-only array: pass one that can be written")
        if not array.dtype.isnative:
            raise InputError(f"{label} has dtype {array.dtype}, which is not in the byte order of this machine")
        if any(stride % array.itemsize for stride in array.strides) and not written:
            array = np.ascontiguousarray(array)
            self._alive.append(array)
        if any(stride % array.itemsize for stride in array.strides):
            raise InputError(f"{label} has strides of {array.strides} bytes, no multiples of its items: pass a copy")
        strides = None if array.flags.c_contiguous else [stride // array.itemsize for stride in array.strides]
        return self._from_address(label, array.ctypes.data, array.shape, strides, array.dtype.name, CPU)

    def _from_address(
        self,
        label: str,
        address: int,
        shape: Sequence[int],
        strides: Sequence[int] | None,
        dtype: str,
        device: tuple[int, int],
    ) -> ctypes.c_void_p:
        if dtype not in _DTYPES:
            raise InputError(f"{label} has dtype {dtype}, which no tensor of a model has")
        code, bits = _DTYPES[dtype]
        extents = ctypes.c_int64 * len(shape)
        tensor = _DLTensor(
            address or None,
            _DLDevice(*device),
            len(shape),
            _DLDataType(code, bits, 1),
            extents(*shape),
            None if strides is None else extents(*strides),
            0,
        )
        self._alive.append(tensor)
        return ctypes.c_void_p(ctypes.addressof(tensor))


def _is_scalar(value: object) -> bool:
    """Whether `value` is a NumPy scalar, NumPy's form of an array of rank 0."""
    return isinstance(value, np.generic)


def as_address(value: Any) -> int:
    """An address as an integer; `OverflowError` unless it has 64 bits, because ctypes would truncate it."""
    address = operator.index(value)
    if not 0 <= address < 1 << 64:
        raise OverflowError(f"the address {address} is not from 0 to 2^64")
    return address


def as_whole(what: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A count as an integer; `InputError` unless `value` is a whole number from `least` to `most`."""
    number = operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None
    if number is None or number < least or (most is not None and number > most):
        expected = f"a whole number, at least {least}" if most is None else f"a whole number from {least} to {most}"
        raise InputError(f"{what} is {value!r}, expected {expected}")
    if number >= 1 << 63:
        raise InputError(f"{what} is {value!r}, expected a whole number below 2^63")
    return number


def as_stream(value: Any) -> int:
    """The address of a stream, 0 for None; `InputError` for any other value."""
    if value is None:
        return 0
    return value if type(value) is int and 0 <= value < 1 << 64 else _other_stream(value)


def _other_stream(value: Any) -> int:
    try:
        return as_address(value)
    except (OverflowError, TypeError):
        raise InputError(f"stream_ptr is {value!r}, expected the address of a stream") from None


def check_flags(**flags: Any) -> None:
    """Raise `InputError` for a flag that is neither True nor False."""
    for what, value in flags.items():
        if not isinstance(value, int | np.bool_):
            raise InputError(f"{what} is {value!r}, expected True or False")


def _extent(value: Any) -> int:
    """An extent as an integer of 64 bits; `OverflowError` if it is larger, because ctypes would truncate it."""
    n = operator.index(value)
    if not -(1 << 63) <= n < 1 << 63:
        raise OverflowError(f"the extent {n} is beyond 64 bits")
    return n


def untakable(label: str, value: Any) -> str | None:
    """The reason why a tensor cannot be shared through DLPack; None if no reason is known."""
    if not is_torch(value):
        return None
    if value.device.type == "meta":
        return f"{label} is on device meta, so it has no data"
    if value.layout != torch_module().strided:
        return f"{label} is a tensor of layout {value.layout}, expected a strided one: pass .to_dense() of it"
    if value.is_quantized:
        return f"{label} is a quantized tensor, expected plain numbers"
    return None


def is_contiguous(value: Any) -> bool:
    """Whether a tensor of torch, NumPy, CuPy or tvm-ffi is row-major without gaps."""
    if hasattr(value, "is_contiguous"):
        return bool(value.is_contiguous())
    return not hasattr(value, "flags") or bool(value.flags.c_contiguous)


def span(dims: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first one of a tensor to its last one."""
    return 0 if 0 in dims else 1 + sum((n - 1) * s for n, s in zip(dims, strides, strict=True))


def empty_strided(dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int]) -> np.ndarray[Any, Any]:
    """A NumPy array with these strides, in elements, and any content."""
    memory = empty((span(shape, strides),), dtype)
    return np.ndarray(shape, dtype, memory, strides=[s * dtype.itemsize for s in strides])


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A NumPy array with any content. Raises `OutOfMemoryError`."""
    try:
        return np.empty(tuple(shape), dtype)
    except (MemoryError, ValueError):  # the latter for more bytes than an address has
        needed = math.prod(shape) * dtype.itemsize
        raise OutOfMemoryError(f"an array of shape {list(shape)} and dtype {dtype} needs {needed} bytes") from None


def shaped(value: Any, shape: tuple[int, ...]) -> Any:
    """A view of shape `shape` in an output buffer that may be larger."""
    if value.shape == shape:
        return value
    if isinstance(value, AITData):
        return AITData(value.data_ptr, list(shape), value.dtype)
    if not is_contiguous(value):
        return value[tuple(slice(extent) for extent in shape)]
    count = 1
    for extent in shape:
        count *= extent
    return value.reshape(-1)[:count].reshape(shape)
