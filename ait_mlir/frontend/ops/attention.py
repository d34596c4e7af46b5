"""Scaled dot-product attention."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, UnitAttr, f64, i64
from xdsl.ir import Attribute

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.view import permute
from ait_mlir.frontend.tensor import Tensor


class attention(Operator):
    """softmax(scale * q @ k^T + mask) @ v (arXiv:1706.03762).

    q is [batch, heads, S, D], k [batch, groups, L, D], v [batch, groups, L, E]; the result is [batch, heads, S, E].
    `groups` divides `heads`: each head of k and v serves as many heads of q. `mask` is added and broadcasts to
    [batch, heads, S, L]. `scale` is 1 / sqrt(D) where None. With `causal`, the last row sees all columns and each row
    above it one less. With `window`, a row sees the columns less than so many away from where it stands.

    Of few rows (S up to 64), k and v may be a concatenation of a cache and what is new: it is read in pieces, not made.
    """

    def __init__(self, causal: bool = False, scale: float | None = None, window: int | None = None):
        super().__init__()
        self.causal, self.scale, self.window = causal, scale, window

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        operands = [t for t in (q, k, v, mask) if t is not None]
        self.begin(*operands)
        head_size = q.type.dims[-1].as_int() if q.rank else None
        if self.scale is None and head_size is None:
            raise self.fail("the head size is dynamic; give the scale")
        scale = self.scale if self.scale is not None else float(head_size or 1) ** -0.5
        properties: dict[str, Attribute] = {"scale": FloatAttr(scale, f64)}
        if self.causal:
            properties["causal"] = UnitAttr()
        if self.window is not None:
            properties["window"] = IntegerAttr(self.window, i64)
        return self.finish(self.emit_one(AttentionOp, operands, properties))


class mem_eff_attention(Operator):
    """Attention under its documented name: inputs as for `attention`, result [batch, S, heads, E].

    Dropout is for training and must be 0; sequences of varying length are not supported.
    """

    def __init__(self, causal: bool, dropout: float = 0, scale: float | None = None):
        super().__init__()
        if dropout != 0:
            raise BuildError(f"mem_eff_attention: dropout is {dropout}, but this is inference; leave it 0")
        self.causal, self.scale = causal, scale

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        self.begin(q, k, v)
        return self.finish(permute()(attention(self.causal, self.scale)(q, k, v), [0, 2, 1, 3]))
