"""Plans one arena for the tensors of a graph whose operators run in sequence or in parallel waves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ait_mlir.compiler.transform.constant_folding import Workspace
from ait_mlir.compiler.transform.mark_param_tensor import viewed
from ait_mlir.dims import Scope, const
from ait_mlir.frontend.compile_options import NO_LIMIT, setting
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.lift import check_sorted
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.passes.checks.memory_plan import verify
from ait_mlir.passes.memory.buffers import ALIGNMENT, Buffer
from ait_mlir.passes.memory.planner import plan
from ait_mlir.utils.graph_utils import get_sorted_ops

PlannedGraph = tuple[int, int, Workspace]
"""The bytes of the arena, the bytes of the weights, and the workspace, at the largest sizes."""


def multistream_mode() -> int:
    """`AIT_MULTISTREAM_MODE`: 0, operators run in sequence; 1, independent operators run in parallel."""
    return setting("AIT_MULTISTREAM_MODE", 0, 1)


def multistream_additional_streams() -> int:
    """`AIT_MULTISTREAM_EXTRA_STREAMS`: streams in addition to the base stream; 4 if it is not set."""
    return setting("AIT_MULTISTREAM_EXTRA_STREAMS", 4, 1 << 20)


def multistream_max_mem_parallel_ops() -> int:
    """`AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS`: the most operators that memory planning lets run in parallel.

    The more operators overlap, the less memory they share. Without the variable there is no limit. The limit does not
    depend on the number of streams: with 5 streams and 100 operators, a limit of 5 makes 20 waves of one operator for
    each stream, with a barrier after each wave.
    """
    return setting("AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS", NO_LIMIT, NO_LIMIT)


def track_parallel_ops(sorted_graph: Sequence[Tensor]) -> dict[int, list[Operator]]:
    """The operators by their earliest step: one step after the last operator that it waits for."""
    steps: dict[Operator, int] = {}
    found: dict[int, list[Operator]] = {}
    for op in get_sorted_ops(sorted_graph):
        steps[op] = 1 + max((steps[before] for t in op.inputs for before in t.src_ops()), default=0)
        found.setdefault(steps[op], []).append(op)
    return dict(sorted(found.items()))


def split_simple_multistream_parallel_ops(
    ops_by_order: Mapping[int, Sequence[Operator]], max_parallel_ops: int
) -> list[list[Operator]]:
    """Waves of at most `max_parallel_ops` operators, from operators by step.

    `{1: [a, b, c], 2: [d]}` with at most 2 becomes `[[a, b], [c], [d]]`. Raises `BuildError` for a limit below 1.
    """
    if max_parallel_ops < 1:
        raise BuildError(f"at most {max_parallel_ops} operators in parallel; expected at least 1")
    return [
        list(ops_by_order[step][i : i + max_parallel_ops])
        for step in sorted(ops_by_order)
        for i in range(0, len(ops_by_order[step]), max_parallel_ops)
    ]


def memory_planning(sorted_graph: Sequence[Tensor]) -> PlannedGraph:
    """Plan tensors as `multistream_mode` says: for waves of operators, or for operators in sequence."""
    return (simple_multistream_memory_planning if multistream_mode() else greedy_by_size_memory_planning)(sorted_graph)


def simple_multistream_memory_planning(sorted_graph: Sequence[Tensor]) -> PlannedGraph:
    """Plan tensors for operators that run in parallel waves: tensors that an operator reads or writes never overlap
    tensors that another operator of its wave writes.

    Returns sizes in bytes, and sets `_attrs["offset"]` of each computed tensor that is neither output nor view. The
    plan takes at least the memory of `greedy_by_size_memory_planning`.
    """
    check_sorted(sorted_graph)
    waves = split_simple_multistream_parallel_ops(track_parallel_ops(sorted_graph), multistream_max_mem_parallel_ops())
    return _plan(sorted_graph, waves)


def greedy_by_size_memory_planning(sorted_graph: Sequence[Tensor]) -> PlannedGraph:
    """Plan tensors for operators that run in sequence (Pisarchyk and Lee, arXiv 2001.03288).

    Returns sizes in bytes, and sets `_attrs["offset"]` of each computed tensor that is neither output nor view.
    """
    check_sorted(sorted_graph)
    return _plan(sorted_graph, [[op] for op in get_sorted_ops(sorted_graph)])


def naive_memory_planning(sorted_graph: Sequence[Tensor]) -> PlannedGraph:
    """Plan separate memory for every tensor; no bytes are shared."""
    check_sorted(sorted_graph)
    return _plan(sorted_graph, [get_sorted_ops(sorted_graph)])


def _plan(sorted_graph: Sequence[Tensor], waves: Sequence[Sequence[Operator]]) -> PlannedGraph:
    """Plan with our planner, and check the plan with the verifier, which shares no code with it."""
    step = {op: i for i, wave in enumerate(waves) for op in wave}
    first: dict[Tensor, int] = {}
    last: dict[Tensor, int] = {}
    for tensor in sorted_graph:
        root = _root(tensor)
        for op in tensor.src_ops():
            first.setdefault(root, step[op])
            last[root] = max(last.get(root, 0), step[op])
        for op in tensor.dst_ops():
            if op in step:
                last[root] = max(last.get(root, 0), step[op])
    owned = {_root(tensor) for tensor in sorted_graph if tensor.is_output}
    placed = [t for t in first if t.src_ops() and t not in owned and t.size_bytes() > 0]
    buffers = [Buffer(i, first[t], last[t] + 1, const(t.size_bytes(ALIGNMENT))) for i, t in enumerate(placed)]
    found = plan(buffers, Scope())
    if problems := verify(buffers, found.offsets, found.arena, Scope()):
        raise BuildError(f"the memory plan is wrong: {problems[0]}")
    for i, tensor in enumerate(placed):
        tensor.attrs["offset"] = found.offsets[i].as_int()
    weights = sum(t.size_bytes(ALIGNMENT) for t in sorted_graph if t.is_param)
    return found.arena.evaluate({}), weights, _workspace(waves)


def _workspace(waves: Sequence[Sequence[Operator]]) -> Workspace:
    """The workspace for the bytes in `_attrs["workspace"]`, which operators that do not run in parallel share, and in
    `_attrs["unique_workspace"]`, which they do not share."""
    shared, unique = (
        [sum(op.attrs.get(key) or 0 for op in wave) for wave in waves] for key in ("workspace", "unique_workspace")
    )
    return Workspace(max(shared, default=0), sum(unique))


def _root(tensor: Tensor) -> Tensor:
    """The tensor that owns the memory of a tensor: itself, or the source of its chain of views."""
    while (source := viewed(tensor)) is not None:
        tensor = source
    return tensor
