"""Ops that move elements by index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ait_mlir.dialects.ait.dtypes import BY_IR, compute_type, is_float
from ait_mlir.dialects.ait.index import (
    EmbeddingOp,
    GatherOp,
    GroupedEmbeddingOp,
    IndexedOp,
    MaskedSelectOp,
    ScatterOp,
    UpdateSliceOp,
)
from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Expr, Scope, const, product
from ait_mlir.lowering.cpp import cstr
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides
from ait_mlir.lowering.kernels.loops import Loop, braces, broadcast_strides, collapse, nest, single, sizes, steps
from ait_mlir.lowering.kernels.radix import order_seconds, radix_bytes, radix_each
from ait_mlir.lowering.target import Target


class GatherKernel(Kernel[EmbeddingOp]):
    """`ait.embedding`: copies rows of the table.

    An id outside of the table never causes a read outside of it: the CPU fails with a message that names the id; a GPU
    fills the row with NaN for a float table, with 0 for other tables.
    """

    name = "gather"
    ops = (EmbeddingOp,)

    def accepts(self, op: EmbeddingOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position == 1 or strides[-1].as_int() == 1

    def emit(self, launch: Launch[EmbeddingOp]) -> Emission:
        (table, ids), (out,) = launch.ins, launch.outs
        return launch.call("gather", f"gather(ctx, {_lookup(launch, table, ids, out, _places(launch, ids, out))})")


class GroupedGatherKernel(Kernel[GroupedEmbeddingOp]):
    """`ait.grouped_embedding`: on a GPU one launch copies the rows of as many tables as fit into its arguments; a CPU
    processes the tables in sequence. Ids outside of a table are treated as in `GatherKernel`.
    """

    name = "grouped_gather"
    ops = (GroupedEmbeddingOp,)

    def accepts(self, op: GroupedEmbeddingOp, position: int, strides: Strides, scope: Scope) -> bool:
        is_ids = position < len(op.pairs) and position % 2 == 1
        return is_ids or strides[-1].as_int() == 1

    def emit(self, launch: Launch[GroupedEmbeddingOp]) -> Emission:
        given = list(zip(launch.ins[::2], launch.ins[1::2], launch.outs, strict=True))
        loops = [_places(launch, ids, out) for _, ids, out in given]
        rank = max(map(len, loops))
        parts = [
            _lookup(launch, table, ids, out, [*[single(2)] * (rank - len(nested)), *nested])
            for (table, ids, out), nested in zip(given, loops, strict=True)
        ]
        if not launch.target.is_gpu:
            calls = [f"ait::cpu::gather(ctx, {part})" for part in parts]
            body = "".join(f"if (const int32_t status = {call}) return status;\n" for call in calls) + "return 0;\n"
            return Emission(("ait/math.h", launch.header("gather")), "", body)
        made = ",\n    ".join(f"ait::gpu::lookup({part})" for part in parts)
        body = f"return ait::gpu::gather_grouped(ctx, {{\n    {made}}});\n"
        return Emission(("ait/math.h", launch.header("gather")), "", body)


def _places(launch: Launch[Any], ids: Arg, out: Arg) -> list[Loop]:
    """The loops over the ids: each with its size, the stride of the ids and the stride of the rows of the result."""
    return collapse(nest(ids.type.dims, [ids.strides, out.strides[:-1]]), launch.scope)


def _lookup(launch: Launch[Any], table: Arg, ids: Arg, out: Arg, loops: Sequence[Loop]) -> str:
    """The C++ arguments of one table and its ids."""
    rows, width = table.type.dims
    return (
        f"{sizes(loops, launch.dims)}, {table.name}, {launch.cpp(rows, width, table.strides[0])}, "
        f"{ids.name}, {steps(loops, 0, launch.dims)}, {out.name}, {steps(loops, 1, launch.dims)}"
    )


class UpdateKernel(Kernel[UpdateSliceOp]):
    """`ait.update_slice`: writes only the rows, in place: operand 0 and the result share a buffer."""

    name = "update"
    ops = (UpdateSliceOp,)

    def accepts(self, op: UpdateSliceOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position != 2 or all(stride.as_int() == 1 for stride in strides)

    def emit(self, launch: Launch[UpdateSliceOp]) -> Emission:
        (_, rows, position), (out,), dims = launch.ins, launch.outs, launch.dims
        axis, scope = launch.op.axis, launch.scope
        loops = nest(rows.type.dims, [rows.strides, out.strides])
        before, inner = (_merged(part, scope) for part in (loops[:axis], loops[axis + 1 :]))
        width = const(1)
        if inner and all(stride.as_int() == 1 for stride in inner[-1].strides):
            width = inner.pop().size
        loops = [*before, loops[axis], *inner]
        space = (
            f"ait::update_space({sizes(loops, dims)}, {steps(loops, 0, dims)}, {steps(loops, 1, dims)}, "
            f"{launch.cpp(width)}, {len(before)}, {launch.cpp(out.type.dims[axis], out.strides[axis])}, "
            f"{position.type.rank})"
        )
        return launch.call("update", f"update_slice(ctx, {space}, {rows.name}, {position.name}, {out.name})")


def _merged(loops: Sequence[Loop], scope: Scope) -> list[Loop]:
    """The same iteration space with fewer loops; no loops for a single element."""
    return [loop for loop in collapse(loops, scope) if loop.size.as_int() != 1] if loops else []


class CompactKernel(Kernel[MaskedSelectOp]):
    """`ait.masked_select`: on a GPU the blocks first count, then each block moves its selected rows."""

    name = "compact"
    ops = (MaskedSelectOp,)
    row_major = True

    def workspace(self, op: MaskedSelectOp, config: Config) -> Expr:
        """Bytes for a count of each block; only a GPU uses them."""
        return const(8 * 1024)

    def emit(self, launch: Launch[MaskedSelectOp]) -> Emission:
        (x, mask), outs = launch.ins, launch.outs
        rows, width = mask.type.num_elements(), product(x.type.dims[mask.type.rank :])
        buffers = ", ".join(arg.name for arg in (x, mask, *outs))
        if launch.target.is_gpu:
            buffers += ", static_cast<int64_t*>(workspace)"
        return launch.call("compact", f"compact(ctx, {launch.cpp(rows, width)}, {buffers})")


ELEMENTS_CPU = 3.5
"""The slowdown of a gather of single elements on a core: 500 us for 172,032 elements of f32."""
ELEMENTS = 3.3
"""The slowdown of a gather of single elements on an H200: 319 us for 8,192 x 4,096 in f16, along dim 1."""


class TakeKernel(Kernel[GatherOp]):
    """`ait.gather`, any strides: copies contiguous runs along the kept dims after the last index if there are any,
    otherwise single elements.
    """

    name = "take"
    ops = (GatherOp,)

    def slowdown(self, op: GatherOp, target: Target) -> float:
        runs = any(at == len(op.space()) - 1 for _, at in op.kept_dims())
        return 1.0 if runs else ELEMENTS if target.is_gpu else ELEMENTS_CPU

    def emit(self, launch: Launch[GatherOp]) -> Emission:
        (x, *indices), (y,) = launch.ins, launch.outs
        loops = collapse(_indexed_loops(launch.op, y, x, indices), launch.scope)
        width = const(1)
        if [s.as_int() for s in loops[-1].strides] == [1, 1, *(0 for _ in indices)]:
            width = loops.pop().size
        space = _indexed_space(launch, loops or [single(2 + len(indices))], x, indices)
        says = launch.op.says
        error = "" if says is None or launch.target.is_gpu else f", {cstr(says.data)}"
        return launch.call("take", f"take(ctx, {space}, {launch.cpp(width)}, {x.name}, {y.name}{error})")


MANY_ROWS = 64
"""Rows of places, without columns, that a GPU combines without a sort: `kManyRows` of `gpu/scatter.cuh`."""


TILE_TARGETS = 1 << 14
"""The most elements of a row that lie in shared memory then, about."""


RANGE_BYTES = 192 * 1024
MOST_RANGES = 8
"""Bytes of a range of a longer row, about, and the most ranges: `gpu/scatter_wide_rows.cuh`."""


WIDE_PLACES = 1024
"""The fewest places of such a row."""


LAST_TARGETS = 8
"""The most elements for each place that a GPU takes numbers for."""


class ScatterKernel(Kernel[ScatterOp]):
    """`ait.scatter`, in place: operand 0 and the result share a buffer.

    Places that differ along a kept dim name different elements. A CPU runs the other dims in order. A GPU sorts the
    places by element; dims along which no index differs share the sorted places. Sums and products of 16-bit floats
    need a contiguous tensor, and a buffer with an f32 for each element.
    """

    name = "scatter"
    ops = (ScatterOp,)

    def matches(self, op: ScatterOp, target: Target) -> bool:
        return not (target.is_gpu and op.order)

    def accepts(self, op: ScatterOp, position: int, strides: Strides, scope: Scope) -> bool:
        updated = position in (0, len(op.operands))
        return not (updated and _combines_wider(op)) or is_contiguous(tensor_type(op.input).dims, strides, scope)

    def between(self, op: ScatterOp, config: Config, target: Target) -> tuple[TensorType, ...]:
        t = tensor_type(op.input)
        return (TensorType.get(t.dims, compute_type(t.element_type)),) if _combines_wider(op) else ()

    def workspace(self, op: ScatterOp, config: Config) -> Expr:
        """The bytes of the sort by position on a GPU, or of the last place of each element."""
        rows, places = _sorted_rows(op)
        if _last_of_many(op):
            return 4 * rows * _targets(op)
        bits, size = (_most_targets(op) - 1).bit_length(), 8 if _key(op) == "uint64_t" else 4
        return radix_bytes(rows, places, bits, size, scope_of(op), kept=True)

    def seconds(self, op: ScatterOp, target: Target) -> float:
        moved = bytes_moved(op, scope_of(op)) / target.bandwidth
        if not target.is_gpu:
            return target.launch_seconds + moved
        rows, places = (e.evaluate(estimate_env(scope_of(op))) for e in _sorted_rows(op))
        if _rows_fit(op):
            return target.launch_seconds + 2 * moved  # no sort
        if _last_of_many(op):
            return 3 * target.launch_seconds + 2 * moved + 16 * rows * places / target.bandwidth
        return target.launch_seconds + 2 * moved + order_seconds(rows, places, _most_targets(op), target)

    def emit(self, launch: Launch[ScatterOp]) -> Emission:
        values, y = launch.ins[1], launch.outs[0]
        op, gpu = launch.op, launch.target.is_gpu
        groups, space = _scatter_space(launch)
        kind = f"ait::{op.kind.data.capitalize()}Element"
        last = "true" if _last_of_many(op) else "false"
        template = ", ".join([kind, groups, _key(op), last]) if gpu else f"{kind}, {groups}"
        each = f"{radix_each(*_sorted_rows(op), launch.scope)}, workspace"
        sums = launch.between[0].name if launch.between else "nullptr"
        more = each if gpu else launch.cpp(y.type.num_elements())
        return launch.call("scatter", f"scatter<{template}>(ctx, {space}, {values.name}, {y.name}, {sums}, {more})")


class OrderedScatterKernel(Kernel[ScatterOp]):
    """`ait.scatter` with an order on a GPU, any strides, in place: `ScatterKernel` without the sort. Each element is
    rounded once.
    """

    name = "scatter_ordered"
    ops = (ScatterOp,)
    gpu_only = True

    def matches(self, op: ScatterOp, target: Target) -> bool:
        return target.is_gpu and bool(op.order)

    def accepts(self, op: ScatterOp, position: int, strides: Strides, scope: Scope) -> bool:
        is_order = 0 < len(op.operands) - position <= len(op.order)
        return not is_order or all(stride.as_int() == 1 for stride in strides)

    def seconds(self, op: ScatterOp, target: Target) -> float:
        return target.launch_seconds + 2 * bytes_moved(op, scope_of(op)) / target.bandwidth

    def emit(self, launch: Launch[ScatterOp]) -> Emission:
        groups, space = _scatter_space(launch)
        (_, values, *_, keys, places), (y,) = launch.ins, launch.outs
        kind = f"ait::{launch.op.kind.data.capitalize()}Element"
        operands = ", ".join(arg.name for arg in (values, y, keys, places))
        return launch.call("scatter_sorted", f"scatter_ordered<{kind}, {groups}>(ctx, {space}, {operands})")


class AtomicScatterKernel(Kernel[ScatterOp]):
    """Sums by `ait.scatter` with atomic additions on a GPU, in place: of integers, and of floats if the target need not
    be deterministic.
    """

    provider = "atomic"
    name = "scatter_atomic"
    ops = (ScatterOp,)
    gpu_only = True

    def matches(self, op: ScatterOp, target: Target) -> bool:
        element = tensor_type(op.input).element_type
        if not target.is_gpu or op.order or op.kind.data != "add" or BY_IR[element].bytes < 4:
            return False
        return not (target.deterministic and is_float(element))

    def seconds(self, op: ScatterOp, target: Target) -> float:
        return target.launch_seconds + 1.5 * bytes_moved(op, scope_of(op)) / target.bandwidth

    def emit(self, launch: Launch[ScatterOp]) -> Emission:
        groups, space = _scatter_space(launch)
        values, y = launch.ins[1], launch.outs[0]
        return launch.call("scatter_atomic", f"scatter_atomic<{groups}>(ctx, {space}, {values.name}, {y.name})")


def _scatter_space(launch: Launch[ScatterOp]) -> tuple[str, str]:
    """The C++ of the space of a scatter, and before it how many loops are places and, on a GPU, rows."""
    op, scope = launch.op, launch.scope
    values, indices, y = launch.ins[1], launch.ins[2 : 2 + len(launch.op.indices)], launch.outs[0]
    kept, shared = {at for _, at in op.kept_dims()}, _shared_dims(op)
    loops = _indexed_loops(op, values, y, indices)

    def group(chosen: Callable[[int], bool]) -> list[Loop]:
        return collapse([loop for at, loop in enumerate(loops) if chosen(at)] or [single(2 + len(indices))], scope)

    serial = group(lambda at: at not in kept)
    if not launch.target.is_gpu:
        columns = group(lambda at: at in kept)
        return f"{len(serial)}", _indexed_space(launch, [*serial, *columns], y, indices)
    rows, columns = group(lambda at: at in kept - shared), group(lambda at: at in shared)
    return f"{len(serial)}, {len(rows)}", _indexed_space(launch, [*serial, *rows, *columns], y, indices)


FEW_PLACES = 64
"""So many places, or fewer, are combined without a sort: `kFewPlaces` of `gpu/scatter.cuh`."""


def sorts(op: ScatterOp) -> bool:
    """Whether `ScatterKernel` sorts the places on a GPU, at the dims of estimates."""
    _, places = _sorted_rows(op)
    few = places.evaluate(estimate_env(scope_of(op))) <= FEW_PLACES
    return not (few or _rows_fit(op) or _last_of_many(op))


def _rows_fit(op: ScatterOp) -> bool:
    """Whether there are many rows of places whose elements a GPU combines in shared memory."""
    rows, places = (e.evaluate(estimate_env(scope_of(op))) for e in _sorted_rows(op))
    if rows < MANY_ROWS or _shared_dims(op):
        return False
    width = BY_IR[compute_type(tensor_type(op.input).element_type)].bytes
    return _most_targets(op) <= (TILE_TARGETS if places < WIDE_PLACES else MOST_RANGES * RANGE_BYTES // width)


def _shared_dims(op: ScatterOp) -> set[int]:
    """The dims of the space that are kept and along which no index differs."""
    space = op.space()
    differs: set[int] = set()
    for index in op.indices:
        dims = tensor_type(index).dims
        differs |= {at + len(space) - len(dims) for at, d in enumerate(dims) if d.as_int() != 1}
    return {at for _, at in op.kept_dims()} - differs


def _sorted_rows(op: ScatterOp) -> tuple[Expr, Expr]:
    """How many rows of places a GPU sorts, and how many places each has."""
    space, kept, shared = op.space(), {at for _, at in op.kept_dims()}, _shared_dims(op)
    rows = product(d for at, d in enumerate(space) if at in kept and at not in shared)
    return rows, product(d for at, d in enumerate(space) if at not in kept)


def _key(op: ScatterOp) -> str:
    """The C++ type of the keys that sort the places."""
    return "uint32_t" if _most_targets(op) <= 2**32 else "uint64_t"


def _targets(op: ScatterOp) -> Expr:
    """How many elements the indices can name, for each place along the kept dims."""
    dims, _ = op.places()
    return product(tensor_type(op.input).dims[d] for d in dims)


def _most_targets(op: ScatterOp) -> int:
    return scope_of(op).bounds(_targets(op))[1]


def _last_of_many(op: ScatterOp) -> bool:
    """Whether a GPU records the last place that writes each element, instead of sorting the places.

    This is done for `set`, if there are enough places that a number for each element takes little memory in comparison.
    """
    (_, places), targets = _sorted_rows(op), _targets(op)
    env = estimate_env(scope_of(op))
    return op.kind.data == "set" and targets.evaluate(env) <= LAST_TARGETS * places.evaluate(env)


def _combines_wider(op: ScatterOp) -> bool:
    """Whether elements are combined in a wider type than their own."""
    element = tensor_type(op.input).element_type
    return op.kind.data in ("add", "mul") and compute_type(element) != element


def _indexed_loops(op: IndexedOp, dense: Arg, whole: Arg, indices: Sequence[Arg]) -> list[Loop]:
    """The loops over the index space. Each has the strides of the dense tensor, of the indexed tensor along kept dims,
    and of each index tensor.
    """
    space = op.space()
    kept = {at: whole.strides[d] for d, at in op.kept_dims()}
    of_whole = [kept.get(at, const(0)) for at in range(len(space))]
    return nest(space, [broadcast_strides(dense, space), of_whole, *(broadcast_strides(i, space) for i in indices)])


def _indexed_space(
    launch: Launch[GatherOp] | Launch[ScatterOp], loops: Sequence[Loop], whole: Arg, indices: Sequence[Arg]
) -> str:
    dims, cpp = launch.op.places()[0], launch.dims
    return (
        f"ait::indexed_space({sizes(loops, cpp)}, {steps(loops, 0, cpp)}, {steps(loops, 1, cpp)}, "
        f"{{{', '.join(i.name for i in indices)}}}, "
        f"{{{', '.join(steps(loops, 2 + k, cpp) for k in range(len(indices)))}}}, "
        f"{braces((whole.type.dims[d] for d in dims), cpp)}, {braces((whole.strides[d] for d in dims), cpp)})"
    )


KERNELS = (
    GatherKernel(),
    GroupedGatherKernel(),
    UpdateKernel(),
    CompactKernel(),
    TakeKernel(),
    ScatterKernel(),
    OrderedScatterKernel(),
    AtomicScatterKernel(),
)
