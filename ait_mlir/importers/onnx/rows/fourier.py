"""Fourier transforms, and tables for them."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine
from ait_mlir.compositions.fourier import half, real_inverse, transform
from ait_mlir.compositions.index import slices_at
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, floordiv
from ait_mlir.importers.onnx.call import Call, NotSupported, Row, as_number

ONE = const(1)


def dft(c: Call) -> SSAValue:
    """The transform along an axis of a tensor whose last dim has the real and the imaginary part, or the real part."""
    x = c.tensor(0)
    rank = tensor_type(x).rank
    axis = c.placed(c.ints(2)[0], rank) if c.has(2) else c.axis(1 if c.version < 20 else -2)
    n = c.exprs(1)[0] if c.has(1) else tensor_type(x).dims[axis]
    inverse, onesided = bool(c.attr("inverse", 0)), bool(c.attr("onesided", 0))
    real, imag = _parts(c, x)
    if inverse and onesided:  # of a real signal
        n = n if c.has(1) else (n - 1) * 2
        y = real_inverse(c.w, real, imag, axis, n)
        return c.w.reshape(y, (*tensor_type(y).dims, ONE))
    columns = half(n) if onesided else None
    found = transform(c.w, real, imag, axis, n, columns, power=-1 if inverse else 0, inverse=inverse)
    return _paired(c, *found)


def _parts(c: Call, x: SSAValue) -> tuple[SSAValue, SSAValue | None]:
    last = tensor_type(x).rank - 1
    dims = tensor_type(x).dims
    parts = [c.w.reshape(c.w.slice(x, last, i, 1), dims[:-1]) for i in range(as_number(dims[last]))]
    return parts[0], parts[1] if len(parts) > 1 else None


def _paired(c: Call, real: SSAValue, imag: SSAValue) -> SSAValue:
    dims = tensor_type(real).dims
    return c.w.concat([c.w.reshape(part, (*dims, ONE)) for part in (real, imag)], len(dims))


def stft(c: Call) -> SSAValue:
    """The transforms of overlapping frames [B, frames, coefficients, 2] of signals [B, length, 1 or 2]."""
    x, step = c.tensor(0), c.ints(1)[0]
    length = tensor_type(x).dims[1]
    size: Expr
    if c.has(3):
        size = c.exprs(3)[0]
    elif c.has(2):
        size = c.shape(2)[0]
    else:
        raise NotSupported("neither a window nor frame_length is given")
    frames = floordiv(length - size, const(step)) + 1
    places = c.w.reshape(c.w.full(Affine((frames, size), (const(step), ONE), const(0), i64)), (frames * size,))
    parts: list[SSAValue | None] = []
    for part in _parts(c, x):
        if part is None:
            parts.append(None)
            continue
        rows = c.w.full(slices_at(c.w, part, 1, places))
        rows = c.w.reshape(rows, (tensor_type(x).dims[0], frames, size))
        parts.append(c.w.mul(rows, c.tensor(2)) if c.has(2) else rows)
    real, imag = parts
    assert real is not None
    columns = half(size) if c.attr("onesided", 1) else None
    return _paired(c, *transform(c.w, real, imag, 2, size, columns))


def known_only(c: Call) -> SSAValue:
    """A table that the import computes: its inputs must be known."""
    for i in range(len(c.inputs)):
        c.known(i)
    raise NotSupported("its numbers cannot be computed by the import")


ROWS: dict[str, Row] = {"DFT": dft, "STFT": stft, "MelWeightMatrix": known_only}
