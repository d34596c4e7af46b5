"""Computes values that depend on params alone once, when the params are set: reordered weights, folded batch norms.

Each such value gets a graph of its own, which the artifact keeps. The model's graph reads the value as a new param.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from ait_mlir.constant_names import FOLDED
from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp, SliceOp, SplitOp
from ait_mlir.dims import Scope
from ait_mlir.lowering.kernels import Target
from ait_mlir.outside import row_of
from ait_mlir.passes.assumptions import assumes
from ait_mlir.passes.pad_products import pad_products
from ait_mlir.reference.folds import LARGEST_COPY, Fold, is_worth_storing
from ait_mlir.rewrites.apply import rewrite
from ait_mlir.rewrites.families import pattern_set

Compute = Callable[[Sequence[Fold]], Collection[str]]


def fold_params(
    module: ModuleOp,
    known: Collection[str],
    fill_for: Target | None = None,
    *,
    partial: bool = False,
    unbound: bool = False,
    compute: Compute | None = None,
) -> list[Fold]:
    """Replace values that depend on params alone by new params, in the one graph of a module; returns their folds.

    A value is folded if the data of all params that it depends on are `known`; with `unbound`, also the others, which
    are computed when a loaded model gets the data. `compute` is given all folds of known data, and returns the names
    of those that it could compute: the others stay as they are. If all data are known, or with `unbound`, factors join
    weights; not with `partial`. Then, on a target `fill_for` that has tensor cores, weights of
    convolutions and products are filled for kernels that need it (rewrites/conv.py, pad_products.py).
    """
    graph = next((op for op in module.ops if isinstance(op, GraphOp)), None)
    if graph is None or not (known or unbound):
        return []
    params = {p.param_name.data for p in graph.params()}
    allowed = params if unbound else params & set(known)
    if allowed == params:
        if not partial:
            rewrite(module, pattern_set("conv:FACTORS", "view:VIEWS"))
        if fill_for is not None and fill_for.has("mma"):
            blocks = ["conv:BLOCKS"] if assumes(module, "finite_images") else []
            rewrite(module, pattern_set(*blocks, "conv:CHANNELS", "view:VIEWS"))
            pad_products(graph.block, fill_for, weights=True)
    taken = set(params)
    fixed = _fixed(graph, allowed)
    found: list[tuple[SSAValue, Fold]] = []
    for value in _edges(graph, fixed):
        ops = _closure(value)
        if not _pays(value, ops):
            continue
        sources = [op.param_name.data for op in ops if isinstance(op, ParamOp)]
        name = base = FOLDED + sources[0]
        while name in taken:
            name = f"{base}.{len(found)}"
        taken.add(name)
        found.append((value, Fold(name, _graph_of(value, ops, len(found)))))
    bound = [fold for _, fold in found if fold.source_types().keys() <= set(known)]
    done = {fold.name for fold in bound} if compute is None else compute(bound)
    left = {fold.name for fold in bound} - set(done)
    folds: list[Fold] = []
    for value, fold in found:
        if fold.name not in left:
            _replace(graph, value, fold.name, fixed)
            folds.append(fold)
    for op in reversed(list(graph.block.ops)):
        if op.results and op in fixed and not any(r.uses for r in op.results):
            op.detach()
            op.erase()
    return folds


def _replace(graph: GraphOp, value: SSAValue, name: str, fixed: Collection[Operation]) -> None:
    """Let the ops that depend on an input read a new param instead of `value`."""
    param = ParamOp(name, tensor_type(value))
    first = graph.block.first_op
    assert first is not None
    graph.block.insert_op_before(param, first)
    for use in list(value.uses):  # other folds compute it again: each reads params of the model alone
        if use.operation not in fixed:
            use.operation.operands[use.index] = param.output


def _fixed(graph: GraphOp, known: Collection[str]) -> set[Operation]:
    """The ops that depend on constants and known params alone; not those from outside, as their definition is not part
    of the artifact."""
    found: set[Operation] = set()
    for op in graph.block.ops:
        if row_of(type(op)) is not None:
            continue
        is_source = isinstance(op, ConstantOp) or (isinstance(op, ParamOp) and op.param_name.data in known)
        if is_source or (op.operands and op.has_trait(Pure) and all(v.owner in found for v in op.operands)):
            found.add(op)
    return found


def _edges(graph: GraphOp, fixed: set[Operation]) -> list[SSAValue]:
    """The values that depend on no input and are read by ops that do, except params and constants."""
    return [
        result
        for op in graph.block.ops
        if op in fixed and not isinstance(op, ParamOp | ConstantOp)
        for result in op.results
        if any(use.operation not in fixed for use in result.uses)
    ]


def _closure(value: SSAValue) -> list[Operation]:
    """The ops that compute a value, in order."""
    found: dict[Operation, None] = {}
    pending: list[Operation] = [value.owner] if isinstance(value.owner, Operation) else []
    while pending:
        op = pending[-1]
        missing = [v.owner for v in op.operands if isinstance(v.owner, Operation) and v.owner not in found]
        if missing:
            pending += missing[::-1]
        else:
            found.setdefault(pending.pop())
    return list(found)


def _pays(value: SSAValue, ops: Sequence[Operation]) -> bool:
    """Whether the value is worth storing: it is not a plain view of a param, not large and much larger than its
    sources, and not a second copy of a large param.
    """
    if not any(isinstance(op, ParamOp) for op in ops):
        return False
    if all(isinstance(op, ParamOp | ReshapeOp | SliceOp | SplitOp) for op in ops):
        return False
    t = tensor_type(value)
    if t.static_shape() is None:
        return False
    sources = [op for op in ops if isinstance(op, ParamOp)]
    if not is_worth_storing(t, [tensor_type(p.output) for p in sources]):
        return False
    inside = set(ops)
    large = [p for p in sources if tensor_type(p.output).byte_size().evaluate({}) > LARGEST_COPY]
    shared = any(use.operation not in inside for p in large for use in p.output.uses)
    return not shared and (
        is_float(t.element_type) or all(isinstance(op, ParamOp | ReshapeOp | PermuteOp) for op in ops)
    )


def _graph_of(value: SSAValue, ops: Sequence[Operation], number: int) -> GraphOp:
    """A graph with copies of these ops and the output `value`."""
    graph = GraphOp(f"fold{number}", [], Scope())
    values: dict[SSAValue, SSAValue] = {}
    for op in ops:
        graph.block.add_op(op.clone(values))
    graph.block.add_op(OutputOp("value", values[value]))
    return graph
