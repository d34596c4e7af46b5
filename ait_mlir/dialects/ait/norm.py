"""Ops that reduce over each row and keep its shape: softmax, layer_norm, rms_norm and group_norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, UnitAttr, i32
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
    traits_def,
    var_operand_def,
    var_result_def,
)

from ait_mlir.dialects.ait.base import AitOp, PureOp, ResultTypes, Value, check_broadcastable
from ait_mlir.dialects.ait.bits import known_number
from ait_mlir.dialects.ait.dtypes import compute_type, is_float
from ait_mlir.dialects.ait.epilogue import EPILOGUE, infer_through_epilogue
from ait_mlir.dialects.ait.region import check_region, check_yield
from ait_mlir.dialects.ait.syntax import INT, NUMBER, Flag, Operand, Operands, Prop, RegionClause, Syntax
from ait_mlir.dialects.ait.traits import AlongDims, Cost, HasEpilogue, Norm, Pure, ReadsAll, RowLike
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType, scope_of, shape_text, tensor_type


@irdl_op_definition
class SoftmaxOp(AlongDims, RowLike, PureOp):
    """Normalise exp(x) along one dim so that it sums to one; the maximum is subtracted first.

    ```mlir
    %y = ait.softmax %x dim 3 : !ait.tensor<batch x 12 x seq x seq x f16>
    ```
    """

    name = "ait.softmax"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("dim", INT))
    WORK: ClassVar[int] = 5

    input = operand_def(TensorType)
    dim = prop_def(IntegerAttr)
    output = result_def(TensorType)

    def __init__(self, input: Value, dim: int) -> None:
        self.set_up([input], dim=dim)

    def infer_result_types(self) -> ResultTypes:
        t = self.expect_tensor(self.operands[0], "the input")
        if not 0 <= self.dim.value.data < t.rank:
            raise self.fail(f"dim {self.dim.value.data} is out of range for shape {shape_text(t.dims)}")
        if not is_float(t.element_type):
            raise self.fail(f"needs a floating-point type, got {t.element_type}")
        return [t]


class NormOp(HasEpilogue, RowLike, AitOp):
    """Base of norms over the trailing `axes` dims, with optional scale and bias of the row's shape.

    With a prologue, the op normalises the region's first yield. Further yields are further results, so `x + residual`
    can be computed once, normalised and returned. With an epilogue, the region maps the normalised, scaled and shifted
    element to the first result: `x * sigmoid(layer_norm(x))`.
    """

    SYNTAX: ClassVar[Syntax] = (
        Operand("input"),
        Operand("scale", "scale", optional=True),
        Operand("bias", "bias", optional=True),
        Prop("axes", INT),
        Prop("eps", NUMBER),
        RegionClause("prologue_operands", "prologue"),
        EPILOGUE,
    )
    SEGMENTED: ClassVar[bool] = True

    input = operand_def(TensorType)
    scale = opt_operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    prologue_operands = var_operand_def(TensorType)
    epilogue_operands = var_operand_def(TensorType)
    axes = prop_def(IntegerAttr)
    eps = prop_def(FloatAttr | ShapeAttr)
    outputs = var_result_def(TensorType)
    prologue = region_def()
    epilogue = region_def()
    traits = traits_def(Norm(), Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        input: Value,
        scale: Value | None,
        bias: Value | None,
        axes: int,
        eps: float | ShapeAttr,
        prologue_operands: Sequence[SSAValue] = (),
        prologue: Region | None = None,
        result_types: Sequence[Attribute] | None = None,
    ) -> None:
        results = [result_types or [SSAValue.get(input).type]]
        regions = [prologue or Region(), Region()]
        self.set_up([input, scale, bias, prologue_operands, ()], results, regions, axes=axes, eps=eps)
        if result_types is None:
            self.infer_result_types()

    def properties_with(self, extras: int) -> dict[str, Attribute]:
        own = [1, int(self.scale is not None), int(self.bias is not None), len(self.prologue_operands)]
        return {**self.properties, "operandSegmentSizes": DenseArrayBase.from_list(i32, [*own, extras])}

    def with_epilogue(self, operands: Sequence[SSAValue], epilogue: Region, element_type: Attribute) -> Self:
        first, *further = self.result_types
        assert isinstance(first, TensorType)
        return type(self).create(
            operands=[*self.own_operands, *operands],
            result_types=[TensorType.get(first.dims, element_type), *further],
            properties=self.properties_with(len(operands)),
            attributes=dict(self.attributes),
            regions=[self.prologue.clone(), epilogue],
        )

    def reduced_axes(self) -> tuple[int, ...]:
        rank = tensor_type(self.input).rank
        return tuple(range(rank - self.axes.value.data, rank))

    def infer_result_types(self) -> ResultTypes:
        t = self.expect_tensor(self.input, "the input")
        axes = self.axes.value.data
        if not 1 <= axes <= t.rank:
            raise self.fail(f"axes is {axes}, expected 1 to {t.rank} for shape {shape_text(t.dims)}")
        if not is_float(t.element_type):
            raise self.fail(f"needs a floating-point type, got {t.element_type}")
        if (eps := known_number(self.eps)) is not None and not eps >= 0:
            raise self.fail(f"eps must not be negative, got {eps}")
        scope = scope_of(self)
        row = t.dims[t.rank - axes :]
        for what, value in (("scale", self.scale), ("bias", self.bias)):
            if value is None:
                continue
            v = self.expect_tensor(value, what)
            if len(v.dims) != len(row) or not all(scope.equal(x, y) for x, y in zip(v.dims, row, strict=True)):
                raise self.fail(f"{what} has shape {shape_text(v.dims)}, expected {shape_text(row)}")
            if v.element_type != t.element_type:
                raise self.fail(f"{what} has element type {v.element_type}, but the input has {t.element_type}")
        if not self.prologue.blocks:
            if len(self.prologue_operands) or len(self.results) != 1:
                raise self.fail("has prologue operands or several results but no prologue region")
            return [self._through_epilogue(t)]
        extras = [self.expect_tensor(v, f"prologue operand {i}") for i, v in enumerate(self.prologue_operands)]
        for i, e in enumerate(extras):
            check_broadcastable(self, f"prologue operand {i}", e.dims, t.dims)
        arguments = [compute_type(x.element_type) for x in (t, *extras)]
        block = check_region(self, self.prologue, arguments, "prologue")
        outputs = [self.expect_tensor(r, f"result {i}") for i, r in enumerate(self.results)]
        normalised = t if self.epilogue.blocks else TensorType.get(t.dims, outputs[0].element_type)
        yields = [normalised, *outputs[1:]]
        check_yield(self, block.last_op, [compute_type(o.element_type) for o in yields])
        further = [TensorType.get(t.dims, o.element_type) for o in outputs[1:]]
        return [self._through_epilogue(normalised), *further]

    def _through_epilogue(self, normalised: TensorType) -> TensorType:
        """The type of the first result; raises if the epilogue changes the compute type of rows."""
        result = infer_through_epilogue(self, normalised)
        if compute_type(result.element_type) != compute_type(normalised.element_type):
            raise self.fail(
                f"the epilogue yields {compute_type(result.element_type)}, but rows are computed in "
                f"{compute_type(normalised.element_type)}"
            )
        return result


@irdl_op_definition
class LayerNormOp(NormOp):
    """Normalise over the trailing `axes` dims to mean 0 and variance 1, then scale and shift (arXiv:1607.06450).

    ```mlir
    %y, %sum = ait.layer_norm %x scale %g bias %b axes 1 eps 1e-05 prologue(%r) {
    ^bb0(%0: f32, %1: f32):
      %2 = ait.add %0, %1 : f32
      ait.yield %2, %2 : f32, f32
    } : !ait.tensor<batch x 768 x f16>, !ait.tensor<batch x 768 x f16>
    ```
    """

    name = "ait.layer_norm"
    WORK: ClassVar[int] = 8


@irdl_op_definition
class RmsNormOp(NormOp):
    """Divide by the root of the mean square over the trailing `axes` dims, then scale and shift (arXiv:1910.07467).

    `eps` is added to the mean of the squares. With `bounded` the mean is max(mean, `eps`) instead.

    ```mlir
    %y, %sum = ait.rms_norm %x scale %g axes 1 eps 1e-05 prologue(%r) {
    ^bb0(%0: f32, %1: f32):
      %2 = ait.add %0, %1 : f32
      ait.yield %2, %2 : f32, f32
    } : !ait.tensor<batch x 4096 x f16>, !ait.tensor<batch x 4096 x f16>
    ```
    """

    name = "ait.rms_norm"
    SYNTAX: ClassVar[Syntax] = (*NormOp.SYNTAX[:5], Flag("bounded"), *NormOp.SYNTAX[5:])
    WORK: ClassVar[int] = 5

    bounded = opt_prop_def(UnitAttr)


@irdl_op_definition
class GroupNormOp(HasEpilogue, AlongDims, ReadsAll, Cost, PureOp):
    """Normalise each of `groups` groups of neighbouring channels, over all dims but the first, to mean 0 and variance
    1, then scale and shift each channel (arXiv:1803.08494). The channels are dim `dim`, the batch is dim 0.

    With as many groups as channels this is the instance norm (arXiv:1607.08022).

    ```mlir
    %y = ait.group_norm %x scale %g bias %b dim 3 groups 32 eps 1e-05 : !ait.tensor<batch x 64 x 64 x 320 x f16>
    ```
    """

    name = "ait.group_norm"
    SYNTAX: ClassVar[Syntax] = (
        Operand("input"),
        Operand("scale", "scale", optional=True),
        Operand("bias", "bias", optional=True),
        Prop("dim", INT),
        Prop("groups", INT),
        Prop("eps", NUMBER),
        EPILOGUE,
    )
    SEGMENTED: ClassVar[bool] = True
    WORK: ClassVar[int] = 8

    input = operand_def(TensorType)
    scale = opt_operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    epilogue_operands = var_operand_def(TensorType)
    dim = prop_def(IntegerAttr)
    groups = prop_def(IntegerAttr)
    eps = prop_def(FloatAttr | ShapeAttr)
    output = result_def(TensorType)
    epilogue = region_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        input: Value,
        scale: Value | None,
        bias: Value | None,
        dim: int,
        groups: int,
        eps: float | ShapeAttr,
    ) -> None:
        results = [SSAValue.get(input).type]
        self.set_up([input, scale, bias, ()], results, [Region()], dim=dim, groups=groups, eps=eps)

    def properties_with(self, extras: int) -> dict[str, Attribute]:
        sizes = [1, int(self.scale is not None), int(self.bias is not None), extras]
        return {**self.properties, "operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)}

    def per_dim_operands(self) -> tuple[int, ...]:
        return tuple(range(1, len(self.own_operands)))

    def infer_result_types(self) -> ResultTypes:
        t, scope = self.expect_tensor(self.input, "the input"), scope_of(self)
        axis, groups = self.dim.value.data, self.groups.value.data
        if not 1 <= axis < t.rank:
            raise self.fail(f"dim {axis} is not a dim behind the first of shape {shape_text(t.dims)}")
        if not is_float(t.element_type):
            raise self.fail(f"needs a floating-point type, got {t.element_type}")
        if groups < 1 or not scope.divisible(t.dims[axis], groups):
            raise self.fail(
                f"{groups} groups are not proved to divide dim {axis} of the input, {t.dims[axis]} channels"
            )
        if (eps := known_number(self.eps)) is not None and not eps >= 0:
            raise self.fail(f"eps must not be negative, got {eps}")
        for what, value in (("scale", self.scale), ("bias", self.bias)):
            if value is None:
                continue
            v = self.expect_tensor(value, what)
            if len(v.dims) != 1 or not scope.equal(v.dims[0], t.dims[axis]):
                raise self.fail(
                    f"{what} has shape {shape_text(v.dims)}, expected {shape_text(t.dims[axis : axis + 1])}"
                )
            if v.element_type != t.element_type:
                raise self.fail(f"{what} has element type {v.element_type}, but the input has {t.element_type}")
        return [infer_through_epilogue(self, t)]


OPS = (SoftmaxOp, LayerNormOp, RmsNormOp, GroupNormOp)
