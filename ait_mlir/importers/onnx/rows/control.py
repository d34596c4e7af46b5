"""If, Loop, Scan, and sequences of known lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from ait_mlir.compositions.rearrange import flip
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dialects.ait.view import SplitOp
from ait_mlir.dims import Expr, const
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Row, Tensor, as_number, full, shape_of, sources
from ait_mlir.importers.onnx.dims import Narrower
from ait_mlir.importers.onnx.known import Known, element_type
from ait_mlir.importers.onnx.library import onnx

MOST_UNROLLED = 64
"""The most steps of a loop that are written one by one."""
ONE = const(1)


def if_(c: Call) -> Result:
    """The results of the branch that a known condition takes; else both branches are computed, and it chooses."""
    condition = c.value(0)
    if isinstance(condition, Known) and not condition.has_dims:
        taken = bool(condition.array.reshape(-1)[0])
        return tuple(c.importer.inner(c.subgraph("then_branch" if taken else "else_branch"), c.env, []))
    try:
        yes, no = (c.importer.inner(c.subgraph(name), c.env, []) for name in ("then_branch", "else_branch"))
    except Narrower:
        if not sources(c.tensor(0)):
            raise  # the sizes decide which branch is taken
        c.known(0)  # says of which input the value is needed
        raise NotSupported("both branches are computed, and one of them does not take all sizes") from None
    chosen = c.w.reshape(c.tensor(0), ())
    found: list[SSAValue] = []
    for a, b in zip(yes, no, strict=True):
        if isinstance(a, list) or isinstance(b, list) or a is None or b is None:
            c.known(0)  # says of which input the value is needed
            raise NotSupported("both branches are computed, and they give sequences; expected tensors")
        if len(shape_of(a)) != len(shape_of(b)) or any(
            not c.w.scope.equal(m, n) for m, n in zip(shape_of(a), shape_of(b), strict=True)
        ):
            if isinstance(c.value(0), SSAValue):
                c.known(0)  # says of which input the value is needed
            shapes = " and ".join(str([*map(str, shape_of(v))]) for v in (a, b))
            raise NotSupported(f"the condition is a value of the run, and the branches have the shapes {shapes}")
        found.append(c.w.where(chosen, full(c.w, a), full(c.w, b)))
    return tuple(found)


# ** loops **


def _outer_names(graph: Any) -> list[str]:
    """The names that a graph takes from around it."""
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    found: dict[str, None] = {}
    for node in graph.node:
        inner = [n for a in node.attribute if a.type == onnx.AttributeProto.GRAPH for n in _outer_names(a.g)]
        found.update(dict.fromkeys(n for n in (*node.input, *inner) if n and n not in own))
        own.update(node.output)
    found.update(dict.fromkeys(o.name for o in graph.output if o.name not in own))
    return list(found)


def _step_of(c: Call, graph: Any) -> tuple[Callable[[Sequence[Any], Sequence[SSAValue]], list[Any]], list[SSAValue]]:
    """A function that writes one step of a loop, and the tensors from outside of the loop that it captures."""
    names = [n for n in _outer_names(graph) if n in c.env]
    captured = {n: full(c.w, cast(Tensor, c.env[n])) for n in names if not _is_small(c.env[n])}

    def step(arguments: Sequence[Any], inner: Sequence[SSAValue]) -> list[Any]:
        env = {n: c.env[n] for n in names if n not in captured} | dict(zip(captured, inner, strict=True))
        return c.importer.inner(graph, env, arguments)

    return step, list(captured.values())


def _is_small(value: Any) -> bool:
    """Whether a tensor can be written again inside of a loop."""
    return isinstance(value, Known) and not value.has_dims and value.array.size <= 64 and not value.is_weight


def loop(c: Call) -> Result:
    """A loop: with known numbers of steps its steps one by one, or as a scan; a condition of the run is refused."""
    graph = c.subgraph("body")
    carried: list[Any] = [c.given(i) if c.has(i) else None for i in range(2, len(c.inputs))]
    goes: Any = Known(np.array(True), i1) if not c.has(1) else c.value(1)
    if not isinstance(goes, Known):
        goes = c.known(1)
    count = None if not c.has(0) else c.exprs(0)[0]
    most = None if count is None else count.as_int()
    if (count is not None and most is None) or (most or 0) > MOST_UNROLLED:
        assert count is not None
        return _long_loop(c, graph, count, carried)
    stacked: list[list[SSAValue]] = []
    results, at = len(graph.output) - 1 - len(carried), 0
    stacked = [[] for _ in range(results)]
    while bool(goes.array.reshape(-1)[0]) and (most is None or at < most):
        if at == 4 * MOST_UNROLLED:
            raise NotSupported(f"the loop has more than {at} steps with conditions of their own; expected a count")
        index = Known(np.array(at, np.int64), i64)
        found = c.importer.inner(graph, c.env, [index, goes, *carried])
        goes, carried = found[0], found[1 : 1 + len(carried)]
        for rows, value in zip(stacked, found[1 + len(carried) :], strict=True):
            rows.append(full(c.w, value))
        at += 1
        if not isinstance(goes, Known) and (most is None or at < most):
            raise NotSupported("its condition depends on values of the run; expected a condition that is known")
    return (*carried, *(_stacked(c, graph, len(carried), i, rows) for i, rows in enumerate(stacked)))


def _stacked(c: Call, graph: Any, carried: int, i: int, rows: Sequence[SSAValue]) -> SSAValue:
    """The results of all steps, with the step as the first dim."""
    if not rows:
        t = graph.output[1 + carried + i].type.tensor_type
        dims = [d.dim_value for d in t.shape.dim]
        return c.w.filled(0, (0, *dims), element_type(t.elem_type))
    return c.w.concat([c.w.reshape(v, (ONE, *tensor_type(v).dims)) for v in rows], 0)


def _long_loop(c: Call, graph: Any, count: Expr, carried: Sequence[Any]) -> Result:
    """A loop as a scan over its step numbers."""
    if c.has(1) and not bool(c.array(1).reshape(-1)[0]):
        raise NotSupported("a long loop that does not start is not supported")
    step, captured = _step_of(c, graph)
    yes = Known(np.array(True), i1)

    def write(before: Sequence[SSAValue], slices: Sequence[SSAValue], inner: Sequence[SSAValue]) -> list[SSAValue]:
        found = step([slices[0], yes, *before], inner)
        goes = found[0]
        if not isinstance(goes, Known) or not bool(goes.array.reshape(-1)[0]):
            raise NotSupported("its condition depends on values of the run; expected a loop of a known count")
        return [full(c.w, v) for v in found[1:]]

    first = [full(c.w, v) for v in carried]
    return tuple(c.w.scan(first, [c.w.places(count)], captured, write))


def scan(c: Call) -> Result:
    """A scan over axes of its inputs; before opset 9, for each element of a batch."""
    if c.version < 9:
        return _batched_scan(c)
    graph, scanned = c.subgraph("body"), c.attr("num_scan_inputs", 1)
    states = len(c.inputs) - scanned
    results = len(graph.output) - states
    in_axes = c.attr("scan_input_axes", [0] * scanned)
    out_axes = c.attr("scan_output_axes", [0] * results)
    in_ways = c.attr("scan_input_directions", [0] * scanned)
    out_ways = c.attr("scan_output_directions", [0] * results)
    rows: list[SSAValue] = []
    for i in range(scanned):
        x = c.tensor(states + i)
        rank = tensor_type(x).rank
        axis = c.placed(in_axes[i], rank, "scan_input_axes")
        x = c.w.permute(x, [axis, *(a for a in range(rank) if a != axis)])
        rows.append(c.w.full(flip(c.w, x, [0])) if in_ways[i] else x)
    first = [c.tensor(i) for i in range(states)]
    found = _scanned(c, graph, first, rows)
    made: list[SSAValue] = list(found[:states])
    for i, y in enumerate(found[states:]):
        y = c.w.full(flip(c.w, y, [0])) if out_ways[i] else y
        rank = tensor_type(y).rank
        axis = c.placed(out_axes[i], rank, "scan_output_axes")
        order = [*range(1, rank)]
        order.insert(axis, 0)
        made.append(c.w.permute(y, order))
    return tuple(made)


def _scanned(c: Call, graph: Any, first: Sequence[SSAValue], rows: Sequence[SSAValue]) -> Sequence[SSAValue]:
    step, captured = _step_of(c, graph)

    def write(before: Sequence[SSAValue], slices: Sequence[SSAValue], inner: Sequence[SSAValue]) -> list[SSAValue]:
        return [full(c.w, v) for v in step([*before, *slices], inner)]

    return c.w.scan(first, rows, captured, write)


def _batched_scan(c: Call) -> Result:
    """The scan of opset 8: each element of the batch has a scan of its own."""
    if c.has(0):
        raise NotSupported("lengths of the sequences of a scan of opset 8 are not supported")
    graph, scanned = c.subgraph("body"), c.attr("num_scan_inputs", 1)
    values = [c.tensor(i) for i in range(1, len(c.inputs))]
    states = len(values) - scanned
    batch = as_number(tensor_type(values[0]).dims[0])
    parts: list[Sequence[SSAValue]] = []
    for b in range(batch):
        own = [c.w.reshape(c.w.slice(v, 0, b, 1), tensor_type(v).dims[1:]) for v in values]
        parts.append(_scanned(c, graph, own[:states], own[states:]))
    return tuple(
        c.w.concat([c.w.reshape(v, (ONE, *tensor_type(v).dims)) for v in column], 0)
        for column in zip(*parts, strict=True)
    )


# ** sequences **


def _sequence(c: Call, index: int = 0) -> list[Any]:
    found = c.given(index)
    if not isinstance(found, list):
        raise NotSupported(f"input {index} is a tensor, expected a sequence")
    return cast("list[Any]", found)


def _place(c: Call, index: int, length: int) -> int:
    """A place in a sequence, from an input."""
    at = c.ints(index)[0]
    if not -length <= at <= length:
        raise NotSupported(f"place {at} of a sequence of {length}")
    return at + length if at < 0 else at


def sequence_construct(c: Call) -> Result:
    return list(c.inputs)


def sequence_empty(c: Call) -> Result:
    return list[Any]()


def sequence_insert(c: Call) -> Result:
    items = list(_sequence(c))
    items.insert(_place(c, 2, len(items)) if c.has(2) else len(items), c.given(1))
    return items


def sequence_erase(c: Call) -> Result:
    items = list(_sequence(c))
    if not items:
        raise NotSupported("the sequence has no element to erase")
    del items[_place(c, 1, len(items)) if c.has(1) else -1]
    return items


def sequence_at(c: Call) -> Result:
    items = _sequence(c)
    at = _place(c, 1, len(items))
    if at == len(items):
        raise NotSupported(f"place {at} of a sequence of {len(items)}")
    return items[at]


def sequence_length(c: Call) -> Result:
    return Known(np.array(len(_sequence(c)), np.int64), i64)


def concat_from_sequence(c: Call) -> Result:
    """The tensors of a sequence joined along an axis, or along a new one."""
    values = [full(c.w, v) for v in _sequence(c)]
    if not values:
        raise NotSupported("the sequence has no element to join")
    new = bool(c.attr("new_axis", 0))
    axis = c.placed(c.attr("axis", 0), tensor_type(values[0]).rank + new)
    if new:
        values = [c.w.reshape(v, (*tensor_type(v).dims[:axis], ONE, *tensor_type(v).dims[axis:])) for v in values]
    return c.w.concat(values, axis)


def split_to_sequence(c: Call) -> Result:
    """Parts along an axis: of given sizes, of one size each, or of one element, without the axis unless `keepdims`."""
    x, axis = c.tensor(0), c.axis()
    dims, element = tensor_type(x).dims, tensor_type(x).element_type
    if c.has(1) and c.rank(1) == 1:
        c.settle(dims[axis], sum(c.ints(1)))
    whole = as_number(dims[axis])
    keep = True
    if not c.has(1):
        sizes, keep = [1] * whole, bool(c.attr("keepdims", 1))
    elif c.rank(1) == 0:
        each = c.ints(1)[0]
        sizes = [min(each, whole - at) for at in range(0, whole, each)]
    else:
        sizes = c.ints(1)
    types = [TensorType.get((*dims[:axis], n, *dims[axis + 1 :]), element) for n in sizes]
    parts = [x] if len(types) == 1 else list(c.w.ops(SplitOp, x, properties={"dim": axis}, results=types))
    return parts if keep else [c.w.reshape(p, (*dims[:axis], *dims[axis + 1 :])) for p in parts]


def sequence_map(c: Call) -> Result:
    """The results of a graph for each element of a sequence, as sequences."""
    items, graph = _sequence(c), c.subgraph("body")
    columns: list[list[Any]] = [[] for _ in graph.output]
    for i, item in enumerate(items):
        others: list[Any] = [v[i] if isinstance(v, list) else v for v in c.inputs[1:]]
        found = c.importer.inner(graph, c.env, [item, *others])
        for column, value in zip(columns, found, strict=True):
            column.append(value)
    return tuple(columns)


ROWS: dict[str, Row] = {
    "If": if_,
    "Loop": loop,
    "Scan": scan,
    "SequenceConstruct": sequence_construct,
    "SequenceEmpty": sequence_empty,
    "SequenceInsert": sequence_insert,
    "SequenceErase": sequence_erase,
    "SequenceAt": sequence_at,
    "SequenceLength": sequence_length,
    "SequenceMap": sequence_map,
    "ConcatFromSequence": concat_from_sequence,
    "SplitToSequence": split_to_sequence,
}
