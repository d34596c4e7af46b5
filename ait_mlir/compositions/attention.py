"""Parts of attention that are more than one op."""

from __future__ import annotations

import math

from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import Mask
from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.gemm import BmmOp
from ait_mlir.dialects.ait.norm import SoftmaxOp
from ait_mlir.dialects.ait.types import tensor_type


def hiding(w: Writer, seen: SSAValue | Mask, element: Attribute) -> SSAValue:
    """A mask to add to scores: 0 where a row sees a column, else -inf.

    A row of only -inf has the result 0 in `ait.attention` and in `by_products`.
    """
    if isinstance(seen, Mask):
        return w.once(("hiding", seen, element), lambda: hiding(w, w.natural(seen), element))
    return w.where(seen, w.scalar(0.0, element), -math.inf)


def by_products(w: Writer, q: SSAValue, k: SSAValue, v: SSAValue, mask: SSAValue | None, scale: float) -> SSAValue:
    """Attention with stored scores, for heads too large for one kernel. A row that sees no column is 0."""
    s = w.op(BmmOp, q, k, properties={"layout": "rcr"}, regions=1)
    s = w.mul(s, w.scalar(scale, tensor_type(q).element_type))
    last = tensor_type(s).rank - 1
    s = s if mask is None else w.add(s, mask)
    p = w.op(SoftmaxOp, s, properties={"dim": last})
    if mask is not None:
        blind = w.compare("eq", w.reduce("max", s, [last], keep=True), -math.inf)
        p = w.where(blind, 0.0, p)
    return w.op(BmmOp, p, v, properties={"layout": "rrr"}, regions=1)
