"""The bodies of requests and answers: JSON, `.npy` and safetensors.

The first bytes of a body tell its format. An answer has the format of its request.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from ait_mlir.dtypes import BEYOND_NUMPY, numpy_dtype
from ait_mlir.errors import ArtifactError, InputError
from ait_mlir.runtime.from_host import Array
from ait_mlir.runtime.manifest import TensorInfo
from ait_mlir.runtime.safetensors_part import decode, encode

Format: TypeAlias = Literal["json", "npy", "safetensors"]
_NPY = b"\x93NUMPY"
TYPES: dict[Format, str] = {
    "json": "application/json",
    "npy": "application/octet-stream",
    "safetensors": "application/octet-stream",
}
"""The content types of answers."""


def format_of(body: bytes) -> Format:
    """The format of a body, by its first bytes."""
    if body.startswith(_NPY):
        return "npy"
    if body[8:9] == b"{" and int.from_bytes(body[:8], "little") <= len(body) - 8:
        return "safetensors"
    return "json"


def read(body: bytes, inputs: Sequence[TensorInfo]) -> dict[str, Array]:
    """The tensors of a request by name, which may not be aligned. Raises `InputError` if the body is malformed.

    Their names and shapes are not checked, and the dtypes of JSON alone: JSON has numbers of no dtype.
    """
    format = format_of(body)
    if format == "json":
        return _from_json(body, inputs)
    return _from_npy(body, inputs) if format == "npy" else _from_safetensors(body)


def write(outputs: Mapping[str, Array], format: Format) -> bytes:
    """The body of an answer. A model with several outputs answers a `.npy` file with a safetensors file."""
    if format == "json":
        return json.dumps({"outputs": {name: _as_lists(y) for name, y in outputs.items()}}).encode()
    if format == "npy" and len(outputs) == 1:
        (y,) = outputs.values()
        file = io.BytesIO()
        np.save(file, y.view(f"V{y.itemsize}") if y.dtype.name in BEYOND_NUMPY else y, allow_pickle=False)
        return file.getvalue()
    return b"".join(encode(outputs))


def _as_lists(y: Array) -> Any:
    return (y.astype(np.float32) if y.dtype.name in BEYOND_NUMPY else y).tolist()


def _from_json(body: bytes, inputs: Sequence[TensorInfo]) -> dict[str, Array]:
    try:
        found = cast(object, json.loads(body))
    except (ValueError, RecursionError) as error:
        raise InputError(f"the request is neither JSON nor a .npy or safetensors file: {error}") from None
    named = cast(Mapping[str, object], found).get("inputs") if isinstance(found, dict) else None
    if not isinstance(named, dict):
        raise InputError('the request is JSON without inputs, expected {"inputs": {NAME: NUMBERS, ...}}')
    dtypes = {tensor.name: tensor.dtype for tensor in inputs}
    # a name that the model does not know keeps its place for the error about it
    return {
        name: _array(name, value, dtypes[name]) if name in dtypes else np.empty(0)
        for name, value in cast(Mapping[str, object], named).items()
    }


def _array(name: str, value: object, dtype: str) -> Array:
    """The array of nested lists of numbers; `InputError` if the dtype cannot have a number."""
    kind = numpy_dtype(dtype)
    try:
        found = np.asarray(value)
    except (ValueError, OverflowError, RecursionError):
        raise InputError(f"input '{name}' is no array: its lists have different lengths, or are too deep") from None
    integers = kind.kind in "iu" or dtype in ("int4", "uint4")
    allowed, expected = (
        ("b", "true and false") if kind == np.bool_ else ("iu", "integers") if integers else ("iuf", "numbers")
    )
    if found.size == 0:
        return np.empty(found.shape, kind)
    if found.dtype.kind not in allowed:
        raise InputError(f"input '{name}' is {dtype}: expected {expected} in lists of equal lengths")
    with np.errstate(over="ignore", invalid="ignore"):
        made = found.astype(kind)
        wide = made.astype(found.dtype)
        changed = wide != found if integers else ~np.isfinite(wide) & np.isfinite(found)
    if changed.any():
        raise InputError(f"input '{name}' is {dtype}, which has no number {found[changed].flat[0]}")
    return made


def _from_npy(body: bytes, inputs: Sequence[TensorInfo]) -> dict[str, Array]:
    if len(inputs) != 1:
        names = ", ".join(tensor.name for tensor in inputs) or "none"
        raise InputError(
            f"the request is a .npy file, which has one array, but the model has {len(inputs)} inputs ({names}): send "
            "JSON or a safetensors file"
        )
    file = io.BytesIO(body)
    try:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = header(file)
        if dtype.hasobject:
            raise ValueError("it has Python objects")
        if math.prod(shape) * dtype.itemsize != len(body) - file.tell() or any(extent < 0 for extent in shape):
            raise ValueError(f"{len(body) - file.tell()} bytes follow a header for shape {list(shape)} of {dtype}")
        found = np.frombuffer(body, dtype, offset=file.tell()).reshape(shape, order="F" if is_fortran else "C")
    except Exception as error:  # NumPy reads the header with Python's own parser
        raise InputError(f"the request is no .npy file: {error}") from None
    (tensor,) = inputs
    if tensor.dtype in BEYOND_NUMPY and dtype == np.dtype(f"V{numpy_dtype(tensor.dtype).itemsize}"):
        found = found.view(numpy_dtype(tensor.dtype))  # as NumPy writes a type that it does not have
    elif not dtype.isnative:
        found = found.astype(dtype.newbyteorder("="))
    return {tensor.name: found}


def _from_safetensors(body: bytes) -> dict[str, Array]:
    try:
        return decode(np.frombuffer(body, np.uint8), "the request is")
    except ArtifactError as error:
        raise InputError(str(error)) from None
