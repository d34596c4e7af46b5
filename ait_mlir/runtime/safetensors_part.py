"""Constants as a safetensors file that begins on a page, so that they can be mapped rather than read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ait_mlir.dtypes import DTYPES
from ait_mlir.errors import ArtifactError
from ait_mlir.runtime.data import numpy_dtype

PAGE = 4096
_CODES = {d.name: d.safetensors for d in DTYPES}
_NAMES = {code: name for name, code in _CODES.items()}


@dataclass(frozen=True)
class Deferred:
    """An array that is made when it is written, so that only one of many is in memory at a time."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    make: Callable[[], np.ndarray[Any, Any]]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def encode(tensors: Mapping[str, np.ndarray[Any, Any] | Deferred]) -> Iterator[memoryview | bytes]:
    """The bytes of a safetensors file, in pieces, without a copy of the data; the data itself begins on a page.

    Raises `ArtifactError` for a dtype that no constant has.
    """
    yield encode_header(tensors)[0]
    yield from encode_data(tensors)


def encode_header(tensors: Mapping[str, np.ndarray[Any, Any] | Deferred]) -> tuple[bytes, int]:
    """The header of a safetensors file, and the number of bytes that follow it. Raises like `encode`."""
    header: dict[str, Any] = {}
    offset = 0
    for name in _order(tensors):
        array = tensors[name]
        if array.dtype.name not in _CODES:
            raise ArtifactError(f"constant '{name}' has dtype {array.dtype.name}, which an artifact cannot hold")
        end = offset + array.nbytes
        header[name] = {"dtype": _CODES[array.dtype.name], "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % PAGE)
    return len(text).to_bytes(8, "little") + text, offset


def data_offsets(tensors: Mapping[str, np.ndarray[Any, Any] | Deferred]) -> dict[str, int]:
    """Where the bytes of each tensor begin in what `encode_data` yields."""
    offsets: dict[str, int] = {}
    end = 0
    for name in _order(tensors):
        offsets[name] = end
        end += tensors[name].nbytes
    return offsets


def encode_data(tensors: Mapping[str, np.ndarray[Any, Any] | Deferred]) -> Iterator[memoryview]:
    """The bytes that follow the header, an array at a time."""
    for name in _order(tensors):
        array = tensors[name]
        made = array.make() if isinstance(array, Deferred) else array
        yield np.ascontiguousarray(made).reshape(-1).view(np.uint8).data


def _order(tensors: Mapping[str, np.ndarray[Any, Any] | Deferred]) -> list[str]:
    """Widest elements first: each tensor is then aligned to its element without gaps, which the format forbids."""
    return sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))


def decode(data: np.ndarray[Any, np.dtype[np.uint8]]) -> dict[str, np.ndarray[Any, Any]]:
    """The tensors of a safetensors file as views of its bytes. Raises `ArtifactError` when it is malformed."""
    try:
        size = int.from_bytes(data[:8].tobytes(), "little")
        header = cast("dict[str, Any]", json.loads(data[8 : 8 + size].tobytes()))
        body = data[8 + size :]
        return {name: _tensor(body, info) for name, info in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"the constants are no safetensors file: {error}") from error


def _tensor(body: np.ndarray[Any, np.dtype[np.uint8]], info: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    begin, end = info["data_offsets"]
    return body[begin:end].view(numpy_dtype(_NAMES[info["dtype"]])).reshape(info["shape"])
