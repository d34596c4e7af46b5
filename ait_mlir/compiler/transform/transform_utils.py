"""Helpers for transformations that users write: check a graph, and replace tensors in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort

__all__ = [
    "check_graph_validity",
    "remove_dst_op_from_tensor",
    "remove_tensor_from_sorted_graph",
    "replace_tensor",
    "sanitize_sorted_graph",
]


def check_graph_validity(sorted_graph: Sequence[Tensor], raiseError: bool = False) -> bool:
    """Whether tensors and operators refer to each other, and all inputs and outputs of operators are in the graph.

    With `raiseError`, a mistake raises `BuildError`, which is a `RuntimeError`.
    """
    wrong = next(_mistakes(sorted_graph), None)
    if wrong is not None and raiseError:
        raise BuildError(wrong)
    return wrong is None


def _mistakes(graph: Sequence[Tensor]) -> Iterator[str]:
    operators: dict[Operator, None] = {}
    for tensor in graph:
        name = tensor.name
        for op in tensor.src_ops():
            operators[op] = None
            if tensor not in op.outputs:
                yield f"Tensor {name} not in outputs for op {op.attrs['name']}"
        for op in tensor.dst_ops():
            operators[op] = None
            if tensor not in op.inputs:
                yield f"Tensor {name} not in inputs for op {op.attrs['name']}"
    for op in operators:
        name = op.attrs["name"]
        for what, tensors, place in (("Input", op.inputs, "dst_op"), ("Output", op.outputs, "src_op")):
            for tensor in tensors:
                if op not in (tensor.dst_ops() if place == "dst_op" else tensor.src_ops()):
                    yield f"Op {name} not designated as {place} for tensor {tensor.name}"
                if tensor not in graph:
                    yield f"{what} tensor {tensor.name} not established in graph for op {name}"


def remove_dst_op_from_tensor(tensors: Tensor | Sequence[Tensor], dst_op: Operator) -> None:
    """Remove an operator from the users of these tensors."""
    for tensor in [tensors] if isinstance(tensors, Tensor) else tensors:
        tensor.users.discard(dst_op)


def replace_tensor(old_tensor: Tensor, new_tensor: Tensor) -> None:
    """Replace a tensor by another of the same shape and dtype in all operators that read it.

    If the old tensor is an output, the new tensor becomes the output, with the same name.
    """
    for op in list(old_tensor.dst_ops()):
        op.replace_input_tensor(old_tensor, new_tensor)
        new_tensor.users.add(op)
        old_tensor.users.discard(op)
    if old_tensor.is_output:
        new_tensor.is_output, new_tensor.name = True, old_tensor.name
        old_tensor.is_output, old_tensor.name = False, None


def remove_tensor_from_sorted_graph(tensor: Tensor) -> None:
    """Remove a tensor from the operators that read it and from the operator that computes it."""
    for op in tensor.src_ops():
        op.outputs = [t for t in op.outputs if t is not tensor]
    for op in tensor.dst_ops():
        op.inputs = [t for t in op.inputs if t is not tensor]
    tensor.attrs["src_ops"], tensor.attrs["dst_ops"] = (), ()


def sanitize_sorted_graph(sorted_graph: Sequence[Tensor]) -> list[Tensor]:
    """The tensors that the outputs depend on, sorted again: for a graph whose `_attrs` were changed."""
    outputs = [tensor for tensor in sorted_graph if tensor.is_output] or [sorted_graph[-1]]
    return toposort(outputs)
