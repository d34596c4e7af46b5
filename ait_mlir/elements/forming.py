"""Makes one `ait.loops` of a group of ops."""

from __future__ import annotations

from collections.abc import Container, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.loops import AtOp, FoldOp, IndexOp, IndicesAttr, LoopsOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.types import (
    Induction,
    IterationsAttr,
    ShapeAttr,
    TensorType,
    scope_of,
    tensor_type,
)
from ait_mlir.dims import Expr, Scope, const, sym
from ait_mlir.elements.table import ROWS, has_elements
from ait_mlir.elements.view import reshaped
from ait_mlir.elements.writer import ElementWriter
from ait_mlir.lowering.kernels import kernels_of_class


def kernel_op(op: Operation) -> Operation:
    """The op whose kernels run an op: itself or, if its class has no kernel, its `ait.loops`, inserted after it."""
    if kernels_of_class(type(op)) or not has_elements(op) or not (used := [r for r in op.results if r.uses]):
        return op
    block = op.parent
    assert block is not None
    block.insert_op_after(loops := form_loops(used, {op}, scope_of(op)), op)
    return loops


def form_loops(
    results: Sequence[SSAValue], members: Container[Operation], scope: Scope, has_errors: bool = True
) -> LoopsOp:
    """The `ait.loops` op that computes the results of a group of ops: all of one shape, or with 1 for some of the first
    one's dims. A result of another rank has the elements of the first one's shape in order, and is computed in that
    shape. The op is not inserted into a block.

    Its operands are the values from outside the group that it reads. With `has_errors`, as a CPU has them, reads at
    indices from data say which op failed. Raises `NoElements` if the table cannot express an element.
    """
    dims = tensor_type(results[0]).dims
    loops = tuple(Induction(name, size) for name, size in zip(_names("d", len(dims), scope), dims, strict=True))
    writer = ElementWriter(scope, members, ROWS, loops, has_errors)

    def yielded(value: SSAValue) -> SSAValue:
        sizes = tensor_type(value).dims
        if len(sizes) != len(dims):
            return reshaped(writer, value, dims, [sym(loop.name) for loop in loops])
        index = [const(0) if size.as_int() == 1 else sym(loop.name) for size, loop in zip(sizes, loops, strict=True)]
        return writer.element(value, index)

    values = [yielded(value) for value in results]
    block = writer.levels[0].block
    block.add_op(YieldOp(*values))
    _erase_unused(block)
    operands = _used_operands(block, writer)
    types = [t if t.rank == len(dims) else TensorType.get(dims, t.element_type) for t in map(tensor_type, results)]
    op = LoopsOp(operands, loops, types, Region(block))
    _rename_folds(block, 0, {}, scope)
    for value, result in zip(results, op.results, strict=True):
        result.name_hint = value.name_hint
    return op


def _names(letter: str, count: int, scope: Scope) -> list[str]:
    """Iteration names that are not declared as dims: `d0`, `d1`."""
    while any(f"{letter}{i}" in scope for i in range(count)):
        letter += "_"
    return [f"{letter}{i}" for i in range(count)]


def _erase_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, YieldOp):
            continue
        if not any(r.uses for r in op.results):
            op.detach()
            op.erase()
        elif isinstance(op, FoldOp):
            _erase_unused(op.block)


def _used_operands(block: Block, writer: ElementWriter) -> list[SSAValue]:
    """The operands whose elements are read. Removes the block arguments of the others."""
    kept: list[SSAValue] = []
    for tensor, argument in writer.operands.items():
        if argument.uses:
            kept.append(tensor)
        else:
            block.erase_arg(argument)
    return kept


def _rename_folds(block: Block, depth: int, names: dict[str, Expr], scope: Scope) -> None:
    """Rename the iteration dims of folds to `k0`, `k1`, ..., outermost first."""
    for op in block.ops:
        if isinstance(op, FoldOp):
            loops = op.iterations.data
            fresh = _names("k", depth + len(loops), scope)[depth:]
            own = {loop.name: sym(name) for loop, name in zip(loops, fresh, strict=True)}
            renamed = tuple(Induction(n, loop.count) for n, loop in zip(fresh, loops, strict=True))
            op.properties["iterations"] = IterationsAttr(renamed)
            _rename_folds(op.block, depth + len(loops), {**names, **own}, scope)
        elif isinstance(op, AtOp):
            index = tuple(None if e is None else e.substitute(names) for e in op.indices.data)
            op.properties["indices"] = IndicesAttr(index)
        elif isinstance(op, IndexOp):
            op.properties["expression"] = ShapeAttr((op.value.substitute(names),))
