"""Constants as a safetensors file that begins on a page, so that they can be mapped rather than read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ait_mlir.dtypes import BY_NAME, DTYPES, numpy_dtype
from ait_mlir.errors import ArtifactError
from ait_mlir.runtime.json_values import JsonError, JsonValue, parse_json

PAGE = 4096
CONSTANTS = "the constants are"
"""How errors about a malformed file begin."""
_MAX_HEADER = 100_000_000
"""The most bytes of a header that the safetensors library reads."""
_MAX_RANK = 64
_MAX_ELEMENTS = 1 << 48
_CODES = {d.name: d.safetensors for d in DTYPES}
_NAMES = {code: name for name, code in _CODES.items()}


@dataclass(frozen=True)
class Deferred:
    """An array that is made when it is written, so that not all arrays of a file are in memory at once."""

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
    """The offset of each tensor in the bytes that `encode_data` yields."""
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
    """The names, widest elements first: each tensor is then aligned to its elements without gaps (the format forbids
    gaps).
    """
    return sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))


def header_bytes(start: bytes, size: int, subject: str = CONSTANTS) -> int:
    """The length of the header of a file of `size` bytes, from the `start` of the file. It includes the 8 bytes that
    hold the header's size.

    Raises `ArtifactError` like `places`.
    """
    length = int.from_bytes(start[:8], "little")
    if size < 8 or length > min(size - 8, _MAX_HEADER):
        raise ArtifactError(
            f"{subject} no safetensors file: its header has {length} bytes, expected at most "
            f"{max(0, min(size - 8, _MAX_HEADER))}"
        )
    return 8 + length


def places(header: bytes, size: int, subject: str = CONSTANTS) -> dict[str, Place]:
    """Where each tensor is in a file of `size` bytes, by its header.

    Raises `ArtifactError` if the header is malformed: tensors must follow each other without gaps, up to the end.
    """
    try:
        rows = parse_json(header[8:], "the header").members()
        if (notes := rows.pop("__metadata__", None)) is not None:
            for note in notes.members().values():
                note.text()
        found = {name: Place.of(info) for name, info in rows.items()}
    except JsonError as error:
        raise ArtifactError(f"{subject} no safetensors file: {error}") from None
    end = 0
    for name, place in sorted(found.items(), key=lambda row: (row[1].begin, row[1].end)):
        if place.begin != end:
            problem = "overlap those of another tensor" if place.begin < end else f"leave a gap behind byte {end}"
            raise ArtifactError(f"{subject} no safetensors file: the bytes of '{name}' {problem}")
        end = place.end
    if end != size - len(header):
        raise ArtifactError(
            f"{subject} no safetensors file: the tensors have {end} bytes, but {size - len(header)} follow the "
            "header"
        )
    return found


def decode(data: np.ndarray[Any, np.dtype[np.uint8]], subject: str = CONSTANTS) -> dict[str, np.ndarray[Any, Any]]:
    """The tensors of a safetensors file as views of its bytes. Raises `ArtifactError` like `places`."""
    header = data[: header_bytes(data[:8].tobytes(), data.size, subject)].tobytes()
    body = data[len(header) :]
    return {
        name: body[p.begin : p.end].view(numpy_dtype(p.dtype)).reshape(p.shape)
        for name, p in places(header, data.size, subject).items()
    }


@dataclass(frozen=True)
class Place:
    """Where a tensor lies after the header, and its dtype and shape."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @classmethod
    def of(cls, info: JsonValue) -> Place:
        code = info.at("dtype")
        if code.text() not in _NAMES:
            code.refuse(f"one of {', '.join(_NAMES)}")
        dtype = BY_NAME[_NAMES[code.text()]]
        extents = info.at("shape")
        shape = tuple(extent.whole(0, _MAX_ELEMENTS) for extent in extents.items())
        if len(shape) > _MAX_RANK or math.prod(max(extent, 1) for extent in shape) > _MAX_ELEMENTS:
            extents.refuse(f"at most {_MAX_RANK} dims and {_MAX_ELEMENTS} elements")
        offsets = info.at("data_offsets")
        ends = [offset.whole() for offset in offsets.items()]
        if len(ends) != 2 or ends[1] - ends[0] != math.prod(shape) * dtype.bytes:
            offsets.refuse(f"two numbers that are {math.prod(shape) * dtype.bytes} apart")
        return cls(dtype.name, shape, *ends)
