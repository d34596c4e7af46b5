"""`!ait_rt.buffer`: memory that holds a tensor."""

from __future__ import annotations

from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition

from ait_mlir.dialects.ait.types import ShapeAttr, ShapedType, TensorType


@irdl_attr_definition
class BufferType(ShapedType):
    """Memory for a shape and element type: `!ait_rt.buffer<batch x 768 x f16>`; row-major unless a view defines it."""

    name = "ait_rt.buffer"
    shape: ShapeAttr
    element_type: Attribute

    @classmethod
    def of(cls, tensor: TensorType) -> BufferType:
        return cls.get(tensor.dims, tensor.element_type)

    def tensor(self) -> TensorType:
        """The type of the tensor that the buffer holds."""
        return TensorType.get(self.dims, self.element_type)
