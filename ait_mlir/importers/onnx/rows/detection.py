"""Boxes, regions, and results whose size depends on values."""

from __future__ import annotations

import functools

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from ait_mlir.compositions.rearrange import channels_first, channels_last
from ait_mlir.compositions.sorting import elements_at, order_of_rows, true_places, unique
from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.dialects.ait.detection import NmsOp, RoiAlignOp, roi_properties
from ait_mlir.dialects.ait.index import GatherOp, ScatterOp
from ait_mlir.dialects.ait.sorting import SortOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dims import const, product
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Row

ONE, ZERO = const(1), const(0)


def non_max_suppression(c: Call) -> SSAValue:
    """[n, 3]: image, class and box of the boxes that remain, by descending score in each class."""
    boxes, scores = c.tensor(0), c.tensor(1)
    batch, classes, count = tensor_type(scores).dims
    most = c.ints(2)[0] if c.has(2) else 0
    iou = float(c.array(3).reshape(-1)[0]) if c.has(3) else 0.0
    ordered, places = list(c.w.put_all(SortOp(scores, 2, descending=True)))
    boxes = c.w.expand(c.w.reshape(_corners(c, boxes), (batch, 1, count, 4)), (batch, classes, count, 4))
    taken = c.w.put(GatherOp(boxes, [c.w.reshape(places, (batch, classes, count, 1))], [2], [0, 1, 3]))
    valid = c.w.filled(1, (batch, classes, count), i1)
    if c.has(4):
        valid = c.w.compare("gt", ordered, c.w.reshape(c.tensor(4), ()))
    keep = c.w.put(NmsOp(taken, iou, valid))
    rank = c.w.put(CumulativeOp("sum", c.w.cast(keep, i64), 2))
    keep = c.w.both(keep, c.w.compare("le", rank, most))
    bound = c.w.bind("count", product((batch, classes, count)))
    image, kind, place = true_places(c.w, keep, bound)
    flat = c.w.reshape(places, (product((batch, classes, count)),))
    at = c.w.add(c.w.mul(c.w.add(c.w.mul(image, c.w.number(classes, i64)), kind), c.w.number(count, i64)), place)
    columns = [c.w.reshape(v, (bound, ONE)) for v in (image, kind, elements_at(c.w, flat, at))]
    return c.w.concat(columns, 1)


def _corners(c: Call, boxes: SSAValue) -> SSAValue:
    """Boxes as two corners, the lower one first."""
    last = tensor_type(boxes).rank - 1
    parts = [c.w.slice(boxes, last, i, 1) for i in range(4)]
    if c.attr("center_point_box", 0):
        x, y, width, height = parts
        half_width, half_height = c.w.mul(width, 0.5), c.w.mul(height, 0.5)
        corners = [c.w.sub(x, half_width), c.w.sub(y, half_height), c.w.add(x, half_width), c.w.add(y, half_height)]
    else:
        a, b, d, e = parts
        corners = [c.w.minimum(a, d), c.w.minimum(b, e), c.w.maximum(a, d), c.w.maximum(b, e)]
    return c.w.concat(corners, last)


def roi_align(c: Call) -> SSAValue:
    """Features [N, C, H, W] of regions."""
    if (mode := c.attr("mode", "avg")) != "avg":
        raise NotSupported(f"mode is {mode!r}, expected avg")
    x, rois = c.tensor(0), c.tensor(1)
    element, regions = tensor_type(x).element_type, tensor_type(rois).dims[0]
    image = c.w.reshape(c.w.cast(c.tensor(2), element), (regions, 1))
    usual = "half_pixel" if c.version >= 16 else "output_half_pixel"
    aligned = c.attr("coordinate_transformation_mode", usual) == "half_pixel"
    properties = roi_properties([c.attr("spatial_scale", 1.0)], c.attr("sampling_ratio", 0), aligned, False)
    bins = (c.attr("output_height", 1), c.attr("output_width", 1))
    result = TensorType.get((regions, *bins, tensor_type(x).dims[1]), element)
    operands = [channels_last(c.w, x, 2), c.w.concat([image, rois], 1)]
    op = RoiAlignOp.create(operands=operands, result_types=[result], properties=properties)
    return channels_first(c.w, c.w.put(op))


def distinct(c: Call) -> Result:
    """The distinct elements or slices, their first places, the number of each input's value, and their counts."""
    x = c.tensor(0)
    axis = None if c.attr("axis") is None else c.axis()
    size = product(tensor_type(x).dims) if axis is None else tensor_type(x).dims[axis]
    bound = c.w.bind("count", size)
    values, run, counts = unique(c.w, x, axis, bound, functools.partial(order_of_rows, c.w))
    run = c.w.reshape(run, (size,))
    start = c.w.expand(c.w.number(size, i64), (bound,))
    first = c.w.put(ScatterOp("min", start, c.w.places(size), [run], [0], []))
    if c.attr("sorted", 1):
        return values, first, run, counts
    order = c.w.put_all(SortOp(first, 0))[1]
    inverse = c.w.put_all(SortOp(order, 0))[1]
    kept = [a for a in range(tensor_type(values).rank) if a != (axis or 0)]
    index = c.w.reshape(order, [bound if a == (axis or 0) else ONE for a in range(tensor_type(values).rank)])
    values = c.w.put(GatherOp(values, [index], [axis or 0], kept))
    return (
        values,
        elements_at(c.w, first, order),
        elements_at(c.w, inverse, run),
        elements_at(c.w, counts, order),
    )


ROWS: dict[str, Row] = {
    "NonMaxSuppression": non_max_suppression,
    "RoiAlign": roi_align,
    "Unique": distinct,
}
