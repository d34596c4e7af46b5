"""Pads products of odd sizes with zeros to even sizes, so that kernels read and write several elements at once."""

from __future__ import annotations

from xdsl.dialects.builtin import bf16, f16
from xdsl.ir import Operation, Region, SSAValue

from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dialects.ait.view import SliceOp
from ait_mlir.dims import Expr
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native


@pattern(over=("gemm", "bmm"))
def even_product(p: PatternBuilder, mnemonic: str) -> None:
    """x @ y = slice(pad(x) @ pad(y)), where two-byte rows of an odd number of elements get a zero at the end

    Operands of an epilogue with as many rows or columns as the result get zeros, too.
    """
    root = p.op(f"ait.{mnemonic}", [*p.values(2), p.rest()])
    p.require("no_attribute", root, "kernel")
    p.require("has_odd_rows", root)
    p.replace(root, "even_rows", root)


PADDING = patterns(even_product)


# ** constraints and natives **


EIGHT = 8
"""Elements of 2 bytes in an access of 16."""
More = tuple[int, int, int]
"""How many zeros are appended along M, N and K."""


def fill_up(op: ContractionOp, multiple: int) -> More:
    """The zeros needed to pad M, N and K to a multiple. 0 for a size that is unknown, or 1, or the length of no
    contiguous row of an operand or the result."""
    a, b, c = op.layout.data
    _, m, k = op.split_a()
    _, _, n = op.split_b()
    rows = ("c" in (a, c), b == "r" or c == "r", a == "r" or b == "c")
    m, n, k = (_missing(size, multiple) if is_row else 0 for is_row, size in zip(rows, (m, n, k), strict=True))
    return m, n, k


def _missing(size: Expr, multiple: int) -> int:
    number = size.as_int()
    return -number % multiple if number is not None and number > 1 else 0


def is_narrow(op: ContractionOp) -> bool:
    """Whether the product has two-byte elements, no epilogue and no selected kernel."""
    plain = not op.epilogue.blocks and "kernel" not in op.attributes
    return plain and tensor_type(op.a).element_type in (f16, bf16)


def filled(op: ContractionOp, more: More) -> list[Operation]:
    """Detached operations that compute a product padded with zeros along M, N and K; the last yields its result. The
    epilogue moves to the new product."""
    m, n, k = more
    made: list[Operation] = []
    result = tensor_type(op.output)
    whole_rows, whole_columns = (result.dims[axis] for axis in op.matrix_axes(2))

    def larger(t: TensorType, position: int, rows: int, columns: int) -> TensorType:
        dims = list(t.dims)
        for axis, by in zip(op.matrix_axes(position), (rows, columns), strict=True):
            dims[axis] = dims[axis] + by
        return TensorType.get(dims, t.element_type)

    def padded(value: SSAValue, t: TensorType) -> SSAValue:
        if t == value.type:
            return value
        made.append(PadOp("constant", value, [0] * t.rank, t.dims))
        return made[-1].results[0]

    def operand(position: int, rows: int, columns: int) -> SSAValue:
        value = op.operands[position]
        return padded(value, larger(tensor_type(value), position, rows, columns))

    def extra(value: SSAValue) -> SSAValue:
        """An operand of the epilogue; dims of 1 broadcast."""
        t = tensor_type(value)
        dims = list(t.dims)
        for axis, whole, by in zip(op.matrix_axes(2), (whole_rows, whole_columns), (m, n), strict=True):
            if t.rank >= -axis and dims[axis] is whole and whole.as_int() != 1:
                dims[axis] = dims[axis] + by
        return padded(value, TensorType.get(dims, t.element_type))

    whole = larger(result, 2, m, n)
    factors = operand(0, m, k), operand(1, k, n)
    extras = [extra(value) for value in op.epilogue_operands]
    made.append(type(op)(op.layout.data, *factors, extras, op.detach_region(op.epilogue), result_type=whole))
    op.add_region(Region())
    if whole != result:
        made.append(SliceOp(made[-1].results[0], [0] * result.rank, result.dims))
    return made


@constraint
def has_odd_rows(op: ContractionOp) -> bool:
    """An operand or the only result has rows of an odd number of two-byte elements, more than 1."""
    return len(op.results) == 1 and tensor_type(op.a).element_type in (f16, bf16) and any(fill_up(op, 2))


@native
def even_rows(r: Rewriter, op: ContractionOp) -> Operation:
    """The product with M, N and K padded to even sizes; a slice cuts the result to its size."""
    *first, last = filled(op, fill_up(op, 2))
    for new in first:
        r.insert(new)
    return r.insert(last)
