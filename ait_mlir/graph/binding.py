"""Matches the tensors passed to `execute` with the tensors of the graph, checks them, and finds their addresses."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ait_mlir import callers
from ait_mlir.dialects.ait.dtypes import integer_range
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.errors import InputError
from ait_mlir.graph.enums import FLOATS, IR_TYPES, data_type, item_bytes
from ait_mlir.graph.layout import row_major, same_memory, span
from ait_mlir.graph.staging import BITS, Stage, are_apart
from ait_mlir.runtime.data import AITData

Key = object
"""A key of a variant pack: the tensor, its UID or its name."""
ALIGNMENT = 16
"""Bytes to which addresses on a GPU are aligned."""
WORKSPACE_ALIGNMENT = 256
NUMBERS_KEPT = 1024


@dataclass
class BoundTensor:
    """A tensor that `execute` needs."""

    label: str
    name: str
    uid: int
    dtype: data_type
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    is_output: bool
    is_by_value: bool = False
    value: float | None = None
    """The number of a scalar that the variant pack may leave out."""
    row_stride: int = 0
    """The elements between rows of a ragged tensor, else 0. The caller's tensor may then have any shape."""

    def __post_init__(self) -> None:
        self.bytes = span(self.dims, self.strides) * item_bytes(self.dtype)
        self.torch_dtype: Any = None
        self.is_dense = self.row_stride == 0 and self.bytes == item_bytes(self.dtype) * int(
            np.prod(self.dims, dtype=np.int64)
        )


class Binding:
    """Finds the addresses of a variant pack's tensors, in the order of `places`.

    Tensors that are the same objects as in the previous call, at the same addresses, are not checked again.
    """

    def __init__(
        self,
        graph: str,
        places: Sequence[BoundTensor],
        device: str,
        keys: Mapping[Key, int],
        also: Mapping[Key, str],
        origin: str = "",
    ):
        self.graph = graph
        self.origin = origin or f"graph '{graph}'"
        """The graph in messages about two graphs."""
        self.places = list(places)
        self.device = device
        self.keys = dict(keys)
        self.also = dict(also)
        """Keys of tensors that are in the graph, but not in a variant pack: the reason, or "" for an unread input."""
        self._torch_device: Any = None
        self._last: tuple[list[tuple[Any, Any, int]], list[int]] = ([], [])
        """The last checked tensors and their addresses; equal tensors are not checked again."""
        self.inputs = 0
        """The number of places that are inputs of the module; they come first."""
        self.results = 0
        """The number of places that are outputs of the module; they come next, then scalars that are part of the
        code."""
        self.donated: list[int] = []
        """The outputs whose memory is also an input of the module."""
        self.bound: dict[int, Any] = {}
        """The data of tensors that the graph already has, by place."""
        self._names: dict[int, list[Key]] = {}
        """The keys of scalars passed by value."""
        self._numbers: dict[tuple[int, float], float] = {}
        """The last scalars, rounded to their data types."""
        self.ragged = [i for i, p in enumerate(self.places) if p.row_stride]
        """The ragged tensors."""
        self.outputs = [i for i, p in enumerate(self.places) if p.is_output and not p.row_stride]

    def addresses(self, pack: Mapping[Any, Any]) -> tuple[list[int], Stage | None]:
        """The address of each tensor, 0 for a scalar passed by value; and temporaries, if some tensors need them.

        Keys that are None, and keys of tensors that no node reads or writes, are ignored. Raises `InputError` before
        any launch.
        """
        if not isinstance(pack, dict | Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"the variant pack is a {type(pack).__name__}, expected a dict of tensors")
        last, addresses = self._last  # read once: another thread may call at the same time
        for (key, value), (known, ref, address) in zip(pack.items(), last, strict=False):
            if (key is not known and key != known) or ref() is not value or (address and value.data_ptr() != address):
                break
        else:
            if len(pack) == len(last) > 0:
                return addresses.copy(), None
        torch = sys.modules.get("torch")
        tensor_class = torch.Tensor if torch is not None else None
        if torch is not None and self._torch_device is None:
            self._use_torch(torch)
        found: list[int | None] = [None] * len(self.places)
        given: dict[int, Any] = {}
        stage = Stage(self.device)
        for key, value in pack.items():
            i = self.keys.get(key)
            if i is None:
                self._check_unread(key)
                continue
            place = self.places[i]
            given[i] = value
            if found[i] is not None:
                raise InputError(f"graph '{self.graph}': {place.label} is twice in the variant pack")
            if (
                tensor_class is not None
                and type(value) is tensor_class
                and value.dtype is place.torch_dtype
                and value.shape == place.dims
                and value.stride() == place.strides
                and value.device == self._torch_device
            ):
                address = value.data_ptr()
                if address & (ALIGNMENT - 1) or address == 0:
                    self._check_address(place, address)
                found[i] = address
            else:
                found[i] = 0 if place.is_by_value else self._address(place, value, stage)
        for i, address in enumerate(found):
            if address is None:
                if not self.places[i].is_by_value or self.places[i].value is None:
                    raise InputError(self._missing(found))
                found[i] = 0
        done = cast("list[int]", found)
        self._check_overlaps(done, given, stage)
        if stage:
            return done, stage
        if tensor_class is not None and not self.ragged and all(type(value) is tensor_class for value in pack.values()):
            checked = [(k, weakref.ref(v), done[self.keys[k]] if k in self.keys else 0) for k, v in pack.items()]
            self._last = checked, done.copy()
        return done, None

    def with_bound(self, pack: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """The variant pack together with the tensors whose data the graph already has."""
        given = {self.keys.get(key) for key in pack}
        return {**{self.places[i].uid: v for i, v in self.bound.items() if i not in given}, **pack}

    def rows(self, pack: Mapping[Any, Any]) -> tuple[int, ...]:
        """The number of rows of each ragged tensor in memory, at most the rows of all sequences at full length."""
        values = {self.keys.get(key): value for key, value in pack.items()}
        found: list[int] = []
        for i in self.ragged:
            place = self.places[i]
            if isinstance(values[i], int):
                raise InputError(f"{place.label} is ragged: pass a tensor, which says how many rows it has")
            _, _, dims, strides, _ = describe(place.label, values[i])
            found.append(min(-(-span(dims, strides) // place.row_stride), place.dims[0] * place.dims[-2]))
        return tuple(found)

    def number(self, pack: Mapping[Any, Any], i: int) -> float:
        """The number of a scalar that is passed by value."""
        place = self.places[i]
        names = self._names.get(i)
        if names is None:
            names = self._names[i] = [key for key, j in self.keys.items() if j == i]
        number = place.value
        for key in names:
            if key in pack:
                value = pack[key]
                number = value if type(value) is float else number_of(place.label, value)
                break
        assert number is not None, "addresses() has found it missing"
        if number == 0:
            return number  # 0.0 and -0.0 are one key
        known = self._numbers.get((i, number))
        if known is None:
            if len(self._numbers) >= NUMBERS_KEPT:
                self._numbers.clear()
            if reason := unfit(number, place.dtype):
                raise InputError(f"{place.label} is {reason}")
            known = self._numbers[i, number] = rounded(number, place.dtype)
        return known

    # ** messages **

    def _use_torch(self, torch: Any) -> None:
        self._torch_device = torch.device(self.device)
        for place in self.places:
            place.torch_dtype = getattr(torch, place.dtype.value)

    def _check_unread(self, key: Any) -> None:
        """Raise for a key that is no tensor of the graph, unless it is None or a UID, and for a virtual tensor."""
        if key in self.also:
            if reason := self.also[key]:
                raise InputError(f"graph '{self.graph}': {reason}")
        elif key is not None and not isinstance(key, int):
            label = getattr(key, "origin", None) or repr(key)
            names = ", ".join(f"'{p.name}' (UID {p.uid})" for p in self.places)
            raise InputError(f"{self.origin} has no {label} for the variant pack; it has {names}")

    def _missing(self, found: Sequence[int | None]) -> str:
        missing = [p.label for p, a in zip(self.places, found, strict=True) if a is None and p.value is None]
        verb = "is" if len(missing) == 1 else "are"
        return f"graph '{self.graph}': {', '.join(missing)} {verb} missing from the variant pack"

    def _address(self, place: BoundTensor, value: Any, stage: Stage) -> int:
        """The address of a tensor of any framework, after all checks; of a temporary if kernels cannot use it."""
        if isinstance(value, int) and not isinstance(value, bool):
            self._check_address(place, value)
            return value
        address, dtype, dims, strides, device = describe(place.label, value)
        if place.is_output and isinstance(value, np.ndarray) and not value.flags.writeable:
            raise InputError(f"{place.label} is a read-only array, but execute() writes it")
        is_bytes = place.dtype is data_type.BOOLEAN and dtype == data_type.UINT8.value and place.row_stride == 0
        if {dtype, place.dtype.value} == {data_type.HALF.value, data_type.BFLOAT16.value}:
            message = f"{place.label} is {dtype}; as in cuDNN, its bytes are read as {place.dtype.value}"
            callers.warn(message, RuntimeWarning)
        elif dtype != place.dtype.value and not is_bytes:
            raise InputError(f"{place.label} is {dtype}, expected {place.dtype.value}")
        if device != self.device:
            raise InputError(f"{place.label} is on {device}, but the graph '{self.graph}' runs on {self.device}")
        is_packed = is_bytes and place.is_dense and span(dims, strides) * BITS == place.bytes
        if place.row_stride == 0 and not is_packed:
            self._check_shape(place, dims, strides)
        if is_packed or (is_bytes and not place.is_output):
            return stage.in_place_of(place.label, value, place.dims, place.strides, place.is_output)
        if place.row_stride == 0 or span(dims, strides):
            self._check_address(place, address)
        return address

    def _check_shape(self, place: BoundTensor, dims: tuple[int, ...], strides: tuple[int, ...]) -> None:
        if dims == place.dims and same_memory(dims, strides, place.strides):
            return
        squeezed = [(n, s) for n, s in zip(dims, strides, strict=True) if n != 1]
        wanted = [(n, s) for n, s in zip(place.dims, place.strides, strict=True) if n != 1]
        if squeezed == wanted or (0 in dims and 0 in place.dims):
            return
        flat = len(squeezed) == 1 and squeezed[0][1] == 1
        dense = span(dims, strides) == np.prod(dims, dtype=np.int64)
        if dense and place.is_output and place.is_dense and span(dims, strides) * item_bytes(place.dtype) > place.bytes:
            return  # room for the output
        if flat and squeezed[0][0] * item_bytes(place.dtype) >= place.bytes:
            return
        raise InputError(
            f"{place.label} has dims {list(dims)} and strides {list(strides)}, "
            f"expected {list(place.dims)} and {list(place.strides)}"
        )

    def _check_address(self, place: BoundTensor, address: int) -> None:
        if address == 0 and place.bytes:
            raise InputError(f"{place.label} is a null pointer, expected {place.bytes} bytes")
        if not 0 <= address < 1 << 64:
            raise InputError(f"{place.label} is at {address}, expected an address")
        aligned = ALIGNMENT if self.device != "cpu" else item_bytes(place.dtype)
        if address % aligned:
            raise InputError(f"{place.label} is at {address:#x}, expected a multiple of {aligned} bytes: pass a copy")

    def _check_overlaps(self, addresses: list[int], given: Mapping[int, Any], stage: Stage) -> None:
        """Raise if an output shares memory with another tensor. If it lies where an input lies, or interleaves with one
        in an unknown way, a temporary takes its place."""
        for i in self.outputs:
            place, begin = self.places[i], addresses[i]
            end = begin + place.bytes
            for j, other in enumerate(addresses):
                third = self.places[j]
                if j == i or not other or other >= end or begin >= other + third.bytes or third.row_stride:
                    continue
                size = item_bytes(place.dtype)
                if size == item_bytes(third.dtype) and (other - begin) % size == 0:
                    start = min(begin, other)
                    here, there = ((a - start) // size for a in (begin, other))
                    if are_apart((here, place.dims, place.strides), (there, third.dims, third.strides)):
                        continue
                is_same = other == begin and third.dims == place.dims and third.strides == place.strides
                gaps = not (place.is_dense and third.is_dense)
                if third.is_output or not (is_same or gaps):
                    raise InputError(f"{place.label} overlaps the memory of {third.label}: pass a tensor of its own")
                addresses[i] = stage.in_place_of(place.label, given[i], place.dims, place.strides, True)
                break


def describe(label: str, value: Any) -> tuple[int, str, tuple[int, ...], tuple[int, ...], str]:
    """Address, dtype, dims, strides and device of a tensor of PyTorch, NumPy, DLPack, or an `AITData`."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.device.type == "meta":
            raise InputError(f"{label} is a tensor of layout {value.layout} on {value.device}, expected one with data")
        device = str(value.device) if value.device.type != "cuda" else f"cuda:{value.device.index}"
        dtype = str(value.dtype).removeprefix("torch.")
        return value.data_ptr(), dtype, tuple(value.shape), tuple(value.stride()), device
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        if any(s % array.itemsize for s in array.strides):
            raise InputError(f"{label} has strides of {array.strides} bytes, no multiples of its items: pass a copy")
        if not array.dtype.isnative:
            raise InputError(f"{label} has dtype {array.dtype.str}, bytes in the opposite order: pass a copy")
        strides = tuple(s // array.itemsize for s in array.strides)
        return array.ctypes.data, array.dtype.name, array.shape, strides, "cpu"
    if isinstance(value, AITData):
        dims = tuple(value.shape)
        return value.data_ptr, value.dtype, dims, row_major(dims), "cpu"
    if hasattr(value, "__dlpack__"):
        import tvm_ffi

        view: Any = cast(Any, tvm_ffi).from_dlpack(value)
        dims = tuple(view.shape)
        kind, number = view.device.dlpack_device_type(), view.device.index
        return view.data_ptr(), str(view.dtype), dims, tuple(view.strides), "cpu" if kind == 1 else f"cuda:{number}"
    kind = "None" if value is None else f"a {type(value).__name__}"
    raise InputError(f"{label} is {kind}, expected a torch, NumPy or DLPack tensor, or an address")


def number_of(label: str, value: Any) -> float:
    """The number of a scalar: a Python number, or a tensor of one element on the host."""
    torch = sys.modules.get("torch")
    if torch is not None and type(value) is torch.Tensor and value.is_cpu and value.numel() == 1:
        return value.item()
    if isinstance(value, int | float):
        return value
    if hasattr(value, "item"):
        device = getattr(getattr(value, "device", None), "type", "cpu")
        count = value.numel() if hasattr(value, "numel") else getattr(value, "size", 1)
        if device == "cpu" and count == 1:
            return value.item()
        raise InputError(f"{label} is passed by value: expected one element on the host, found {count} on {device}")
    raise InputError(f"{label} is passed by value: expected a number or a tensor of one element, found {value!r}")


@functools.lru_cache(maxsize=1024)
def rounded(number: float, dtype: data_type) -> float:
    """The number with the fewest digits that rounds to the same value of the data type: 1e-05 for its float32."""
    if dtype is not data_type.FLOAT:
        return number
    with np.errstate(over="ignore"):
        return float(str(np.float32(number)))


def unfit(number: float, dtype: data_type) -> str | None:
    """The reason why an integer data type cannot hold this number, else None. Floats round; BOOLEAN is true unless
    0."""
    if dtype in FLOATS or dtype is data_type.BOOLEAN or dtype not in IR_TYPES:
        return None
    low, high = integer_range(IR_TYPES[dtype]) or (0, 0)
    if low <= number <= high and number == int(number):
        return None
    return f"{number!r}, expected a whole number from {low} to {high} for {dtype.name}"


def scalar_bytes(number: float, dtype: data_type) -> np.ndarray[Any, Any]:
    """A number in the memory of its data type."""
    with np.errstate(over="ignore"):
        return np.array([number], dtype=numpy_dtype(dtype.value))


@functools.cache
def bytes_of(dtype: str) -> int:
    """The bytes of an element of this type, even of types that graphs do not support."""
    ours = [item_bytes(d) for d in IR_TYPES if d.value == dtype]
    return ours[0] if ours else numpy_dtype(dtype).itemsize


def workspace_address(graph: str, workspace: Any, needed: int, device: str) -> int:
    """The aligned address of a workspace; 0 if none is needed. Raises `InputError` if it is too small or elsewhere."""
    if needed == 0:
        return 0
    if workspace is None or workspace == 0 if isinstance(workspace, int | None) else False:
        raise InputError(f"graph '{graph}' needs a workspace of {needed} bytes, found {workspace!r}")
    if isinstance(workspace, int) and not isinstance(workspace, bool):
        return -(-workspace // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
    address, dtype, dims, strides, place = describe("the workspace", workspace)
    found = span(dims, strides) * bytes_of(dtype)
    if place != device:
        raise InputError(f"the workspace is on {place}, but the graph '{graph}' runs on {device}")
    if found < needed or address == 0:
        raise InputError(f"the workspace has {found} bytes, but graph '{graph}' needs {needed}: see get_workspace_size")
    return -(-address // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
