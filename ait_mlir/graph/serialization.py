"""A built graph as bytes: a header in JSON and the artifact of its plan, with a digest of both."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ait_mlir.dialects.ait.bits import bits_of
from ait_mlir.errors import ArtifactError, InputError
from ait_mlir.graph.binding import Binding, BoundTensor
from ait_mlir.graph.enums import data_type
from ait_mlir.graph.handle import Handle, default_device
from ait_mlir.graph.plans import Compiled, Sized
from ait_mlir.lowering.target import Target
from ait_mlir.lowering.toolchain import detect_cuda_arch
from ait_mlir.runtime import artifact
from ait_mlir.runtime.json_values import JsonError, JsonValue, parse_json

MAGIC = b"AITGRAPH"
VERSION = 3
_LOWEST = -(1 << 63)
_FIXED = struct.Struct("<8sII32s")


@dataclass
class Loaded:
    """A graph that was deserialized."""

    compiled: Sized
    binding: Binding
    numbers: tuple[float, ...]
    """Of the scalars that are part of the code."""
    places: tuple[int, ...]
    """The dim that the bits of each of these scalars are; -1 for a constant."""
    plan_name: str
    data: bytes

    @property
    def planned(self) -> str:
        return self.compiled.library.planned

    def with_numbers(self, numbers: tuple[float, ...]) -> Sized:
        """The library for other numbers of the scalars. Raises `InputError` if a scalar that is a constant of the code
        changes.
        """
        dims = list(self.compiled.dims)
        first = len(self.binding.places) - len(numbers)
        for i, (number, built, place) in enumerate(zip(numbers, self.numbers, self.places, strict=True)):
            bits = bits_of(number)
            if place >= 0 and bits is not None:
                dims[place] = bits
            elif number != built:
                raise InputError(
                    f"{self.binding.places[first + i].label} is {number}, but the serialized graph is compiled for "
                    f"{built}: pass that number, or make the scalar with tensor_scalar before serializing"
                )
        return self.compiled.library.at(dims)


def write(
    file: bytes,
    binding: Binding,
    numbers: tuple[Sequence[float], Sequence[int]],
    plan_name: str,
    target: Target,
    dims: Sequence[int],
) -> bytes:
    """The serialized graph: `file` is the artifact of its plan, which runs at these dims of its module. `numbers` are
    the scalars' numbers, and for each scalar the index of its dim, or -1."""
    header = {
        "name": binding.graph,
        "plan": plan_name,
        "target": target.kind,
        "inputs": binding.inputs,
        "results": binding.results,
        "donated": binding.donated,
        "numbers": list(numbers[0]),
        "number_dims": list(numbers[1]),
        "dims": list(dims),
        "places": [
            {
                "label": p.label,
                "name": p.name,
                "uid": p.uid,
                "dtype": p.dtype.name,
                "dims": p.dims,
                "strides": p.strides,
                "is_output": p.is_output,
                "is_by_value": p.is_by_value,
                "value": p.value,
                "row_stride": p.row_stride,
            }
            for p in binding.places
        ],
    }
    text = json.dumps(header).encode()
    body = text + file
    return _FIXED.pack(MAGIC, VERSION, len(text), hashlib.sha256(body).digest()) + body


def read(data: Any, handle: Handle | None) -> Loaded:
    """Load a graph. Raises `ArtifactError` for damaged data, or for data for another device."""
    raw = _bytes(data)
    if len(raw) < _FIXED.size or not raw.startswith(MAGIC):
        raise ArtifactError(f"the {len(raw)} bytes are no serialized graph: they do not begin with {MAGIC.decode()}")
    _, version, length, digest = _FIXED.unpack_from(raw)
    if version != VERSION:
        raise ArtifactError(f"the graph was serialized in version {version}, expected {VERSION}: serialize it again")
    body = raw[_FIXED.size :]
    if hashlib.sha256(body).digest() != digest or length > len(body):
        raise ArtifactError("the serialized graph is damaged: its digest is wrong")
    try:
        header = parse_json(body[:length], "the header", constants=True)
        places = [_place(p) for p in header.at("places").items()]
        kind, name, plan = (header.at(key).text() for key in ("target", "name", "plan"))
        inputs, results = header.at("inputs").whole(), header.at("results").whole()
        donated = list(header.at("donated").wholes())
        numbers = tuple(number.number() for number in header.at("numbers").items())
        dims, number_dims = header.at("dims").wholes(_LOWEST), header.at("number_dims").wholes(-1)
        if len(number_dims) != len(numbers) or max(number_dims, default=-1) >= len(dims):
            header.at("number_dims").refuse(f"a dim for each of {len(numbers)} numbers")
    except JsonError as error:
        raise ArtifactError(f"the serialized graph is damaged: {error}") from None
    device = handle.device if handle is not None else ("cpu" if kind == "cpu" else _card())
    if (device == "cpu") != (kind == "cpu"):
        raise ArtifactError(f"the graph was serialized for {kind}, but the handle is of {device}")
    keys: dict[Any, int] = {p.uid: i for i, p in enumerate(places)}
    names = [p.name for p in places]
    keys.update({n: i for i, n in enumerate(names) if names.count(n) == 1})
    binding = Binding(name, places, device, keys, {})
    binding.inputs, binding.results, binding.donated = inputs, results, donated
    compiled = _load(body[length:], kind, 0 if device == "cpu" else int(device.partition(":")[2] or 0)).at(dims)
    return Loaded(compiled, binding, numbers, number_dims, plan, raw)


def _load(file: bytes, kind: Any, ordinal: int) -> Compiled:
    with TemporaryDirectory(prefix="ait_graph_") as folder:
        path = Path(folder) / "graph.ait"
        path.write_bytes(file)
        loaded = artifact.read(path, defer_weights=True)
        artifact.check_machine(loaded.manifest, lambda: detect_cuda_arch(ordinal))
        constants = {name: array.copy() for name, array in loaded.constants.items()}
        return Compiled(loaded.extract_library(), kind, ordinal, constants, loaded.ir_text)


def _card() -> str:
    found = default_device()
    return found if found != "cpu" else "cuda:0"


def _place(p: JsonValue) -> BoundTensor:
    dtype, value = p.at("dtype"), p.at("value")
    if dtype.text() not in data_type.__members__:
        dtype.refuse("the name of a data_type")
    return BoundTensor(
        p.at("label").text(),
        p.at("name").text(),
        p.at("uid").whole(_LOWEST),
        data_type[dtype.text()],
        p.at("dims").wholes(),
        p.at("strides").wholes(_LOWEST),
        p.at("is_output").flag(),
        p.at("is_by_value").flag(),
        None if value.is_null() else value.number(),
        p.at("row_stride").whole(),
    )


def _bytes(data: Any) -> bytes:
    try:
        if isinstance(data, int | str):
            raise TypeError
        return bytes(data)
    except (TypeError, ValueError):
        raise InputError(
            f"serialized data are bytes or a list of integers from 0 to 255, found {type(data).__name__}"
        ) from None
