"""Ops that move elements and compute nothing: reshape, permute, expand, slice, split, concat, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_operand_def, var_result_def

from ait_mlir.dialects.ait.base import AitOp, PureOp, ResultTypes, Value, check_broadcastable, check_declared
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dialects.ait.syntax import INT, INTS, SHAPE, Operands, Prop, Syntax, int_list
from ait_mlir.dialects.ait.traits import AlongDims, Cost, ReadsAll, ViewLike
from ait_mlir.dialects.ait.types import (
    Shape,
    ShapeAttr,
    TensorType,
    as_shape,
    scope_of,
    shape_text,
    tensor_type,
)
from ait_mlir.dims import Expr, Scope, total


class UnaryViewOp(ViewLike, PureOp):
    """Base of views with one input and one result of the same element type."""

    input = operand_def(TensorType)
    output = result_def(TensorType)

    def types(self) -> tuple[TensorType, TensorType]:
        """The types of input and result; raises if their element types differ."""
        source = self.expect_tensor(self.operands[0], "the input")
        target = self.expect_tensor(self.results[0], "the result")
        if source.element_type != target.element_type:
            raise self.fail(f"the result has element type {target.element_type}, but the input {source.element_type}")
        return source, target


@irdl_op_definition
class ReshapeOp(ReadsAll, UnaryViewOp):
    """The same elements in row-major order in another shape with the same number of elements.

    ```mlir
    %y = ait.reshape %x : !ait.tensor<batch x seq x 12 x 64 x f16>
    ```
    """

    name = "ait.reshape"

    def __init__(self, input: Value, dims: Sequence[Expr | int]) -> None:
        self.set_up([input], [TensorType.get(dims, element_of(input))])
        self.infer_result_types()

    def result_view(self, position: int, operand: Strided, scope: Scope) -> Strided | None:
        return operand.reshape(tensor_type(self.output).dims, scope)

    def infer_result_types(self) -> ResultTypes:
        source, target = self.types()
        if not scope_of(self).equal(source.num_elements(), target.num_elements()):
            raise self.fail(
                f"{shape_text(source.dims)} has {source.num_elements()} elements, "
                f"{shape_text(target.dims)} has {target.num_elements()}"
            )
        return [target]


@irdl_op_definition
class ExpandOp(ReadsAll, UnaryViewOp):
    """Broadcast to the result's shape.

    ```mlir
    %y = ait.expand %x : !ait.tensor<batch x 768 x f16>
    ```
    """

    name = "ait.expand"

    def __init__(self, input: Value, dims: Sequence[Expr | int]) -> None:
        self.set_up([input], [TensorType.get(dims, element_of(input))])
        self.infer_result_types()

    def result_view(self, position: int, operand: Strided, scope: Scope) -> Strided | None:
        return operand.expand(tensor_type(self.output).dims)

    def infer_result_types(self) -> ResultTypes:
        source, target = self.types()
        check_broadcastable(self, "the input", source.dims, target.dims)
        return [target]


@irdl_op_definition
class PermuteOp(ReadsAll, UnaryViewOp):
    """Reorder dims: dim i of the result is dim `permutation[i]` of the input.

    ```mlir
    %y = ait.permute %x [0, 2, 1, 3] : !ait.tensor<batch x 12 x seq x 64 x f16>
    ```
    """

    name = "ait.permute"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("permutation", INTS, ""))

    permutation = prop_def(ArrayAttr[IntegerAttr])

    def __init__(self, input: Value, permutation: Sequence[int]) -> None:
        self.set_up([input], permutation=permutation)

    def order(self) -> tuple[int, ...]:
        """The permutation as integers."""
        return int_list(self.permutation)

    def result_view(self, position: int, operand: Strided, scope: Scope) -> Strided | None:
        return operand.permute(self.order())

    def infer_result_types(self) -> ResultTypes:
        source = self.expect_tensor(self.operands[0], "the input")
        order = self.order()
        if sorted(order) != list(range(source.rank)):
            raise self.fail(f"{list(order)} is no permutation of the {source.rank} dims of {shape_text(source.dims)}")
        return [TensorType.get([source.dims[i] for i in order], source.element_type)]


@irdl_op_definition
class SliceOp(AlongDims, UnaryViewOp):
    """The block of the result's shape that starts at `offsets`.

    ```mlir
    %y = ait.slice %x offsets [0, seq - 1, 0] : !ait.tensor<batch x 1 x 768 x f16>
    ```
    """

    name = "ait.slice"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("offsets", SHAPE))

    offsets = prop_def(ShapeAttr)

    def __init__(self, input: Value, offsets: Sequence[Expr | int], dims: Sequence[Expr | int]) -> None:
        self.set_up([input], [TensorType.get(dims, element_of(input))], offsets=offsets)
        self.infer_result_types()

    def along(self, order: Sequence[int]) -> dict[str, Attribute]:
        return self.properties | {"offsets": ShapeAttr(tuple(self.offsets.data[axis] for axis in order))}

    def result_view(self, position: int, operand: Strided, scope: Scope) -> Strided | None:
        return operand.slice(self.offsets.data, tensor_type(self.output).dims)

    def bytes_read(self, position: int) -> Expr:
        return self.bytes_written(0)

    def infer_result_types(self) -> ResultTypes:
        source, target = self.types()
        offsets: Shape = self.offsets.data
        if not len(offsets) == source.rank == target.rank:
            raise self.fail(
                f"{len(offsets)} offsets and a result of rank {target.rank} for an input of rank {source.rank}"
            )
        scope = scope_of(self)
        check_declared(self, scope, TensorType.get(offsets, source.element_type))
        for i, (offset, size, extent) in enumerate(zip(offsets, target.dims, source.dims, strict=True)):
            if not scope.le(_ZERO, offset) or not scope.le(offset + size, extent):
                raise self.fail(f"in dim {i}, {offset} to {offset + size} cannot be proved to lie in 0 to {extent}")
        return [target]


@irdl_op_definition
class SplitOp(AlongDims, ViewLike, PureOp):
    """Cut into consecutive blocks along one dim; the results' sizes add up to the input's.

    ```mlir
    %k, %v = ait.split %x dim 1 : !ait.tensor<batch x 768 x f16>, !ait.tensor<batch x 768 x f16>
    ```
    """

    name = "ait.split"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("dim", INT))

    input = operand_def(TensorType)
    dim = prop_def(IntegerAttr)
    outputs = var_result_def(TensorType)

    def __init__(self, input: Value, dim: int, sizes: Sequence[Expr | int]) -> None:
        t = tensor_type(SSAValue.get(input))
        types = [TensorType.get((*t.dims[:dim], s, *t.dims[dim + 1 :]), t.element_type) for s in sizes]
        self.set_up([input], [types], dim=dim)
        self.infer_result_types()

    def result_view(self, position: int, operand: Strided, scope: Scope) -> Strided | None:
        return _piece(operand, self.dim.value.data, [tensor_type(r).dims for r in self.results], position)

    def infer_result_types(self) -> ResultTypes:
        source = self.expect_tensor(self.operands[0], "the input")
        axis = _checked_axis(self, self.dim, source)
        outputs = [self.expect_tensor(r, f"result {i}") for i, r in enumerate(self.results)]
        if not outputs:
            raise self.fail("needs at least one result")
        for i, t in enumerate(outputs):
            if t.rank != source.rank:
                raise self.fail(f"result {i} has rank {t.rank}, but the input has {source.rank}")
        sizes = [t.dims[axis] for t in outputs]
        if not scope_of(self).equal(total(sizes), source.dims[axis]):
            raise self.fail(f"sizes {shape_text(sizes)} do not add up to dim {axis} of the input, {source.dims[axis]}")
        return [TensorType.get((*source.dims[:axis], s, *source.dims[axis + 1 :]), source.element_type) for s in sizes]


@irdl_op_definition
class ConcatOp(AlongDims, ReadsAll, ViewLike, PureOp):
    """Join along one dim; the other dims agree.

    ```mlir
    %y = ait.concat %a, %b dim 1 : !ait.tensor<batch x 3072 x f16>
    ```
    """

    name = "ait.concat"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("dim", INT))

    inputs = var_operand_def(TensorType)
    dim = prop_def(IntegerAttr)
    output = result_def(TensorType)

    def __init__(self, inputs: Sequence[SSAValue], dim: int) -> None:
        self.set_up([inputs], dim=dim)

    def operand_view(self, position: int, result: Strided, scope: Scope) -> Strided:
        return _piece(result, self.dim.value.data, [tensor_type(v).dims for v in self.operands], position)

    def infer_result_types(self) -> ResultTypes:
        if not self.operands:
            raise self.fail("needs at least one operand")
        inputs = [self.expect_tensor(v, f"operand {i}") for i, v in enumerate(self.operands)]
        first = inputs[0]
        axis = _checked_axis(self, self.dim, first)
        scope = scope_of(self)
        for i, t in enumerate(inputs[1:], 1):
            if t.element_type != first.element_type:
                raise self.fail(
                    f"operand {i} has element type {t.element_type}, but operand 0 has {first.element_type}"
                )
            if t.rank != first.rank or not all(
                j == axis or scope.equal(x, y) for j, (x, y) in enumerate(zip(t.dims, first.dims, strict=True))
            ):
                raise self.fail(
                    f"operand {i} has shape {shape_text(t.dims)}, but operand 0 has {shape_text(first.dims)}; "
                    f"they may differ in dim {axis} only"
                )
        size = total([t.dims[axis] for t in inputs])
        return [TensorType.get((*first.dims[:axis], size, *first.dims[axis + 1 :]), first.element_type)]


def _piece(whole: Strided, axis: int, pieces: Sequence[Shape], position: int) -> Strided:
    """The view of piece `position` of a tensor that consists of `pieces` joined along an axis."""
    at = total([dims[axis] for dims in pieces[:position]])
    rank = len(whole.dims)
    return whole.slice(tuple(at if i == axis else _ZERO for i in range(rank)), pieces[position])


def _checked_axis(op: AitOp, dim: IntegerAttr, t: TensorType) -> int:
    axis = dim.value.data
    if not 0 <= axis < t.rank:
        raise op.fail(f"dim {axis} is out of range for shape {shape_text(t.dims)}")
    return axis


_ZERO = as_shape([0])[0]


def to_last(rank: int) -> list[int]:
    """The permutation from [N, C, sizes...] to [N, sizes..., C]."""
    return [0, *range(2, rank), 1]


def to_first(rank: int) -> list[int]:
    """The permutation from [N, sizes..., C] to [N, C, sizes...]."""
    return [0, rank - 1, *range(1, rank - 1)]


@irdl_op_definition
class CopiesOp(Cost, PureOp):
    """Each operand unchanged: result i has the elements of operand i. All elements have one size in bytes.

    With one launch of this op a program moves many pieces, such as the operands of a concatenation.

    ```mlir
    %a, %b = ait.copies %x, %y : !ait.tensor<batch x 64 x f16>, !ait.tensor<batch x 32 x bf16>
    ```
    """

    name = "ait.copies"
    SYNTAX: ClassVar[Syntax] = (Operands(),)
    WORK: ClassVar[int] = 0
    MOVES_ONLY: ClassVar[bool] = True

    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    def __init__(self, inputs: Sequence[SSAValue]) -> None:
        self.set_up([inputs], [[value.type for value in inputs]])
        self.infer_result_types()

    def infer_result_types(self) -> ResultTypes:
        if not self.operands:
            raise self.fail("needs at least one operand")
        types = [self.expect_tensor(value, f"operand {i}") for i, value in enumerate(self.operands)]
        size = BY_IR[types[0].element_type].bytes
        for i, t in enumerate(types[1:], 1):
            if (other := BY_IR[t.element_type].bytes) != size:
                raise self.fail(
                    f"the elements of operand {i} ({t.element_type}) have {other} bytes, "
                    f"but those of operand 0 ({types[0].element_type}) have {size}"
                )
        return types


def element_of(value: Value) -> Attribute:
    """The element type of a tensor; another type stays as it is, and the verifier refuses it."""
    type_ = SSAValue.get(value).type
    return type_.element_type if isinstance(type_, TensorType) else type_


def filling(value: SSAValue) -> ConstantOp | None:
    """The constant of one number that fills a tensor: itself, or a constant of which the tensor is a view."""
    while isinstance(owner := value.owner, UnaryViewOp | SplitOp):
        value = owner.operands[0]
    return owner if isinstance(owner, ConstantOp) and owner.splat() is not None else None


OPS = (ReshapeOp, ExpandOp, PermuteOp, SliceOp, SplitOp, ConcatOp, CopiesOp)
