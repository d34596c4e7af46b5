"""Elements of gathers, embeddings and other ops that select elements by indices."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.elementwise import AddOp, CompareOp, WhereOp
from ait_mlir.dialects.ait.index import EmbeddingOp, GatherOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr
from ait_mlir.elements.elementwise import broadcast
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index


def within(w: ElementWriter, value: SSAValue, size: Expr, from_end: bool = False) -> Expr | None:
    """An index that is an expression and proved to be inside of its dim; with `from_end`, negative ones count from the
    end. Else None.
    """
    e = w.expression(value)
    if e is None or not w.scope.lt(e, size):
        return None
    if w.scope.le(0, e):
        return e
    return (e + size) % size if from_end and w.scope.le(0, e + size) else None


@elements_of(EmbeddingOp)
def _(op: EmbeddingOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    found = w.element(op.ids, index[:-1])
    place = within(w, found, tensor_type(op.table).dims[0])
    if place is not None:
        return w.element(op.table, [place, index[-1]])
    w.says[found] = "embedding: id {index} is outside of the table, which has {size} rows"
    return w.element(op.table, [found, index[-1]])


@elements_of(GatherOp)
def _(op: GatherOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    x, (dims, _) = tensor_type(op.input), op.places()
    found: dict[int, Index] = {dim: index[at] for dim, at in op.kept_dims()}
    for number, (dim, tensor) in enumerate(zip(dims, op.indices, strict=True)):
        element = tensor_type(tensor).element_type
        value = w.element(tensor, broadcast(tensor, index))
        if (place := within(w, value, x.dims[dim], from_end=True)) is not None:
            found[dim] = place
            continue
        below = w.add(CompareOp("lt", value, w.constant(0, element)))
        found[dim] = at = w.op(WhereOp, below, w.op(AddOp, value, w.number(x.dims[dim], element)), value)
        usual = f"gather: index {{stored}} of index tensor {number} is outside of its dim, which has {{size}}"
        w.says[at] = usual if op.says is None else op.says.data
    return w.element(op.input, [found[dim] for dim in range(x.rank)])
