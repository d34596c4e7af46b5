"""Helpers for lists of tensors in topological order."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.stable_set import StableSet
from ait_mlir.frontend.tensor import Tensor


def get_sorted_ops(tensors: Tensor | Sequence[Tensor]) -> list[Operator]:
    """The operators that compute the tensors, in their order, each once."""
    given = [tensors] if isinstance(tensors, Tensor) else tensors
    return list(StableSet(op for tensor in given for op in tensor.src_ops()))


def sorted_graph_debug_str(tensors: Tensor | Sequence[Tensor]) -> str:
    """The tensors and their operators as text, one tensor a line."""
    given = [tensors] if isinstance(tensors, Tensor) else tensors
    lines = [*map(repr, given), "", *(sorted_op_pseudo_code(op) for op in get_sorted_ops(given))]
    return "\n".join(lines)


def sorted_graph_pseudo_code(tensors: Tensor | Sequence[Tensor], with_shape: bool = True) -> str:
    """The operators that compute the tensors as lines of code."""
    return sorted_op_pseudo_code(get_sorted_ops(tensors), with_shape)


def sorted_op_pseudo_code(ops: Operator | Sequence[Operator], with_shape: bool = True) -> str:
    """Operators as lines of code: `(y) = gemm_rcr(x, w)`."""
    given = [ops] if isinstance(ops, Operator) else ops
    return "\n".join(f"({_names(op.outputs, with_shape)}) = {op.name}({_names(op.inputs, with_shape)})" for op in given)


def _names(tensors: Sequence[Tensor], with_shape: bool) -> str:
    return ", ".join(t.describe() if with_shape else t.name or "None" for t in tensors)
