"""The names that AITemplate documents below `compiler.transform`, by module, with their arguments; re-exports of the
standard library are left out."""

from __future__ import annotations

GRAPH, FOLDER = "sorted_graph", "sorted_graph workdir"
INT_VAR_TENSOR = "int_var name src_ops dst_ops dtype is_input is_output value is_view_of"
JAGGED = "total_length batch_dim jagged_dims"

NAMES: dict[str, dict[str, str | None]] = {
    "apply_padding": {"apply_padding": FOLDER},
    "bind_constants": {"bind_constants": "graph constants"},
    "constant_folding": {
        "IntVarTensor": INT_VAR_TENSOR,
        "Workspace": "shared_size unique_size",
        "constant_folding": "sorted_graph workdir model_name",
    },
    "fuse_conv_elementwise": {"fuse_conv_elementwise": "sorted_graph _", "get_conv2d_bias_elementwise_patterns": ""},
    "fuse_group_ops": {"fuse_group_ops": FOLDER, "toposort": "nodes"},
    "fuse_mm_elementwise": {"fuse_mm_elementwise": FOLDER},
    "fuse_ops": {
        "FusedElementwiseInfo": "partitioned_ops inputs outputs external_inputs external_outputs",
        "fused_elementwise": "elementwise_ops inputs outputs",
        "group_norm": "num_groups num_channels",
        "group_norm_swish": "num_groups num_channels",
        "fuse_elementwise": FOLDER,
        "process_singleton_elementwise": FOLDER,
        "toposort": "nodes",
    },
    "fuse_parallel_gemms": {
        "fuse_parallel_gemms": FOLDER,
        "fuse_single_source_parallel_gemms": FOLDER,
        "toposort": "nodes",
    },
    "fuse_permute_bmm": {},
    "fuse_split": {"StableSet": None},
    "mark_param_tensor": {"mark_param_tensor": GRAPH, "mark_special_views": GRAPH},
    "memory_planning": {
        "multistream_max_mem_parallel_ops": "",
        "multistream_mode": "",
        "simple_multistream_memory_planning": GRAPH,
        "split_simple_multistream_parallel_ops": "ops_by_order max_parallel_ops",
    },
    "name_graph": {
        "IntVar": "values name",
        "IntVarTensor": INT_VAR_TENSOR,
        "JaggedIntVar": JAGGED,
        "dedup_symbolic_name": GRAPH,
        "name_graph": "sorted_graph reset_counters",
    },
    "optimize_graph": {
        "dedup_make_jagged_ops": FOLDER,
        "fuse_bmm_permute": "sorted_graph _",
        "fuse_duplicate_fused_elementwise": "sorted_graph _workdir",
        "fuse_elementwise": FOLDER,
        "fuse_expand_bmm": FOLDER,
        "fuse_mm_reshape_permute": FOLDER,
        "fuse_permute_bmm_and_gemm": FOLDER,
        "fuse_single_source_parallel_gemms": FOLDER,
        "merge_view_ops": FOLDER,
        "move_view_op_before_concat": "sorted_graph wordir",  # so it is documented
        "optimize_graph": "sorted_graph workdir optimize",
        "process_singleton_elementwise": FOLDER,
        "remove_elementwise_no_ops": FOLDER,
        "split_large_concat_ops": "sorted_graph _",
        "split_large_slice_scatter_ops": "sorted_graph _",
        "split_large_split_ops": "sorted_graph _",
        "transform_permute_to_reshape": FOLDER,
    },
    "profile": {
        "GemmProfilerPostprocessingDelegate": None,
        "ProfilerRunner": "devices postprocessing_delegate timeout",
        "force_profiler_cache": "",
        "profile": "sorted_graph workdir devices dynamic_profiling_strategy timeout",
    },
    "refine_graph": {"get_sorted_ops": "tensors", "refine_graph": GRAPH},
    "remove_no_ops": {"ExpandDimensionType": None, "JaggedIntVar": JAGGED, "remove_no_ops": GRAPH},
    "remove_unused_ops": {"remove_unused_ops": GRAPH},
    "toposort": {"toposort": "nodes"},
    "transform_memory_ops": {"dynamic_slice": "", "toposort": "nodes", "transform_memory_ops": FOLDER},
    "transform_odd_alignment": {"transform_odd_alignment": FOLDER},
    "transform_special_ops": {"transform_special_ops": FOLDER},
    "transform_strided_op_and_view_op": {"StableSet": None},
    "transform_strided_ops": {"detect_target": None, "transform_strided_ops": FOLDER},
    "transform_strided_slice": {},
}

METHODS: dict[str, str] = {
    "constant_folding.IntVarTensor": "pseudo_code",
    "constant_folding.Workspace": "",
    "fuse_ops.FusedElementwiseInfo": "",
    "fuse_ops.fused_elementwise": "gen_function",
    "fuse_ops.group_norm": "gen_function gen_profiler get_input_shapes profile",
    "fuse_ops.group_norm_swish": "",
    "fuse_split.StableSet": "add clear discard remove",
    "name_graph.IntVar": "lower_bound pseudo_code symbolic_value upper_bound",
    "name_graph.IntVarTensor": "pseudo_code",
    "name_graph.JaggedIntVar": "batch_dim get_max_dense_shape jagged_dims offsets_struct_type offsets_type offsets_var_name"
    " total_length",
    "profile.GemmProfilerPostprocessingDelegate": "add_instance postprocess_results",
    "profile.ProfilerRunner": "join push",
    "remove_no_ops.ExpandDimensionType": "",
    "remove_no_ops.JaggedIntVar": "batch_dim get_max_dense_shape jagged_dims offsets_struct_type offsets_type"
    " offsets_var_name total_length",
    "transform_memory_ops.dynamic_slice": "gen_function normalize_start_end_indices",
    "transform_strided_op_and_view_op.StableSet": "add clear discard remove",
}
"""The methods that AITemplate documents of these classes; those of a class without own methods are inherited."""
