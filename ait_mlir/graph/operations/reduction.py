"""Reductions and softmax."""

from __future__ import annotations

import math
from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from ait_mlir.compositions.reduction import logsumexp, vector_norm
from ait_mlir.dialects.ait.norm import SoftmaxOp
from ait_mlir.graph.enums import reduction_mode
from ait_mlir.graph.layout import in_order_of
from ait_mlir.graph.lowering import Lowering
from ait_mlir.graph.nodes import REQUIRED, Node, Operation, Shapes

_KINDS = {
    reduction_mode.ADD: "sum",
    reduction_mode.AVG: "mean",
    reduction_mode.MAX: "max",
    reduction_mode.MIN: "min",
    reduction_mode.MUL: "prod",
    reduction_mode.MUL_NO_ZEROS: "prod",
}
_ORDERS = {reduction_mode.AMAX: math.inf, reduction_mode.NORM1: 1, reduction_mode.NORM2: 2}


def _infer(node: Node) -> Shapes:
    """The caller's dims of the output; the input's dims with 1 there are reduced."""
    out, dims = node.outputs["OUT_0"], node.dims("input")
    if out.dims is None or not out.has_own_dims:
        return {}
    kept = len(out.dims) == len(dims) and all(o in (1, n) for o, n in zip(out.dims, dims, strict=True))
    if not kept:
        raise node.wrong(
            f"{out.label} has dims {list(out.dims)}, expected those of the input {list(dims)} with 1 where it is "
            "reduced"
        )
    return {"OUT_0": (out.dims, None)}


def _check(node: Node) -> None:
    if node.has("group_offset"):
        raise node.unsupported("group_offset is of grouped products, which are not part of this graph")
    if not isinstance(node["mode"], reduction_mode) or node["mode"] is reduction_mode.NOT_SET:
        raise node.unsupported(f"mode is {node['mode']!r}, expected one of cudnn.reduction_mode")


def _lower(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    mode, out = node["mode"], node.outputs["OUT_0"].dims or ()
    axes = [a for a, (o, n) in enumerate(zip(out, node.dims("input"), strict=True)) if o != n]
    (x,) = w.wide_all(node, "input")
    if mode in _ORDERS:
        return {"OUT_0": vector_norm(w, x, axes, _ORDERS[mode], keep=True)}
    if mode is reduction_mode.MUL_NO_ZEROS:
        x = w.where(w.compare("eq", x, w.scalar_like(0, x)), w.scalar_like(1, x), x)
    return {"OUT_0": w.reduce(_KINDS[mode], x, axes, keep=True) if axes else x}


def _axis(node: Node) -> int:
    rank, axis = len(node.dims("input")), node["axis"]
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise node.wrong(f"axis is {axis!r}, expected {-rank} to {rank - 1}")
    return axis % rank


def _infer_softmax(node: Node) -> Shapes:
    dims, axis = node.dims("input"), _axis(node)
    found: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None]] = {
        "Y": (dims, in_order_of(dims, node.strides("input")))
    }
    if node["use_stats"]:
        found["Stats"] = (tuple(1 if a == axis else n for a, n in enumerate(dims)), None)
    return found


def _lower_softmax(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    x = w.wide(node.inputs["input"], node.compute_float())
    found = {"Y": w.op(SoftmaxOp, x, properties={"dim": IntegerAttr(_axis(node), i64)})}
    if node["use_stats"]:
        found["Stats"] = logsumexp(w, x, [_axis(node)], keep=True)
    return found


OPERATIONS = (
    Operation(
        "reduction",
        ("input", "group_offset"),
        ("OUT_0",),
        _infer,
        _lower,
        optional=("group_offset",),
        attributes={"mode": REQUIRED},
        check=_check,
        doc="Reduces the dims that are 1 in the dims of the output, which the caller sets.",
    ),
    Operation(
        "softmax",
        ("input",),
        ("Y", "Stats"),
        _infer_softmax,
        _lower_softmax,
        attributes={"axis": -1, "use_stats": False},
        present=lambda node: ("Y", "Stats") if node["use_stats"] else ("Y",),
        faster=lambda node: [node.dims("input")[_axis(node)]],
        doc="exp(x) along an axis, divided by its sum; Stats is the logarithm of that sum.",
    ),
)
