"""Elements of gathers, embeddings and other ops that select elements by indices."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.elementwise import AddOp, CompareOp, WhereOp
from ait_mlir.dialects.ait.index import EmbeddingOp, GatherOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.elements.elementwise import broadcast
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index


@elements_of(EmbeddingOp)
def _(op: EmbeddingOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    found = w.element(op.ids, index[:-1])
    w.says[found] = "embedding: id {index} is outside of the table, which has {size} rows"
    return w.element(op.table, [found, index[-1]])


@elements_of(GatherOp)
def _(op: GatherOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    x, (dims, _) = tensor_type(op.input), op.places()
    found: dict[int, Index] = {dim: index[at] for dim, at in op.kept_dims()}
    for number, (dim, tensor) in enumerate(zip(dims, op.indices, strict=True)):
        element = tensor_type(tensor).element_type
        value = w.element(tensor, broadcast(tensor, index))
        below = w.add(CompareOp("lt", value, w.constant(0, element)))
        found[dim] = at = w.op(WhereOp, below, w.op(AddOp, value, w.number(x.dims[dim], element)), value)
        usual = f"gather: index {{stored}} of index tensor {number} is outside of its dim, which has {{size}}"
        w.says[at] = usual if op.says is None else op.says.data
    return w.element(op.input, [found[dim] for dim in range(x.rank)])
