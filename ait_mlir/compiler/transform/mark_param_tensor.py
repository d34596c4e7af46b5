"""Marks tensors that are weights, and tensors that are views of the caller's tensors."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend.emit import make_param
from ait_mlir.frontend.lift import check_sorted
from ait_mlir.frontend.tensor import Tensor

VIEWS = ("reshape", "flatten", "squeeze", "unsqueeze", "identity", "make_jagged")
"""Operators whose result is the memory of their first input."""


def mark_param_tensor(sorted_graph: Sequence[Tensor]) -> None:
    """Mark as weights all tensors that no operator computes, that are not inputs and have no value."""
    check_sorted(sorted_graph)
    for tensor in sorted_graph:
        if tensor.src_ops() or tensor.is_input or tensor.is_param or tensor.number() is not None:
            continue
        before = tensor.value
        tensor.replace_value(make_param(tensor.type))
        tensor.made_by = None
        before.replace_all_uses_with(tensor.value)


def mark_special_views(sorted_graph: Sequence[Tensor]) -> None:
    """Set `is_view_of` of views, and `external_tensor` of views that are, directly or through other views, in the
    memory of an input, a weight or an output."""
    check_sorted(sorted_graph)
    for tensor in sorted_graph:
        if (source := viewed(tensor)) is None:
            continue
        tensor.attrs["is_view_of"] = source
        if (external := source.attrs["external_tensor"]) is not None:
            tensor.attrs["external_tensor"] = external
        elif source.is_input or source.is_param or source.is_output:
            tensor.attrs["external_tensor"] = source


def viewed(tensor: Tensor) -> Tensor | None:
    """The tensor whose memory a view uses: `_attrs["is_view_of"]`, or the input of its view operator; else None."""
    if (given := tensor.attrs["is_view_of"]) is not None:
        return given
    for op in tensor.src_ops():
        if op.attrs["op"] in VIEWS and op.inputs:
            return op.inputs[0] if tensor is op.outputs[0] else op.inputs[op.outputs.index(tensor)]
    return None
