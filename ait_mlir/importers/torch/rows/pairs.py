"""Complex tensors of a program as pairs of real values, and helpers of rows for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import f16, f32, f64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.types import Shape, TensorType, tensor_type
from ait_mlir.dims import Expr
from ait_mlir.importers.torch.call import Call, NotSupported
from ait_mlir.importers.torch.library import torch


@dataclass(frozen=True)
class Pair:
    """A complex tensor: its real part and its imaginary part, which is 0 if it is None."""

    real: SSAValue
    imag: SSAValue | None = None


@dataclass(frozen=True)
class Interleaved:
    """`view_as_real` of a complex tensor whose users each read one part."""

    pair: Pair


class PartCall(Call):
    """A call on the real or the imaginary parts of its arguments."""

    def type_of(self, tensor: Any) -> TensorType:
        return TensorType.get(self.table.shape(tensor.shape), part_type(tensor))


def part_type(tensor: Any) -> Attribute:
    parts = {torch.complex32: f16, torch.complex64: f32, torch.complex128: f64}
    if tensor.dtype not in parts:
        raise NotSupported(f"tensors of {tensor.dtype} are not supported beside complex ones; use complex64")
    return parts[tensor.dtype]


def imaginary(c: Call, pair: Pair) -> SSAValue:
    t = tensor_type(pair.real)
    return c.w.expand(c.w.scalar(0.0, t.element_type), t.dims) if pair.imag is None else pair.imag


def result_dims(c: Call) -> Shape:
    return c.table.shape(c.node.meta["val"].shape)


def part_element(c: Call) -> Attribute:
    """The element type of the parts of a complex result, or of a real result."""
    t = c.node.meta["val"]
    return part_type(t) if t.is_complex() else c.element


def pair_of(c: Call, name: str) -> Pair:
    """An argument as a complex tensor or number of the result's type, whose parts broadcast to the result."""
    found, element = c.arguments[name], part_element(c)
    if isinstance(found, Pair):
        return Pair(c.w.cast(found.real, element), None if found.imag is None else c.w.cast(found.imag, element))
    if isinstance(found, complex):
        return Pair(c.w.scalar(found.real, element), c.w.scalar(found.imag, element))
    if isinstance(found, bool | int | float | Expr):
        return Pair(c.w.number(found, element))
    return Pair(c.w.cast(c.natural(name), element))


def spread_pair(c: Call, pair: Pair) -> Pair:
    dims = result_dims(c)
    return Pair(c.w.expand(pair.real, dims), None if pair.imag is None else c.w.expand(pair.imag, dims))
