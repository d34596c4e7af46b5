"""What attention means: softmax(scale * q k^T + mask) v."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.ir import Operation

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.reference.core import Array, Evaluation, reference
from ait_mlir.reference.norm import softmax


def attention(
    q: Array, k: Array, v: Array, mask: Array | None, scale: float, causal: bool, window: int | None = None
) -> Array:
    """Return [B, H, S, E] for q [B, H, S, D], k [B, G, L, D], v [B, G, L, E], where G divides H.

    Row s stands at column s + L - S. With `causal` it sees the columns up to there, with `window` those less than so
    many columns away. A row that sees no column (L < S) gives NaN, as softmax of -inf alone does.
    """
    if k.shape[1] != q.shape[1]:
        k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = scale * np.matmul(q, np.swapaxes(k, -1, -2))
    if mask is not None:
        scores = scores + mask
    visible = sees(q.shape[-2], k.shape[-2], causal, window)
    return np.matmul(softmax(np.where(visible, scores, -np.inf), -1), v)


def sees(rows: int, columns: int, causal: bool, window: int | None) -> Array:
    """Which columns each row sees, [rows, columns]."""
    places, every = np.arange(columns - rows, columns).reshape(rows, 1), np.arange(columns)
    visible: Array = np.ones((rows, columns), np.bool_)
    if causal:
        visible &= every <= places
    if window is not None:
        visible &= (every > places - window) & (every < places + window)
    return visible


@reference("ait.attention")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    attend = cast(AttentionOp, op)
    q, k, v = arrays[:3]
    if attend.then is not None:
        k, v = (np.concatenate(pieces, axis=2) for pieces in ((k, arrays[3]), (v, arrays[4])))
    mask = None if attend.mask is None else arrays[-1]
    window = None if attend.window is None else attend.window.value.data
    scale, causal = attend.scale.value.data, attend.causal is not None
    return (attention(q, k, v, mask, scale, causal, window),)
