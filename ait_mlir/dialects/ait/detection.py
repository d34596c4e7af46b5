"""Ops of detectors: features of regions (`roi_align`), and non-maximum suppression of boxes (`nms`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, UnitAttr, f64, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)

from ait_mlir.dialects.ait.base import PureOp, ResultTypes, Value, same_shape
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.numbers import literal_values
from ait_mlir.dialects.ait.syntax import INT, LITERAL, NUMBER, Flag, Operand, Operands, Prop, Syntax
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, const, floordiv, minimum

MOST_LEVELS = 8


@irdl_op_definition
class RoiAlignOp(Cost, PureOp):
    """Features of regions: a region is cut into bins, and the samples in a bin are averaged (Mask R-CNN,
    arXiv:1703.06870).

    Each level x is [batch, H, W, C], a region (image, x1, y1, x2, y2), the result [regions, bins, bins, C]. `scales`
    has for each level the size of x divided by the size of the image in which boxes are measured. A bin has `sampling`
    samples along each dim, by default one for each element of x, rounded up, at most 4096. `aligned` moves boxes by
    half an element, so that elements are squares around their indices. With `position_sensitive` bin (i, j) of channel
    c reads channel (c * bins + i) * bins + j. If there are several levels, a box uses the first one, the second if the
    square root of its area is at least `second_from`, the third from twice that on (FPN, arXiv:1612.03144). An image
    outside of the batch is invalid: the CPU fails and names it, a GPU writes NaN.

    ```mlir
    %y = ait.roi_align %x rois %r scales [0.25] sampling 2 aligned : !ait.tensor<n x 7 x 7 x 256 x f16>
    %y = ait.roi_align %p2, %p3 rois %r scales [0.25, 0.125] second_from 112.0 : !ait.tensor<n x 7 x 7 x 256 x f16>
    ```
    """

    name = "ait.roi_align"
    SYNTAX: ClassVar[Syntax] = (
        Operands(("levels",)),
        Operand("rois", "rois"),
        Prop("scales", LITERAL),
        Prop("sampling", INT, optional=True),
        Flag("aligned"),
        Flag("position_sensitive"),
        Prop("second_from", NUMBER, optional=True),
    )
    SAMPLES: ClassVar[int] = 2
    """The samples along each dim of a bin that cost estimates assume if the number depends on the boxes."""

    levels = var_operand_def(TensorType)
    rois = operand_def(TensorType)
    scales = prop_def(ArrayAttr[FloatAttr])
    sampling = opt_prop_def(IntegerAttr)
    aligned = opt_prop_def(UnitAttr)
    position_sensitive = opt_prop_def(UnitAttr)
    second_from = opt_prop_def(FloatAttr)
    output = result_def(TensorType)

    def factors(self) -> list[float]:
        """The scale of each level."""
        return [float(n) for n in literal_values(self.scales)]

    def elements(self) -> Expr:
        samples = self.SAMPLES if self.sampling is None else self.sampling.value.data
        return tensor_type(self.output).num_elements() * const(4 * samples * samples)

    def bytes_read(self, position: int) -> Expr:
        whole = super().bytes_read(position)
        return whole if position == len(self.levels) else minimum(whole, 4 * self.bytes_written(0))

    def infer_result_types(self) -> ResultTypes:
        rois, y = self.expect_tensor(self.rois, "rois"), self.expect_tensor(self.results[0], "the result")
        levels = [self.expect_tensor(v, f"level {i}") for i, v in enumerate(self.levels)]
        if not 1 <= len(levels) <= MOST_LEVELS:
            raise self.fail(f"has {len(levels)} levels of features, expected 1 to {MOST_LEVELS}")
        first, scope = levels[0], scope_of(self)
        for i, level in enumerate(levels):
            if level.rank != 4:
                raise self.fail(f"level {i} is [batch, H, W, C], got {shape_text(level.dims)}")
            outer = ((level.dims[0], level.dims[3]), (first.dims[0], first.dims[3]))
            if level.element_type != first.element_type or not same_shape(*outer, scope):
                raise self.fail(f"level {i} is {level}, expected the batch, channels and type of level 0, {first}")
            if not scope.le(1, level.dims[1]) or not scope.le(1, level.dims[2]):
                raise self.fail(f"H and W of level {i} are {level.dims[1]} and {level.dims[2]}, expected at least 1")
        if rois.rank != 2 or rois.dims[1].as_int() != 5:
            raise self.fail(f"rois are [regions, 5], got {shape_text(rois.dims)}")
        if not is_float(first.element_type) or not is_float(rois.element_type):
            raise self.fail(f"needs floating-point types, got {first.element_type} and {rois.element_type}")
        if len(self.factors()) != len(levels) or not all(math.isfinite(n) and n > 0 for n in self.factors()):
            raise self.fail(f"scales are {self.factors()}, expected {len(levels)} numbers above 0")
        if self.sampling is not None and not 1 <= self.sampling.value.data <= 4096:
            raise self.fail(f"sampling is {self.sampling.value.data}, expected 1 to 4096")
        from_size = 0.0 if self.second_from is None else self.second_from.value.data
        if (len(levels) > 1) != (from_size > 0):
            raise self.fail(f"has {len(levels)} levels; second_from, a size above 0, is for several")
        if y.rank != 4:
            raise self.fail(f"the result is [regions, bins, bins, channels], got {shape_text(y.dims)}")
        channels = first.dims[3]
        if self.position_sensitive is not None:
            bins = y.dims[1] * y.dims[2]
            if not scope.le(1, bins) or not scope.equal(floordiv(channels, bins) * bins, channels):
                raise self.fail(f"{channels} channels are not proved to be a multiple of {bins} bins")
            channels = floordiv(channels, bins)
        return [TensorType.get((rois.dims[0], y.dims[1], y.dims[2], channels), first.element_type)]


@irdl_op_definition
class NmsOp(Cost, PureOp):
    """Non-maximum suppression: i1 [..., N], true for each box that remains.

    Boxes are [..., N, 4] with corners x1, y1, x2, y2, the best first. A box is removed if an earlier box remains and
    their intersection over union is above `iou`. Boxes that are not `valid` are removed and remove nothing.

    ```mlir
    %keep = ait.nms %boxes valid %large iou 0.5 : !ait.tensor<batch x 1000 x i1>
    ```
    """

    name = "ait.nms"
    SYNTAX: ClassVar[Syntax] = (Operand("boxes"), Operand("valid", "valid", optional=True), Prop("iou", NUMBER))
    WORK: ClassVar[int] = 16

    boxes = operand_def(TensorType)
    valid = opt_operand_def(TensorType)
    iou = prop_def(FloatAttr)
    output = result_def(TensorType)

    def __init__(self, boxes: Value, iou: float, valid: Value | None = None) -> None:
        t = tensor_type(SSAValue.get(boxes))
        self.set_up([boxes, [] if valid is None else [valid]], [TensorType.get(t.dims[:-1], i1)], iou=iou)

    def elements(self) -> Expr:
        return tensor_type(self.output).num_elements() * tensor_type(self.boxes).dims[-2]

    def infer_result_types(self) -> ResultTypes:
        boxes = self.expect_tensor(self.operands[0], "boxes")
        if boxes.rank < 2 or boxes.dims[-1].as_int() != 4 or not is_float(boxes.element_type):
            raise self.fail(f"boxes are [..., N, 4] of a floating-point type, got {boxes}")
        if not 0 <= self.iou.value.data <= 1:
            raise self.fail(f"iou is {self.iou.value.data}, expected 0 to 1")
        if self.valid is not None:
            valid = self.expect_tensor(self.valid, "valid")
            if valid.element_type != i1 or not same_shape(valid.dims, boxes.dims[:-1], scope_of(self)):
                raise self.fail(f"valid is {valid}, expected i1 for each box of {shape_text(boxes.dims)}")
        return [TensorType.get(boxes.dims[:-1], i1)]


def roi_properties(
    scales: Sequence[float], sampling: int, aligned: bool, position_sensitive: bool, second_from: float | None = None
) -> dict[str, Attribute]:
    """The properties of a `RoiAlignOp`; if `sampling` is below 1, the size of a box decides the number of samples."""
    found: dict[str, Attribute] = {"scales": ArrayAttr([FloatAttr(float(n), f64) for n in scales])}
    if sampling > 0:
        found["sampling"] = IntegerAttr(sampling, i64)
    flags = {"aligned": aligned, "position_sensitive": position_sensitive}
    found |= {name: UnitAttr() for name, given in flags.items() if given}
    if second_from is not None:
        found["second_from"] = FloatAttr(second_from, f64)
    return found


OPS = (RoiAlignOp, NmsOp)
