"""Padding and cropping. PyTorch lists pads from the last dim to the first: before and after each."""

from __future__ import annotations

from xdsl.dialects.builtin import i1

from ait_mlir.building.formulas import Value
from ait_mlir.compositions import pad as padding
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr
from ait_mlir.importers.torch.call import Call, NotSupported, Row, as_expr
from ait_mlir.rewrites.engine.numbers import stored


def pad(mode: str, name: str = "padding") -> Row:
    """A row for one mode of padding; the argument `name` has the pads."""
    return lambda c: padded(c, mode, [as_expr(n) for n in c[name]])


def padded(c: Call, mode: str, pads: list[Expr]) -> Value:
    """`self` padded; without pads, `self` itself."""
    x, value = c.tensor("self"), (c["value"] if mode == "constant" else None) or 0.0
    if all(n.as_int() == 0 for n in pads):
        return x
    element = tensor_type(x).element_type
    value = stored(value, element) if is_float(element) else int(value != 0) if element == i1 else int(value)
    return padding.pad(c.w, x, pads, mode, value)


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
