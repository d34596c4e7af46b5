"""Constants, shapes, ranges, and values that are passed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.dialects.builtin import f32, i1, i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine
from ait_mlir.compositions.ranges import arange
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dims import Expr, ceildiv, const, maximum, product
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Row, Tensor
from ait_mlir.importers.onnx.holders import Held, tensor_of
from ait_mlir.importers.onnx.known import LONGEST, Known, known
from ait_mlir.importers.onnx.library import onnx
from ait_mlir.importers.onnx.writer import LARGEST_LITERAL


def constant(c: Call) -> Known | Held:
    """A tensor that an attribute holds."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in c.node.attribute}
    if (tensor := attributes.get("value")) is not None:
        return tensor_of(tensor, c.importer.folder, LARGEST_LITERAL)
    for name, element in (("value_float", f32), ("value_floats", f32), ("value_int", i64), ("value_ints", i64)):
        if name in attributes:
            numbers = list(attributes[name]) if name.endswith("s") else attributes[name]
            return Known(np.array(numbers, numpy_dtype(BY_IR[element].name)), element)
    kinds = ", ".join(sorted(attributes)) or "no value"
    raise NotSupported(f"a constant with {kinds} is not supported; expected a tensor or numbers")


def shape(c: Call) -> Known:
    """The sizes of the dims from `start` up to `end`."""
    dims = list(c.shape(0))
    rank = len(dims)
    start, end = c.attr("start", 0), c.attr("end", rank)
    start, end = (min(max(n + rank if n < 0 else n, 0), rank) for n in (start, end))
    return known(np.array(dims[start:end] or [], dtype=object), i64)


def size(c: Call) -> Known:
    return known(product(c.shape(0)), i64)


def constant_of_shape(c: Call) -> Result:
    """A tensor filled with one number."""
    dims, given = c.exprs(0), c.attr("value")
    if given is None:
        return _filled(c, Known(np.zeros(1, np.float32), f32), dims)
    if not isinstance(given, onnx.TensorProto):
        raise NotSupported("attribute value is no tensor")
    value = tensor_of(given, c.importer.folder, LONGEST)
    if isinstance(value, Held):
        return Held(_filled(c, cast(Known, value.value), dims), value.kind)
    return _filled(c, value, dims)


def _filled(c: Call, value: Known, dims: Sequence[Expr]) -> Tensor:
    """A tensor filled with the number of another one."""
    number = value.array.reshape(-1)[0].item()
    sizes = [d.as_int() for d in dims]
    if all(n is not None for n in sizes) and int(np.prod([n or 0 for n in sizes])) <= LONGEST:
        return Known(np.full([n or 0 for n in sizes], number, value.array.dtype), value.element)
    return c.w.filled(number, dims, value.element)


def range_(c: Call) -> Result:
    """start, start + delta, ... below limit."""
    element = c.element(0)
    if str(element) not in ("i32", "i64", "i16"):
        start, limit, delta = (float(c.array(i).reshape(-1)[0]) for i in range(3))
        return Known(np.arange(start, limit, delta).astype(numpy_dtype(BY_IR[element].name)), element)
    start, limit, delta = (c.exprs(i)[0] for i in range(3))
    step = delta.as_int()
    if not step:
        raise NotSupported(f"delta is {delta}, expected a number other than 0")
    length = limit - start if step > 0 else start - limit
    count = ceildiv(length, const(abs(step)))
    if not c.w.scope.le(0, count):
        count = maximum(count, const(0))
    return arange(c.w, start, delta, count, element)


def eye_like(c: Call) -> SSAValue:
    """Ones on a diagonal."""
    dims = c.shape(0)
    if len(dims) != 2:
        raise NotSupported(f"the input has rank {len(dims)}, expected a matrix")
    element = c.element(0) if c.attr("dtype") is None else c.element_attr("dtype")
    k = c.attr("k", 0)
    rows = c.w.full(Affine((dims[0], const(1)), (const(1), const(0)), const(k)))
    columns = c.w.full(Affine((const(1), dims[1]), (const(0), const(1)), const(0)))
    return c.w.cast(c.w.compare("eq", rows, columns), element)


def identity(c: Call) -> Result:
    return (c.inputs[0],)


def dropout(c: Call) -> Result:
    """The input itself, and a mask that is true everywhere; dropout in training is refused."""
    if c.has(2):
        active = c.array(2)
        ratio = float(c.array(1).reshape(-1)[0]) if c.has(1) else 0.5
        if bool(active.reshape(-1)[0]) and ratio != 0:
            raise NotSupported("dropout is active; export the model for inference")
    return c.value(0), c.w.filled(1, c.shape(0), i1)


def optional(c: Call) -> Result:
    return (c.inputs[0] if c.inputs else None,)


def optional_has_element(c: Call) -> Known:
    return Known(np.array(c.has(0)), i1)


def window(of: str) -> Row:
    """A row for a window of cosines (Hann, Hamming, Blackman) of a known size."""

    def row(c: Call) -> Known:
        n = c.ints(0)[0]
        element = c.element_attr("output_datatype", 1)
        span = n if c.attr("periodic", 1) else n - 1
        angle = 2 * np.pi * np.arange(n) / span if span else np.zeros(n)
        if of == "blackman":
            made = 0.42 - 0.5 * np.cos(angle) + 0.08 * np.cos(2 * angle)
        else:
            first = 0.5 if of == "hann" else 25 / 46
            made = first - (1 - first) * np.cos(angle)
        return Known(made.astype(numpy_dtype(BY_IR[element].name)), element)

    return row


ROWS: dict[str, Row] = {
    "Constant": constant,
    "Shape": shape,
    "Size": size,
    "ConstantOfShape": constant_of_shape,
    "Range": range_,
    "EyeLike": eye_like,
    "Identity": identity,
    "Dropout": dropout,
    "Optional": optional,
    "OptionalGetElement": lambda c: c.given(0),
    "OptionalHasElement": optional_has_element,
    "HannWindow": window("hann"),
    "HammingWindow": window("hamming"),
    "BlackmanWindow": window("blackman"),
}
