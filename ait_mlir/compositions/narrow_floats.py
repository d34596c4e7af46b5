"""Numbers of narrow floats that the dialect lacks, computed in wider floats."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.compositions import functions
from ait_mlir.dialects.ait.types import tensor_type

EXPONENT: dict[Attribute, int] = {f32: 0xFF << 23, f64: 0x7FF << 52}
"""The bits of the exponent."""


def rounded(w: Writer, x: SSAValue, dtype: np.dtype[Any], saturates: bool) -> SSAValue:
    """The numbers of a narrow float nearest to x, of two the even one, as f64 if x is f64, else as f32.

    Numbers beyond the largest one become it if `saturates` or if the type has no NaN, else NaN. NaN becomes 0 in a type
    without NaN.
    """
    about = cast(Any, ml_dtypes).finfo(dtype)
    largest, least = float(about.max), float(about.smallest_normal)
    has_nan = bool(np.isnan(np.array(np.nan, np.float32).astype(dtype).astype(np.float32)))
    has_negative_zero = bool(np.signbit(np.array(-0.0, np.float32).astype(dtype).astype(np.float32)))
    x = w.cast(x, f64 if tensor_type(x).element_type == f64 else f32)
    wide = tensor_type(x).element_type
    if saturates or not has_nan:
        x = functions.clamp(w, x, -largest, largest)
    power = w.pointwise("bitcast", w.pointwise("bit_and", w.pointwise("bitcast", x), EXPONENT[wide]))
    step = w.mul(w.maximum(power, least), 2.0**-about.nmant)
    found = w.mul(functions.round_to_even(w, w.div(x, step)), step)
    if not has_nan:
        return w.where(w.compare("eq", x, x), found, 0)
    if not saturates:
        found = w.where(w.compare("gt", w.pointwise("abs", found), largest), float("nan"), found)
    return found if has_negative_zero else w.where(w.compare("eq", found, 0), 0, found)
