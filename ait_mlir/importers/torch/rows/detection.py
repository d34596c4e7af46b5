"""The operations of torchvision on boxes, by name, because they exist only after torchvision is imported."""

from __future__ import annotations

from ait_mlir.building.formulas import Value
from ait_mlir.compositions.rearrange import channels_first, channels_last
from ait_mlir.dialects.ait.detection import NmsOp, RoiAlignOp, roi_properties
from ait_mlir.dialects.ait.index import GatherOp, MaskedSelectOp
from ait_mlir.dialects.ait.sorting import SortOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.importers.torch.call import Call, Row


def nms(c: Call) -> Value:
    """The places of the boxes that remain, by descending scores; the run binds their number."""
    boxes, scores = c.tensor("dets"), c.tensor("scores")
    t = tensor_type(scores)
    sort = SortOp(scores, 0, descending=True)
    c.w.put(sort)
    places = sort.results[1]
    spread = c.w.reshape(places, (*t.dims, 1))
    keep = c.w.put(NmsOp(c.w.put(GatherOp(boxes, [spread], [0], [1])), float(c["iou_threshold"])))
    return c.w.put(MaskedSelectOp(places, keep, c.type()))


def roi_align(c: Call) -> Value:
    """Features [N, C, H, W] of regions."""
    x, rois = c.tensor("input"), c.tensor("rois")
    properties = roi_properties([float(c["spatial_scale"])], int(c["sampling_ratio"]), bool(c["aligned"]), False)
    regions, channels, *bins = c.dims
    t = TensorType.get((regions, *bins, channels), tensor_type(x).element_type)
    op = RoiAlignOp.create(operands=[channels_last(c.w, x, 2), rois], result_types=[t], properties=properties)
    return channels_first(c.w, c.w.put(op))


ROWS: dict[str, Row] = {
    "torchvision.nms.default": nms,
    "torchvision.roi_align.default": roi_align,
}
