"""Removes operators outside of a graph from the users of its tensors."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend.lift import check_sorted
from ait_mlir.frontend.stable_set import StableSet
from ait_mlir.frontend.tensor import Tensor


def remove_unused_ops(sorted_graph: Sequence[Tensor]) -> None:
    """Remove all operators from `dst_ops` that compute no tensor of the list."""
    check_sorted(sorted_graph)
    used = {op for tensor in sorted_graph for op in tensor.src_ops()}
    for tensor in sorted_graph:
        tensor.attrs["dst_ops"] = StableSet(op for op in tensor.dst_ops() if op in used)
