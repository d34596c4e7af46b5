"""Ops on sequences of different lengths, packed one after the other: bags of rows, and jagged tensors.

Offsets say where sequences begin: sequence i has the rows from `offsets[i]` up to `offsets[i + 1]`. They must not
decrease and must stay within the data, and no sequence may be longer than its declared maximum. A CPU checks this and
fails. A GPU clamps offsets to these limits, so that it reads nothing outside of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, UnitAttr, i32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)

from ait_mlir.dialects.ait.base import AitOp, PureOp, ResultTypes, same_shape
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dialects.ait.syntax import INT, NUMBER, Flag, Group, Operand, Operands, Prop, Syntax, Word
from ait_mlir.dialects.ait.traits import Cost, HasOffsets, ViewLike
from ait_mlir.dialects.ait.types import Shape, TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, Jagged, Scope, const, minimum

BAG_KINDS = ("sum", "mean", "max")


def _check_integers(op: AitOp, value: SSAValue, what: str) -> TensorType:
    t = op.expect_tensor(value, what)
    if t.rank != 1 or t.element_type not in (i32, i64):
        raise op.fail(f"{what} must be i32 or i64 of one dim, got {t}")
    return t


@irdl_op_definition
class EmbeddingBagOp(HasOffsets, Cost, PureOp):
    """The sum, mean or maximum of the table's rows for each bag of ids.

    ```mlir
    %y = ait.embedding_bag sum %table, %ids, %offsets weights %w padding 0 closed : !ait.tensor<bags x 64 x f16>
    ```

    The table is [rows, width], ids [n] and offsets [bags] are i32 or i64, the result [bags, width]. Bag i has the ids
    from `offsets[i]` up to `offsets[i + 1]`. The last bag ends with the last id; with `closed` the last offset is the
    end of the last bag. `weights`, one for each id, multiply the rows of a sum. Ids equal to `padding` are ignored. A
    bag without ids is 0. An id outside of the table is invalid: a CPU fails, a GPU writes NaN.
    """

    name = "ait.embedding_bag"
    SYNTAX: ClassVar[Syntax] = (
        Word("kind", BAG_KINDS, "a kind, "),
        Operands(("table", "ids", "offsets")),
        Operand("weights", "weights", optional=True),
        Prop("padding", INT, optional=True),
        Flag("closed"),
    )

    kind = prop_def(StringAttr)
    table = operand_def(TensorType)
    ids = operand_def(TensorType)
    offsets = operand_def(TensorType)
    weights = opt_operand_def(TensorType)
    padding = opt_prop_def(IntegerAttr)
    closed = opt_prop_def(UnitAttr)
    output = result_def(TensorType)

    def offset_positions(self) -> tuple[int, ...]:
        return (2,)

    @property
    def bags(self) -> Expr:
        """The number of bags."""
        return tensor_type(self.offsets).dims[0] - (1 if self.closed is not None else 0)

    def rows_read(self) -> Expr:
        """The bytes of the table rows that the ids read."""
        table = tensor_type(self.table)
        return tensor_type(self.ids).dims[0] * TensorType.get(table.dims[1:], table.element_type).byte_size()

    def bytes_read(self, position: int) -> Expr:
        whole = super().bytes_read(position)
        return minimum(whole, self.rows_read()) if position == 0 else whole

    def flops(self) -> Expr:
        return tensor_type(self.ids).dims[0] * tensor_type(self.table).dims[1]

    def infer_result_types(self) -> ResultTypes:
        table = self.expect_tensor(self.table, "the table")
        if table.rank != 2 or not is_float(table.element_type):
            raise self.fail(f"the table must be floating-point of two dims, got {table}")
        ids = _check_integers(self, self.ids, "ids")
        offsets = _check_integers(self, self.offsets, "offsets")
        scope = scope_of(self)
        if self.closed is not None and not scope.positive(offsets.dims[0]):
            raise self.fail(f"with 'closed' there must be an offset; their number is {offsets.dims[0]}")
        if self.weights is not None:
            weights = self.expect_tensor(self.weights, "weights")
            if self.kind.data != "sum":
                raise self.fail(f"weights multiply the rows of a sum; the kind is {self.kind.data}")
            if weights.element_type != table.element_type or not same_shape(weights.dims, ids.dims, scope):
                raise self.fail(
                    f"weights must have the shape {shape_text(ids.dims)} of ids and the table's type "
                    f"{table.element_type}, got {weights}"
                )
        if self.padding is not None and self.padding.value.data < 0:
            raise self.fail(f"padding is an id, at least 0, got {self.padding.value.data}")
        return [TensorType.get((self.bags, table.dims[1]), table.element_type)]


# ** jagged tensors **


def jagged_dim(op: AitOp, t: TensorType, what: str) -> Jagged:
    """The declaration of the leading dim of a type; `VerifyException` unless it is a jagged dim."""
    name = str(t.dims[0]) if t.rank else ""
    scope = scope_of(op)
    found = scope[name].jagged if name in scope else None
    if found is None:
        raise op.fail(
            f"dim 0 of {what} must be a jagged dim, got {t}; "
            "declare one as 'words = jagged(total, batch, 0 to 100)' and make the tensor by ait.make_jagged"
        )
    return found


def check_offsets(op: AitOp, offsets: Sequence[SSAValue], jagged: Jagged) -> None:
    """Raise unless each level has offsets of valid types, and the first level one more than `batch`."""
    if len(offsets) != len(jagged.levels):
        raise op.fail(f"takes offsets for each of the {len(jagged.levels)} levels of {jagged}, got {len(offsets)}")
    types = [_check_integers(op, value, f"offsets {i}") for i, value in enumerate(offsets)]
    scope = scope_of(op)
    for i, t in enumerate(types):
        if t.element_type != types[0].element_type:
            raise op.fail(f"offsets {i} are {t.element_type}, but offsets 0 {types[0].element_type}")
        if not scope.positive(t.dims[0]):
            raise op.fail(f"there are {t.dims[0]} offsets {i}, not proved to be at least 1")
    if not scope.equal(types[0].dims[0], jagged.batch + 1):
        raise op.fail(f"there are {types[0].dims[0]} offsets 0, expected one more than the batch, {jagged.batch + 1}")


class _WithOffsets(HasOffsets):
    """Base of the ops whose operands are a tensor, then offsets."""

    def offset_positions(self) -> tuple[int, ...]:
        return tuple(range(1, len(self.operands)))


@irdl_op_definition
class MakeJaggedOp(_WithOffsets, ViewLike, PureOp):
    """The rows of a tensor as rows of sequences: a view whose leading dim is a declared jagged dim.

    ```mlir
    ait.graph @f(%x: !ait.tensor<total x 64 x f16>, %o: !ait.tensor<(batch + 1) x i32>)
      dims {total = 0 to 6400, batch = 1 to 64, words = jagged(total, batch, 0 to 100)} {
      %y = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 64 x f16>
    ```

    Elementwise ops accept tensors of the same jagged dim only, since these have the same sequences. Ops that use the
    offsets check them.
    """

    name = "ait.make_jagged"
    SYNTAX: ClassVar[Syntax] = (Operands(("input",)), Group("offsets", "offsets"))

    input = operand_def(TensorType)
    offsets = var_operand_def(TensorType)
    output = result_def(TensorType)

    def result_view(self, position: int, operand: Strided, scope: Scope) -> Strided | None:
        return Strided(tensor_type(self.output).dims, operand.offset, operand.strides)

    def infer_result_types(self) -> ResultTypes:
        source = self.expect_tensor(self.input, "the tensor")
        result = self.expect_tensor(self.results[0], "the result")
        jagged = jagged_dim(self, result, "the result")
        check_offsets(self, self.offsets, jagged)
        if not source.rank or not scope_of(self).equal(source.dims[0], jagged.total):
            raise self.fail(f"the tensor has shape {shape_text(source.dims)}, expected {jagged.total} rows, the total")
        return [TensorType.get((result.dims[0], *source.dims[1:]), source.element_type)]


@irdl_op_definition
class JaggedToPaddedOp(_WithOffsets, Cost, PureOp):
    """The sequences of a jagged tensor side by side, each filled up to the declared maximum with `value`.

    ```mlir
    %y = ait.jagged_to_padded %x offsets(%o) value 0.0 : !ait.tensor<batch x 100 x 64 x f16>
    ```
    """

    name = "ait.jagged_to_padded"
    SYNTAX: ClassVar[Syntax] = (Operands(("input",)), Group("offsets", "offsets"), Prop("value", NUMBER))
    WORK: ClassVar[int] = 0
    MOVES_ONLY: ClassVar[bool] = True

    input = operand_def(TensorType)
    offsets = var_operand_def(TensorType)
    value = prop_def(FloatAttr)
    output = result_def(TensorType)

    def infer_result_types(self) -> ResultTypes:
        source = self.expect_tensor(self.input, "the tensor")
        jagged = jagged_dim(self, source, "the tensor")
        check_offsets(self, self.offsets, jagged)
        return [TensorType.get((*padded_dims(jagged), *source.dims[1:]), source.element_type)]


@irdl_op_definition
class PaddedToJaggedOp(_WithOffsets, Cost, PureOp):
    """The sequences of a padded tensor [batch, longest, ...], packed one after the other: inverse of
    `jagged_to_padded`.

    ```mlir
    %y = ait.padded_to_jagged %x offsets(%o) : !ait.tensor<words x 64 x f16>
    ```

    Rows of the result beyond the last offset are 0. With `partial` they are not written: they may have any values, and
    an output of the graph keeps those that its memory had.
    """

    name = "ait.padded_to_jagged"
    SYNTAX: ClassVar[Syntax] = (Operands(("input",)), Group("offsets", "offsets"), Flag("partial"))
    WORK: ClassVar[int] = 0
    MOVES_ONLY: ClassVar[bool] = True

    input = operand_def(TensorType)
    offsets = var_operand_def(TensorType)
    partial = opt_prop_def(UnitAttr)
    output = result_def(TensorType)

    def bytes_read(self, position: int) -> Expr:
        return self.bytes_written(0) if position == 0 else super().bytes_read(position)

    def infer_result_types(self) -> ResultTypes:
        source = self.expect_tensor(self.input, "the tensor")
        result = self.expect_tensor(self.results[0], "the result")
        jagged = jagged_dim(self, result, "the result")
        check_offsets(self, self.offsets, jagged)
        expected = padded_dims(jagged)
        leading = source.dims[: len(expected)]
        if not same_shape(leading, expected, scope_of(self)):
            raise self.fail(
                f"the tensor has shape {shape_text(source.dims)}, expected leading dims {shape_text(expected)}, "
                f"as {result.dims[0]} is declared"
            )
        return [TensorType.get((result.dims[0], *source.dims[len(expected) :]), source.element_type)]


@irdl_op_definition
class JaggedVectorProductOp(HasOffsets, Cost, PureOp):
    """For each sequence and head, the product of a vector with the matrix of the sequence's rows.

    ```mlir
    %y = ait.jagged_vector_product %v, %m offsets(%o) : !ait.tensor<batch x 8 x 64 x f16>
    ```

    The vectors are [batch, heads, longest], the matrices [words, heads, width] of a jagged dim of one level: the result
    at [b, h, :] is the sum over the rows i of sequence b of `v[b, h, i] * m[offsets[b] + i, h, :]`.
    """

    name = "ait.jagged_vector_product"
    SYNTAX: ClassVar[Syntax] = (Operands(("vectors", "matrices")), Group("offsets", "offsets"))

    vectors = operand_def(TensorType)
    matrices = operand_def(TensorType)
    offsets = var_operand_def(TensorType)
    output = result_def(TensorType)

    def offset_positions(self) -> tuple[int, ...]:
        return tuple(range(2, len(self.operands)))

    def flops(self) -> Expr:
        return const(2) * tensor_type(self.matrices).num_elements()

    def infer_result_types(self) -> ResultTypes:
        vectors = self.expect_tensor(self.vectors, "the vectors")
        matrices = self.expect_tensor(self.matrices, "the matrices")
        jagged = jagged_dim(self, matrices, "the matrices")
        check_offsets(self, self.offsets, jagged)
        if len(jagged.levels) != 1 or matrices.rank != 3:
            raise self.fail(f"the matrices must have a jagged dim of one level, heads and a width, got {matrices}")
        expected = (*padded_dims(jagged)[:1], matrices.dims[1], *padded_dims(jagged)[1:])
        if vectors.rank != 3 or not same_shape(vectors.dims, expected, scope_of(self)):
            raise self.fail(
                f"the vectors have shape {shape_text(vectors.dims)}, expected {shape_text(expected)}: "
                "batch, heads, the declared longest sequence"
            )
        if vectors.element_type != matrices.element_type or not is_float(vectors.element_type):
            raise self.fail(
                f"needs vectors and matrices of one floating-point type, got {vectors.element_type} "
                f"and {matrices.element_type}"
            )
        return [TensorType.get((*vectors.dims[:2], matrices.dims[2]), vectors.element_type)]


def padded_dims(jagged: Jagged) -> Shape:
    """The dims that a jagged dim stands for: the batch and the longest sequence of each level."""
    return (jagged.batch, *(longest for _, longest in jagged.levels))


OPS = (EmbeddingBagOp, MakeJaggedOp, JaggedToPaddedOp, PaddedToJaggedOp, JaggedVectorProductOp)
