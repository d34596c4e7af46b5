"""Scaled dot-product attention with its masks, in ops of `ait`.

`ait.attention` and `ait.ragged_attention` apply causal masks, windows, lengths and pages. Any other mask becomes an
additive mask. The logarithm of the sum of the exponentials is the op's second result; the largest score and the plain
sum of the exponentials are computed from stored scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i32, i64
from xdsl.ir import SSAValue

from ait_mlir.compositions.attention import hiding
from ait_mlir.compositions.reduction import logsumexp
from ait_mlir.dialects.ait.attention import AttentionOp, RaggedAttentionOp
from ait_mlir.dialects.ait.gemm import BmmOp
from ait_mlir.dialects.ait.index import GatherOp
from ait_mlir.dialects.ait.norm import SoftmaxOp
from ait_mlir.dialects.ait.types import ShapeAttr, tensor_type
from ait_mlir.graph.enums import data_type, diagonal_alignment, ir_type
from ait_mlir.graph.lowering import Lowering
from ait_mlir.graph.nodes import Node

STATISTICS = ("Stats", "score_max", "score_sum_exp")
BLOCK = 128
"""Rows and columns of a bit of `block_mask`."""
BITS = 8
"""Blocks of columns in a byte of `block_mask`; the first is the lowest bit."""


NO_BOUND = 1 << 30
"""Bounds of this size or more count as none: no sequence is as long. A place plus a smaller bound fits into 32 bits."""


@dataclass(frozen=True)
class Band:
    """The columns that a row attends to: from `row - left + 1` to `row + right`; None means no bound.

    With `bottom_right` the last row is aligned with the last column, otherwise row 0 with column 0.
    """

    left: int | None
    right: int | None
    bottom_right: bool


def band_of(node: Node) -> Band:
    """The band of a node; raises for attributes that contradict each other."""
    top, bottom = bool(node["use_causal_mask"]), bool(node["use_causal_mask_bottom_right"])
    if top and bottom:
        raise node.wrong("use_causal_mask and use_causal_mask_bottom_right cannot both be set")
    left, window = node["diagonal_band_left_bound"], node["sliding_window_length"]
    if left is not None and window is not None:
        raise node.wrong("sliding_window_length and diagonal_band_left_bound cannot both be set: they mean the same")
    left = window if left is None else left
    right = 0 if top or bottom else node["diagonal_band_right_bound"]
    for name, value, least in (("left", left, 1), ("right", right, 0)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise node.wrong(f"the {name} bound is {value!r}, expected a whole number, at least {least}")
    left, right = (None if value is None or value >= NO_BOUND else value for value in (left, right))
    aligned = node["diagonal_alignment"] is diagonal_alignment.BOTTOM_RIGHT and not top
    return Band(left, right, bottom or aligned)


def most_columns(node: Node) -> int:
    """The most columns of a sequence."""
    if not node.has("paged_attention_k_table"):
        return node.dims("k")[2]
    most = node.dims("paged_attention_k_table")[2] * node.dims("k")[2]
    given = node["paged_attention_max_seq_len_kv"]
    return most if given is None else min(most, given)


@dataclass
class _Attention:
    """The lowering of one attention node."""

    node: Node
    w: Lowering
    q: SSAValue
    k: SSAValue
    v: SSAValue
    scale: float | ShapeAttr
    band: Band

    @property
    def rows(self) -> int:
        return self.w.dims(self.q)[2]

    @property
    def columns(self) -> int:
        return self.w.dims(self.k)[2]

    def lengths(self, side: str) -> SSAValue:
        """The length of each sequence, as [B]."""
        w, node = self.w, self.node
        name = f"seq_len_{side}"
        if node.has(name):
            return w.reshape(w.value(node.inputs[name]), [node.dims(name)[0]])
        ends = w.reshape(w.value(node.inputs[f"cu_{name}"]), [node.dims(f"cu_{name}")[0]])
        count = w.dims(ends)[0] - 1
        return w.sub(w.slice(ends, 0, 1, count), w.slice(ends, 0, 0, count))

    def attention(self, mask: SSAValue | None = None, causal: bool = False, **options: Any) -> AttentionOp:
        """Write the op."""
        op = AttentionOp(self.q, self.k, self.v, self.scale, mask=mask, causal=causal, **options)
        self.w.put(op, infer=False)
        return op

    def plain(self, log_sums: bool = False) -> AttentionOp | None:
        """Attention whose mask is causal, with or without a window; None for another mask."""
        band = self.band
        if band.left is None and band.right is None:
            return self.attention(log_sums=log_sums)
        top_left = not band.bottom_right and self.rows != self.columns
        some_see_nothing = self.rows > self.columns and (band.bottom_right or band.left is not None)
        if band.right != 0 or some_see_nothing:
            return None
        return self.attention(causal=True, window=band.left, top_left=top_left, log_sums=log_sums)

    def ragged(self) -> SSAValue | None:
        """Attention of sequences of given lengths, padded or in pages; None if the op does not support the mask."""
        band, node, w = self.band, self.node, self.w
        causal = band.right == 0
        if (causal and not band.bottom_right) or (band.left is not None and not causal):
            return None
        if band.right not in (None, 0):
            return None
        rows, columns = self.lengths("q"), self.lengths("kv")
        pages = None
        if node.has("paged_attention_k_table"):
            if node.inputs["paged_attention_k_table"] is not node.inputs["paged_attention_v_table"]:
                return None
            dims = node.dims("paged_attention_k_table")
            pages = w.reshape(w.value(node.inputs["paged_attention_k_table"]), [dims[0], dims[2]])
        integers = [x for x in (rows, columns, pages) if x is not None]
        if len({tensor_type(x).element_type for x in integers}) > 1:
            columns, rows = w.cast(columns, i64), w.cast(rows, i64)
            pages = None if pages is None else w.cast(pages, i64)
        return w.put(
            RaggedAttentionOp(
                [self.q, self.k, self.v], self.scale, columns, rows, pages, causal=causal, window=band.left
            ),
            infer=False,
        )

    def unpaged(self, *names: str) -> None:
        """Gather the pages of each sequence: k and v become [B, G, columns, size]."""
        node, w = self.node, self.w
        for name in names:
            table = node.inputs[f"paged_attention_{name}_table"]
            batch, _, count, _ = node.dims(f"paged_attention_{name}_table")
            pages = w.reshape(w.value(table), [batch, count, 1, 1, 1])
            pool = getattr(self, name)
            _, heads, page, size = w.dims(pool)
            gathered = w.put(GatherOp(pool, [pages], [0], [2, 3, 4]))
            gathered = w.permute(gathered, [0, 2, 1, 3, 4])
            rows = w.reshape(gathered, [batch, heads, count * page, size])
            setattr(self, name, w.slice(rows, 2, 0, most_columns(node)))

    def visible(self) -> SSAValue | None:
        """The mask of visible columns for each row, as i1 that broadcasts to the scores; None if all are visible."""
        w, band, node = self.w, self.band, self.node
        row, column = w.index(self.rows, 2, 4, i32), w.index(self.columns, 3, 4, i32)
        conditions: list[SSAValue] = []
        padded = bool(node["use_padding_mask"])
        batch = w.dims(self.q)[0]
        sides = [w.reshape(w.cast(self.lengths(s), i32), [batch, 1, 1, 1]) for s in ("q", "kv")] if padded else []
        if band.bottom_right and (band.left is not None or band.right is not None):
            shift = w.sub(sides[1], sides[0]) if padded else w.scalar(self.columns - self.rows, i32)
            row_place = w.add(row, shift)
        else:
            row_place = row
        if band.right is not None:
            last = w.add(row_place, w.scalar(band.right, i32)) if band.right else row_place
            conditions.append(w.compare("ge", last, column))
        if band.left is not None:
            conditions.append(w.compare("gt", w.add(column, w.scalar(band.left, i32)), row_place))
        if padded:
            conditions.append(w.both(w.compare("lt", row, sides[0]), w.compare("lt", column, sides[1])))
        if node.has("block_mask"):
            conditions.append(self.blocks())
        found = None
        for condition in conditions:
            found = condition if found is None else w.both(found, condition)
        return found

    def blocks(self) -> SSAValue:
        """The columns that `block_mask` shows to each row."""
        w, mask = self.w, self.w.value(self.node.inputs["block_mask"])
        batch, heads, rows, groups = w.dims(mask)
        powers = w.constant([1 << i for i in range(BITS)], [BITS], i32)
        bytes_ = w.reshape(w.cast(mask, i32), [batch, heads, rows, groups, 1])
        bits = w.compare("ne", w.rem(w.div(bytes_, powers), 2), 0)
        found = w.reshape(bits, [batch, heads, rows, groups * BITS])
        for axis, count in ((2, self.rows), (3, self.columns)):
            dims = w.dims(found)
            spread = w.expand(
                w.reshape(found, [*dims[: axis + 1], 1, *dims[axis + 1 :]]),
                [*dims[: axis + 1], BLOCK, *dims[axis + 1 :]],
            )
            found = w.slice(w.reshape(spread, [*dims[:axis], dims[axis] * BLOCK, *dims[axis + 1 :]]), axis, 0, count)
        return found

    def additive(self, visible: SSAValue | None) -> SSAValue | None:
        """The sum of all terms added to the scaled scores, as f32 that broadcasts to them."""
        w, node = self.w, self.node
        parts: list[SSAValue] = []
        if node.has("bias"):
            parts.append(w.cast(w.value(node.inputs["bias"]), f32))
        if node["use_alibi_mask"]:
            heads = w.dims(self.q)[1]
            slopes = w.constant(alibi_slopes(heads), [1, heads, 1, 1], f32)
            row, column = w.index(self.rows, 2, 4, i32), w.index(self.columns, 3, 4, i32)
            distance = w.cast(w.sub(column, row), f32)
            parts.append(w.mul(distance, slopes))
        if visible is not None:
            parts.append(hiding(w, visible, f32))
        total = None
        for part in parts:
            total = part if total is None else w.add(total, part)
        return total

    def scores(self, mask: SSAValue | None) -> SSAValue:
        """scale * q @ k^T + mask, in f32 (f64 for f64), as [B, H, S, L]."""
        w = self.w
        batch, heads, rows, size = w.dims(self.q)
        groups = w.dims(self.k)[1]
        q = w.reshape(self.q, [batch, groups, heads // groups * rows, size])
        found = w.contraction(BmmOp, [q, self.k], {"layout": StringAttr("rcr")}, True)
        found = w.reshape(found, [batch, heads, rows, self.columns])
        assert not isinstance(self.scale, ShapeAttr), "a constant where scores are stored"
        if self.scale != 1:
            found = w.mul(found, self.scale)
        if mask is None:
            return found
        return w.add(found, w.cast(mask, tensor_type(found).element_type))

    def rows_seen(self, visible: SSAValue | None) -> SSAValue | None:
        """A mask of rows with at least one visible column; None if all rows have one."""
        band = self.band
        if visible is None:
            return None
        always = (
            not self.node["use_padding_mask"]
            and not self.node.has("block_mask")
            and (self.rows <= self.columns or (not band.bottom_right and band.left is None))
        )
        return None if always else self.w.reduce("max", visible, [3], keep=True)


def lower(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    out = node.outputs["O"]
    narrow = node.inputs["q"].dtype
    if w.is_wide(out, narrow) or node.compute is data_type.DOUBLE:
        narrow = node.compute_float()
    element = ir_type(narrow, node.label)
    q, k, v = (w.cast(w.value(node.inputs[n]), element) for n in ("q", "k", "v"))
    if node.dims("k")[1] != node.dims("v")[1]:
        k, v = (_for_heads(w, x, node.dims("q")[1]) for x in (k, v))
    a = _Attention(node, w, q, k, v, _scale(node, w), band_of(node))
    if node.has("scores"):
        return _of_scores(a, w.wide(node.inputs["scores"], node.compute_float()))
    statistics = {name for name in STATISTICS if name in node.outputs}
    wanted = bool(statistics) or node.has("sink_token")
    masked = node.has("bias") or node.has("block_mask") or bool(node["use_alibi_mask"])
    padded = bool(node["use_padding_mask"])
    if padded and not masked and not wanted and (ragged := a.ragged()) is not None:
        return {"O": ragged}
    if node.has("paged_attention_k_table"):
        a.unpaged("k", "v")
    plain = None if masked or padded else a.plain(log_sums=wanted)
    if plain is not None and not wanted:
        return {"O": plain.output}
    visible = a.visible() if plain is None else None
    mask = a.additive(visible) if plain is None else None
    seen = a.rows_seen(visible)
    attention = a.attention(mask, log_sums=wanted) if plain is None else plain
    result: SSAValue = attention.output
    if seen is not None:
        result = w.where(seen, result, w.scalar_like(0.0, result))
    if not wanted:
        return {"O": result}
    sums = w.reshape(attention.sums[0], [*w.dims(attention.sums[0]), 1])
    found = _statistics(a, sums, seen, result)
    return found | (_extremes(a) if statistics - {"Stats"} else {})


def _for_heads(w: Lowering, value: SSAValue, heads: int) -> SSAValue:
    """k or v [..., G, L, D] with each head repeated for the heads of q that it serves."""
    batch, groups, length, size = w.dims(value)
    if groups == heads:
        return value
    one = w.reshape(value, [batch, groups, 1, length, size])
    return w.reshape(w.expand(one, [batch, groups, heads // groups, length, size]), [batch, heads, length, size])


def lower_scores(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    """The scaled scores."""
    narrow = node.inputs["q"].dtype if node.compute is not data_type.DOUBLE else node.compute_float()
    q, k = (w.cast(w.value(node.inputs[n]), ir_type(narrow, node.label)) for n in ("q", "k"))
    a = _Attention(node, w, q, k, k, _scale(node, w), Band(None, None, False))
    if node.has("paged_attention_k_table"):
        a.unpaged("k")
    return {"OUT_0": a.scores(None)}


def _of_scores(a: _Attention, scores: SSAValue) -> dict[str, SSAValue]:
    """Attention with given scores, in f32: passes join it and the nodes that compute the scores into one op."""
    w, node = a.w, a.node
    if node.has("paged_attention_k_table"):
        a.unpaged("k", "v")
    visible = a.visible()
    mask, seen = a.additive(visible), a.rows_seen(visible)
    if mask is not None:
        scores = w.add(scores, w.cast(mask, tensor_type(scores).element_type))
    weights = w.cast(w.op(SoftmaxOp, scores, properties={"dim": IntegerAttr(3, i64)}), tensor_type(a.v).element_type)
    batch, heads, rows, columns = w.dims(weights)
    groups, size = w.dims(a.v)[1], w.dims(a.v)[3]
    weights = w.reshape(weights, [batch, groups, heads // groups * rows, columns])
    result = w.op(BmmOp, weights, a.v, properties={"layout": StringAttr("rrr")}, regions=1)
    result = w.reshape(result, [batch, heads, rows, size])
    if seen is not None:
        result = w.where(seen, result, w.scalar_like(0.0, result))
    wanted = {name for name in STATISTICS if name in node.outputs}
    if not wanted and not node.has("sink_token"):
        return {"O": result}
    found = _statistics(a, logsumexp(w, scores, [3], keep=True), seen, result)
    return found | (_extremes_of(a, scores) if wanted - {"Stats"} else {})


def _statistics(a: _Attention, lse: SSAValue, seen: SSAValue | None, result: SSAValue) -> dict[str, SSAValue]:
    """The logarithm of the sum of the exponentials, and the output with a sink."""
    w, node = a.w, a.node
    element = tensor_type(lse).element_type
    found = {"O": result}
    if node.has("sink_token"):
        sink = w.cast(w.value(node.inputs["sink_token"]), element)
        share = w.pointwise("sigmoid", w.sub(lse, sink))
        found["O"] = w.mul(w.cast(result, element), share)
        high = w.maximum(lse, sink)
        terms = [w.pointwise("exp", w.sub(x, high)) for x in (lse, sink)]
        lse = w.add(high, w.pointwise("log", w.add(*terms)))
    if seen is not None:
        lse = w.where(seen, lse, w.scalar(-math.inf, element))
    if node["stats_use_log2"]:
        lse = w.mul(lse, w.scalar(math.log2(math.e), element))
    found["Stats"] = lse
    return found


def _extremes(a: _Attention) -> dict[str, SSAValue]:
    """The largest score of each row, and the sum of the exponentials, computed from stored scores."""
    return _extremes_of(a, a.scores(a.additive(a.visible())))


def _extremes_of(a: _Attention, scores: SSAValue) -> dict[str, SSAValue]:
    """The largest of these scores in each row, and the sum of the exponentials; a sink is one more score."""
    w = a.w
    if a.node.has("sink_token"):
        sink = w.cast(w.value(a.node.inputs["sink_token"]), tensor_type(scores).element_type)
        scores = w.concat([scores, w.expand(sink, [*w.dims(scores)[:3], 1])], 3)
    largest = w.reduce("max", scores, [3], keep=True)
    base = w.where(w.compare("eq", largest, -math.inf), 0.0, largest)
    total = w.reduce("sum", w.pointwise("exp", w.sub(scores, base)), [3], keep=True)
    return {"score_max": largest, "score_sum_exp": total}


def _scale(node: Node, w: Lowering) -> float | ShapeAttr:
    if node.has("attn_scale"):
        number = w.number_or_bits(node.inputs["attn_scale"])
        if number is None:
            raise node.unsupported(
                f"{node.inputs['attn_scale'].label} lies in memory of the device; attn_scale is a number, or a scalar "
                "passed by value"
            )
        return number
    return 1.0 if node["attn_scale"] is None else float(node["attn_scale"])


def alibi_slopes(heads: int) -> list[float]:
    """The slope of each head (arXiv:2108.12409): powers of 2^(-8 / n), for the largest power of two n up to `heads`;
    the heads beyond n take every second slope of 2 n heads."""
    n = 1 << (heads.bit_length() - 1)
    first = [2.0 ** (-8.0 * (i + 1) / n) for i in range(n)]
    between = [2.0 ** (-8.0 * (i + 1) / (2 * n)) for i in range(0, 2 * n, 2)]
    return first + between[: heads - n]
