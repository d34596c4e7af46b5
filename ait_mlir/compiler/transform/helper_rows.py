"""The table of documented functions and classes that are not pipelines of passes: the code that each calls, its file,
its test and its law. `docs/passes.md` is made from it and from `rows.py`."""

from __future__ import annotations

from dataclasses import dataclass

from ait_mlir.rows import Row, table


@dataclass(frozen=True)
class Helper(Row):
    """A documented function or class that is not a pipeline of passes: the code that it calls, and its test.

    `graphless` is the reason why it does not act on a graph; it is empty for a function that acts on graphs.
    """

    module: str
    calls: str
    file: str
    law: str
    graphless: str
    test: str


def _helper(name: str, module: str, calls: str, file: str, law: str, graphless: str = "", test: str = ""):
    test = test or ("test_transform_helpers.py" if graphless else "test_transform_graphs.py")
    return Helper(name, module, calls, f"ait_mlir/{file}", law, graphless, f"tests/frontend/{test}")


OPERATOR = "an operator: it stands where the builder calls it"
READS = "it only reads"
SETTING = "it reads the environment"
DATA = "data"

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
        ),
        _helper("Workspace", "constant_folding", "", f"{HERE}/constant_folding.py", "shared and unique bytes", DATA),
        _helper(
            "get_conv2d_bias_elementwise_patterns",
            "fuse_conv_elementwise",
            "",
            f"{HERE}/fuse_conv_elementwise.py",
            "the documented chains; any other one joins, too",
            DATA,
        ),
        _helper("extract_only_one_op", "fuse_utils", "", f"{HERE}/fuse_utils.py", "the operator, if one", READS),
        _helper(
            "is_elementwise_type",
            "fuse_utils",
            "",
            f"{HERE}/fuse_utils.py",
            "its function",
            READS,
        ),
        _helper("FusedElementwiseInfo", "fuse_ops", "", f"{HERE}/fuse_ops.py", "operators that become one", DATA),
        _helper(
            "fused_elementwise",
            "fuse_ops",
            "`ops.fused_elementwise`",
            "frontend/ops/elementwise.py",
            "several elementwise operators in one pass over memory",
            OPERATOR,
            test="test_transform_graphs.py",
        ),
        _helper(
            "group_norm",
            "fuse_ops",
            "`ops.group_norm`",
            "frontend/ops/norm.py",
            "each group of channels gets mean 0 and variance 1",
            OPERATOR,
            test="test_ops.py",
        ),
        _helper(
            "group_norm_swish",
            "fuse_ops",
            "`ops.group_norm_swish`",
            "frontend/ops/norm.py",
            "silu(group_norm(x)), one launch",
            OPERATOR,
            test="test_ops.py",
        ),
        _helper(
            "StableSet",
            "fuse_split",
            "`StableSet`",
            "frontend/stable_set.py",
            "a set in the order of insertion",
            DATA,
            test="test_wiring.py",
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
            "multistream_mode",
            "memory_planning",
            "",
            f"{HERE}/memory_planning.py",
            "`AIT_MULTISTREAM_MODE`, 0 or 1",
            SETTING,
        ),
        _helper(
            "multistream_max_mem_parallel_ops",
            "memory_planning",
            "",
            f"{HERE}/memory_planning.py",
            "`AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS`",
            SETTING,
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
            "it takes operators and returns lists of them",
        ),
        _helper("name_graph", "name_graph", "", f"{HERE}/name_graph.py", "names are unique and valid in C"),
        _helper(
            "dedup_symbolic_name",
            "name_graph",
            "`merge_symbols`",
            "frontend/intvar.py",
            "equal dims are one",
            "it checks: equal dims have one name from the start",
        ),
        _helper(
            "IntVar", "name_graph", "`IntVar`", "frontend/intvar.py", "a dim in a range", DATA, test="test_intvar.py"
        ),
        _helper(
            "IntVarTensor",
            "name_graph",
            "`IntVarTensor`",
            "frontend/intvar.py",
            "a dim as a value",
            DATA,
            test="test_shape_values.py",
        ),
        _helper(
            "JaggedIntVar",
            "name_graph",
            "`JaggedIntVar`",
            "frontend/jagged.py",
            "sequences laid end to end",
            DATA,
            test="test_jagged.py",
        ),
        _helper(
            "profile",
            "profile",
            "`select{measure=true}`",
            "selection/select.py",
            "the fastest kernel at the sizes of the strategy",
        ),
        _helper(
            "force_profiler_cache",
            "profile",
            "",
            f"{HERE}/profile.py",
            "known times alone; a missing one is an error",
            SETTING,
        ),
        _helper(
            "ProfilerRunner",
            "profile",
            "",
            f"{HERE}/profile.py",
            "one profiler at a time on a device",
            "it runs commands",
        ),
        _helper(
            "GemmProfilerPostprocessingDelegate",
            "profile",
            "",
            f"{HERE}/profile.py",
            "the fastest of each operator",
            DATA,
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
            READS,
        ),
        _helper(
            "ExpandDimensionType",
            "remove_no_ops",
            "",
            f"{HERE}/remove_no_ops.py",
            "an expand adds, repeats or keeps a dim",
            DATA,
        ),
        _helper(
            "remove_unused_ops",
            "remove_unused_ops",
            "",
            f"{HERE}/remove_unused_ops.py",
            "`dst_ops` has operators of the graph alone",
        ),
        _helper(
            "toposort", "toposort", "`toposort`", "frontend/wiring.py", "each tensor stands behind what it depends on"
        ),
        _helper(
            "dynamic_slice",
            "transform_memory_ops",
            "`ops.dynamic_slice`",
            "frontend/ops/view.py",
            "the block between two indices",
            OPERATOR,
            test="test_ops.py",
        ),
        _helper(
            "detect_target",
            "transform_strided_ops",
            "`detect_target`",
            "frontend/target.py",
            "the best device of this machine",
            "it reads the machine",
            test="test_compile.py",
        ),
        _helper(
            "transform_strided_ops",
            "transform_strided_ops",
            "`select`, `bufferize`, `remove-copies`",
            "rewrites/buffers.py",
            "parts are read and written in place, where kernels take the strides",
        ),
    ),
)
