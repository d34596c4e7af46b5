"""Padding and cropping. PyTorch lists pads from the last dim to the first: before and behind each."""

from __future__ import annotations

from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const
from ait_mlir.importers.torch.call import Call, NotSupported, Row, as_expr
from ait_mlir.importers.torch.known import Value


def pad(mode: str, name: str = "padding") -> Row:
    """One mode; `name` is the argument that has the pads."""
    return lambda c: padded(c, mode, [as_expr(n) for n in c[name]])


def padded(c: Call, mode: str, pads: list[Expr]) -> Value:
    """Without pads no op is written."""
    x = c.tensor("self")
    t = tensor_type(x)
    around = [(const(0), const(0))] * (t.rank - len(pads) // 2)
    around += [(pads[i], pads[i + 1]) for i in range(len(pads) - 2, -1, -2)]
    if all(n.as_int() == 0 for pair in around for n in pair):
        return x
    before = [n for n, _ in around]
    dims = [n + d + m for d, (n, m) in zip(t.dims, around, strict=True)]
    value = c["value"] if mode == "constant" else None
    return c.w.add(PadOp(mode, x, before, dims, value or None))


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
