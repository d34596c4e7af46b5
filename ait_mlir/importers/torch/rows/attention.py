"""Scaled dot-product attention."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Mask, as_mask, is_causal, is_mask, lower_triangle
from ait_mlir.compositions.attention import by_products, hiding
from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.types import Shape, TensorType, tensor_type
from ait_mlir.dims import const, product
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.rows.common import window_of
from ait_mlir.rewrites.attention import MAX_HEAD_SIZE


def attention(c: Call) -> SSAValue:
    """softmax(scale * q @ k^T + mask) @ v; a mask that is the lower triangle becomes `causal`, a band `window`."""
    if c["dropout_p"]:
        raise NotSupported("attention with dropout is for training; call model.eval() before the export")
    q, k, v = (c.tensor(name) for name in ("query", "key", "value"))
    head_size = tensor_type(q).dims[-1].as_int()
    if head_size is None:
        raise NotSupported("the size of a head must be a number")
    scale = float(c["scale"]) if c["scale"] is not None else 1 / math.sqrt(head_size)
    c.table.require_equal(tensor_type(k).dims[-2], tensor_type(v).dims[-2])
    scores = (*c.dims[:-1], tensor_type(k).dims[-2])
    seen = _seen(c, scores)
    mask = seen.mask
    large = head_size > MAX_HEAD_SIZE or (tensor_type(v).dims[-1].as_int() or 0) > MAX_HEAD_SIZE
    if c["enable_gqa"] and large:
        k, v = (_repeat_heads(c, x, tensor_type(q).dims[-3]) for x in (k, v))
    batch = c.dims[:-2]
    q = c.w.expand(q, (*batch, *tensor_type(q).dims[-2:]))
    if len(batch) < 2 or tensor_type(k).dims[-3].as_int() == 1 or tensor_type(k).dims[0].as_int() == 1:
        shared = (*batch[:-1], tensor_type(k).dims[-3]) if c["enable_gqa"] else batch
        k, v = (c.w.expand(x, (*shared, *tensor_type(x).dims[-2:])) for x in (k, v))
    if large:
        return by_products(c.w, q, k, v, _whole_mask(c, seen, scores), scale)
    q4, k4, v4 = (_four_dims(c, x) for x in (q, k, v))
    if mask is not None and tensor_type(mask).rank > 2:
        mask = _mask_of_four_dims(c, mask)
    y = c.w.put(AttentionOp(q4, k4, v4, scale, mask, seen.causal, seen.window, top_left=seen.top_left))
    return c.w.reshape(y, c.dims)


@dataclass(frozen=True)
class Seen:
    """The columns that each row of the scores sees: an additive mask, and the attributes of `ait.attention`."""

    mask: SSAValue | None = None
    causal: bool = False
    top_left: bool = False
    window: int | None = None


def _seen(c: Call, scores: Shape) -> Seen:
    """The mask of the call, split into attributes of `ait.attention` and an additive rest."""
    mask, causal, top_left = Mask(scores), bool(c["is_causal"]), False
    if causal:  # aligned to the first row
        top_left = not is_causal(lower_triangle(scores, 0))
    if c["attn_mask"] is not None:
        given = c.value("attn_mask")
        if not is_mask(given):
            return Seen(c.w.cast(c.w.natural(given), c.element), causal, top_left)
        mask = mask.both(as_mask(given).broadcast(scores), scores)
    mask = mask.proved(c.w.scope)
    window = None
    if not top_left:
        triangles, mask = mask.parted()
        causal = causal or bool(triangles.formulas)
        if c.w.scope.le(scores[-2], scores[-1]):  # else some rows see no column
            window, mask = window_of(mask, causal)
    narrow = Mask(mask.dims, tuple(replace(f, element=i32) for f in mask.formulas), mask.values)
    additive = hiding(c.w, narrow, c.element) if narrow != Mask(narrow.dims) else None
    return Seen(additive, causal, top_left, window)


def _whole_mask(c: Call, seen: Seen, scores: Shape) -> SSAValue | None:
    """One additive mask that also expresses `causal` and `window`, for attention written as products."""
    rows, columns = scores[-2:]
    triangle = lower_triangle(scores, 0)
    shift = const(0) if seen.top_left else columns - rows
    formulas: list[Affine] = []
    if seen.causal:
        formulas.append(Affine(triangle.dims, triangle.steps, shift))
    if seen.window is not None:
        down = tuple(-step for step in triangle.steps)
        formulas.append(Affine(triangle.dims, down, seen.window - 1 - shift))
        formulas += [] if seen.causal else [Affine(triangle.dims, triangle.steps, shift + seen.window - 1)]
    if not formulas:
        return seen.mask
    added = hiding(c.w, Mask(scores, tuple(formulas)), c.element)
    return added if seen.mask is None else c.w.add(seen.mask, added)


def _four_dims(c: Call, x: SSAValue) -> SSAValue:
    """x with four dims: [B, S, D] becomes [B, 1, S, D]; with more dims, all dims before the last three become the
    batch.
    """
    dims = tensor_type(x).dims
    if len(dims) == 4:
        return x
    if len(dims) == 3:
        return c.w.reshape(x, (dims[0], 1, *dims[1:]))
    if len(dims) == 2:
        return c.w.reshape(x, (1, 1, *dims))
    return c.w.reshape(x, (product(dims[:-3]), *dims[-3:]))


def _mask_of_four_dims(c: Call, mask: SSAValue) -> SSAValue:
    """A mask that broadcasts to the scores, reshaped to broadcast to scores of four dims."""
    dims, rank = tensor_type(mask).dims, len(c.dims)
    dims = (*[const(1)] * (rank - len(dims)), *dims)
    mask = c.w.reshape(mask, dims)
    outer = dims[:-3]
    if rank > 4 and any(d.as_int() != 1 for d in outer):  # batch dims that broadcast only in part cannot become one dim
        mask = c.w.expand(mask, (*c.dims[:-3], *dims[-3:]))
    return _four_dims(c, mask)


def _repeat_heads(c: Call, x: SSAValue, heads: object) -> SSAValue:
    """k or v with each head repeated for its group of heads of q."""
    *outer, own, length, size = tensor_type(x).dims
    wanted = c.dims[-3].as_int()
    count = own.as_int()
    if wanted is None or count is None or wanted % count:
        raise NotSupported(f"{heads} heads of queries cannot share {own} heads of keys")
    grouped = c.w.reshape(x, (*outer, own, 1, length, size))
    spread = c.w.expand(grouped, (*outer, own, wanted // count, length, size))
    return c.w.reshape(spread, (*outer, wanted, length, size))


class _First(Call):
    """A call with several results, of which only the first, the attention's, is used; the others are for training."""

    def type(self, index: int | None = None) -> TensorType:
        return super().type(index or 0)


def fused(c: Call) -> list[SSAValue]:
    """The attention of PyTorch's fused kernels, whose other results are for training."""
    names = {"attn_mask": None, "enable_gqa": False, "scale": None, **c.arguments}
    mask = c["attn_bias"] if c["attn_mask"] is None else c["attn_mask"]
    return [attention(_First(c.node, {**names, "attn_mask": mask}, c.w, c.table))]


ROWS: dict[str, Row] = {
    "aten._scaled_dot_product_attention_math.default aten._scaled_dot_product_cudnn_attention.default": fused,
    "aten._scaled_dot_product_efficient_attention.default aten._scaled_dot_product_flash_attention.default": fused,
    "aten._scaled_dot_product_flash_attention_for_cpu.default": fused,
    "aten._scaled_dot_product_fused_attention_overrideable.default": fused,
    "aten.scaled_dot_product_attention.default": attention,
}
