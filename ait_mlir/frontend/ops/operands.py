"""Operands of elementwise operators: numbers, constants and tensors, in one dtype."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.dialects.ait.elementwise import CastOp
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.intvar import IntVarTensor
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.rewrites.engine.numbers import stored

Operand = Tensor | IntVarTensor | float


def as_number(operator: Operator, operand: Operand) -> Tensor | float:
    """An operand, with a constant of rank 0 or a constant dim as a number, whose dtype follows the other operands."""
    if isinstance(operand, IntVarTensor):
        if not operand.is_a_const_num():
            raise operator.fail(f"the dim {operand} is dynamic; an operand is a tensor, a number or a constant dim")
        return int(operand)
    if not isinstance(operand, Tensor) or operand.rank or operand.sources:
        return operand
    number = operand.number()
    return operand if number is None else number


def common_dtype(operands: Sequence[Tensor | float]) -> str:
    """The dtype of the tensors; bool only if no tensor has another one, float16 without tensors."""
    found = [operand.dtype() for operand in operands if isinstance(operand, Tensor)]
    return next((dtype for dtype in found if dtype != "bool"), found[0] if found else "float16")


def in_dtype(operator: Operator, operand: Tensor | float, dtype: str, rounds: bool = True) -> Tensor:
    """An operand in `dtype`: a number becomes a constant, a bool tensor is converted, other tensors are unchanged.

    The number is rounded to f16 or bf16 if `rounds`, else to the f32 in which kernels compute.
    """
    if not isinstance(operand, Tensor):
        number = stored(operand, BY_NAME[dtype].ir) if rounds and isinstance(operand, float) else operand
        return Tensor(shape=[], dtype=dtype, value=number)
    if operand.dtype() != "bool" or dtype == "bool":
        return operand
    return operator.emit_one(CastOp, [operand], result_types=[TensorType.get(operand.type.dims, BY_NAME[dtype].ir)])


def in_one_dtype(operator: Operator, operands: Sequence[Tensor | float], rounds: bool = True) -> list[Tensor]:
    """The operands in their common dtype."""
    dtype = common_dtype(operands)
    return [in_dtype(operator, operand, dtype, rounds) for operand in operands]
