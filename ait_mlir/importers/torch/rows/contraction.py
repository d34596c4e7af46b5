"""Matrix products."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Value
from ait_mlir.compositions.contraction import product, product_of_bytes, product_with_rows
from ait_mlir.dialects.ait.grouped import RaggedGemmOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.torch.call import Call, NotSupported, Row


def linear(c: Call) -> Value:
    """x @ weight^T + bias"""
    x = c.tensor("input")
    vector = tensor_type(x).rank == 1
    if vector:
        x = c.w.reshape(x, (1, *tensor_type(x).dims))
    y = product_with_rows(c.w, x, c.tensor("weight"))
    if (bias := c.optional("bias")) is not None:
        y = c.w.add(y, bias)
    return c.w.reshape(y, c.dims) if vector else y


def matmul(a: str, b: str) -> Row:
    """The product over the last dim of `a` and the last but one of `b`, batches broadcast."""

    def row(c: Call) -> Value:
        x, y = c.tensor(a), c.tensor(b)
        s, t = tensor_type(x), tensor_type(y)
        if s.rank == 1:
            x = c.w.reshape(x, (1, *s.dims))
        if t.rank == 1:
            y = c.w.reshape(y, (*t.dims, 1))
        return c.w.reshape(product(c.w, x, y), c.dims)

    return row


def addmm(a: str, b: str) -> Row:
    """beta * self + alpha * (a @ b)"""

    def row(c: Call) -> Value:
        return _added(c, product(c.w, c.tensor(a), c.tensor(b)))

    return row


def addbmm(c: Call) -> Value:
    """beta * self + alpha * (sum of batch1[i] @ batch2[i]): one product over batch and inner dim."""
    a, b = c.tensor("batch1"), c.tensor("batch2")
    batch, m, k = tensor_type(a).dims
    a = c.w.reshape(c.w.permute(a, [1, 0, 2]), (m, batch * k))
    return _added(c, product(c.w, a, c.w.reshape(b, (batch * k, tensor_type(b).dims[2]))))


def _added(c: Call, y: SSAValue) -> SSAValue:
    """beta * self + alpha * y"""
    if c["alpha"] not in (None, 1):
        y = c.w.mul(y, c.w.number(c["alpha"], c.element))
    if c["beta"] == 0:
        return y
    bias = c.natural("self")
    if c["beta"] not in (None, 1):
        bias = c.w.mul(bias, c.w.number(c["beta"], c.element))
    return c.w.add(y, bias)


def bilinear(c: Call) -> Value:
    """Result channel o is x1^T weight[o] x2 + bias[o]: x2 times a matrix of [out * n1, n2], then a sum over x1."""
    x, y, weight = c.tensor("input1"), c.tensor("input2"), c.tensor("weight")
    out, width, depth = tensor_type(weight).dims
    outer = tensor_type(x).dims[:-1]
    y = c.w.reshape(y, (*outer, depth) if outer else (1, depth))  # operands of a product have at least two dims
    rows = c.w.reshape(product_with_rows(c.w, y, c.w.reshape(weight, (out * width, depth))), (*outer, out, width))
    z = c.w.reshape(product(c.w, rows, c.w.reshape(x, (*outer, width, 1))), c.dims)
    return z if (bias := c.optional("bias")) is None else c.w.add(z, bias)


def grouped_by_transformers(c: Call) -> Value:
    """The operation of `transformers` with this meaning: each group of rows of `input`, ending at `offs`, times its
    matrix.
    """
    return c.w.op(RaggedGemmOp, c.tensor("input"), c.tensor("weight"), c.tensor("offs"), regions=1)


def grouped(c: Call) -> Value:
    """`_grouped_mm`: batched products, or products of groups of rows of `self` or of columns of `mat2`; `offs` has the
    ends of the groups.
    """
    a, b = c.tensor("self"), c.tensor("mat2")
    ranks = tensor_type(a).rank, tensor_type(b).rank
    if ranks == (3, 3):
        y = product(c.w, a, b)
    elif ranks == (2, 3):
        y = c.w.op(RaggedGemmOp, a, b, c.tensor("offs"), regions=1)
    elif ranks == (3, 2):  # columns are grouped: these are rows of the transposed product
        y = c.w.op(RaggedGemmOp, c.w.permute(b, [1, 0]), c.w.permute(a, [0, 2, 1]), c.tensor("offs"), regions=1)
        y = c.w.permute(y, [1, 0])
    else:
        raise NotSupported("two matrices give a product for each group of what is summed, which no op here computes")
    if (bias := c.optional("bias")) is not None:
        raise NotSupported(f"a bias of grouped products ({tensor_type(bias)}) is not supported; add it to the result")
    return y if c.element == tensor_type(y).element_type else c.w.cast(y, c.element)


ROWS: dict[str, Row] = {
    "aten.bilinear.default": bilinear,
    "aten.linear.default": linear,
    "aten.matmul.default": matmul("self", "other"),
    "aten.mm.default aten.bmm.default": matmul("self", "mat2"),
    "aten.mv.default": matmul("self", "vec"),
    "aten._int_mm.default": lambda c: product_of_bytes(c.w, c.tensor("self"), c.tensor("mat2")),
    "aten.addbmm.default": addbmm,
    "aten.addmm.default": addmm("mat1", "mat2"),
    "aten._grouped_mm.default": grouped,
    "transformers.grouped_mm_fallback.default": grouped_by_transformers,
    "aten.baddbmm.default": addmm("batch1", "batch2"),
}
