"""Resampling of the spatial dims: tensors are [batch, one to three spatial dims, channels]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, StringAttr, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from ait_mlir.dialects.ait.base import PureOp, ResultTypes, Value
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.numbers import literal_values
from ait_mlir.dialects.ait.pool import MAX_DIMS
from ait_mlir.dialects.ait.syntax import LITERAL, Flag, Operands, Prop, Syntax, Word
from ait_mlir.dialects.ait.traits import ChannelsLast, Cost
from ait_mlir.dialects.ait.types import TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, const, minimum

TAPS = {"nearest": 1, "nearest_exact": 1, "linear": 2, "cubic": 4}
"""The modes, each with the number of input elements along a dim that an element of the result depends on."""


@irdl_op_definition
class ResizeOp(ChannelsLast, Cost, PureOp):
    """The input resampled to the spatial dims of the result, as `torch.nn.functional.interpolate` does.

    Element i of a dim is taken at i * step (`nearest`, and all modes with `align_corners`), at (i + 0.5) * step
    (`nearest_exact`) or at (i + 0.5) * step - 0.5 (`linear`, `cubic`). The step is the input's size divided by the
    result's; if a scale is given, one divided by the scale; with `align_corners`, the quotient of the sizes minus one.
    `linear` uses two neighbours, `cubic` four (Keys 1981, with a = -0.75); for neighbours outside of the input the
    outermost elements are used. A scale does not count for `linear` if the size stays the same, and for `nearest` if it
    stays the same or doubles.

    ```mlir
    %y = ait.resize linear %x align_corners : !ait.tensor<batch x 128 x 128 x 64 x f16>
    %y = ait.resize nearest %x scales [1.5, 2.0] : !ait.tensor<batch x 96 x 128 x 64 x f16>
    ```
    """

    name = "ait.resize"
    SYNTAX: ClassVar[Syntax] = (
        Word("mode", tuple(TAPS)),
        Operands(),
        Flag("align_corners"),
        Prop("scales", LITERAL, optional=True),
    )

    mode = prop_def(StringAttr)
    x = operand_def(TensorType)
    align_corners = opt_prop_def(UnitAttr)
    scales = opt_prop_def(ArrayAttr[FloatAttr])
    output = result_def(TensorType)

    def __init__(
        self,
        mode: str,
        x: Value,
        sizes: Sequence[Expr | int],
        scales: Sequence[float] | None = None,
        align_corners: bool = False,
    ) -> None:
        t = tensor_type(SSAValue.get(x))
        properties = resize_properties(mode, scales, align_corners)
        result = TensorType.get((t.dims[0], *sizes, t.dims[-1]), t.element_type)
        self.set_up([x], [result], **properties)

    def kept_by_sizes(self) -> tuple[int, ...]:
        """The quotients result size / input size at which a given scale of a dim is ignored, as PyTorch does.

        For `nearest` they are empty except for images of two dims.
        """
        if self.mode.data == "nearest":
            return (1, 2) if len(self.spatial_axes()) == 2 else ()
        return (1,) if self.mode.data == "linear" else ()

    def factors(self) -> list[float]:
        """The scale of each spatial dim; 0 if it follows from the sizes."""
        if self.scales is None:
            return [0.0] * len(self.spatial_axes())
        return [float(n) for n in literal_values(self.scales)]

    @property
    def moves_only(self) -> bool:
        """Whether every element of the result is an element of the input."""
        return TAPS[self.mode.data] == 1

    def elements(self) -> Expr:
        taps = TAPS[self.mode.data] ** len(self.spatial_axes())
        return tensor_type(self.output).num_elements() * const(taps)

    def bytes_read(self, position: int) -> Expr:
        whole = super().bytes_read(position)
        return minimum(whole, self.bytes_written(0)) if self.moves_only else whole

    def infer_result_types(self) -> ResultTypes:
        x, y = self.expect_tensor(self.operands[0], "x"), self.expect_tensor(self.results[0], "the result")
        mode, rank, scope = self.mode.data, x.rank - 2, scope_of(self)
        if not 1 <= rank <= MAX_DIMS or y.rank != x.rank:
            raise self.fail(
                f"x and the result are [batch, 1 to {MAX_DIMS} spatial dims, channels], got {shape_text(x.dims)} and "
                f"{shape_text(y.dims)}"
            )
        if not self.moves_only and not is_float(x.element_type):
            raise self.fail(f"{mode} needs a floating-point type, got {x.element_type}; convert with ait.cast")
        if self.moves_only and self.align_corners is not None:
            raise self.fail(f"align_corners is for linear and cubic, not for {mode}")
        scales = self.factors()
        if len(scales) != rank or not all(math.isfinite(n) and n >= 0 for n in scales):
            raise self.fail(f"scales are {scales}, expected {rank} numbers above 0, or 0 where the sizes say it")
        for axis in range(1, rank + 1):
            if not scope.le(1, x.dims[axis]) and not scope.equal(y.dims[axis], const(0)):
                raise self.fail(f"spatial dim {axis - 1} of x is {x.dims[axis]}, expected it to be proved at least 1")
        return [TensorType.get((x.dims[0], *y.dims[1:-1], x.dims[-1]), x.element_type)]


def resize_properties(mode: str, scales: Sequence[float] | None = None, align_corners: bool = False) -> dict[str, Any]:
    """The properties of a `ResizeOp`: `align_corners` replaces scales."""
    given = None if align_corners or scales is None else [float(n) for n in scales]
    return {"mode": mode, "align_corners": align_corners, "scales": given}


OUTSIDE = ("zeros", "border", "reflection")


@irdl_op_definition
class GridSampleOp(ChannelsLast, Cost, PureOp):
    """x [N, H, W, C] sampled at the places of a grid [N, OH, OW, 2]: [N, OH, OW, C], as by
    `torch.nn.functional.grid_sample`.

    A place is (x, y), each from -1 to 1. With `align_corners` -1 and 1 are the centres of the outermost elements,
    without it their edges. `nearest` takes the nearest element (of two equally near the even), `linear` uses four
    neighbours, `cubic` sixteen (a = -0.75). Outside of x, neighbours are 0 (`zeros`), or the place (for `cubic` each
    neighbour) is moved to the border (`border`) or mirrored there (`reflection`). A place that is NaN is outside; if
    places are moved, it is moved to 0.

    ```mlir
    %y = ait.grid_sample linear zeros %x, %grid align_corners : !ait.tensor<batch x 9 x 9 x 64 x f16>
    ```
    """

    name = "ait.grid_sample"
    SYNTAX: ClassVar[Syntax] = (
        Word("mode", ("nearest", "linear", "cubic")),
        Word("outside", OUTSIDE),
        Operands(),
        Flag("align_corners"),
    )

    mode = prop_def(StringAttr)
    outside = prop_def(StringAttr)
    x = operand_def(TensorType)
    grid = operand_def(TensorType)
    align_corners = opt_prop_def(UnitAttr)
    output = result_def(TensorType)

    def __init__(
        self,
        mode: str,
        outside: str,
        x: Value,
        grid: Value,
        align_corners: bool = False,
    ) -> None:
        self.set_up([x, grid], [SSAValue.get(x).type], mode=mode, outside=outside, align_corners=align_corners)

    def elements(self) -> Expr:
        return tensor_type(self.output).num_elements() * const(TAPS[self.mode.data] ** 2)

    def infer_result_types(self) -> ResultTypes:
        x, grid = self.expect_tensor(self.operands[0], "x"), self.expect_tensor(self.operands[1], "the grid")
        scope = scope_of(self)
        if x.rank != 4 or grid.rank != 4 or grid.dims[3].as_int() != 2:
            raise self.fail(
                f"x is [N, H, W, C] and the grid [N, OH, OW, 2], got {shape_text(x.dims)} and {shape_text(grid.dims)}"
            )
        if not is_float(x.element_type) or x.element_type != grid.element_type:
            raise self.fail(f"needs one floating-point type, got {x.element_type} and {grid.element_type}")
        if not scope.equal(x.dims[0], grid.dims[0]):
            raise self.fail(f"dim 0 of the grid is {grid.dims[0]}, but x has {x.dims[0]}")
        if not scope.le(1, x.dims[1]) or not scope.le(1, x.dims[2]):
            raise self.fail(f"H and W of x are {x.dims[1]} and {x.dims[2]}, expected at least 1")
        return [TensorType.get((*grid.dims[:3], x.dims[3]), x.element_type)]


OPS = (ResizeOp, GridSampleOp)
