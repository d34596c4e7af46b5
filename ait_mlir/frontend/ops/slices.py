"""Operators of slices that are written end to end into one result."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from ait_mlir.dialects.ait.view import ConcatOp
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import DimLike
from ait_mlir.frontend.operator import Operator, operator_of
from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.ops.view import concatenate, dynamic_slice, reshape
from ait_mlir.frontend.tensor import Tensor

__all__ = ["slice_reshape_scatter", "slice_scatter"]


class slice_scatter(Operator):
    """Slices of tensors, written end to end along `scatter_dim` of one result.

    It is `concatenate` of the results of `dynamic_slice`, so each element is copied once. `make_op` creates it from
    such a concatenation, as in AITemplate.
    """

    def __init__(self, scatter_dim: int):
        self.scatter_dim = scatter_dim

    @staticmethod
    def is_valid(cat_op: Operator) -> bool:
        """Whether an operator is a concatenation of slices."""
        makers = [operator_of(x.value.owner) for x in cat_op.inputs if isinstance(x.value.owner, Operation)]
        slices = len(makers) == len(cat_op.inputs) and all(isinstance(m, dynamic_slice) for m in makers)
        return isinstance(cat_op, concatenate) and bool(makers) and slices

    @staticmethod
    def make_op(cat_op: Operator) -> Operator:
        """The operator for a concatenation of slices, with its inputs and its result."""
        if not slice_scatter.is_valid(cat_op):
            raise BuildError(f"slice_scatter: {cat_op.name} is no concatenation of results of dynamic_slice")
        joined = cat_op.outputs[0].value.owner
        assert isinstance(joined, ConcatOp)
        made = slice_scatter(joined.dim.value.data)
        made.inputs, made.outputs = list(cat_op.inputs), list(cat_op.outputs)
        return made

    def __call__(self, inputs: Sequence[Tensor] = ()) -> Tensor:
        if not inputs:
            if not self.outputs:
                raise self.fail("needs slices; call it on them, or make it of a concatenation with make_op")
            return self.outputs[0]
        self.begin(*inputs)
        return self.finish(concatenate()(inputs, self.scatter_dim))


class slice_reshape_scatter(slice_scatter):
    """Slices end to end along `scatter_dim`, reshaped, with `element_func` applied if given.

    `element_func` is the name of a function of `FuncEnum`, such as "tanh" or "fast_tanh".
    """

    def __init__(self, scatter_dim: int, element_func: str | None = None):
        super().__init__(scatter_dim)
        self.element_func = element_func

    def __call__(self, inputs: Sequence[Tensor] = (), shape: Sequence[DimLike] | None = None) -> Tensor:
        joined = super().__call__(inputs)
        shaped = joined if shape is None else reshape()(joined, list(shape))
        if self.element_func is None:
            return self.finish(shaped)
        name = self.element_func.removeprefix("fast_").upper()
        if name not in FuncEnum.__members__:
            raise self.fail(f"element_func is {self.element_func!r}, expected a function of FuncEnum")
        return self.finish(elementwise(FuncEnum[name])(shaped))
