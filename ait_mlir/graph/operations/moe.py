"""Products of a mixture of experts: each group of tokens times the matrix of its expert."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ait_mlir.compositions.experts import ends_of_groups, rows_at, rows_to
from ait_mlir.dialects.ait.grouped import RaggedGemmOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.graph.enums import FLOATS, data_type, ir_type, moe_grouped_matmul_mode
from ait_mlir.graph.lowering import Lowering
from ait_mlir.graph.nodes import Dims, Node, Operation, Shapes

NONE, GATHER = moe_grouped_matmul_mode.NONE, moe_grouped_matmul_mode.GATHER
SCATTER, COMBINE = moe_grouped_matmul_mode.SCATTER, moe_grouped_matmul_mode.COMBINE
_NEEDS: dict[Any, tuple[str, ...]] = {
    NONE: (),
    GATHER: ("token_index",),
    SCATTER: ("token_index", "token_ks"),
    COMBINE: ("token_index", "token_ks", "top_k_scores"),
}
"""The optional tensors of each mode."""


def _expect(node: Node, name: str, expected: Dims) -> None:
    if node.has(name) and node.dims(name) != expected:
        raise node.wrong(f"{node.inputs[name].label} has dims {list(node.dims(name))}, expected {list(expected)}")


def _infer(node: Node) -> Shapes:
    token, weight, offset = (node.dims(n) for n in ("token", "weight", "first_token_offset"))
    if len(token) != 3 or token[0] != 1 or len(weight) != 3 or token[2] != weight[1]:
        raise node.wrong(
            f"token is [1, tokens, size] and weight [experts, size, results], found {list(token)} and {list(weight)}"
        )
    if len(offset) != 3 or offset[0] not in (weight[0], weight[0] + 1) or offset[1:] != (1, 1):
        raise node.wrong(
            f"{node.inputs['first_token_offset'].label} has dims {list(offset)}, expected [{weight[0]}, 1, 1], or one "
            "more with the end of the last group"
        )
    mode, rows = node["mode"], token[1]
    if mode is GATHER and node.has("token_index"):
        index = node.dims("token_index")
        _expect(node, "token_index", (1, *index[1:2], 1))
        rows = index[1]
    elif mode is COMBINE and node.has("top_k_scores"):
        scores = node.dims("top_k_scores")
        _expect(node, "top_k_scores", (1, *scores[1:2], node["top_k"]))
        rows = scores[1]
    if mode in (SCATTER, COMBINE):
        for name in ("token_index", "token_ks"):
            _expect(node, name, (1, token[1], 1))
    return {"OUT_0": ((1, rows, weight[2]), None)}


def _check(node: Node) -> None:
    needed = _NEEDS[node["mode"]]
    for name in _NEEDS[COMBINE]:
        if (name in needed) is not node.has(name):
            verb = "needs" if name in needed else "takes no"
            raise node.wrong(f"mode {node['mode'].name} {verb} {name}")
    if node["mode"] in (SCATTER, COMBINE):
        top_k: Any = node["top_k"]
        if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
            raise node.wrong(f"top_k is {top_k!r}, expected a whole number, at least 1")
    for name in ("token", "weight", *(("top_k_scores",) if node.has("top_k_scores") else ())):
        if node.inputs[name].dtype not in FLOATS:
            raise node.unsupported(f"{node.inputs[name].label} has data type {node.inputs[name].dtype.name}")
    for name in ("first_token_offset", "token_index", "token_ks"):
        if node.has(name) and node.inputs[name].dtype not in (data_type.INT32, data_type.INT64):
            raise node.wrong(f"{node.inputs[name].label} is {node.inputs[name].dtype.name}, expected INT32 or INT64")


def _lower(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    token, weight, out = node.inputs["token"], node.inputs["weight"], node.outputs["OUT_0"]
    compute = node.compute_float()
    narrow = token.dtype if token.dtype is weight.dtype and compute is not data_type.DOUBLE else compute
    element = ir_type(narrow, node.label)

    def vector(name: str) -> SSAValue:
        dims = node.dims(name)
        return w.reshape(w.value(node.inputs[name]), [dims[0] if name == "first_token_offset" else dims[1]])

    x = w.cast(w.value(token), element)
    x = w.reshape(x, w.dims(x)[1:])
    mode = node["mode"]
    if mode is GATHER:
        x = rows_at(w, x, vector("token_index"))
    groups = int(node.dims("weight")[0])
    starts = vector("first_token_offset")
    ends = ends_of_groups(w, starts, groups, tensor_type(x).dims[0])
    y = w.contraction(RaggedGemmOp, [x, w.cast(w.value(weight), element), ends], {}, w.is_wide(out, narrow))
    if mode in (SCATTER, COMBINE):
        y = _routed(node, w, y, ends, vector("token_index"), vector("token_ks"))
    return {"OUT_0": w.reshape(y, out.dims or ())}


def _routed(node: Node, w: Lowering, y: SSAValue, ends: SSAValue, index: SSAValue, slot: SSAValue) -> SSAValue:
    """The rows of the products at the places of their tokens: a row for each slot of a token, or their weighted sum."""
    top_k, rows = node["top_k"], (node.outputs["OUT_0"].dims or (1, 0, 0))[1]
    index, slot = w.cast(index, i64), w.cast(slot, i64)
    tokens = rows if node["mode"] is COMBINE else rows // top_k
    last = w.cast(w.slice(ends, 0, w.dims(ends)[0] - 1, 1), i64)
    is_placed = w.compare("lt", w.places(w.shape([w.dims(y)[0]])[0]), last)
    for value, most in ((index, tokens), (slot, top_k)):
        inside = w.both(w.compare("ge", value, 0), w.compare("lt", value, w.shape([most])[0]))
        is_placed = w.both(is_placed, inside)
    place = w.add(w.mul(index, top_k), slot)
    if node["mode"] is SCATTER:
        return rows_to(w, y, place, is_placed, w.shape([rows])[0])
    y = w.cast(y, ir_type(node.compute_float(), node.label))
    scores = w.wide(node.inputs["top_k_scores"], node.compute_float())
    flat = w.reshape(scores, [rows * top_k])
    share = rows_at(w, w.reshape(flat, [rows * top_k, 1]), w.where(is_placed, place, 0))
    return rows_to(w, w.mul(y, share), index, is_placed, w.shape([rows])[0], "add")


OPERATIONS = (
    Operation(
        "moe_grouped_matmul",
        ("token", "weight", "first_token_offset", *_NEEDS[COMBINE]),
        ("OUT_0",),
        _infer,
        _lower,
        optional=_NEEDS[COMBINE],
        attributes={"mode": NONE, "top_k": 0},
        counts=("top_k",),
        check=_check,
        fixed=lambda node: [node.dims("weight")[0], *node.dims("first_token_offset")],
        doc="token [1, tokens, size] in groups that begin at first_token_offset, each times its matrix of weight "
        "[experts, size, results]. GATHER reads the tokens at token_index; SCATTER writes each row to token_index * "
        "top_k + token_ks; COMBINE sums the rows of a token, times top_k_scores.",
    ),
)
