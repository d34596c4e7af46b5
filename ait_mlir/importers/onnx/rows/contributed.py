"""Attention of `com.microsoft`: with a cache, packed heads, rotary embeddings, windows and sinks; BERT's embeddings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Mask, Value
from ait_mlir.compositions import contraction
from ait_mlir.compositions.attention import hiding
from ait_mlir.compositions.index import rows_of
from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.index import GatherOp
from ait_mlir.dialects.ait.norm import LayerNormOp, SoftmaxOp
from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.dims import Expr, const, floordiv
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Row, as_number
from ait_mlir.importers.onnx.known import Known
from ait_mlir.rewrites.attention import MAX_HEAD_SIZE

ONE, ZERO = const(1), const(0)


def parted(c: Call, x: SSAValue, heads: int) -> SSAValue:
    """[batch, rows, heads * size] as [batch, heads, rows, size]."""
    batch, rows, whole = tensor_type(x).dims
    if heads < 1 or as_number(whole) % heads:
        raise NotSupported(f"{whole} columns for {heads} heads, expected a multiple")
    return c.w.permute(c.w.reshape(x, (batch, rows, heads, floordiv(whole, const(heads)))), [0, 2, 1, 3])


def joined(c: Call, x: SSAValue) -> SSAValue:
    """[batch, heads, rows, size] as [batch, rows, heads * size]."""
    batch, heads, rows, size = tensor_type(x).dims
    return c.w.reshape(c.w.permute(x, [0, 2, 1, 3]), (batch, rows, heads * size))


@dataclass(frozen=True)
class Rule:
    """How attention weighs scores; a causal one hides the columns behind row r + columns - rows."""

    scale: float
    causal: bool = False
    window: int | None = None
    """The columns that a row sees up to its own, if it does not see all."""
    mask: SSAValue | None = None
    """What is added to the scores."""
    softcap: float = 0.0
    sinks: SSAValue | None = None
    """A score for each head, of a column without a value."""


def attended(c: Call, q: SSAValue, k: SSAValue, v: SSAValue, rule: Rule) -> SSAValue:
    """softmax(scores) @ v for [batch, heads, rows, size], of which k and v may have fewer heads."""
    size, width = (as_number(tensor_type(x).dims[3]) for x in (q, v))
    if rule.softcap or rule.sinks is not None or max(size, width) > MAX_HEAD_SIZE:
        return _by_products(c, q, k, v, rule)
    return c.w.put(AttentionOp(q, k, v, rule.scale, rule.mask, rule.causal, rule.window))


def _by_products(c: Call, q: SSAValue, k: SSAValue, v: SSAValue, rule: Rule) -> SSAValue:
    """Attention with stored scores, which a softcap bounds and sinks join."""
    batch, heads, rows, _ = tensor_type(q).dims
    k, v = (_repeated(c, x, heads) for x in (k, v))
    columns, element = tensor_type(k).dims[2], tensor_type(q).element_type
    s = c.w.mul(contraction.product(c.w, q, c.w.permute(k, [0, 1, 3, 2])), rule.scale)
    if rule.softcap:
        s = c.w.mul(c.w.pointwise("tanh", c.w.div(s, rule.softcap)), rule.softcap)
    s = s if rule.mask is None else c.w.add(s, rule.mask)
    if rule.causal:
        seen = _seen(c, c.w.full(Affine((rows,), (ONE,), columns - rows)), columns, rule.window)
        s = c.w.add(s, hiding(c.w, seen, element))
    if rule.sinks is not None:
        sinks = c.w.reshape(c.w.cast(rule.sinks, element), (1, heads, 1, 1))
        s = c.w.concat([s, c.w.expand(sinks, (batch, heads, rows, ONE))], 3)
    p = c.w.op(SoftmaxOp, s, properties={"dim": 3})
    p = p if rule.sinks is None else c.w.slice(p, 3, 0, columns)
    return contraction.product(c.w, p, v)


def _repeated(c: Call, x: SSAValue, heads: Expr) -> SSAValue:
    """Each head of k or v for all heads of q that read it."""
    batch, own, rows, size = tensor_type(x).dims
    if own is heads:
        return x
    each = floordiv(heads, own)
    wide = c.w.expand(c.w.reshape(x, (batch, own, 1, rows, size)), (batch, own, each, rows, size))
    return c.w.reshape(wide, (batch, heads, rows, size))


def _seen(c: Call, places: SSAValue, columns: Expr, window: int | None) -> SSAValue:
    """Whether a row at a place [..., rows] sees a column: [..., rows, columns]."""
    rows = c.w.reshape(places, (*tensor_type(places).dims, 1))
    numbers = c.w.places(columns)
    seen = c.w.compare("le", numbers, rows)
    return seen if window is None else c.w.both(seen, c.w.compare("gt", numbers, c.w.sub(rows, window)))


# ** rotary embeddings **


def rotated(c: Call, x: SSAValue, cos: SSAValue, sin: SSAValue, interleaved: bool) -> SSAValue:
    """The first elements of each row of x [batch, heads, rows, size] rotated in pairs: of the two halves, or of
    neighbours. cos, sin: [batch or 1, rows, pairs].
    """
    batch, heads, rows, size = tensor_type(x).dims
    some, _, half = tensor_type(cos).dims
    front = c.w.slice(x, 3, 0, half * 2)
    pair, axis = (half, 2) if interleaved else (2, half), 4 if interleaved else 3
    cut = c.w.reshape(front, (batch, heads, rows, *pair))
    a, b = (c.w.reshape(c.w.slice(cut, axis, i, 1), (batch, heads, rows, half)) for i in (0, 1))
    cos, sin = (c.w.reshape(v, (some, 1, rows, half)) for v in (cos, sin))
    first = c.w.sub(c.w.mul(a, cos), c.w.mul(b, sin))
    second = c.w.add(c.w.mul(b, cos), c.w.mul(a, sin))
    parts = [c.w.reshape(v, (batch, heads, rows, *((half, 1) if interleaved else (1, half)))) for v in (first, second)]
    turned = c.w.reshape(c.w.concat(parts, axis), tensor_type(front).dims)
    return turned if size is half * 2 else c.w.concat([turned, c.w.slice(x, 3, half * 2, size - half * 2)], 3)


def _angles(c: Call, at: int, places: Value, dims: Shape) -> tuple[SSAValue, SSAValue]:
    """The rows of the tables of cosines and sines, inputs `at` and `at + 1`, at places [batch or 1, rows]."""
    tables = (c.tensor(at), c.tensor(at + 1))
    cos, sin = (c.w.reshape(c.w.full(rows_of(c.w, t, places)), (*dims, tensor_type(t).dims[1])) for t in tables)
    return cos, sin


def rotary_embedding(c: Call) -> SSAValue:
    """x [batch, rows, columns] or [batch, heads, rows, size], rotated."""
    x, places = c.tensor(0), c.w.cast(c.tensor(1), i64)
    flat, heads = tensor_type(x).rank == 3, c.attr("num_heads", 0)
    if c.attr("is_packed_batching", 0):
        raise NotSupported("is_packed_batching is not supported")
    if flat:
        if not heads and not c.attr("rotary_embedding_dim", 0):
            heads = as_number(tensor_type(x).dims[2]) // (2 * as_number(c.shape(2)[1]))
        x = parted(c, x, heads)
    batch, _, rows, _ = tensor_type(x).dims
    if tensor_type(places).rank == 1:  # the place of the first row
        places = c.w.add(c.w.reshape(places, (1, 1)), c.w.reshape(c.w.places(rows), (1, rows)))
        batch = ONE
    y = rotated(c, x, *_angles(c, 2, places, (batch, rows)), bool(c.attr("interleaved", 0)))
    y = y if c.attr("scale", 1.0) == 1 else c.w.mul(y, c.attr("scale", 1.0))
    return joined(c, y) if flat else y


# ** attention with a cache **


def grouped_attention(c: Call) -> Result:
    """`GroupQueryAttention`: causal attention, whose caches grow by the rows of this call. In a batch each sequence
    has its own length; with one sequence the cache is full.
    """
    if any(c.has(i) for i in range(12, len(c.inputs))):
        raise NotSupported("quantised caches and norms of q and k are not supported")
    heads, own = c.attr("num_heads", 0), c.attr("kv_num_heads", 0)
    x = c.tensor(0)
    if own < 1 or heads < 1:
        raise NotSupported(f"num_heads is {heads}, kv_num_heads is {own}, expected numbers from 1 on")
    if c.has(1):
        q, k, v = parted(c, x, heads), parted(c, c.tensor(1), own), parted(c, c.tensor(2), own)
    else:  # all heads lie side by side
        every = parted(c, x, heads + 2 * own)
        q, k, v = (c.w.slice(every, 1, at, n) for at, n in ((0, heads), (heads, own), (heads + own, own)))
    batch, _, rows, size = tensor_type(q).dims
    past = tensor_type(c.tensor(3)).dims[2] if c.has(3) else ZERO
    if c.has(6) and isinstance(c.value(6), Known):
        c.same(c.exprs(6)[0], past + rows)
        if not c.w.scope.equal(c.exprs(6)[0], past + rows):
            raise NotSupported(f"total_sequence_length is {c.exprs(6)[0]}, expected {past + rows}: caches that grow")
    uneven = past is not ZERO and batch is not ONE
    filled: SSAValue | None = None
    places: Value = Affine((ONE, rows), (ZERO, ONE), past)
    if uneven:
        filled = c.w.sub(c.w.cast(c.w.reshape(c.tensor(5), (batch, 1)), i64), c.w.number(rows - 1, i64))
        filled = c.w.maximum(filled, 0)
        places = c.w.add(filled, c.w.reshape(c.w.places(rows), (1, rows)))
    if c.attr("do_rotary", 0):
        at = c.w.cast(c.tensor(9), i64) if c.has(9) else places
        spread = (batch, rows) if c.has(9) or uneven else (ONE, rows)
        angles = _angles(c, 7, at, spread)
        q, k = (rotated(c, v, *angles, bool(c.attr("rotary_interleaved", 0))) for v in (q, k))
    if past is not ZERO:
        k, v = (_grown(c, c.tensor(i), new, filled) for i, new in ((3, k), (4, v)))
    window = c.attr("local_window_size", -1)
    rule = Rule(
        c.attr("scale", 0.0) or 1 / math.sqrt(as_number(size)),
        causal=not uneven,
        window=window if window > 0 else None,
        softcap=c.attr("softcap", 0.0),
        sinks=_sinks(c, heads, q),
        mask=c.tensor(10) if c.has(10) else None,
    )
    if uneven:
        assert isinstance(places, SSAValue)
        seen = _seen(c, c.w.reshape(places, (batch, 1, rows)), past + rows, rule.window)
        hidden = hiding(c.w, seen, tensor_type(q).element_type)
        rule = replace(rule, window=None, mask=hidden if rule.mask is None else c.w.add(rule.mask, hidden))
    return joined(c, attended(c, q, k, v, rule)), k, v


def _sinks(c: Call, heads: int, q: SSAValue) -> SSAValue | None:
    if c.has(11):
        return c.tensor(11)
    return c.w.filled(0, (heads,), tensor_type(q).element_type) if c.attr("smooth_softmax", 0) == 1 else None


def _grown(c: Call, cache: SSAValue, new: SSAValue, filled: SSAValue | None) -> SSAValue:
    """The rows of a cache and behind them the new ones; `filled` [batch, 1] counts the rows of each sequence."""
    both = c.w.concat([cache, new], 2)
    if filled is None:
        return both
    batch, _, whole, _ = tensor_type(both).dims
    past = tensor_type(cache).dims[2]
    numbers = c.w.reshape(c.w.places(whole), (1, whole))
    moved = c.w.minimum(c.w.add(c.w.sub(numbers, filled), c.w.number(past, i64)), c.w.number(whole - 1, i64))
    index = c.w.where(c.w.compare("ge", numbers, filled), moved, c.w.expand(numbers, (batch, whole)))
    return c.w.put(GatherOp(both, [c.w.reshape(index, (batch, 1, whole, 1))], [2], [0, 1, 3]))


# ** attention of encoders **


def multi_head_attention(c: Call) -> Result:
    """`MultiHeadAttention`: of q, k and v, each with its own bias; a cache comes before k and v."""
    heads = c.attr("num_heads", 0)
    if c.has(8) or c.has(9) or any(c.node.output[3:]):
        raise NotSupported("past_sequence_length, cache_indirection and stored scores are not supported")
    if not c.has(2) or tensor_type(c.tensor(0)).rank != 3:
        raise NotSupported("q, k and v in one tensor are not supported; expected three")
    parts = [c.tensor(i) for i in range(3)]
    if c.has(3):
        start, biased = ZERO, list[SSAValue]()
        for part in parts:
            width = tensor_type(part).dims[-1]
            biased.append(
                c.w.add(part, c.w.slice(c.tensor(3), 0, start, width)) if tensor_type(part).rank == 3 else part
            )
            start = start + width
        parts = biased
    q, k, v = (parted(c, p, heads) if tensor_type(p).rank == 3 else p for p in parts)
    if c.has(6):
        k, v = (c.w.concat([c.tensor(i), p], 2) for i, p in ((6, k), (7, v)))
    bias = c.tensor(5) if c.has(5) else None
    mask = _padding(c, 4, k, bias)
    size = as_number(tensor_type(q).dims[3])
    rule = Rule(c.attr("scale", 0.0) or 1 / math.sqrt(size), bool(c.attr("unidirectional", 0)), mask=mask)
    return joined(c, attended(c, q, k, v, rule)), k, v


def _padding(c: Call, index: int, k: SSAValue, bias: SSAValue | None) -> SSAValue | None:
    """The mask of an input that tells padding, [batch, columns] of 0 and 1 or [batch] of lengths, and of a bias."""
    if not c.has(index):
        return bias
    given, columns = c.tensor(index), tensor_type(k).dims[2]
    dims = tensor_type(given).dims
    if len(dims) == 1:
        seen = c.w.compare(
            "lt", c.w.reshape(c.w.places(columns), (1, columns)), c.w.reshape(c.w.cast(given, i64), (dims[0], 1))
        )
        dims = (dims[0], columns)
    elif len(dims) == 2:
        c.same(dims[1], columns)
        seen = c.w.compare("ne", given, 0)
    else:
        raise NotSupported(f"a mask of rank {len(dims)} is not supported; expected [batch] or [batch, columns]")
    hidden = hiding(
        c.w,
        Mask((dims[0], ONE, ONE, columns), (), (c.w.reshape(seen, (dims[0], 1, 1, columns)),)),
        tensor_type(k).element_type,
    )
    return hidden if bias is None else c.w.add(bias, hidden)


def projected_attention(c: Call) -> Result:
    """`Attention`: of x @ w + b, cut into q, k and v."""
    x, weight = c.tensor(0), c.tensor(1)
    heads = c.attr("num_heads", 0)
    if c.has(4) or c.has(6) or c.attr("do_rotary", 0) or any(c.node.output[1:]):
        raise NotSupported("past, past_sequence_length, do_rotary and present are not supported")
    whole = as_number(tensor_type(weight).dims[1])
    sizes = c.attr("qkv_hidden_sizes") or [whole // 3] * 3
    y = contraction.product(c.w, x, weight)
    y = c.w.add(y, c.tensor(2)) if c.has(2) else y
    starts = (0, sizes[0], sizes[0] + sizes[1])
    q, k, v = (parted(c, c.w.slice(y, 2, at, n), heads) for at, n in zip(starts, sizes, strict=True))
    mask = _padding(c, 3, k, c.tensor(5) if c.has(5) else None)
    scale = c.attr("scale", 0.0) or 1 / math.sqrt(as_number(tensor_type(q).dims[3]))
    return joined(c, attended(c, q, k, v, Rule(scale, bool(c.attr("unidirectional", 0)), mask=mask)))


def embed_layer_norm(c: Call) -> Result:
    """`EmbedLayerNormalization`: the norm of words, places and segments; the ones of each mask; the sum."""
    ids = c.tensor(0)
    batch, rows = tensor_type(ids).dims
    words = c.w.full(rows_of(c.w, c.tensor(2), ids))
    at: Value = c.tensor(8) if c.has(8) else Affine((ONE, rows), (ZERO, ONE), ZERO)
    total = c.w.add(words, c.w.full(rows_of(c.w, c.tensor(3), at)))
    if c.has(1) and c.has(4):
        total = c.w.add(total, c.w.full(rows_of(c.w, c.tensor(4), c.tensor(1))))
    eps = float(c.attr("epsilon", 1e-12))
    y = c.w.put(LayerNormOp(total, c.tensor(5), c.tensor(6), 1, eps, result_types=[total.type]))
    counts = c.w.filled(0, (batch,), i32)
    if c.has(7):
        counts = c.w.reduce("sum", c.w.cast(c.w.cast(c.tensor(7), i1), i32), [1])
    return y, counts, total


ROWS: dict[str, Row] = {
    "com.microsoft.GroupQueryAttention": grouped_attention,
    "com.microsoft.MultiHeadAttention": multi_head_attention,
    "com.microsoft.Attention": projected_attention,
    "com.microsoft.RotaryEmbedding": rotary_embedding,
    "com.microsoft.EmbedLayerNormalization": embed_layer_norm,
}
