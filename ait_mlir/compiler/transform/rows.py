"""The table of documented transformations: the passes that each one runs, where they are written, tested, and their
law. `docs/passes.md` is made of it (`python -m ait_mlir.compiler.transform.page`)."""

from __future__ import annotations

from dataclasses import dataclass

from ait_mlir.passes.pipelines import passes_between
from ait_mlir.rows import Row, table


@dataclass(frozen=True)
class Transformation(Row):
    """A documented function: its module, our passes for it, the file with their patterns, their lit test, the law."""

    module: str
    passes: str
    file: str
    test: str
    law: str
    only: tuple[str, ...] = ()
    """The contractions that it may change; all if empty."""


def _row(name: str, module: str, passes: str, file: str, test: str, law: str, only: tuple[str, ...] = ()):
    return Transformation(name, module, passes, f"ait_mlir/{file}", test and f"lit_tests/{test}", law, only)


PRODUCTS = ("ait.gemm", "ait.bmm")
CONVOLUTIONS = ("ait.conv",)
OPTIMIZE = passes_between("canonical", "fused")

TRANSFORMATIONS: dict[str, Transformation] = table(
    "transformations",
    (
        _row(
            "fuse_conv_elementwise",
            "fuse_conv_elementwise",
            "fuse-epilogue",
            "rewrites/gemm/epilogue.py",
            "rewrites/epilogue.mlir",
            "f(conv(x, w), b) is one convolution with the epilogue f, if f alone reads the product",
            CONVOLUTIONS,
        ),
        _row(
            "fuse_mm_elementwise",
            "fuse_mm_elementwise",
            "fuse-epilogue",
            "rewrites/gemm/epilogue.py",
            "rewrites/epilogue.mlir",
            "f(x @ w, b) is one product with the epilogue f, if f alone reads the product",
            PRODUCTS,
        ),
        _row(
            "fuse_elementwise",
            "fuse_ops",
            "fuse-elementwise",
            "rewrites/elementwise/merge.py",
            "rewrites/elementwise.mlir",
            "connected elementwise operations of one shape are one pass over memory",
        ),
        _row(
            "process_singleton_elementwise",
            "fuse_ops",
            "process-singleton-elementwise",
            "rewrites/elementwise/merge.py",
            "rewrites/subsets.mlir",
            "f(x) = fused_elementwise(x) { f }",
        ),
        _row(
            "fuse_single_source_parallel_gemms",
            "fuse_parallel_gemms",
            "merge-parallel-gemms",
            "rewrites/gemm/products.py",
            "rewrites/gemm.mlir",
            "x @ w0, x @ w1 = split(x @ concat(w0, w1)), and their biases as one",
        ),
        _row(
            "fuse_permute_bmm_and_gemm",
            "fuse_permute_bmm",
            "fuse-permute-bmm-and-gemm",
            "rewrites/view.py",
            "rewrites/subsets.mlir",
            "a product reads a transposed operand in the other layout",
        ),
        _row(
            "merge_view_ops",
            "optimize_graph",
            "merge-view-ops",
            "rewrites/view.py",
            "rewrites/subsets.mlir",
            "reshape(reshape(x)) = reshape(x)",
        ),
        _row(
            "remove_elementwise_no_ops",
            "optimize_graph",
            "remove-elementwise-no-ops",
            "rewrites/elementwise/algebra.py",
            "rewrites/subsets.mlir",
            "x + 0 = x - 0 = x * 1 = x / 1 = x",
        ),
        _row(
            "transform_permute_to_reshape",
            "optimize_graph",
            "transform-permute-to-reshape",
            "rewrites/subsets.py",
            "rewrites/subsets.mlir",
            "permute(x) = reshape(x), where only dims of 1 move",
        ),
        _row(
            "optimize_graph",
            "optimize_graph",
            OPTIMIZE,
            "passes/pipelines.py",
            "rewrites/gemm.mlir",
            "the passes from a simplified to a fused graph, in order",
        ),
        _row(
            "remove_no_ops",
            "remove_no_ops",
            "remove-no-ops",
            "rewrites/view.py",
            "rewrites/subsets.mlir",
            "a view to the same type, a split into one part, a concat of one tensor are their operand",
        ),
        _row(
            "transform_special_ops",
            "transform_special_ops",
            "transform-special-ops",
            "rewrites/conv.py",
            "rewrites/subsets.mlir",
            "conv(x, w) with a window of one element = x @ w^T; x @ y with K = 1 is x * y",
        ),
        _row(
            "transform_memory_ops",
            "transform_memory_ops",
            "merge-pieces",
            "rewrites/pieces.py",
            "rewrites/pieces.mlir",
            "concat(split(x)) = x, split(concat(x, y)) = x, y, concat(concat(x, y), z) = concat(x, y, z)",
        ),
        _row(
            "move_view_op_before_concat",
            "optimize_graph",
            "merge-pieces",
            "rewrites/pieces.py",
            "rewrites/pieces.mlir",
            "concat(reshape(concat(x, y)), z) = concat(reshape(x), reshape(y), z)",
        ),
        _row(
            "fuse_duplicate_fused_elementwise",
            "optimize_graph",
            "remove-duplicates",
            "passes/remove_duplicates.py",
            "passes/remove_duplicates.mlir",
            "operators that compute the same on the same operands are one",
        ),
        _row(
            "split_large_concat_ops",
            "optimize_graph",
            "",
            "passes/bufferize.py",
            "rewrites/buffers.mlir",
            "the graph as it is: each operand of a concat is written by itself, so no launch takes a long list",
        ),
        _row(
            "split_large_slice_scatter_ops",
            "optimize_graph",
            "",
            "passes/bufferize.py",
            "rewrites/buffers.mlir",
            "the graph as it is: each slice is written by itself, so no launch takes a list of any length",
        ),
        _row(
            "split_large_split_ops",
            "optimize_graph",
            "",
            "passes/bufferize.py",
            "rewrites/buffers.mlir",
            "the graph as it is: the parts of a split are views, which take no launch",
        ),
        _row(
            "apply_padding",
            "apply_padding",
            "apply-padding",
            "rewrites/gemm/padding.py",
            "rewrites/padding.mlir",
            "x @ y = slice(pad(x) @ pad(y)), where two-byte rows have an odd number of elements",
        ),
        _row(
            "transform_odd_alignment",
            "transform_odd_alignment",
            "apply-padding",
            "rewrites/gemm/padding.py",
            "rewrites/padding.mlir",
            "the same for batched products alone",
            ("ait.bmm",),
        ),
        _row(
            "fuse_group_ops",
            "fuse_group_ops",
            "group-products",
            "passes/group_products.py",
            "passes/group_products.mlir",
            "products of one epilogue that do not wait for each other are one grouped product",
        ),
        _row(
            "fuse_parallel_gemms",
            "fuse_parallel_gemms",
            "fuse-parallel-gemms,merge-parallel-gemms,merge-pieces",
            "rewrites/gemm/batches.py",
            "rewrites/batches.mlir",
            "concat(split(x)[0] @ w0^T + b0, split(x)[1] @ w1^T + b1) = one batched product",
        ),
        _row(
            "fuse_expand_bmm",
            "optimize_graph",
            "fuse-expand-bmm",
            "rewrites/gemm/batches.py",
            "rewrites/batches.mlir",
            "bmm(expand(x), y) = bmm(x, y), where x is repeated for the batch of y alone",
        ),
        _row(
            "fuse_bmm_permute",
            "optimize_graph",
            "fuse-bmm-permute",
            "rewrites/gemm/batches.py",
            "rewrites/batches.mlir",
            "permute(x @ y) = x @ y stored in the other order",
        ),
        _row(
            "fuse_mm_reshape_permute",
            "optimize_graph",
            "fuse-mm-reshape-permute",
            "rewrites/gemm/batches.py",
            "rewrites/batches.mlir",
            "permute(reshape(x @ w^T)) = a product in batches, one for each head",
        ),
        _row(
            "dedup_make_jagged_ops",
            "optimize_graph",
            "dedup-make-jagged-ops",
            "rewrites/subsets.py",
            "rewrites/subsets_jagged.mlir",
            "make_jagged(x, o), make_jagged(x, o) = one of them",
        ),
    ),
)


@dataclass(frozen=True)
class Helper(Row):
    """A documented function or class that is no pipeline of passes: what it calls, and where that is tested."""

    module: str
    calls: str
    file: str
    test: str
    law: str


def _helper(name: str, module: str, calls: str, file: str, law: str, test: str = "tests/frontend/test_transforms.py"):
    return Helper(name, module, calls, f"ait_mlir/{file}", test, law)


PLANNER = "passes/memory/planner.py"
HERE = "compiler/transform"

HELPERS: dict[str, Helper] = table(
    "helpers",
    (
        _helper("bind_constants", "bind_constants", "`Tensor.bind`", f"{HERE}/bind_constants.py", "all data, or none"),
        _helper(
            "constant_folding",
            "constant_folding",
            "`fold_params`",
            "passes/fold_params.py",
            "what follows from weights with data is a weight",
            "tests/passes/test_fold_params.py",
        ),
        _helper("Workspace", "constant_folding", "", f"{HERE}/constant_folding.py", "shared and unique bytes"),
        _helper(
            "get_conv2d_bias_elementwise_patterns",
            "fuse_conv_elementwise",
            "",
            f"{HERE}/fuse_conv_elementwise.py",
            "the documented chains; any other one joins, too",
        ),
        _helper("FusedElementwiseInfo", "fuse_ops", "", f"{HERE}/fuse_ops.py", "operators that become one"),
        _helper(
            "fused_elementwise",
            "fuse_ops",
            "`ops.fused_elementwise`",
            "frontend/ops/elementwise.py",
            "several elementwise operators in one pass over memory",
            "tests/frontend/test_ops.py",
        ),
        _helper(
            "group_norm",
            "fuse_ops",
            "`ops.group_norm`",
            "frontend/ops/norm.py",
            "each group of channels gets mean 0 and variance 1",
            "tests/frontend/test_ops.py",
        ),
        _helper(
            "group_norm_swish",
            "fuse_ops",
            "`ops.group_norm_swish`",
            "frontend/ops/norm.py",
            "silu(group_norm(x)), one launch",
            "tests/frontend/test_gated_norm.py",
        ),
        _helper(
            "StableSet",
            "fuse_split",
            "`StableSet`",
            "frontend/stable_set.py",
            "a set in the order of insertion",
            "tests/frontend/test_wiring.py",
        ),
        _helper(
            "mark_param_tensor",
            "mark_param_tensor",
            "",
            f"{HERE}/mark_param_tensor.py",
            "what nothing computes, and is no input, is a weight",
        ),
        _helper(
            "mark_special_views",
            "mark_param_tensor",
            "",
            f"{HERE}/mark_param_tensor.py",
            "a view of a view of x is a view of x",
        ),
        _helper(
            "multistream_mode", "memory_planning", "", f"{HERE}/memory_planning.py", "`AIT_MULTISTREAM_MODE`, 0 or 1"
        ),
        _helper(
            "multistream_max_mem_parallel_ops",
            "memory_planning",
            "",
            f"{HERE}/memory_planning.py",
            "`AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS`",
        ),
        _helper(
            "simple_multistream_memory_planning",
            "memory_planning",
            "`plan`, `verify`",
            PLANNER,
            "tensors of one wave share no bytes with what it writes",
        ),
        _helper(
            "split_simple_multistream_parallel_ops",
            "memory_planning",
            "",
            f"{HERE}/memory_planning.py",
            "waves of at most so many operators, in order",
        ),
        _helper("name_graph", "name_graph", "", f"{HERE}/name_graph.py", "names are unique and valid in C"),
        _helper("dedup_symbolic_name", "name_graph", "`merge_symbols`", "frontend/intvar.py", "equal dims are one"),
        _helper(
            "IntVar",
            "name_graph",
            "`IntVar`",
            "frontend/intvar.py",
            "a dim in a range",
            "tests/frontend/test_intvar.py",
        ),
        _helper(
            "IntVarTensor",
            "name_graph",
            "`IntVarTensor`",
            "frontend/intvar.py",
            "a dim as a value",
            "tests/frontend/test_shape_values.py",
        ),
        _helper(
            "JaggedIntVar",
            "name_graph",
            "`JaggedIntVar`",
            "frontend/jagged.py",
            "sequences laid end to end",
            "tests/frontend/test_jagged.py",
        ),
        _helper(
            "profile",
            "profile",
            "`select{measure=true}`",
            "passes/select.py",
            "the fastest kernel at the sizes of the strategy",
        ),
        _helper(
            "force_profiler_cache",
            "profile",
            "",
            f"{HERE}/profile.py",
            "known times alone; a missing one is an error",
        ),
        _helper("ProfilerRunner", "profile", "", f"{HERE}/profile.py", "one profiler at a time on a device"),
        _helper(
            "GemmProfilerPostprocessingDelegate", "profile", "", f"{HERE}/profile.py", "the fastest of each operator"
        ),
        _helper(
            "refine_graph",
            "refine_graph",
            "`op_key`",
            "dialects/ait/structure.py",
            "operators that compute the same share a name",
        ),
        _helper(
            "get_sorted_ops",
            "refine_graph",
            "`get_sorted_ops`",
            "utils/graph_utils.py",
            "operators in order, each once",
        ),
        _helper(
            "ExpandDimensionType",
            "remove_no_ops",
            "",
            f"{HERE}/remove_no_ops.py",
            "an expand adds, repeats or keeps a dim",
        ),
        _helper(
            "remove_unused_ops",
            "remove_unused_ops",
            "",
            f"{HERE}/remove_unused_ops.py",
            "`dst_ops` has operators of the graph alone",
        ),
        _helper(
            "toposort",
            "toposort",
            "`toposort`",
            "frontend/wiring.py",
            "each tensor stands behind what it depends on",
            "tests/frontend/test_wiring.py",
        ),
        _helper(
            "dynamic_slice",
            "transform_memory_ops",
            "`ops.dynamic_slice`",
            "frontend/ops/view.py",
            "the block between two indices",
            "tests/frontend/test_ops.py",
        ),
        _helper(
            "detect_target",
            "transform_strided_ops",
            "`detect_target`",
            "frontend/target.py",
            "the best device of this machine",
            "tests/frontend/test_compile.py",
        ),
        _helper(
            "transform_strided_ops",
            "transform_strided_ops",
            "`select`, `bufferize`, `remove-copies`",
            "rewrites/buffers.py",
            "parts are read and written in place, where kernels take the strides",
            "lit_tests/rewrites/buffers.mlir",
        ),
    ),
)
