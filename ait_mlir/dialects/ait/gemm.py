"""Contractions: `gemm` and `bmm` in every layout with an optional epilogue region, `gated_gemm` with a required one,
`rotated_gemm`, whose columns are heads, `stored_gemm`, whose weight is stored in few bits, and `scaled_gemm`, whose
factors have scales of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, UnitAttr, bf16, f16, f32, f64, i8, i32
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from ait_mlir.dialects.ait.base import PureOp, ResultTypes, Value, broadcast_shapes, check_broadcastable
from ait_mlir.dialects.ait.dtypes import accumulator_type, is_byte, is_computed_float, is_float, is_float8, ui8
from ait_mlir.dialects.ait.epilogue import EPILOGUE, MAX_RESULTS, infer_results, infer_through_epilogue
from ait_mlir.dialects.ait.syntax import INT, TF32, Flag, Operand, Operands, Prop, Syntax, Word
from ait_mlir.dialects.ait.traits import AffineOperands, ContractionExtents, Cost, Extents, HasEpilogue
from ait_mlir.dialects.ait.types import Shape, TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, ceildiv, const, floordiv, product

LAYOUTS = ("rrr", "rrc", "rcr", "rcc", "crr", "crc", "ccr", "ccc")


class ContractionOp(HasEpilogue, ContractionExtents, AffineOperands, PureOp):
    """Base: `layout` says how A, B and the result are stored, `r` row-major or `c` column-major.

    The epilogue region maps the accumulator (first argument, in the compute type) and the elements of the epilogue
    operands, which broadcast to the result's shape, to the value that is rounded once to the result's element type.
    If the epilogue yields several values, all after the first are the results `further`. With `tf32`, a CUDA card may
    round factors of f32 to TF32, as for a convolution.

    Both operands have one type of floats, or each has integers of 8 bits, i8 or ui8, or each has floats of 8 bits,
    f8E4M3FN or f8E5M2. Products of integers are added in i32, which wraps, those of 8-bit floats in f32; without an
    epilogue the result has this type. An epilogue may yield numbers of 8 bits, also floats.
    """

    SYNTAX: ClassVar[Syntax] = (Word("layout", LAYOUTS, "a layout, "), TF32, Operands(("a", "b")), EPILOGUE)
    MULTIPLIES_BYTES: ClassVar[bool] = True
    """Whether the operands may be integers or floats of 8 bits."""
    STORES_BYTES: ClassVar[bool] = True

    a = operand_def(TensorType)
    b = operand_def(TensorType)
    layout = prop_def(StringAttr)
    tf32 = opt_prop_def(UnitAttr)
    output = result_def(TensorType)
    further = var_result_def(TensorType)

    def __init__(
        self,
        layout: str,
        a: Value,
        b: Value,
        epilogue_operands: Sequence[SSAValue] = (),
        epilogue: Region | None = None,
        result_type: Attribute | None = None,
        further_types: Sequence[Attribute] = (),
    ) -> None:
        results = None if result_type is None else [result_type, further_types]
        self.set_up([a, b, epilogue_operands], results, [epilogue or Region()], layout=layout)

    def split_a(self) -> tuple[Shape, Expr, Expr]:
        """Leading dims, M and K of operand A. The leading dims of a gemm belong to M."""
        dims = tensor_type(self.a).dims
        rows, columns = dims[-2], dims[-1]
        return (dims[:-2], rows, columns) if self.layout.data[0] == "r" else (dims[:-2], columns, rows)

    def split_b(self) -> tuple[Shape, Expr, Expr]:
        """Leading dims, K and N of operand B."""
        dims = tensor_type(self.b).dims
        rows, columns = dims[-2], dims[-1]
        return (dims[:-2], rows, columns) if self.layout.data[1] == "r" else (dims[:-2], columns, rows)

    def matrix_axes(self, position: int) -> tuple[int, int]:
        return (-2, -1) if self.layout.data[position] == "r" else (-1, -2)

    def extents(self) -> Extents:
        rows, columns = self.matrix_axes(2)
        dims = tensor_type(self.output).dims
        return Extents(dims[:-2], dims[rows], dims[columns], tensor_type(self.a).dims[self.matrix_axes(0)[1]])

    def infer_batch(self, a: Shape, b: Shape) -> Shape:
        raise NotImplementedError

    def infer_columns(self, n: Expr) -> Expr:
        """The number of columns of the result, given the columns of B."""
        return n

    def infer_result_types(self) -> ResultTypes:
        a = self.expect_tensor(self.operands[0], "A")
        b = self.expect_tensor(self.operands[1], "B")
        if a.rank < 2 or b.rank < 2:
            raise self.fail(f"A and B need at least 2 dims, got {shape_text(a.dims)} and {shape_text(b.dims)}")
        self.check_elements(a.element_type, b.element_type)
        batch_a, m, k = self.split_a()
        batch_b, k_b, n = self.split_b()
        if k is not k_b and not scope_of(self).equal(k, k_b):
            raise self.fail(
                f"A sums over {k} (shape {shape_text(a.dims)}), but B over {k_b} (shape {shape_text(b.dims)}), "
                f"layout {self.layout.data}"
            )
        batch = self.infer_batch(batch_a, batch_b)
        columns = self.infer_columns(n)
        shape = (*batch, m, columns) if self.layout.data[2] == "r" else (*batch, columns, m)
        is_narrow = is_byte(a.element_type) or is_float8(a.element_type)
        sums = accumulator_type(a.element_type) if is_narrow else a.element_type
        return infer_results(self, TensorType.get(shape, sums))

    def check_elements(self, a: Attribute, b: Attribute) -> None:
        """Raise `VerifyException` for element types of A and B that are not multiplied."""
        if self.MULTIPLIES_BYTES and ((is_byte(a) and is_byte(b)) or (is_float8(a) and is_float8(b))):
            return
        if a != b:
            raise self.fail(f"B has element type {b}, but A has {a}")
        if not is_computed_float(a):
            also = ", or integers or floats of 8 bits" if self.MULTIPLIES_BYTES else ""
            raise self.fail(f"needs a floating-point type{also}, got {a}")

    def computed_values(self) -> Sequence[SSAValue]:
        return (*self.operands[2:], *(r for r in self.results if not is_float8(tensor_type(r).element_type)))


class MatrixOp(ContractionOp):
    """Base: B is one matrix, and the leading dims of A belong to M."""

    def extents(self) -> Extents:
        e = super().extents()
        return Extents((), product([*e.batch, e.m]), e.n, e.k)

    def infer_batch(self, a: Shape, b: Shape) -> Shape:
        if b:
            raise self.fail(f"B has rank {len(b) + 2}, expected 2; ait.bmm multiplies batches")
        if a and (self.layout.data[0] == "c" or self.layout.data[2] == "c"):
            raise self.fail(f"A has rank {len(a) + 2}; with layout {self.layout.data} it must have rank 2")
        return a


@irdl_op_definition
class GemmOp(MatrixOp):
    """Matrix product. A is `r`: [..., M, K] or `c`: [K, M]; B is `r`: [K, N] or `c`: [N, K]; the result is `r`: [...,
    M, N] or `c`: [N, M].

    ```mlir
    %y = ait.gemm rcr %x, %w epilogue(%b) {
    ^bb0(%acc: f32, %bias: f32):
      %s = ait.add %acc, %bias : f32
      ait.yield %s : f32
    } : !ait.tensor<batch x 3072 x f16>
    ```
    """

    name = "ait.gemm"
    MAX_RESULTS: ClassVar[int] = MAX_RESULTS


@irdl_op_definition
class GatedGemmOp(MatrixOp):
    """A function of both halves of a product. The result has n columns and B has 2 n. The epilogue computes column j of
    the result from columns j and n + j of A B; it takes both sums. The result is row-major.

    ```mlir
    %y = ait.gated_gemm rcr %x, %w epilogue() {
    ^bb0(%gate: f32, %up: f32):
      %s = ait.silu %gate : f32
      %p = ait.mul %s, %up : f32
      ait.yield %p : f32
    } : !ait.tensor<batch x 11008 x f16>
    ```
    """

    name = "ait.gated_gemm"
    SUMS: ClassVar[int] = 2
    MULTIPLIES_BYTES: ClassVar[bool] = False

    def infer_columns(self, n: Expr) -> Expr:
        if not self.epilogue.blocks:
            raise self.fail("has no epilogue, which says what becomes of the two halves of the product")
        if self.layout.data[2] == "c":
            raise self.fail(f"layout {self.layout.data} stores the result column-major; a gated product is row-major")
        if not scope_of(self).divisible(n, 2):
            raise self.fail(f"B has {n} columns, which are not proved to be even; a gated product has two halves")
        return floordiv(n, 2)


@irdl_op_definition
class RotatedGemmOp(Cost, PureOp):
    """A product x w^T whose first columns are heads, which are rotated (rotary position embedding, arXiv:2104.09864).

    x is [..., K], w [N, K], the result [..., N]. Its first `heads` times `size` columns are heads of `size` columns.
    Let a be column i of the first half of a head and b of the second: they become a cosines[i] - b sines[i] and
    b cosines[i] + a sines[i]. The cosines and sines are [..., size / 2] and broadcast to the rows. The other columns
    are not rotated.

    ```mlir
    %y = ait.rotated_gemm %x, %w cosines %c sines %s heads 10 size 64 : !ait.tensor<batch x seq x 768 x f16>
    ```
    """

    name = "ait.rotated_gemm"
    SYNTAX: ClassVar[Syntax] = (
        Operands(("a", "b")),
        Operand("cosines", "cosines"),
        Operand("sines", "sines"),
        Prop("heads", INT),
        Prop("size", INT),
    )

    a = operand_def(TensorType)
    b = operand_def(TensorType)
    cosines = operand_def(TensorType)
    sines = operand_def(TensorType)
    heads = prop_def(IntegerAttr)
    size = prop_def(IntegerAttr)
    output = result_def(TensorType)

    def __init__(self, a: Value, b: Value, cosines: Value, sines: Value, heads: int, size: int) -> None:
        self.set_up([a, b, cosines, sines], heads=heads, size=size)

    @property
    def turned(self) -> int:
        """The number of rotated columns."""
        return self.heads.value.data * self.size.value.data

    def flops(self) -> Expr:
        rows = product(tensor_type(self.a).dims[:-1])
        n, k = tensor_type(self.b).dims
        return rows * (const(2) * n * k + 3 * self.turned)

    def infer_result_types(self) -> ResultTypes:
        a, b = self.expect_tensor(self.operands[0], "A"), self.expect_tensor(self.operands[1], "B")
        heads, size, scope = self.heads.value.data, self.size.value.data, scope_of(self)
        if a.rank < 2 or b.rank != 2:
            raise self.fail(f"A needs at least 2 dims and B has 2, got {shape_text(a.dims)} and {shape_text(b.dims)}")
        if a.element_type != b.element_type:
            raise self.fail(f"B has element type {b.element_type}, but A has {a.element_type}")
        if not is_float(a.element_type):
            raise self.fail(f"needs a floating-point type, got {a.element_type}")
        if not scope.equal(a.dims[-1], b.dims[1]):
            raise self.fail(f"A sums over {a.dims[-1]} (shape {shape_text(a.dims)}), but B over {b.dims[1]}")
        if heads < 1 or size < 2 or size % 2:
            raise self.fail(f"has {heads} heads of {size} columns; expected at least 1, of an even number of columns")
        if not scope.le(const(heads * size), b.dims[0]):
            raise self.fail(f"{heads} heads of {size} columns are more than the {b.dims[0]} columns of the product")
        for what, value in (("cosines", self.cosines), ("sines", self.sines)):
            t = self.expect_tensor(value, f"the {what}")
            if t.element_type != a.element_type:
                raise self.fail(f"the {what} have element type {t.element_type}, but A has {a.element_type}")
            if not t.rank or not scope.equal(t.dims[-1], const(size // 2)):
                raise self.fail(f"the {what} have shape {shape_text(t.dims)}, expected {size // 2} in the last dim")
            check_broadcastable(self, f"the rows of the {what}", t.dims[:-1], a.dims[:-1])
        return [TensorType.get((*a.dims[:-1], b.dims[0]), a.element_type)]


BATCH_LOOPS = 2
"""The most loops over the batch of a product that all kernels have."""


def batch_loops(*batches: Shape) -> int:
    """The loops over the batch of a product of contiguous tensors, whose batch dims broadcast; neighbouring dims are
    one loop if the same tensors have elements along both.
    """
    rank = max(map(len, batches))
    aligned = [(const(1),) * (rank - len(dims)) + tuple(dims) for dims in batches]
    repeated = [tuple(dim.as_int() == 1 for dim in dims) for dims in zip(*aligned, strict=True)]
    return len([kind for kind, _ in groupby(r for r in repeated if not all(r))])


@irdl_op_definition
class BmmOp(ContractionOp):
    """Batched matrix product over leading dims, which broadcast where one is a literal 1 or missing.

    ```mlir
    %s = ait.bmm rcr %q, %k : !ait.tensor<batch x 12 x seq x seq x f16>
    ```
    """

    name = "ait.bmm"
    MAX_RESULTS: ClassVar[int] = MAX_RESULTS

    def infer_batch(self, a: Shape, b: Shape) -> Shape:
        return broadcast_shapes(self, ("the batch of A", "the batch of B"), (a, b))


@irdl_op_definition
class StoredGemmOp(HasEpilogue, ContractionExtents, PureOp):
    """A product with a weight that stays as it is stored: x w^T, where w = (numbers - zero) * scale.

    x is [M, K] of floats. The numbers are [N, K] of i8 or ui8, or [N, K / 2] of ui8 with two numbers of 4 bits in each
    byte, the lower half first: ui4, or i4 with `signed`. If K is 1, numbers have 4 bits only with `signed`. `scale` has
    a float, and `zero` an integer, for each group of numbers along K: they are [N, K / group], rounded up.

    ```mlir
    %y = ait.stored_gemm %x by %w scale %s zero %z group 128 : !ait.tensor<batch x 11008 x f16>
    %v = ait.stored_gemm %x by %w scale %s group 128 signed : !ait.tensor<batch x 11008 x f16>
    ```
    """

    name = "ait.stored_gemm"
    SYNTAX: ClassVar[Syntax] = (
        Operand("a"),
        Operand("numbers", "by"),
        Operand("scale", "scale"),
        Operand("zero", "zero", optional=True),
        Prop("group", INT),
        Flag("signed"),
        EPILOGUE,
    )
    SEGMENTED: ClassVar[bool] = True

    a = operand_def(TensorType)
    numbers = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero = opt_operand_def(TensorType)
    epilogue_operands = var_operand_def(TensorType)
    group = prop_def(IntegerAttr)
    signed = opt_prop_def(UnitAttr)
    output = result_def(TensorType)
    epilogue = region_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self, a: Value, numbers: Value, scale: Value, zero: Value | None, group: int, signed: bool = False
    ) -> None:
        self.set_up([a, numbers, scale, zero, []], regions=[Region()], group=group, signed=signed)

    def properties_with(self, extras: int) -> dict[str, Attribute]:
        sizes = [1, 1, 1, int(self.zero is not None), extras]
        return {**self.properties, "operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)}

    @property
    def bits(self) -> int:
        """The bits of a stored number: 4 or 8."""
        is_whole = tensor_type(self.numbers).dims[1] is tensor_type(self.a).dims[1]
        return 8 if is_whole and self.signed is None else 4

    @property
    def is_signed(self) -> bool:
        """Whether the stored numbers have a sign."""
        return self.signed is not None or tensor_type(self.numbers).element_type == i8

    def extents(self) -> Extents:
        m, k = tensor_type(self.a).dims
        return Extents((), m, tensor_type(self.numbers).dims[0], k)

    def infer_result_types(self) -> ResultTypes:
        a, numbers = self.expect_tensor(self.a, "A"), self.expect_tensor(self.numbers, "the numbers")
        if a.rank != 2 or numbers.rank != 2:
            raise self.fail(f"A and the numbers have 2 dims, got {shape_text(a.dims)} and {shape_text(numbers.dims)}")
        if not is_computed_float(a.element_type) or a.element_type == f64:
            raise self.fail(f"A has element type {a.element_type}, expected f16, bf16 or f32")
        if not is_byte(numbers.element_type):
            raise self.fail(f"the numbers have element type {numbers.element_type}, expected i8 or ui8")
        k, n, group = a.dims[1], numbers.dims[0], self.group.value.data
        halves = ceildiv(k, const(2))
        if numbers.dims[1] is not k and (numbers.dims[1] is not halves or numbers.element_type != ui8):
            raise self.fail(
                f"the numbers have shape {shape_text(numbers.dims)} of {numbers.element_type} for rows of {k}: "
                f"expected {k} in the last dim, or {halves} of ui8, which hold two each"
            )
        if self.signed is not None and (numbers.dims[1] is not halves or numbers.element_type != ui8):
            raise self.fail("'signed' is for numbers of 4 bits; those of 8 bits have i8 or ui8")
        if group < 1 or (group % 2 and self.bits == 4 and not scope_of(self).le(k, group)):
            raise self.fail(f"group is {group}, expected at least 1, and even for numbers of 4 bits")
        places = (n, ceildiv(k, const(group)))
        scale = self.expect_tensor(self.scale, "the scale")
        if scale.element_type not in (f16, bf16, f32):
            raise self.fail(f"the scale has element type {scale.element_type}, expected f16, bf16 or f32")
        zero = None if self.zero is None else self.expect_tensor(self.zero, "the zero point")
        if zero is not None and not is_byte(zero.element_type):
            raise self.fail(f"the zero point has element type {zero.element_type}, expected i8 or ui8")
        for what, t in (("scale", scale), ("zero point", zero)):
            if t is not None and t.dims != places:
                raise self.fail(
                    f"the {what} has shape {shape_text(t.dims)}, expected {shape_text(places)}: a number for each "
                    f"group of {group} along {k}"
                )
        return [infer_through_epilogue(self, TensorType.get((a.dims[0], n), a.element_type))]


@irdl_op_definition
class ScaledGemmOp(HasEpilogue, ContractionExtents, PureOp):
    """A product of 8-bit floats with scales of blocks: a b^T, where both are stored numbers times their scales.

    a is [M, K] and b [N, K] of f8E4M3FN or f8E5M2, in any combination. The scales are f32. `rows` has one for each
    `group` numbers along a row of a: [M, K / group]. `columns` has one for `block` rows of b and `group` numbers along
    them: [N / block, K / group]. Both are rounded up. The products of a group are added in f32, scaled, and added to
    those of the other groups. Without an epilogue the result is [M, N] of f32. An epilogue may yield numbers of 8 bits.

    ```mlir
    %y = ait.scaled_gemm %x by %w rows %s columns %t group 128 block 128 : !ait.tensor<batch x 11008 x f32>
    ```
    """

    name = "ait.scaled_gemm"
    SYNTAX: ClassVar[Syntax] = (
        Operand("a"),
        Operand("b", "by"),
        Operand("rows", "rows"),
        Operand("columns", "columns"),
        Prop("group", INT),
        Prop("block", INT),
        EPILOGUE,
    )

    STORES_BYTES: ClassVar[bool] = True

    a = operand_def(TensorType)
    b = operand_def(TensorType)
    rows = operand_def(TensorType)
    columns = operand_def(TensorType)
    epilogue_operands = var_operand_def(TensorType)
    group = prop_def(IntegerAttr)
    block = prop_def(IntegerAttr)
    output = result_def(TensorType)
    epilogue = region_def()

    def __init__(self, a: Value, b: Value, rows: Value, columns: Value, group: int, block: int) -> None:
        self.set_up([a, b, rows, columns, []], regions=[Region()], group=group, block=block)

    def computed_values(self) -> Sequence[SSAValue]:
        return (*self.operands[2:], *(r for r in self.results if not is_float8(tensor_type(r).element_type)))

    def extents(self) -> Extents:
        m, k = tensor_type(self.a).dims
        return Extents((), m, tensor_type(self.b).dims[0], k)

    def infer_result_types(self) -> ResultTypes:
        a, b = self.expect_tensor(self.a, "A"), self.expect_tensor(self.b, "B")
        scope, group, block = scope_of(self), self.group.value.data, self.block.value.data
        if a.rank != 2 or b.rank != 2:
            raise self.fail(f"A and B have 2 dims, got {shape_text(a.dims)} and {shape_text(b.dims)}")
        for which, t in (("A", a), ("B", b)):
            if not is_float8(t.element_type):
                raise self.fail(f"{which} has element type {t.element_type}, expected f8E4M3FN or f8E5M2")
        (m, k), (n, k_b) = a.dims, b.dims
        if not scope.equal(k, k_b):
            shapes = shape_text(a.dims), shape_text(b.dims)
            raise self.fail(f"A sums over {k} (shape {shapes[0]}), but B over {k_b} (shape {shapes[1]})")
        if group < 1 or block < 1:
            raise self.fail(f"group is {group} and block is {block}, expected at least 1")
        groups = ceildiv(k, const(group))
        for what, value, want, of in (
            ("rows", self.rows, (m, groups), f"{group} along a row of A"),
            ("columns", self.columns, (ceildiv(n, const(block)), groups), f"{group} along {block} rows of B"),
        ):
            t = self.expect_tensor(value, f"the scales of {what}")
            if t.element_type != f32:
                raise self.fail(f"the scales of {what} have element type {t.element_type}, expected f32")
            if t.rank != 2 or not all(scope.equal(x, y) for x, y in zip(t.dims, want, strict=True)):
                raise self.fail(
                    f"the scales of {what} have shape {shape_text(t.dims)}, expected {shape_text(want)}: a number for "
                    f"each {of}"
                )
        return [infer_through_epilogue(self, TensorType.get((m, n), f32))]


OPS = (GemmOp, GatedGemmOp, RotatedGemmOp, BmmOp, StoredGemmOp, ScaledGemmOp)
