"""Reads ONNX files: checks them, inlines functions, converts old opsets, and maps external data."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.errors import printable
from ait_mlir.importers.errors import ImportFailure, NotSupported
from ait_mlir.importers.onnx.known import element_type
from ait_mlir.importers.onnx.library import onnx

OLDEST = 7
"""The oldest opset that the rows know; older models are converted to `CONVERTED`."""
CONVERTED = 13
LARGEST_FILE = 1 << 31
"""A protobuf message is at most as long, in bytes."""


def read_model(path: str | os.PathLike[str]) -> Any:
    """The `ModelProto` of a file, checked; raises `ImportFailure` for a file that is no ONNX model."""
    file = Path(path)
    try:
        if (size := file.stat().st_size) >= LARGEST_FILE:
            raise ImportFailure(f"{file}: has {size} bytes, expected less than 2 GiB; put its weights into other files")
        data = file.read_bytes()
    except OSError as error:
        raise ImportFailure(f"{file}: {error.strerror or error}") from None
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError:
        raise ImportFailure(f"{file}: is no ONNX model, or a part of it is missing") from None
    del data
    return prepared(model, str(file))


def prepared(model: Any, file: str) -> Any:
    """A checked model with its own functions inlined, converted to an opset that the rows support.

    Raises `ImportFailure` for a file that is not a valid ONNX model, and for a newer opset.
    """
    if not model.HasField("graph") or (not model.graph.node and not model.graph.output):
        raise ImportFailure(f"{file}: is no ONNX model: it has no graph")
    if not has_texts(model):
        raise ImportFailure(f"{file}: is no valid ONNX model: a name in it is no UTF-8 text")
    newest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and not 1 <= opset.version <= newest:
            raise ImportFailure(
                f"{file}: has opset {opset.version}, expected 1 to {newest}; export it for an older one, or update onnx"
            )
    try:
        onnx.checker.check_model(skeleton(model))
        if len(model.functions):
            model = onnx.inliner.inline_local_functions(model)
        if 0 < opset_of(model, "") < OLDEST:
            model = onnx.version_converter.convert_version(model, CONVERTED)
    except (onnx.checker.ValidationError, DecodeError, RuntimeError, ValueError, TypeError, IndexError) as error:
        first = str(error).strip().splitlines()
        raise ImportFailure(f"{file}: is no valid ONNX model: {printable(' '.join(first))}") from None
    return model


def has_texts(message: Any) -> bool:
    """Whether all strings of a message are text; protobuf gives others as bytes."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            if not all(isinstance(v, str) for v in ([value] if isinstance(value, str | bytes) else value)):
                return False
        elif field.type == field.TYPE_MESSAGE:
            many = [value] if hasattr(value, "ListFields") else value
            if not all(map(has_texts, many)):
                return False
    return True


def skeleton(model: Any) -> Any:
    """A copy of a model without the data of large tensors, so that the checker need not read and copy these data."""
    if not any(map(_is_large, model.graph.initializer)):
        return model
    light = onnx.ModelProto()
    light.CopyFrom(_without_graph(model))
    for part in ("node", "input", "output", "value_info", "sparse_initializer", "quantization_annotation"):
        getattr(light.graph, part).extend(getattr(model.graph, part))
    light.graph.name = model.graph.name
    for tensor in model.graph.initializer:
        kept = light.graph.initializer.add()
        if not _is_large(tensor):
            kept.CopyFrom(tensor)
            continue
        kept.name, kept.data_type = tensor.name, tensor.data_type
        kept.dims.append(0)
        kept.raw_data = b""
    return light


def _is_large(tensor: Any) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL or len(tensor.raw_data) > 1 << 16


def _without_graph(model: Any) -> Any:
    light = onnx.ModelProto()
    light.ir_version = model.ir_version
    light.opset_import.extend(model.opset_import)
    light.functions.extend(model.functions)
    light.metadata_props.extend(model.metadata_props)
    return light


def opset_of(model: Any, domain: str) -> int:
    """The opset of a domain that a model imports; 0 if it does not."""
    names = ("", "ai.onnx") if domain in ("", "ai.onnx") else (domain,)
    return next((int(o.version) for o in model.opset_import if o.domain in names), 0)


# ** tensors **


def array_of(tensor: Any, folder: Path | None, dtype: np.dtype[Any] | None = None) -> NDArray[Any]:
    """The elements of a `TensorProto`; data in another file are mapped into memory. Raises `NotSupported` for an
    element type that the dialect lacks, unless its `dtype` is given, and for data that do not fit the shape.
    """
    dtype = numpy_dtype(BY_IR[element_type(tensor.data_type)].name) if dtype is None else dtype
    shape = tuple(int(n) for n in tensor.dims)
    if any(n < 0 for n in shape):
        raise NotSupported(f"tensor {printable(tensor.name)!r} has the shape {list(shape)}, expected sizes from 0 on")
    count = math.prod(shape)
    bits = PACKED.get(dtype.name, 8 * dtype.itemsize)
    size = -(-count * bits // 8)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        if bits < 8:
            return unpacked(_mapped(tensor, folder, np.dtype(np.uint8), size), count, dtype).reshape(shape)
        return _mapped(tensor, folder, dtype, count).reshape(shape)
    if tensor.HasField("raw_data") and len(tensor.raw_data) != size:
        found = f"tensor {printable(tensor.name)!r} of shape {list(shape)} has {len(tensor.raw_data)} bytes"
        raise NotSupported(f"{found}, expected {size}")
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor)).astype(dtype, copy=False).reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise NotSupported(f"tensor {printable(tensor.name)!r} cannot be read: {printable(str(error))}") from None


PACKED = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}
"""The bits of an element of the types of which several are in a byte."""


def unpacked(packed: NDArray[Any], count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The first elements of 2 or 4 bits in bytes; those of a byte start in its lowest bits."""
    bits = PACKED[dtype.name]
    each = packed[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & (1 << bits) - 1
    codes = each.reshape(-1)[:count].astype(np.int8)
    if dtype.name.startswith("float"):
        return codes.view(dtype)
    sign = 1 << bits - 1
    return (codes if dtype.name.startswith("u") else (codes ^ sign) - sign).astype(dtype)


def _mapped(tensor: Any, folder: Path | None, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """The elements of a tensor whose data are in a file inside of the model's folder."""
    name = printable(tensor.name)
    given = {entry.key: entry.value for entry in tensor.external_data}
    location = given.get("location", "")
    path = Path(location)
    if folder is None:
        raise NotSupported(f"tensor {name!r} has its data in the file {location!r}, but the model has no folder")
    if not location or path.is_absolute() or ".." in path.parts or "\\" in location or "\0" in location:
        raise NotSupported(f"the data of tensor {name!r} are in {location!r}, expected a file in the model's folder")
    real, inside = os.path.realpath(folder / path), os.path.realpath(folder)
    if os.path.commonpath([real, inside]) != inside:
        raise NotSupported(f"the data of tensor {name!r} are in {location!r}, a link out of the model's folder")
    if not os.path.isfile(real):
        raise NotSupported(f"the data of tensor {name!r} are in {location!r}, and there is no such file")
    size, wanted = os.path.getsize(real), count * dtype.itemsize
    offset, length = (_count(given.get(key), name, key) for key in ("offset", "length"))
    offset = offset or 0
    if length is not None and length != wanted:
        raise NotSupported(f"tensor {name!r} has {length} bytes of data in {location!r}, expected {wanted}")
    if offset + wanted > size:
        raise NotSupported(
            f"tensor {name!r} has {wanted} bytes at {offset} of {location!r}, but the file has {size} bytes"
        )
    if wanted == 0:
        return np.zeros(count, dtype)
    return np.memmap(real, dtype=np.uint8, mode="r", offset=offset, shape=(wanted,)).view(dtype)


def _count(text: str | None, name: str, key: str) -> int | None:
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise NotSupported(f"the {key} of the data of tensor {name!r} is {printable(text)!r}, expected a number")
    return int(text)
