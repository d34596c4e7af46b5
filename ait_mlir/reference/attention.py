"""Reference semantics of attention: softmax(scale * q k^T + mask) v."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ait_mlir.dialects.ait.attention import AttentionOp, RaggedAttentionOp
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.reference.core import Array, Arrays, Evaluation, reference
from ait_mlir.reference.norm import softmax
from ait_mlir.reference.quantize import round_quotient


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    scale: float,
    visible: Array,
    change: Callable[[Array], Array] | None = None,
    no_softmax: bool = False,
    nan_rows: bool = False,
) -> tuple[Array, Array]:
    """Return [B, H, S, E] for q [B, H, S, D], k [B, G, L, D], v [B, G, L, E], where G divides H, and the logarithms of
    the sums of exponentials, [B, H, S].

    `visible` [S, L] says which columns a row sees; `change` maps the scaled scores to new scores. A row that sees no
    column is 0, with `nan_rows` NaN, as a softmax of only -inf is, and its logarithm is -inf. With `no_softmax` the
    visible scores are the weights, and the logarithms are undefined.
    """
    if k.shape[1] != q.shape[1]:
        k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = scale * np.matmul(q, np.swapaxes(k, -1, -2))
    if change is not None:
        scores = np.broadcast_to(change(scores), scores.shape)
    if mask is not None:
        scores = scores + mask
    if no_softmax:
        return np.matmul(np.where(visible, scores, 0.0).astype(scores.dtype), v), np.empty(scores.shape[:3])
    scores = np.where(visible, scores, -np.inf)
    weights = softmax(scores, -1)
    if not nan_rows:
        weights = np.where((scores == -np.inf).all(-1, keepdims=True), 0.0, weights).astype(weights.dtype)
    return np.matmul(weights, v), log_sum_exp(scores)


def log_sum_exp(scores: Array) -> Array:
    """log(sum(exp(scores))) over the last dim."""
    high = scores.max(axis=-1, initial=-np.inf)
    base = np.where(high == -np.inf, 0.0, high)
    with np.errstate(divide="ignore"):
        found: Array = base + np.log(np.exp(scores - base[..., None]).sum(axis=-1))
    return found


def sees(rows: int, columns: int, causal: bool, window: int | None, top_left: bool = False) -> Array:
    """Which columns each row sees, [rows, columns].

    Row s is aligned to column s + columns - rows, with `top_left` to column s. With `causal` it sees the columns up to
    that column, with `window` the columns at a distance less than `window`.
    """
    places = np.arange(rows).reshape(rows, 1) + (0 if top_left else columns - rows)
    every = np.arange(columns)
    visible: Array = np.ones((rows, columns), np.bool_)
    if causal:
        visible &= every <= places
    if window is not None:
        visible &= (every > places - window) & (every < places + window)
    return visible


@reference(AttentionOp)
def _(attend: AttentionOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    q, k, v = arrays[:3]
    if attend.then is not None:
        k, v = (np.concatenate(pieces, axis=2) for pieces in ((k, arrays[3]), (v, arrays[4])))
    own = len(attend.own_operands)
    mask = None if attend.mask is None else arrays[own - 1]
    window = None if attend.window is None else attend.window.value.data
    visible = sees(q.shape[2], k.shape[2], attend.causal is not None, window, attend.top_left is not None)

    def change(scores: Array) -> Array:
        return ev.run_region(attend.scores, [scores, *arrays[own:]])[0]

    region = change if attend.changes_scores else None
    no_softmax = attend.no_softmax is not None
    nan_rows = attend.nan_rows is not None
    y, sums = attention(q, k, v, mask, ev.number(attend.scale), visible, region, no_softmax, nan_rows)
    if attend.value_scale is not None:
        y = y * ev.number(attend.value_scale)
    logs = [] if attend.log_sums is None else [sums]
    if attend.largest is not None and attend.least is not None:
        most = np.abs(y).max(axis=-1, initial=0.0)
        scales = np.maximum(most / ev.number(attend.largest), ev.number(attend.least))
        return [quantized(y / scales[..., None], attend), *logs, scales]
    if attend.result_scale is not None:
        return [quantized(y / ev.number(attend.result_scale), attend), *logs]
    return [y, *logs]


def quantized(quotient: Array, attend: AttentionOp) -> Array:
    """The numbers of 8 bits of a quotient, as `ait.quantize` rounds it."""
    source, target = compute_type(tensor_type(attend.q).element_type), tensor_type(attend.output).element_type
    return round_quotient(quotient, source, target)


@reference(RaggedAttentionOp)
def _(ragged: RaggedAttentionOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    q, k, v = arrays[:3]
    given = dict(zip(ragged.integers(), arrays[3:], strict=True))
    window = None if ragged.window is None else ragged.window.value.data
    scale, causal = ev.number(ragged.scale), ragged.causal is not None
    out = np.zeros((*q.shape[:3], v.shape[3]), np.result_type(q, k, v))

    def attend(batch: int, rows: slice, keys: Array, values: Array) -> None:
        of = q[batch : batch + 1, :, rows]
        visible = sees(of.shape[2], keys.shape[2], causal, window)
        out[batch, :, rows] = attention(of, keys, values, None, scale, visible)[0][0]

    if "segments" in given:
        offsets = np.maximum.accumulate(np.clip(given["segments"], 0, q.shape[2]))
        for start, end in pairwise(map(int, offsets)):
            attend(0, slice(start, end), k[:, :, start:end], v[:, :, start:end])
        return (out,)
    for b in range(q.shape[0]):
        pieces = [x[b : b + 1] for x in (k, v)]
        if "pages" in given:
            pool = np.clip(given["pages"][b], 0, k.shape[0] - 1)
            pieces = [np.moveaxis(x[pool], 0, 1).reshape(1, x.shape[1], -1, x.shape[3]) for x in (k, v)]
        columns = int(np.clip(given["columns"][b], 0, pieces[0].shape[2]))
        rows = int(np.clip(given["rows"][b], 0, q.shape[2])) if "rows" in given else q.shape[2]
        attend(b, slice(0, rows), *(x[:, :, :columns] for x in pieces))
    return (out,)
