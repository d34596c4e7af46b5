"""Matrix products."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.gemm import BmmOp, GemmOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.graph.enums import FLOATS, SMALL
from ait_mlir.graph.lowering import Lowering, multiplies_integers, product_types
from ait_mlir.graph.nodes import Dims, Node, Operation, Shapes


def _infer(node: Node) -> Shapes:
    """[..., M, K] x [..., K, N] -> [..., M, N]; the batch dims broadcast."""
    a, b = node.dims("A"), node.dims("B")
    if len(a) < 2 or len(b) < 2:
        raise node.wrong(f"A and B need at least 2 dims, found {list(a)} and {list(b)}")
    if a[-1] != b[-2]:
        raise node.wrong(
            f"A sums over {a[-1]} ({node.inputs['A'].label}, dims {list(a)}), "
            f"but B over {b[-2]} ({node.inputs['B'].label}, dims {list(b)})"
        )
    rank = max(len(a), len(b))
    batch_a, batch_b = ((1,) * (rank - len(x)) + x[:-2] for x in (a, b))
    batch: list[int] = []
    for m, n in zip(batch_a, batch_b, strict=True):
        if m != n and 1 not in (m, n):
            raise node.wrong(f"the batch dims of A {list(a)} and B {list(b)} do not broadcast")
        batch.append(n if m == 1 else m)
    return {"C": ((*batch, a[-2], b[-1]), None)}


def _check(node: Node) -> None:
    for name in ("A", "B"):
        if node.inputs[name].dtype not in (*FLOATS, *SMALL):
            raise node.unsupported(
                f"{node.inputs[name].label} has data type {node.inputs[name].dtype.name}; products are of floats or "
                "8-bit integers"
            )
    if not isinstance(node["padding"], int | float) or node["padding"] != 0:
        raise node.unsupported(f"padding is {node['padding']}, only 0 has a kernel")


def _is_column_major(dims: Dims, strides: Dims) -> bool:
    """Whether a matrix is column-major: elements of a column are neighbours in memory."""
    return dims[-1] > 1 and dims[-2] > 1 and strides[-2] < strides[-1]


def _swapped(w: Lowering, value: SSAValue) -> SSAValue:
    rank = tensor_type(value).rank
    return w.permute(value, [*range(rank - 2), rank - 1, rank - 2])


def _lower(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    a, b = (node.inputs[name] for name in ("A", "B"))
    if is_whole := multiplies_integers(node, a, b):
        narrow, x, y = node.compute_type(), w.value(a), w.value(b)
    else:
        narrow, element, _ = product_types(node, a, b, node.dims("A")[-1])
        x, y = w.cast(w.value(a), element), w.cast(w.value(b), element)
    dims_b = node.dims("B")
    columns_a = _is_column_major(node.dims("A"), node.strides("A"))
    columns_b = _is_column_major(dims_b, node.strides("B"))
    out = node.outputs["C"]
    dims_a = node.dims("A")
    flat = all(n == 1 for n in dims_b[:-2])
    if flat and (not columns_a or all(n == 1 for n in dims_a[:-2])):
        y = w.reshape(y, dims_b[-2:])
        if columns_a:
            x = w.reshape(x, dims_a[-2:])
    else:
        rank = len(out.dims or ())
        x, y = (w.reshape(v, (1,) * (rank - len(d)) + d) for v, d in ((x, dims_a), (y, dims_b)))
    layout = f"{'c' if columns_a else 'r'}{'c' if columns_b else 'r'}r"
    operands = [_swapped(w, x) if columns_a else x, _swapped(w, y) if columns_b else y]
    op_class = GemmOp if tensor_type(y).rank == 2 else BmmOp
    is_wide = not is_whole and w.is_wide(out, narrow)
    return {"C": w.reshape(w.contraction(op_class, operands, {"layout": StringAttr(layout)}, is_wide), out.dims or ())}


OPERATIONS = (
    Operation(
        "matmul",
        ("A", "B"),
        ("C",),
        _infer,
        _lower,
        attributes={"padding": 0.0},
        positional=("compute_data_type", "padding", "name"),
        check=_check,
        doc="[..., M, K] x [..., K, N] -> [..., M, N]; batch dims broadcast. Sums are in FLOAT, or DOUBLE.",
    ),
)
