"""Matrix products."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from ait_mlir.compositions import contraction
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.onnx.call import Call, NotSupported, Row
from ait_mlir.importers.onnx.known import Known
from ait_mlir.importers.onnx.rows.attention import recognised
from ait_mlir.importers.onnx.rows.common import broadcast

ONE = const(1)


def matmul(c: Call, a: SSAValue, b: SSAValue) -> SSAValue:
    """a @ b as in NumPy: a vector is a row on the left, a column on the right."""
    s, t = tensor_type(a).dims, tensor_type(b).dims
    if not s or not t:
        raise NotSupported("a product of a scalar; expected matrices")
    c.same(s[len(s) - 1], t[max(len(t) - 2, 0)])
    a = c.w.reshape(a, (ONE, *s)) if len(s) == 1 else a
    b = c.w.reshape(b, (*t, ONE)) if len(t) == 1 else b
    for x, y in zip(tensor_type(a).dims[-3::-1], tensor_type(b).dims[-3::-1], strict=False):
        if x is not ONE and y is not ONE:
            c.same(x, y)
    y = contraction.product(c.w, a, b)
    dims = tensor_type(y).dims
    kept = [d for i, d in enumerate(dims) if not (len(s) == 1 and i == len(dims) - 2)]
    kept = kept[:-1] if len(t) == 1 else kept
    return c.w.reshape(y, kept)


def product_of_inputs(c: Call) -> SSAValue:
    """a @ b. A weight b is stored with its columns as rows, which products read fastest; what exporters write for
    attention becomes attention.
    """
    if (rows := _stored_rows(c, 1)) is not None and c.rank(0) > 1:
        c.same(c.shape(0)[-1], tensor_type(rows).dims[1])
        return contraction.product_with_rows(c.w, c.tensor(0), rows)
    a, b = c.tensor(0), c.tensor(1)
    found = recognised(c, a, b)
    return matmul(c, a, b) if found is None else found


def _stored_rows(c: Call, index: int) -> SSAValue | None:
    """The columns of a weight of floats as the rows of another; None for an input that is no matrix of weights."""
    value = c.value(index)
    if not isinstance(value, Known) or not value.is_weight or value.array.ndim != 2:
        return None
    return c.w.written(c.w.turned(value))


def gemm(c: Call) -> SSAValue:
    """alpha * a' @ b' + beta * bias, each transposed or not."""
    a, b = c.tensor(0), c.tensor(1)
    if tensor_type(a).rank != 2 or tensor_type(b).rank != 2:
        raise NotSupported(f"ranks are {tensor_type(a).rank} and {tensor_type(b).rank}, expected matrices")
    alpha, beta = c.attr("alpha", 1.0), c.attr("beta", 1.0)
    a = c.w.permute(a, [1, 0]) if c.attr("transA", 0) else a
    s, t = tensor_type(a).dims, tensor_type(b).dims
    c.same(s[1], t[1] if c.attr("transB", 0) else t[0])
    if is_float(tensor_type(a).element_type):
        turned = None if c.attr("transB", 0) else _stored_rows(c, 1)
        layout = "rcr" if c.attr("transB", 0) or turned is not None else "rrr"
        y = c.w.op(GemmOp, a, b if turned is None else turned, properties={"layout": layout}, regions=1)
    else:
        y = contraction.product_with_rows(c.w, a, b if c.attr("transB", 0) else c.w.permute(b, [1, 0]))
    y = y if alpha == 1 else _scaled(c, y, alpha)
    if not c.has(2) or beta == 0:
        return y
    bias = c.tensor(2)
    return c.w.add(*broadcast(c, [y, bias if beta == 1 else _scaled(c, bias, beta)]))


def _scaled(c: Call, x: SSAValue, factor: float) -> SSAValue:
    element = tensor_type(x).element_type
    if is_float(element):
        return c.w.mul(x, factor)
    if factor.is_integer():
        return c.w.mul(x, int(factor))
    return c.w.cast(c.w.mul(c.w.cast(x, f32), factor), element)


def fused_matmul(c: Call) -> SSAValue:
    """`com.microsoft.FusedMatMul`: alpha * a' @ b'."""
    if c.attr("transBatchA", 0) or c.attr("transBatchB", 0):
        raise NotSupported("transBatchA and transBatchB are not supported")
    a, b = c.tensor(0), c.tensor(1)
    a, b = (
        c.w.permute(x, [*range(tensor_type(x).rank - 2), tensor_type(x).rank - 1, tensor_type(x).rank - 2])
        if c.attr(name, 0) and tensor_type(x).rank > 1
        else x
        for x, name in ((a, "transA"), (b, "transB"))
    )
    y = matmul(c, a, b)
    alpha = c.attr("alpha", 1.0)
    return y if alpha == 1 else c.w.mul(y, alpha)


def matmul_integer(c: Call) -> SSAValue:
    """The product of integers of 8 bits minus their zero points, in 32 bits."""
    a, b = c.w.cast(c.tensor(0), i32), c.w.cast(c.tensor(1), i32)
    if c.has(2):
        zero = c.w.cast(c.tensor(2), i32)
        a = c.w.sub(a, c.w.reshape(zero, (*tensor_type(zero).dims, ONE)) if tensor_type(zero).rank == 1 else zero)
    if c.has(3):
        b = c.w.sub(b, c.w.cast(c.tensor(3), i32))
    return matmul(c, a, b)


def einsum(c: Call) -> SSAValue:
    """A sum of products by an equation, as products of all operands at all indices, or as batched matrix products."""
    equation = str(c.attr("equation", "")).replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    values = c.tensors()
    if len(terms) != len(values):
        raise NotSupported(f"the equation {equation!r} has {len(terms)} operands, the node {len(values)}")
    spread = max(
        (tensor_type(v).rank - len(t.replace("...", "")) for t, v in zip(terms, values, strict=True)), default=0
    )
    letters = [chr(0x100 + i) for i in range(max(spread, 0))]
    full = [
        t.replace("...", "".join(letters[len(letters) - (tensor_type(v).rank - len(t) + 3) :])) if "..." in t else t
        for t, v in zip(terms, values, strict=True)
    ]
    if arrow:
        result = right.replace("...", "".join(letters))
    else:
        every = "".join(full)
        result = "".join(letters) + "".join(
            sorted(ch for ch in set(every) if every.count(ch) == 1 and ch not in letters)
        )
    for term, value in zip(full, values, strict=True):
        if len(term) != tensor_type(value).rank:
            raise NotSupported(f"the equation {equation!r} does not fit an operand of rank {tensor_type(value).rank}")
    return contraction.einsum(c.w, full, result, values)


ROWS: dict[str, Row] = {
    "MatMul": product_of_inputs,
    "Gemm": gemm,
    "MatMulInteger": matmul_integer,
    "Einsum": einsum,
    "com.microsoft.FusedMatMul": fused_matmul,
}
