"""Padding and cropping. PyTorch lists pads from the last dim to the first: before and behind each."""

from __future__ import annotations

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ait_mlir.building.known import Value
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const
from ait_mlir.importers.torch.call import Call, NotSupported, Row, as_expr

ZERO = const(0)


def pad(mode: str, name: str = "padding") -> Row:
    """One mode; `name` is the argument that has the pads."""
    return lambda c: padded(c, mode, [as_expr(n) for n in c[name]])


def padded(c: Call, mode: str, pads: list[Expr]) -> Value:
    """Without pads no op is written."""
    x = c.tensor("self")
    t = tensor_type(x)
    around = [(ZERO, ZERO)] * (t.rank - len(pads) // 2)
    around += [(pads[i], pads[i + 1]) for i in range(len(pads) - 2, -1, -2)]
    if mode == "circular":
        x, around = _cropped(c, x, around)
        t = tensor_type(x)
    if all(n.as_int() == 0 for pair in around for n in pair):
        return x
    before = [n for n, _ in around]
    dims = [n + d + m for d, (n, m) in zip(t.dims, around, strict=True)]
    value = c["value"] if mode == "constant" else None
    if value and not is_float(t.element_type):
        value = int(value != 0) if t.element_type == i1 else int(value)
    return c.w.put(PadOp(mode, x, before, dims, value or None))


def _cropped(c: Call, x: SSAValue, around: list[tuple[Expr, Expr]]) -> tuple[SSAValue, list[tuple[Expr, Expr]]]:
    """`x` without what negative pads remove, and the other pads: PyTorch repeats what is left."""
    left: list[tuple[Expr, Expr]] = []
    for axis, pair in enumerate(around):
        before, behind = (-n if (n.as_int() or 0) < 0 else ZERO for n in pair)
        if before is not ZERO or behind is not ZERO:
            x = c.w.slice(x, axis, before, tensor_type(x).dims[axis] - before - behind)
        left.append((pair[0] + before, pair[1] + behind))
    return x, left


def any_mode(c: Call) -> Value:
    """`aten.pad`, which names its mode."""
    mode = str(c["mode"])
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotSupported(f"padding in mode {mode!r} is not supported")
    return padded(c, mode, [as_expr(n) for n in c["pad"]])


ROWS: dict[str, Row] = {
    "aten.pad.default": any_mode,
    "aten.constant_pad_nd.default": pad("constant", "pad"),
    "aten._pad_circular.default": pad("circular", "pad"),
    **{f"aten.reflection_pad{n}d.default": pad("reflect") for n in (1, 2, 3)},
    **{f"aten.replication_pad{n}d.default": pad("replicate") for n in (1, 2, 3)},
}
