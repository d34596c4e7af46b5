"""What attention means: softmax(scale * q k^T + mask) v."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.ir import Operation

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.reference.core import Array, Evaluation, reference
from ait_mlir.reference.norm import softmax


def attention(q: Array, k: Array, v: Array, mask: Array | None, scale: float, causal: bool) -> Array:
    """Return [B, H, S, E] for q [B, H, S, D], k [B, H, L, D], v [B, H, L, E].

    With `causal`, row s sees columns <= s + L - S. A row that sees no column (L < S) gives NaN, as softmax of -inf
    alone does.
    """
    scores = scale * np.matmul(q, np.swapaxes(k, -1, -2))
    if mask is not None:
        scores = scores + mask
    if causal:
        rows, columns = scores.shape[-2:]
        visible: Array = np.tri(rows, columns, columns - rows, dtype=np.bool_)
        scores = np.where(visible, scores, -np.inf)
    return np.matmul(softmax(scores, -1), v)


@reference("ait.attention")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    attend = cast(AttentionOp, op)
    q, k, v, *mask = arrays
    return (attention(q, k, v, mask[0] if mask else None, attend.scale.value.data, attend.causal is not None),)
