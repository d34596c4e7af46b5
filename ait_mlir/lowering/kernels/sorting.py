"""Sorting, searching in sorted rows, and counting."""

from __future__ import annotations

from xdsl.dialects.builtin import i1

from ait_mlir.dialects.ait.reduce import TopkOp
from ait_mlir.dialects.ait.sorting import HistogramOp, KthValueOp, OrderOp, SearchSortedOp, SortOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Expr, Scope, ceildiv, const, product
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.loops import (
    ONE,
    ZERO,
    braces,
    broadcast_strides,
    collapse,
    nest,
    operand,
    result,
    single,
    sizes,
    steps,
)
from ait_mlir.lowering.kernels.radix import (
    DIGIT_BITS,
    THREADS,
    TILE,
    cluster_seconds,
    order_seconds,
    radix_bytes,
    radix_each,
)
from ait_mlir.lowering.target import HOPPER


def _short(t: TensorType) -> int:
    """The longest rows that warps of a GPU sort in registers: `kSortShort` of `gpu/sort_short.cuh`."""
    return 512 if key_bytes(t) == 8 else 1024


WARP = 32
"""The most threads of a warp that hold a row together, on any GPU."""


def _flag(value: bool) -> str:
    return "true" if value else "false"


class SortKernel(Kernel[SortOp]):
    """`ait.sort` along any dim, any strides."""

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


def emit_sort(
    launch: Launch[SortOp] | Launch[TopkOp], axis: int, descending: bool, count: Expr, name: str = "sort"
) -> Emission:
    """The call of `ait::gpu::sort` or `ait::gpu::topk`, which return the first `count` elements."""
    (x,), outs, dims = launch.ins, launch.outs, launch.dims
    loops = nest(x.type.dims, [x.strides, *(a.strides for a in outs)])
    row = loops.pop(axis)
    nested = [*collapse(loops or [single(3)], launch.scope), row]
    flags, more = [_flag(descending)], ""
    if launch.target.is_gpu:
        flags += [str(min(length, TILE + 1)) for length in launch.scope.bounds(row.size)]
        more = f"{radix_each(*_rows(x.type, axis), launch.scope)}, "
    else:
        flags.append(_flag(launch.scope.bounds(row.size)[1] >= 2**32 - 1))
    first = operand(x.name, nested, 0, dims)
    results = [result(a, nested, i, dims) for i, a in enumerate(outs, 1)]
    return launch.call(
        name,
        f"{name}<{', '.join(flags)}>(ctx, {sizes(nested, dims)}, {first}, {launch.cpp(count)}, "
        f"{', '.join(results)}, {more}workspace)",
    )


def sort_bytes(op: SortOp | TopkOp, axis: int) -> Expr:
    """Bytes of workspace for `ait::gpu::sort`."""
    t = tensor_type(op.input)
    return radix_bytes(*_rows(t, axis), key_bits(t), key_bytes(t), scope_of(op))


def _rows(t: TensorType, axis: int) -> tuple[Expr, Expr]:
    """The number of rows along an axis, and their length."""
    return product(d for i, d in enumerate(t.dims) if i != axis), t.dims[axis]


def key_bits(t: TensorType) -> int:
    """The bits of an element that a radix sort compares, `kSortBits` in the C++ code."""
    return 1 if t.element_type == i1 else 8 * element_bytes(t)


def key_bytes(t: TensorType) -> int:
    """The bytes of the key that a radix sort makes of an element, `sort_key_t` in the C++ code."""
    return 8 if element_bytes(t) > 4 else 4


ELEMENT_SECONDS = 4e-12
"""Of one pass of a radix sort in shared memory over an element, on the card of the estimates."""
STEP_SECONDS = 1.4e-13
"""Of one step of a network over an element of one word (a key of 16 bits, its place), on the card of the estimates:
rows of 256 and 1,000 elements of f16 take 1.4e-13 and 1.3e-13 beyond their bytes (H200, 2^24 elements)."""
STEP_WORDS = {4: 2, 8: 6}
"""The time of a step for elements of so many bytes, over that for one word."""


def sort_seconds(op: SortOp | TopkOp, axis: int, target: Target) -> float:
    """Estimated seconds."""
    t, env = tensor_type(op.input), estimate_env(scope_of(op))
    length, elements = t.dims[axis].evaluate(env), t.num_elements().evaluate(env)
    moved = bytes_moved(op, scope_of(op)) / target.bandwidth
    if not target.is_gpu:
        return target.launch_seconds + moved + elements * 1e-8
    slower = HOPPER.bandwidth / target.bandwidth
    if length <= _short(t):
        width = max(3, (length - 1).bit_length())  # of 8 elements at least, a power of two
        steps = elements / max(1, length) * 2**width * width * (width + 1) / 2
        words = STEP_WORDS.get(element_bytes(t), 1)
        return target.launch_seconds + moved + steps * words * STEP_SECONDS * slower
    passes = -(-key_bits(t) // DIGIT_BITS)
    work = passes * elements * ELEMENT_SECONDS * slower
    if length <= TILE:
        return 2 * target.launch_seconds + moved + work
    if (seconds := cluster_seconds(elements // length, length, passes, key_bytes(t), target)) is not None:
        return seconds
    exchanged = 2 * (passes - 1) * elements * (key_bytes(t) + 4) / target.bandwidth
    return (2 + 2 * passes) * target.launch_seconds + 2 * moved + exchanged + work


class TopkKernel(Kernel[TopkOp]):
    """`ait.topk` on a GPU, any strides: few elements of short rows by a warp, others by selection, or by a sort where
    many elements are asked for.
    """

    name = "topk"
    ops = (TopkOp,)
    gpu_only = True

    def seconds(self, op: TopkOp, target: Target) -> float:
        length = tensor_type(op.input).dims[op.axis].evaluate(estimate_env(scope_of(op)))
        if op.k.value.data > _select_tile(op) // 4 or length <= TILE:
            return sort_seconds(op, op.axis, target)
        return 3 * target.launch_seconds + 2 * bytes_moved(op, scope_of(op)) / target.bandwidth

    def workspace(self, op: TopkOp, config: Config) -> Expr:
        return topk_bytes(op)

    def emit(self, launch: Launch[TopkOp]) -> Emission:
        op = launch.op
        return emit_sort(launch, op.axis, op.smallest is None, const(op.k.value.data), "topk")


def _select_tile(op: TopkOp) -> int:
    """`kSelectTile` of the keys: the number of elements that one block selects from."""
    return 2 * TILE if key_bytes(tensor_type(op.input)) == 4 else TILE


def topk_bytes(op: TopkOp) -> Expr:
    """Bytes of workspace for `ait::gpu::topk`: two buffers for the candidates of each part of a row."""
    t, k, tile = tensor_type(op.input), op.k.value.data, _select_tile(op)
    if k > tile // 4:
        return sort_bytes(op, op.axis)
    rows, length = _rows(t, op.axis)
    if scope_of(op).bounds(length)[1] <= TILE:
        return const(0)
    return 2 * (rows * ceildiv(length, tile) * (k * (key_bytes(t) + 4)) + 16)


class KthValueKernel(Kernel[KthValueOp]):
    """`ait.kth_value` along any dim, any strides, by selection."""

    name = "kth_value"
    ops = (KthValueOp,)

    def seconds(self, op: KthValueOp, target: Target) -> float:
        t, env = tensor_type(op.input), estimate_env(scope_of(op))
        moved = bytes_moved(op, scope_of(op)) / target.bandwidth
        elements = t.num_elements().evaluate(env)
        if not target.is_gpu:
            return target.launch_seconds + moved + elements * 1e-8
        length = t.dims[op.dim.value.data].evaluate(env)
        bits, slower = key_bits(t), HOPPER.bandwidth / target.bandwidth
        if length <= THREADS * share_items(t):
            return target.launch_seconds + moved + bits * elements * BIT_SECONDS * slower
        idle = max(1.0, target.multiprocessors * length / max(elements, 1))  # a row has one multiprocessor
        passes = -(-bits // DIGIT_BITS)
        return target.launch_seconds + passes * (moved + elements * DIGIT_SECONDS * slower) * idle

    def emit(self, launch: Launch[KthValueOp]) -> Emission:
        op, (x,), outs, dims = launch.op, launch.ins, launch.outs, launch.dims
        axis = op.dim.value.data
        loops = nest(x.type.dims, [x.strides, *((*a.strides[:axis], ZERO, *a.strides[axis:]) for a in outs)])
        row = loops.pop(axis)
        nested = [*collapse(loops or [single(3)], launch.scope), row]
        first, *results = (operand(a.name, nested, i, dims) for i, a in enumerate((x, *outs)))
        template = [_flag(op.nan_first is not None)]
        if launch.target.is_gpu:
            shares = row_shares(*launch.scope.bounds(row.size), share_items(x.type))
            template += [f"ait::gpu::RowShare<{lanes}, {items}>" for lanes, items in shares]
        return launch.call(
            "kth_value",
            f"kth_value<{', '.join(template)}>(ctx, {sizes(nested, dims)}, {first}, "
            f"{launch.cpp(*op.k.data)}, {', '.join(results)})",
        )


BIT_SECONDS = 1e-13
"""Of one bit of an element in registers that is compared and counted, on the card of the estimates."""
DIGIT_SECONDS = 6e-12
"""Of one digit of an element that is counted in shared memory, on the card of the estimates."""


def share_items(t: TensorType) -> int:
    """The most elements of a row that a thread holds in registers."""
    return 16 if key_bytes(t) == 8 else 32


def row_shares(least: int, most: int, items: int) -> list[tuple[int, int]]:
    """Pairs (threads of a row, elements of a thread) that hold rows of `least` to `most` elements, for the shortest
    rows first.

    If all rows have one length, there is one pair: with as few threads as can hold the row with at most `items`
    elements each.
    """
    if least == most:
        lanes = 1
        while lanes < THREADS and lanes * items < most:
            lanes = 2 * lanes if lanes < WARP else THREADS
        return [(lanes, max(4, min(items, -(-most // (4 * lanes)) * 4)))]
    lengths = [lanes * items for lanes in (1, 8, WARP)]
    needed = [n for n, before in zip(lengths, [0, *lengths], strict=False) if least <= n and most > before]
    return [(n // items, items) for n in needed] + ([(THREADS, items)] if most > lengths[-1] else [])


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


class OrderKernel(Kernel[OrderOp]):
    """`ait.order`, any strides of the indices: on a GPU by the sort of a scatter, in one launch for few places."""

    name = "order"
    ops = (OrderOp,)

    def accepts(self, op: OrderOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position < len(op.operands) or strides[0].as_int() == 1

    def seconds(self, op: OrderOp, target: Target) -> float:
        env = estimate_env(scope_of(op))
        places = op.elements().evaluate(env)
        if not target.is_gpu:
            return target.launch_seconds + places * 1e-7
        return order_seconds(1, places, _most_named(op), target)

    def workspace(self, op: OrderOp, config: Config) -> Expr:
        return radix_bytes(const(1), op.elements(), (_most_named(op) - 1).bit_length(), 4, scope_of(op))

    def emit(self, launch: Launch[OrderOp]) -> Emission:
        op, indices, outs, cpp = launch.op, launch.ins, launch.outs, launch.dims
        space = op.space() or (ONE,)
        loops = collapse(nest(space, [broadcast_strides(i, space) for i in indices]), launch.scope)
        gpu = launch.target.is_gpu
        loops += [single(len(indices))] * (2 if gpu else 0)  # a row and a column
        none = braces([ZERO] * len(loops), cpp)
        made = (
            f"ait::indexed_space({sizes(loops, cpp)}, {none}, {none}, {{{', '.join(i.name for i in indices)}}}, "
            f"{{{', '.join(steps(loops, k, cpp) for k in range(len(indices)))}}}, "
            f"{braces(op.sizes.data, cpp)}, {braces([ZERO] * len(indices), cpp)})"
        )
        more = f", {radix_each(const(1), op.elements(), launch.scope)}, workspace" if gpu else ""
        return launch.call("order_places", f"order_places(ctx, {made}, {outs[0].name}, {outs[1].name}{more})")


def _most_named(op: OrderOp) -> int:
    """The most elements that the indices can name."""
    return scope_of(op).bounds(product(op.sizes.data))[1]


KERNELS = (SortKernel(), TopkKernel(), KthValueKernel(), SearchKernel(), HistogramKernel(), OrderKernel())
