"""Documented import paths of transformations that are implemented in another module here."""

from __future__ import annotations

from collections.abc import Callable

from ait_mlir.compiler.transform.fuse_permute_bmm import fuse_permute_bmm_and_gemm
from ait_mlir.compiler.transform.optimize_graph import (
    dedup_make_jagged_ops,
    fuse_bmm_permute,
    fuse_duplicate_fused_elementwise,
    fuse_expand_bmm,
    fuse_mm_reshape_permute,
    merge_view_ops,
    move_view_op_before_concat,
    remove_elementwise_no_ops,
    split_large_concat_ops,
    split_large_slice_scatter_ops,
    split_large_split_ops,
    transform_permute_to_reshape,
)
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.name_modules import name_module

PATHS: dict[str, Callable[..., list[Tensor]]] = {
    "dedup_make_jagged_ops": dedup_make_jagged_ops,
    "fuse_bmm_permute": fuse_bmm_permute,
    "fuse_duplicate_fused_elementwise": fuse_duplicate_fused_elementwise,
    "fuse_expand_bmm": fuse_expand_bmm,
    "fuse_mm_reshape_permute": fuse_mm_reshape_permute,
    "fuse_permute_bmm_and_gemm": fuse_permute_bmm_and_gemm,
    "move_view_ops": move_view_op_before_concat,
    "remove_elementwise_no_ops": remove_elementwise_no_ops,
    "split_large_concat_ops": split_large_concat_ops,
    "split_large_slice_scatter_ops": split_large_slice_scatter_ops,
    "split_large_split_ops": split_large_split_ops,
    "transform_merge_view_ops": merge_view_ops,
    "transform_permute_to_reshape": transform_permute_to_reshape,
}
"""The transformation of each module."""


def make_modules(package: str) -> None:
    """Enter the modules of the table below `package` in `sys.modules`."""
    for path, transformation in PATHS.items():
        name_module(f"{package}.{path}", {transformation.__name__: transformation})
