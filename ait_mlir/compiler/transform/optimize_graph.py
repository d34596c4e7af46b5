"""The transformations of whole graphs: the complete pipeline of the compiler, and its steps."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.compiler.transform.fuse_ops import fuse_elementwise, process_singleton_elementwise
from ait_mlir.compiler.transform.fuse_parallel_gemms import fuse_single_source_parallel_gemms
from ait_mlir.compiler.transform.fuse_permute_bmm import fuse_permute_bmm_and_gemm
from ait_mlir.compiler.transform.joined import join_heads, join_jagged
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "dedup_make_jagged_ops",
    "fuse_bmm_permute",
    "fuse_duplicate_fused_elementwise",
    "fuse_elementwise",
    "fuse_expand_bmm",
    "fuse_mm_reshape_permute",
    "fuse_permute_bmm_and_gemm",
    "fuse_single_source_parallel_gemms",
    "merge_view_ops",
    "move_view_op_before_concat",
    "optimize_graph",
    "process_singleton_elementwise",
    "remove_elementwise_no_ops",
    "split_large_concat_ops",
    "split_large_slice_scatter_ops",
    "split_large_split_ops",
    "transform_permute_to_reshape",
]


def optimize_graph(sorted_graph: list[Tensor], workdir: str | None = None, optimize: bool = True) -> list[Tensor]:
    """The graph as it is lowered: simplified, with attention, epilogues of products, and elementwise operators fused;
    odd sizes of two-byte products get zeros, and independent products and norms become grouped ones.

    These are the compiler's passes between the phases `canonical` and `fused`, then padding and groups, about which a
    compilation decides by cost. Optimizations of memory and strides run later, on launches; `transform_strided_ops`
    shows them. Without `optimize`, each elementwise operator becomes its
    own `fused_elementwise`, and the rest stays unchanged.
    """
    return apply("optimize_graph" if optimize else "process_singleton_elementwise", sorted_graph, workdir)


def merge_view_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with chains of reshapes, and of expands, merged into one; views to the same shape are removed."""
    return apply("merge_view_ops", sorted_graph, workdir)


def move_view_op_before_concat(sorted_graph: list[Tensor], wordir: str | None = None) -> list[Tensor]:
    """The graph with nested concatenations merged: a reshape between two of them moves to the operands of the inner
    one.

    The reshape must not merge elements of different operands into one dim. `wordir` is the workdir; the name is the
    documented one.
    """
    return apply("move_view_op_before_concat", sorted_graph, wordir)


def remove_elementwise_no_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph without x + 0, x - 0, x * 1 and x / 1; the number may be on either side of + and *."""
    return apply("remove_elementwise_no_ops", sorted_graph, workdir)


def fuse_duplicate_fused_elementwise(sorted_graph: list[Tensor], _workdir: str | None = None) -> list[Tensor]:
    """The graph with equal operators on the same tensors merged into one, which then has several outputs if several of
    their results are outputs of the graph.

    This covers all operators, not only elementwise operators. The second argument is not used.
    """
    return apply("fuse_duplicate_fused_elementwise", sorted_graph)


def split_large_concat_ops(sorted_graph: list[Tensor], _: str | None = None) -> list[Tensor]:
    """The unchanged graph: launches have no limit on the operands of a concatenation that would require a split.

    Each operand of a concatenation is written separately, by the operator that computes it if its kernel accepts
    strides. The second argument is not used.
    """
    return apply("split_large_concat_ops", sorted_graph)


def split_large_slice_scatter_ops(sorted_graph: list[Tensor], _: str | None = None) -> list[Tensor]:
    """The unchanged graph: each slice is written separately. The second argument is not used."""
    return apply("split_large_slice_scatter_ops", sorted_graph)


def split_large_split_ops(sorted_graph: list[Tensor], _: str | None = None) -> list[Tensor]:
    """The unchanged graph: the parts of a split are views of its input. The second argument is not used."""
    return apply("split_large_split_ops", sorted_graph)


def transform_permute_to_reshape(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with reshapes in place of permutes that only move dims of 1, so that no element moves.

    The permute of [256, 5, 1, 32] in order 0132 is a reshape to [256, 5, 32, 1]; the permute in order 0312 is not.
    """
    return apply("transform_permute_to_reshape", sorted_graph, workdir)


def dedup_make_jagged_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with jagged inputs: one `make_jagged` for all inputs with the same number of rows, instead of several
    inside the graph.

    Everything computed from these inputs is then jagged, so offsets are checked once. The views stay where they are if
    they have other offsets, if the offsets are computed, if a view leads from an input to an output, or if an operator
    does not take jagged rows; of equal views one remains.
    """
    return join_jagged(apply("dedup_make_jagged_ops", sorted_graph, workdir))


def fuse_bmm_permute(sorted_graph: list[Tensor], _: str | None = None) -> list[Tensor]:
    """The graph with `bmm_rcc` in place of `permute021(bmm_rcr)`, if the permute is the product's only user.

    The second argument is not used.
    """
    return apply("fuse_bmm_permute", sorted_graph)


def fuse_expand_bmm(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph without expands of a factor to the batch of the other factor: batched products read the original.

    An expand that also enlarges M, N or K stays.
    """
    return apply("fuse_expand_bmm", sorted_graph, workdir)


def fuse_mm_reshape_permute(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with one operator in place of a product, with or without a bias, a reshape and a permute to heads.

    `permute(reshape(gemm_rcr(x, w), [A, B, C, D]), [0, 2, 1, 3])` is `gemm_rcr_permute`: a batched product of x as
    [A, 1, B, K] and w as [C, D, K], with a batch for each head. Of a batched product, the reshape may also part the
    batch, so that the permute moves heads after the rows.
    """
    return join_heads(apply("fuse_mm_reshape_permute", sorted_graph, workdir))
