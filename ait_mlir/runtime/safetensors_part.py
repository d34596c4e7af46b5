"""Constants as a safetensors file that begins on a page, so that they can be mapped rather than read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from ait_mlir.dtypes import DTYPES
from ait_mlir.errors import ArtifactError
from ait_mlir.runtime.data import numpy_dtype

PAGE = 4096
_CODES = {d.name: d.safetensors for d in DTYPES}
_NAMES = {code: name for name, code in _CODES.items()}


def encode(tensors: Mapping[str, np.ndarray[Any, Any]]) -> Iterator[memoryview | bytes]:
    """The bytes of a safetensors file, in pieces, without a copy of the data; the data itself begins on a page.

    Raises `ArtifactError` for a dtype that no constant has.
    """
    # Widest elements first: each tensor is then aligned to its element without gaps, which the format does not allow.
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    header: dict[str, Any] = {}
    offset = 0
    for name in order:
        array = tensors[name]
        if array.dtype.name not in _CODES:
            raise ArtifactError(f"constant '{name}' has dtype {array.dtype.name}, which an artifact cannot hold")
        end = offset + array.nbytes
        header[name] = {"dtype": _CODES[array.dtype.name], "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % PAGE)
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        yield np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8).data


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
