"""The passes that the documented transformations run. `docs/passes.md` has their files, their tests and their laws."""

from __future__ import annotations

from ait_mlir.passes.pipelines import passes_between

OPTIMIZE = f"{passes_between('canonical', 'fused')},apply-padding,group-products,group-norms"

TRANSFORMATIONS: dict[str, str] = {
    "fuse_conv_elementwise": "fuse-epilogue",
    "fuse_mm_elementwise": "fuse-epilogue",
    "fuse_elementwise": "fuse-elementwise",
    "process_singleton_elementwise": "process-singleton-elementwise",
    "fuse_single_source_parallel_gemms": "merge-single-source-gemms,fuse-bias",
    "fuse_permute_bmm_and_gemm": "fuse-permute-bmm-and-gemm",
    "merge_view_ops": "merge-view-ops",
    "remove_elementwise_no_ops": "remove-elementwise-no-ops",
    "transform_permute_to_reshape": "transform-permute-to-reshape",
    "optimize_graph": OPTIMIZE,
    "remove_no_ops": "remove-no-ops",
    "transform_special_ops": "transform-special-ops",
    "transform_memory_ops": "merge-concats",
    "move_view_op_before_concat": "merge-concats",
    "fuse_duplicate_fused_elementwise": "remove-duplicates",
    "split_large_concat_ops": "",
    "split_large_slice_scatter_ops": "",
    "split_large_split_ops": "",
    "apply_padding": "apply-padding",
    "transform_odd_alignment": "apply-padding",
    "fuse_group_ops": "fuse-epilogue,group-products,group-norms",
    "fuse_parallel_gemms": "fuse-parallel-gemms,join-parallel-gemms,merge-parallel-gemms,merge-concats",
    "fuse_expand_bmm": "fuse-expand-bmm",
    "fuse_bmm_permute": "fuse-bmm-permute",
    "fuse_mm_reshape_permute": "fuse-bias,fuse-mm-reshape-permute",
    "dedup_make_jagged_ops": "dedup-make-jagged-ops,make-inputs-jagged",
}
"""The passes by the name of the function; none if there is nothing to do."""
CONTRACTIONS: dict[str, tuple[str, ...]] = {
    "fuse_conv_elementwise": ("ait.conv",),
    "fuse_mm_elementwise": ("ait.gemm", "ait.bmm"),
    "transform_odd_alignment": ("ait.bmm",),
    "fuse_group_ops": ("ait.gemm", "ait.layer_norm"),
}
"""The ops with an epilogue that a transformation may change, if it may not change all."""
