"""Operations that move elements and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.index import GatherOp
from ait_mlir.graph.enums import reshape_mode
from ait_mlir.graph.layout import in_order_of, layout_of
from ait_mlir.graph.lowering import Lowering
from ait_mlir.graph.nodes import REQUIRED, Node, Operation, Shapes
from ait_mlir.graph.tensor import as_indices


def _infer_reshape(node: Node) -> Shapes:
    """No inferred dims: the caller must set the dims of the output."""
    out = node.outputs["OUT_0"]
    if out.dims is None or not out.has_own_dims:
        return {}
    if prod(out.dims) != prod(node.dims("input")):
        raise node.wrong(
            f"{out.label} has dims {list(out.dims)}, {prod(out.dims)} elements, "
            f"but {node.inputs['input'].label} {list(node.dims('input'))} has {prod(node.dims('input'))}"
        )
    return {"OUT_0": (out.dims, None)}


def _lower_reshape(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    t, out = node.inputs["input"], node.outputs["OUT_0"]
    value, dims = w.value(t), out.dims or ()
    if node["reshape_mode"] is reshape_mode.LOGICAL:
        return {"OUT_0": w.reshape(value, dims)}
    source, target = (layout_of(x.dims or (), x.strides or (), x.label) for x in (t, out))
    if source.is_padded or target.is_padded or source.repeated or target.repeated:
        raise node.unsupported("a view of padded memory; use reshape_mode.LOGICAL")
    memory = w.to_memory(value, source)
    return {"OUT_0": w.from_memory(w.reshape(memory, target.block), target)}


def _ranges(node: Node) -> list[range]:
    """The indices that each slice takes."""
    dims: tuple[int, ...] = node.dims("input")
    slices: Any = node["slices"]
    if not hasattr(slices, "__len__") or len(slices) != len(dims):
        raise node.wrong(f"slices are {slices!r}, expected one Python slice for each of the {len(dims)} dims")
    found: list[range] = []
    for n, s in zip(dims, slices, strict=True):
        if not isinstance(s, slice):
            raise node.wrong(f"slices are {slices!r}, expected one Python slice for each of the {len(dims)} dims")
        try:
            found.append(range(*s.indices(n)))
        except (TypeError, ValueError) as error:
            raise node.wrong(f"slices are {slices!r}: {error}") from None
    return found


def _infer_slice(node: Node) -> Shapes:
    dims = tuple(len(r) for r in _ranges(node))
    return {"OUT_0": (dims, in_order_of(dims, node.strides("input")))}


def _lower_slice(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    value = w.value(node.inputs["input"])
    for axis, taken in enumerate(_ranges(node)):
        if taken.step == 1:
            value = w.slice(value, axis, taken.start, len(taken))
            continue
        rank = len(w.dims(value))
        at = w.constant(taken, [len(taken) if a == axis else 1 for a in range(rank)], i64)
        value = w.put(GatherOp(value, [at], [axis], [a for a in range(rank) if a != axis]))
    return {"OUT_0": value}


def _permutation(node: Node) -> list[int]:
    found, rank = as_indices(node["permutation"]), len(node.dims("input"))
    if found is None or sorted(found) != list(range(rank)):
        raise node.wrong(f"permutation is {node['permutation']!r}, expected the numbers 0 to {rank - 1} in some order")
    return list(found)


def _infer_transpose(node: Node) -> Shapes:
    dims = node.dims("input")
    return {"OUT_0": (tuple(dims[a] for a in _permutation(node)), None)}


def _infer_concatenate(node: Node) -> Shapes:
    inputs = node.lists["inputs"]
    shapes = [t.dims for t in inputs if t.dims is not None]
    if not inputs or len(shapes) < len(inputs):
        raise node.wrong("inputs must be tensors with dims, at least one")
    axis, rank = node["axis"], len(shapes[0])
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise node.wrong(f"axis is {axis!r}, expected {-rank} to {rank - 1}")
    axis %= rank
    for t, dims in zip(inputs, shapes, strict=True):
        if len(dims) != rank or any(a != axis and n != m for a, (n, m) in enumerate(zip(dims, shapes[0], strict=True))):
            raise node.wrong(
                f"{t.label} has dims {list(dims)}, but {inputs[0].label} {list(shapes[0])}; they may differ in dim "
                f"{axis} only"
            )
        if t.dtype is not inputs[0].dtype:
            raise node.wrong(f"{t.label} is {t.dtype.name}, but {inputs[0].label} {inputs[0].dtype.name}")
    total = sum(dims[axis] for dims in shapes)
    return {"OUT_0": ((*shapes[0][:axis], total, *shapes[0][axis + 1 :]), None)}


def _check_concatenate(node: Node) -> None:
    if node["in_place_index"] is not None:
        raise node.unsupported("in_place_index: an output cannot share the memory of an input; leave it out")


def _lower_concatenate(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    inputs = node.lists["inputs"]
    axis = node["axis"] % len(inputs[0].dims or ())
    return {"OUT_0": w.concat([w.value(t) for t in inputs], axis)}


OPERATIONS = (
    Operation(
        "reshape",
        ("input",),
        ("OUT_0",),
        _infer_reshape,
        _lower_reshape,
        attributes={"reshape_mode": reshape_mode.VIEW_ONLY},
        doc="The same memory (VIEW_ONLY), or the same elements in row-major order (LOGICAL), with the dims that the "
        "caller sets on the output.",
    ),
    Operation(
        "slice",
        ("input",),
        ("OUT_0",),
        _infer_slice,
        _lower_slice,
        attributes={"slices": REQUIRED},
        doc="A Python slice for each dim.",
    ),
    Operation(
        "transpose",
        ("input",),
        ("OUT_0",),
        _infer_transpose,
        lambda node, w: {"OUT_0": w.permute(w.value(node.inputs["input"]), _permutation(node))},
        attributes={"permutation": REQUIRED},
        doc="Dim i of the output is dim permutation[i] of the input.",
    ),
    Operation(
        "concatenate",
        (),
        ("OUT_0",),
        _infer_concatenate,
        _lower_concatenate,
        lists=("inputs",),
        attributes={"axis": REQUIRED, "in_place_index": None},
        check=_check_concatenate,
        doc="Tensors end to end along an axis.",
    ),
)
