"""Pooling, with permutes to channels-last and back around each op; the pass `channels-last` cancels them."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Value
from ait_mlir.compositions.rearrange import channels_first, channels_last
from ait_mlir.dialects.ait.pool import AdaptivePoolOp, OverlapAddOp, PoolOp, pool_properties
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dims import const, floordiv
from ait_mlir.importers.torch.call import Call, Row
from ait_mlir.importers.torch.rows.common import each


def pool(kind: str, rank: int) -> Row:
    """A row for pooling over windows of the last `rank` dims; gives the indices of maxima only if they are used."""

    def row(c: Call) -> Value | Sequence[Value]:
        window, pads = each(c["kernel_size"], rank), each(c["padding"], rank)
        properties = pool_properties(
            kind,
            window,
            each(c["stride"], rank) if c["stride"] else window,
            pads,
            each(c["dilation"] or 1, rank),
            ceil=bool(c["ceil_mode"]),
            exclude_pad=kind == "mean" and not c["count_include_pad"],
            divisor=c["divisor_override"],
        )
        x = channels_last(c.w, c.tensor("self"), rank)
        op = PoolOp.create(operands=[x], result_types=_types(c, tensor_type(x)), properties=properties)
        return _results(c, op)

    return row


def fold(c: Call) -> Value:
    """Windows [batch, channels * window, windows] added where they lie in an image; without a batch, too."""
    x, dims = c.tensor("self"), c.dims
    window = each(c["kernel_size"], 2)
    counts = [
        floordiv(size + 2 * pad - dilation * (k - 1) - 1, stride) + 1
        for size, pad, dilation, k, stride in zip(
            dims[-2:], each(c["padding"], 2), each(c["dilation"], 2), window, each(c["stride"], 2), strict=True
        )
    ]
    windows = c.w.reshape(x, (*dims[:-2], *map(const, window), *counts))
    return c.w.put(OverlapAddOp(windows, dims, each(c["stride"], 2), each(c["dilation"], 2), each(c["padding"], 2)))


def adaptive(kind: str, rank: int) -> Row:
    """A row for pooling to a given number of windows; with one window it is a reduction."""

    def row(c: Call) -> Value | Sequence[Value]:
        *outer, channels = c.type(0 if kind == "max" else None).dims[:-rank]
        sizes = c.type(0 if kind == "max" else None).dims[-rank:]
        if all(d.as_int() == 1 for d in sizes) and not _wants_places(c):
            x = c.tensor("self")
            axes = range(tensor_type(x).rank - rank, tensor_type(x).rank)
            whole = c.w.reshape(c.w.put(ReduceOp(kind, x, list(axes))), (*outer, channels, *sizes))
            return whole if kind == "mean" else [whole]
        x = channels_last(c.w, c.tensor("self"), rank)
        t = tensor_type(x)
        pooled = TensorType.get((t.dims[0], *sizes, t.dims[-1]), t.element_type)
        properties = {"kind": StringAttr(kind)}
        op = AdaptivePoolOp.create(operands=[x], result_types=_types(c, pooled), properties=properties)
        return _results(c, op)

    return row


def _wants_places(c: Call) -> bool:
    """Whether anything reads the second result, the indices of the maxima."""
    taken = [user for user in c.node.users if user.target is operator.getitem and user.args[1] == 1]
    return any(user.users for user in taken)


def _types(c: Call, values: TensorType) -> list[TensorType]:
    return [values, TensorType.get(values.dims, i64)] if _wants_places(c) else [values]


def _results(c: Call, op: PoolOp | AdaptivePoolOp) -> Value | Sequence[Value]:
    """The results of the op, back in channels-first order, with the rank of `self`."""
    c.w.put(op)
    batched = len(c.shape("self")) == tensor_type(op.x).rank
    found: list[SSAValue] = [channels_first(c.w, result, batched) for result in op.results]
    return found if isinstance(c.node.meta["val"], tuple | list) else found[0]


ROWS: dict[str, Row] = {
    "aten.col2im.default": fold,
    **{f"aten.max_pool{n}d.default": pool("max", n) for n in (1, 2, 3)},
    **{f"aten.max_pool{n}d_with_indices.default": pool("max", n) for n in (1, 2, 3)},
    **{f"aten.avg_pool{n}d.default": pool("mean", n) for n in (1, 2, 3)},
    **{f"aten.adaptive_avg_pool{n}d.default": adaptive("mean", n) for n in (1, 2, 3)},
    **{f"aten._adaptive_avg_pool{n}d.default": adaptive("mean", n) for n in (2, 3)},
    **{f"aten.adaptive_max_pool{n}d.default": adaptive("max", n) for n in (1, 2, 3)},
}
