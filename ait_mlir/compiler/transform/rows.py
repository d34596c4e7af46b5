"""The table of documented transformations: the passes that each runs, their file, their test and their law.
`docs/passes.md` is made from it (`python -m ait_mlir.compiler.transform.page`)."""

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
    """The contractions that the transformation may change; all if empty."""


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
            "rewrites/documented.mlir",
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
            "rewrites/documented.mlir",
            "a product reads a transposed operand in the other layout",
        ),
        _row(
            "merge_view_ops",
            "optimize_graph",
            "merge-view-ops",
            "rewrites/view.py",
            "rewrites/documented.mlir",
            "reshape(reshape(x)) = reshape(x)",
        ),
        _row(
            "remove_elementwise_no_ops",
            "optimize_graph",
            "remove-elementwise-no-ops",
            "rewrites/elementwise/algebra.py",
            "rewrites/documented.mlir",
            "x + 0 = x - 0 = x * 1 = x / 1 = x",
        ),
        _row(
            "transform_permute_to_reshape",
            "optimize_graph",
            "transform-permute-to-reshape",
            "rewrites/documented.py",
            "rewrites/documented.mlir",
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
            "rewrites/documented.mlir",
            "a view to the same type, a split into one part, a concat of one tensor are their operand",
        ),
        _row(
            "transform_special_ops",
            "transform_special_ops",
            "transform-special-ops",
            "rewrites/conv.py",
            "rewrites/documented.mlir",
            "conv(x, w) with a window of one element = x @ w^T; x @ y with K = 1 is x * y",
        ),
        _row(
            "transform_memory_ops",
            "transform_memory_ops",
            "merge-concats",
            "rewrites/concat.py",
            "rewrites/concat.mlir",
            "concat(split(x)) = x, split(concat(x, y)) = x, y, concat(concat(x, y), z) = concat(x, y, z)",
        ),
        _row(
            "move_view_op_before_concat",
            "optimize_graph",
            "merge-concats",
            "rewrites/concat.py",
            "rewrites/concat.mlir",
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
            "x @ y = slice(pad(x) @ pad(y)), where two-byte rows have an odd number of elements; compilations have"
            " `pad-products`, by cost",
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
            "group-products,group-norms",
            "passes/grouping.py",
            "passes/group_norms.mlir",
            "products, or norms, of one epilogue that do not wait for each other are one grouped product or norm",
        ),
        _row(
            "fuse_parallel_gemms",
            "fuse_parallel_gemms",
            "fuse-parallel-gemms,merge-parallel-gemms,merge-concats",
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
            "rewrites/documented.py",
            "rewrites/documented_jagged.mlir",
            "make_jagged(x, o), make_jagged(x, o) = one of them",
        ),
    ),
)
