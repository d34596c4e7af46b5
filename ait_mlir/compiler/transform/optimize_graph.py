"""All transformations of a graph, in the order in which they help each other."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.compiler.transform.fuse_ops import fuse_elementwise, process_singleton_elementwise
from ait_mlir.compiler.transform.fuse_parallel_gemms import fuse_single_source_parallel_gemms
from ait_mlir.compiler.transform.fuse_permute_bmm import fuse_permute_bmm_and_gemm
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
    """The graph that is lowered: simplified, with attention, products and epilogues, and elementwise operators fused.

    These are the passes that compiling runs between the phases `canonical` and `fused`. What works on memory and
    strides comes after them, on launches; `transform_strided_ops` shows it. Without `optimize` each elementwise
    operator becomes a `fused_elementwise` by itself, and nothing else is changed.
    """
    return apply("optimize_graph" if optimize else "process_singleton_elementwise", sorted_graph, workdir)


def merge_view_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Reshapes in a row, and expands in a row, as one; a view to the same shape goes."""
    return apply("merge_view_ops", sorted_graph, workdir)


def move_view_op_before_concat(sorted_graph: list[Tensor], wordir: str | None = None) -> list[Tensor]:
    """Reshapes of a concatenation that another one reads, as reshapes of its operands; the concatenations become one.

    A reshape must keep the joints of the operands apart. `wordir` is the workdir; the name is the documented one.
    """
    return apply("move_view_op_before_concat", sorted_graph, wordir)


def remove_elementwise_no_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph without x + 0, x - 0, x * 1 and x / 1; the number may be on either side of + and *."""
    return apply("remove_elementwise_no_ops", sorted_graph, workdir)


def fuse_duplicate_fused_elementwise(sorted_graph: list[Tensor], _workdir: str | None = None) -> list[Tensor]:
    """Operators that compute the same on the same tensors as one, whose result all of them share.

    All operators count, not only elementwise ones. The second argument is not used.
    """
    return apply("fuse_duplicate_fused_elementwise", sorted_graph)


def split_large_concat_ops(sorted_graph: list[Tensor], _: str | None = None) -> list[Tensor]:
    """The graph as it is: no launch takes a list of tensors of any length.

    A concatenation is lowered to one write for each operand, by the operator that computes it where its kernel takes
    strides. The second argument is not used.
    """
    return apply("split_large_concat_ops", sorted_graph)


def split_large_slice_scatter_ops(sorted_graph: list[Tensor], _: str | None = None) -> list[Tensor]:
    """The graph as it is: each slice is written by itself. The second argument is not used."""
    return apply("split_large_slice_scatter_ops", sorted_graph)


def split_large_split_ops(sorted_graph: list[Tensor], _: str | None = None) -> list[Tensor]:
    """The graph as it is: the parts of a split are views of its input. The second argument is not used."""
    return apply("split_large_split_ops", sorted_graph)


def transform_permute_to_reshape(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Reshapes instead of permutes that move only dims of 1 past others: no element moves.

    [256, 5, 1, 32] in order 0132 is a reshape to [256, 5, 32, 1]; in order 0312 it is none.
    """
    return apply("transform_permute_to_reshape", sorted_graph, workdir)


def dedup_make_jagged_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Views of one tensor as jagged, with one set of offsets, as one view.

    Tensors that are made jagged with the same offsets have the same jagged dim from the start, wherever that is done,
    so that the offsets are checked once for each operator that reads them.
    """
    return apply("dedup_make_jagged_ops", sorted_graph, workdir)


def fuse_bmm_permute(sorted_graph: list[Tensor], _: str | None = None) -> list[Tensor]:
    """Products whose transposed result alone is read, stored in the other order: `bmm_rcc` for `permute021(bmm_rcr)`.

    The second argument is not used.
    """
    return apply("fuse_bmm_permute", sorted_graph)


def fuse_expand_bmm(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Batched products that read what an expand repeats for the batch of the other factor.

    An expand that also enlarges M, N or K stays.
    """
    return apply("fuse_expand_bmm", sorted_graph, workdir)


def fuse_mm_reshape_permute(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """A product whose columns are parted and moved before its rows, as a product in batches, one for each head.

    `permute(reshape(gemm_rcr(x, w), [A, B, C, D]), [0, 2, 1, 3])` is `bmm_rcr` of x as [A, 1, B, K] and w as [C, D, K].
    """
    return apply("fuse_mm_reshape_permute", sorted_graph, workdir)
