"""Elements of existing `ait.loops` ops: a copy of their region for another index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import Block, SSAValue

from ait_mlir.dialects.ait.loops import PLACES, AtOp, FoldOp, IndexOp, LoopsOp
from ait_mlir.dims import Expr
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index, NoElements


@elements_of(LoopsOp)
def _(op: LoopsOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    names = {loop.name: i for loop, i in zip(op.iterations.data, index, strict=True)}
    tensors: dict[SSAValue, SSAValue] = dict(zip(op.block.args, op.operands, strict=True))
    return copied(w, op.block, names, {}, tensors)[position]


def copied(
    w: ElementWriter,
    block: Block,
    names: Mapping[str, Index],
    values: Mapping[SSAValue, SSAValue],
    tensors: Mapping[SSAValue, SSAValue],
) -> list[SSAValue]:
    """Copies of the values that a block yields. `names` replace its iteration dims, `values` the values of outer
    blocks.
    """
    known = dict(values)
    for op in block.ops:
        if isinstance(op, AtOp):
            at = [put(i, names) if isinstance(i, Expr) else known[i] for i in op.index()]
            tensor, number = tensors[op.tensor], op.number
            w.says.update({known[v]: text for v, text in zip(op.values, op.texts, strict=True) if text})
            known[op.output] = w.element(tensor, at) if number is None else w.element_or(tensor, at, number)
        elif isinstance(op, IndexOp):
            known[op.output] = w.index(expression(op.value, names))
        elif isinstance(op, FoldOp):
            made = w.folds(op.kind.data, op.sizes, _body(w, op, names, known, tensors))
            known.update(zip(op.results, made[: 2 if op.kind.data in PLACES else 1], strict=True))
        elif op.results:
            known[op.results[0]] = w.copy(op, [known[v] for v in op.operands])
        else:
            return [known[v] for v in op.operands]
    raise NoElements("a region without ait.yield")


def _body(
    w: ElementWriter,
    op: FoldOp,
    names: Mapping[str, Index],
    known: Mapping[SSAValue, SSAValue],
    tensors: Mapping[SSAValue, SSAValue],
) -> Callable[[Sequence[Expr]], SSAValue]:
    def body(taps: Sequence[Expr]) -> SSAValue:
        own = {loop.name: tap for loop, tap in zip(op.iterations.data, taps, strict=True)}
        return copied(w, op.block, {**names, **own}, known, tensors)[0]

    return body


def put(e: Expr, names: Mapping[str, Index]) -> Index:
    """An index expression with `names` in place of iteration dims."""
    alone = names.get(str(e))
    return alone if isinstance(alone, SSAValue) else expression(e, names)


def expression(e: Expr, names: Mapping[str, Index]) -> Expr:
    """`e` with `names` in place of iteration dims, as `put`; raises `NoElements` if a value replaces an iteration dim.
    """
    if any(isinstance(names.get(name), SSAValue) for name in e.symbols):
        raise NoElements(f"an index that is a value stands in {e}")
    return e.substitute({name: i for name, i in names.items() if isinstance(i, Expr)})
