"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
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
Multiply = Callable[[Writer, SSAValue, SSAValue], SSAValue]
"""The product of two tensors of at least 2 dims."""


def matmul(c: Call, a: SSAValue, b: SSAValue, multiply: Multiply = contraction.product) -> SSAValue:
    """a @ b as in NumPy: a vector is a row on the left, a column on the right. `multiply` computes the product."""
    s, t = tensor_type(a).dims, tensor_type(b).dims
    if not s or not t:
        raise NotSupported("a product of a scalar; expected matrices")
    c.same(s[len(s) - 1], t[max(len(t) - 2, 0)])
    a = c.w.reshape(a, (ONE, *s)) if len(s) == 1 else a
    b = c.w.reshape(b, (*t, ONE)) if len(t) == 1 else b
    for x, y in zip(tensor_type(a).dims[-3::-1], tensor_type(b).dims[-3::-1], strict=False):
        if x is not ONE and y is not ONE:
            c.same(x, y)
    y = multiply(c.w, a, b)
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
    """The transposed weight, if the input is a matrix of float weights; else None."""
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
    """`com.microsoft.FusedMatMul`: alpha * a' @ b'. With transBatch the batch is the dim before the last one; the first
    one is then the rows.
    """
    a, b = c.tensor(0), c.tensor(1)
    a, b = (
        _transposed(c, x, bool(c.attr(f"transBatch{name}", 0)), bool(c.attr(f"trans{name}", 0)))
        for x, name in ((a, "A"), (b, "B"))
    )
    y = matmul(c, a, b)
    alpha = c.attr("alpha", 1.0)
    return y if alpha == 1 else c.w.mul(y, alpha)


def _transposed(c: Call, x: SSAValue, batch: bool, last: bool) -> SSAValue:
    rank = tensor_type(x).rank
    if rank < 2 or not (batch or last):
        return x
    order = [*range(1, rank - 1), 0, rank - 1] if batch and rank > 2 else list(range(rank))
    order[-2:] = reversed(order[-2:]) if last else order[-2:]
    return c.w.permute(x, order)


def matmul_integer(c: Call) -> SSAValue:
    """The product of integers of 8 bits minus their zero points, in 32 bits."""
    return centred_matmul(c, (0, 2), (1, 3))


def centred_matmul(c: Call, first: tuple[int, int], second: tuple[int, int]) -> SSAValue:
    """The product in i32 of two inputs of 8 bits minus their zero points, which may be missing: each pair is an input
    and its zero point, of one number, or one for each row of the first or column of the second. A weight is stored with
    its columns as rows.
    """
    x_zero, y_zero = _zero_point(c, *first), _zero_point(c, *second)
    if x_zero is not None and tensor_type(x_zero).rank == 1:
        x_zero = c.w.reshape(x_zero, (*tensor_type(x_zero).dims, ONE))
    if (rows := _stored_rows(c, second[0])) is not None and c.rank(first[0]) > 1:
        c.same(c.shape(first[0])[-1], tensor_type(rows).dims[1])
        if y_zero is not None and (own := tensor_type(y_zero).dims):
            y_zero = c.w.reshape(y_zero, (own[-1], ONE))
        return contraction.centred_product(c.w, c.tensor(first[0]), rows, x_zero, y_zero, rows=True)

    def multiply(w: Writer, x: SSAValue, y: SSAValue) -> SSAValue:
        return contraction.centred_product(w, x, y, x_zero, y_zero)

    return matmul(c, c.tensor(first[0]), c.tensor(second[0]), multiply)


def _zero_point(c: Call, index: int, zero: int) -> SSAValue | None:
    """The zero point of an input; None where it is missing or 0."""
    if not c.has(zero):
        return None
    value = c.value(zero)
    if isinstance(value, Known) and not value.has_dims and not value.array.any():
        return None
    found, dims = c.tensor(zero), tensor_type(c.tensor(zero)).dims
    return c.w.reshape(found, ()) if all(d.as_int() == 1 for d in dims) else found


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
