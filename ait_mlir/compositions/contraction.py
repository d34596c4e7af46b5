"""Matrix products by the ranks and element types of their operands."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.gemm import BmmOp, GemmOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const

ONE = const(1)


def product(w: Writer, x: SSAValue, y: SSAValue) -> SSAValue:
    """x @ y, of at least 2 dims each, batches broadcast."""
    rank = tensor_type(y).rank
    if not is_float(tensor_type(x).element_type):
        return _integer_product(w, x, w.permute(y, [*range(rank - 2), rank - 1, rank - 2]))
    op = GemmOp if rank == 2 else BmmOp
    return w.op(op, x, y, properties={"layout": "rrr"}, regions=1)


def product_with_rows(w: Writer, x: SSAValue, weight: SSAValue) -> SSAValue:
    """x @ weight^T, for a weight of 2 dims."""
    if not is_float(tensor_type(x).element_type):
        return _integer_product(w, x, weight)
    return w.op(GemmOp, x, weight, properties={"layout": "rcr"}, regions=1)


def _integer_product(w: Writer, x: SSAValue, y: SSAValue) -> SSAValue:
    """x [..., m, k] @ y^T, y [..., n, k], of integers, which wrap: sums of elementwise products."""
    s, t = tensor_type(x).dims, tensor_type(y).dims
    products = w.mul(w.reshape(x, (*s[:-1], ONE, s[-1])), w.reshape(y, (*t[:-2], ONE, *t[-2:])))
    return w.reduce("sum", products, [tensor_type(products).rank - 1])


def product_along(w: Writer, x: SSAValue, axis: int, matrix: SSAValue) -> SSAValue:
    """The product of x and a matrix over any axis of x."""
    rank = tensor_type(x).rank
    order = [*(a for a in range(rank) if a != axis), axis]
    turned = w.permute(x, order)
    y = product(w, w.reshape(turned, (ONE, *tensor_type(turned).dims)) if rank == 1 else turned, matrix)
    y = w.reshape(y, tensor_type(y).dims[1:]) if rank == 1 else y
    return w.permute(y, [order.index(a) for a in range(rank)])
