"""Operators of `ai.onnx.ml` on numbers: features chosen, scaled and weighed."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32, i64

from ait_mlir.compositions import contraction
from ait_mlir.compositions.index import slices_at
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Row
from ait_mlir.importers.onnx.known import Known


def array_feature_extractor(c: Call) -> Result:
    """The elements of the last dim at some indices."""
    x, ids = c.tensor(0), c.w.reshape(c.w.cast(c.tensor(1), i64), (tensor_type(c.tensor(1)).num_elements(),))
    if tensor_type(x).rank == 1:
        x = c.w.reshape(x, (1, *tensor_type(x).dims))
    return c.w.full(slices_at(c.w, x, tensor_type(x).rank - 1, ids, from_end=True))


def binarizer(c: Call) -> Result:
    """1 for elements above a threshold, else 0."""
    x = c.tensor(0)
    return c.w.cast(c.w.compare("gt", x, c.attr("threshold", 0.0)), tensor_type(x).element_type)


def scaler(c: Call) -> Result:
    """(x - offset) * scale, with one number for all features or one for each."""
    x = c.w.cast(c.tensor(0), f32)
    for name, op in (("offset", c.w.sub), ("scale", c.w.mul)):
        if numbers := c.attr(name):
            x = op(x, numbers[0] if len(numbers) == 1 else c.w.written(_row(numbers)))
    return x


def linear_regressor(c: Call) -> Result:
    """x @ coefficients^T + intercepts."""
    if c.attr("post_transform", "NONE") != "NONE":
        raise NotSupported(f"post_transform is {c.attr('post_transform')!r}, expected NONE")
    x, targets = c.w.cast(c.tensor(0), f32), c.attr("targets", 1)
    weight = _row(c.attr("coefficients", [])).array.reshape(targets, -1)
    y = contraction.product_with_rows(c.w, x, c.w.written(Known(weight, f32)))
    return c.w.add(y, c.w.written(_row(c.attr("intercepts")))) if c.attr("intercepts") else y


def _row(numbers: list[float]) -> Known:
    return Known(np.array(numbers, np.float32), f32)


ROWS: dict[str, Row] = {
    "ai.onnx.ml.ArrayFeatureExtractor": array_feature_extractor,
    "ai.onnx.ml.Binarizer": binarizer,
    "ai.onnx.ml.Scaler": scaler,
    "ai.onnx.ml.LinearRegressor": linear_regressor,
}
