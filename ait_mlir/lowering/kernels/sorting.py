"""Sorting, searching in sorted rows, and counting."""

from __future__ import annotations

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.reduce import TopkOp
from ait_mlir.dialects.ait.sorting import HistogramOp, SearchSortedOp, SortOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Expr, const
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Target
from ait_mlir.lowering.kernels.loops import ZERO, collapse, nest, operand, single, sizes

TILE = 2048
"""The elements that a block sorts: `kSortTile` of `gpu/sort.cuh`."""


def _flag(value: bool) -> str:
    return "true" if value else "false"


class SortKernel(Kernel[SortOp]):
    """`ait.sort` along any dim, any strides. A GPU sorts tiles in the first launch; each further launch merges pairs of
    runs.
    """

    name = "sort"
    ops = (SortOp,)

    def seconds(self, op: SortOp, target: Target) -> float:
        return sort_seconds(op, op.dim.value.data, target)

    def workspace(self, op: SortOp, config: Config) -> Expr:
        return sort_bytes(op, op.dim.value.data)

    def emit(self, launch: Launch[SortOp]) -> Emission:
        op = launch.op
        axis = op.dim.value.data
        return emit_sort(launch, axis, op.descending is not None, tensor_type(op.input).dims[axis])


def emit_sort(launch: Launch[SortOp] | Launch[TopkOp], axis: int, descending: bool, count: Expr) -> Emission:
    """The call of a sort that returns the first `count` elements."""
    (x,), outs, dims = launch.ins, launch.outs, launch.dims
    loops = nest(x.type.dims, [x.strides, *(a.strides for a in outs)])
    row = loops.pop(axis)
    nested = [*collapse(loops or [single(3)], launch.scope), row]
    far = launch.scope.bounds(row.size)[1] >= 2**32 - 1
    first, *results = (operand(a.name, nested, i, dims) for i, a in enumerate((x, *outs)))
    return launch.call(
        "sort",
        f"sort<{_flag(descending)}, {_flag(far)}>(ctx, {sizes(nested, dims)}, {first}, {launch.cpp(count)}, "
        f"{', '.join(results)}, workspace)",
    )


def sort_bytes(op: SortOp | TopkOp, axis: int) -> Expr:
    """Bytes of workspace for `ait::gpu::sort`: two pairs for each element, if rows may be longer than a tile."""
    t = tensor_type(op.input)
    longest = scope_of(op).bounds(t.dims[axis])[1]
    if longest <= TILE:
        return const(0)
    wide = element_bytes(t) > 4 or longest >= 2**32 - 1
    return t.num_elements() * const(2 * (16 if wide else 8))


def sort_seconds(op: SortOp | TopkOp, axis: int, target: Target) -> float:
    """Estimated seconds: each launch moves all pairs, and the first takes about as long as ten passes over memory."""
    t, env = tensor_type(op.input), estimate_env(scope_of(op))
    length, elements = t.dims[axis].evaluate(env), t.num_elements().evaluate(env)
    if not target.is_gpu:
        return target.launch_seconds + bytes_moved(op, scope_of(op)) / target.bandwidth + elements * 1e-8
    merges = max(0, (max(1, length) - 1) // TILE).bit_length()
    pair = 16 if BY_IR[t.element_type].bytes > 4 else 8
    return (1 + merges) * target.launch_seconds + (10 + 2 * merges) * pair * elements / target.bandwidth


class SortingTopk(Kernel[TopkOp]):
    """`ait.topk` as the first elements of a sort, on a GPU."""

    provider = "sort"
    name = "topk_sort"
    ops = (TopkOp,)
    gpu_only = True

    def seconds(self, op: TopkOp, target: Target) -> float:
        return sort_seconds(op, op.axis, target)

    def workspace(self, op: TopkOp, config: Config) -> Expr:
        return sort_bytes(op, op.axis)

    def emit(self, launch: Launch[TopkOp]) -> Emission:
        op = launch.op
        return emit_sort(launch, op.axis, op.smallest is None, const(op.k.value.data))


class SearchKernel(Kernel[SearchSortedOp]):
    """`ait.search_sorted`, any strides."""

    name = "search_sorted"
    ops = (SearchSortedOp,)

    def emit(self, launch: Launch[SearchSortedOp]) -> Emission:
        (rows, values), (out,), dims = launch.ins, launch.outs, launch.dims
        *outer, step = rows.strides
        strides = [*outer, ZERO] if outer else [ZERO] * values.type.rank
        loops = collapse(nest(values.type.dims, [strides, values.strides, out.strides]), launch.scope)
        parts = [operand(a.name, loops, i, dims) for i, a in enumerate((rows, values, out))]
        return launch.call(
            "search",
            f"search<{_flag(launch.op.right is not None)}>(ctx, {sizes(loops, dims)}, {parts[0]}, "
            f"{launch.cpp(rows.type.dims[-1], step)}, {parts[1]}, {parts[2]})",
        )


class HistogramKernel(Kernel[HistogramOp]):
    """`ait.histogram` of a contiguous tensor."""

    name = "histogram"
    ops = (HistogramOp,)
    row_major = True
    alone = True
    """The result is cleared before the launch, so the launch cannot overlap its neighbours."""

    def emit(self, launch: Launch[HistogramOp]) -> Emission:
        (x,), (out,) = launch.ins, launch.outs
        count = launch.cpp(x.type.num_elements())
        return launch.call("histogram", f"histogram(ctx, {count}, {x.name}, {launch.op.bins.value.data}, {out.name})")


KERNELS = (SortKernel(), SortingTopk(), SearchKernel(), HistogramKernel())
