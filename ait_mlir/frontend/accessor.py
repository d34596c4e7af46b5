"""Where an operator reads or writes a tensor: `_attrs["input_accessors"]` and `["output_accessors"]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ait_mlir.dialects.ait.strided import contiguous_strides

if TYPE_CHECKING:
    from ait_mlir.frontend.tensor import Tensor


@dataclass(frozen=True)
class TensorAccessor:
    """The location of an operand or a result: the tensor whose memory holds it, and offset and strides in elements, as
    expressions of the dims. `TensorAccessor(tensor)` is a whole tensor, row-major."""

    tensor: Tensor | None
    offset: str = "0"
    strides: tuple[str, ...] = ()
    whole: bool = True
    """Whether the operand or result is the whole tensor."""

    def __post_init__(self) -> None:
        if self.tensor is not None and not self.strides:
            strides = contiguous_strides(self.tensor.type.dims)
            object.__setattr__(self, "strides", tuple(map(str, strides)))
