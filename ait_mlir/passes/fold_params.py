"""Computes values that depend on no input once: reordered weights, folded batch norms, tables of cosines.

Each value gets its own graph (a fold), and the model's graph reads the value as a new param. The artifact keeps the
folds that depend on params, to compute them again when the params are set. A value that depends only on constants needs
no fold there; a short value becomes a constant of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from ait_mlir.constant_names import COMPUTED, FOLDED
from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.sorting import OrderOp
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType, tensor_type
from ait_mlir.dialects.ait.view import ExpandOp, PermuteOp, ReshapeOp, SliceOp, SplitOp
from ait_mlir.dims import Scope
from ait_mlir.lowering.kernels import Target
from ait_mlir.outside import row_of
from ait_mlir.passes.assumptions import assumes
from ait_mlir.passes.order_scatters import order_scatters
from ait_mlir.passes.pad_products import pad_products
from ait_mlir.reference.folds import GROWTH, LARGEST_COPY, Fold, is_worth_storing
from ait_mlir.rewrites.apply import rewrite
from ait_mlir.rewrites.families import pattern_set

LARGEST_TABLE = 1 << 26
"""The most bytes of a folded value that depends only on constants. Above `LARGEST_COPY` its computation must take more
than one operation for each byte, so that reading it is faster."""
LONGEST_LITERAL = 64
"""The most numbers of a value that becomes a constant of the graph."""

Compute = Callable[[Sequence[Fold]], Collection[str]]


def fold_params(
    module: ModuleOp,
    known: Collection[str],
    fill_for: Target | None = None,
    *,
    partial: bool = False,
    unbound: bool = False,
    outside: bool = False,
    compute: Compute | None = None,
) -> list[Fold]:
    """Replace values that depend on no input by new params, in the graph of a module; returns their folds.

    A value that depends only on constants is folded if storing it costs less than computing it in every run
    (`LARGEST_TABLE`). Another value is folded if the data of all its params are `known`. With `unbound`, it is folded
    in any case: a loaded model then computes it when it gets the data. `compute` gets all folds of known data and
    returns the names of the folds that it could compute; the others are not applied.

    Rewrites that make more values foldable run first, except with `partial`. If all data are known, or with `unbound`,
    factors join weights, and transposed convolutions become plain ones. For a GPU, transposed convolutions become plain
    ones in any case, because no kernel on tensor cores computes them, products of channels-first images read these as
    they are (rewrites/gemm/planes.py), and indices of scatters that no input changes are ordered (order_scatters.py).
    If the target `fill_for` has tensor cores, weights of convolutions and products are then padded for kernels that
    need it (rewrites/conv.py, pad_products.py).

    With `outside`, ops from outside are folded, too, for a caller that computes them now: an artifact does not contain
    their definition, so their params are no constants of the model any more. Except with `partial`, nothing else may
    read these params.
    """
    graph = next((op for op in module.ops if isinstance(op, GraphOp)), None)
    if graph is None:
        return []
    params = {p.param_name.data for p in graph.params()}
    allowed = params if unbound else params & set(known)
    whole = allowed == params and bool(known or unbound)
    if whole and not partial:
        rewrite(module, pattern_set("conv:FACTORS", "view:VIEWS"))
    if not partial and (whole or (fill_for is not None and fill_for.is_gpu)):
        rewrite(module, pattern_set("conv_phases:PHASES", "conv:POINTS", "view:VIEWS"))
    if whole and fill_for is not None and fill_for.has("mma"):
        blocks = ["conv:BLOCKS"] if assumes(module, "finite_images") else []
        rewrite(module, pattern_set(*blocks, "conv:CHANNELS", "view:VIEWS"))
        pad_products(graph.block, fill_for, weights=True)
    if not partial and fill_for is not None and fill_for.is_gpu:  # the last: views would not turn the weight
        rewrite(module, pattern_set("gemm.planes:PLANES"))
        order_scatters(graph.block, fill_for, _fixed(graph, allowed, outside))
    taken = set(params)
    fixed = _fixed(graph, allowed, outside)
    found: list[tuple[SSAValue, Fold]] = []
    edges = [(value, closure(value)) for value in _edges(graph, fixed)]
    parted = _parted(edges, fixed)
    for value, ops in edges:
        if not _pays(value, ops, parted):
            continue
        sources = [op.param_name.data for op in ops if isinstance(op, ParamOp)]
        if not partial and sources and any(map(is_outside, ops)) and not _reads_alone(ops):
            continue
        if not sources and (literal := _literal(value, ops)) is not None:
            _use(graph, value, literal, fixed)
            continue
        name = base = FOLDED + sources[0] if sources else COMPUTED
        while name in taken:
            name = f"{base}.{len(found)}"
        taken.add(name)
        found.append((value, Fold(name, graph_of(value, ops, len(found)))))
    bound = [fold for _, fold in found if fold.source_types().keys() <= set(known)]
    done = {fold.name for fold in bound} if compute is None else compute(bound)
    left = {fold.name for fold in bound} - set(done)
    folds: list[Fold] = []
    for value, fold in found:
        if fold.name not in left:
            _use(graph, value, ParamOp(fold.name, tensor_type(value)), fixed)
            folds.append(fold)
    for op in reversed(list(graph.block.ops)):
        if op.results and op in fixed and not any(r.uses for r in op.results):
            op.detach()
            op.erase()
    return folds


def foldable_params(module: ModuleOp) -> list[str]:
    """The params from which values can be computed without an input, in a module after `fold_params`."""
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    params = [op for graph in graphs for op in graph.params() if not op.param_name.data.startswith((FOLDED, COMPUTED))]
    fixed = {op for graph in graphs for op in _fixed(graph, {op.param_name.data for op in params}, outside=False)}
    return [op.param_name.data for op in params if any(use.operation in fixed for use in op.output.uses)]


def _use(graph: GraphOp, value: SSAValue, source: ParamOp | ConstantOp, fixed: Collection[Operation]) -> None:
    """Let the ops that depend on an input read a new param or constant instead of `value`."""
    first = graph.block.first_op
    assert first is not None
    graph.block.insert_op_before(source, first)
    for use in list(value.uses):  # other folds compute the value again: a fold reads only params of the model
        if use.operation not in fixed:
            use.operation.operands[use.index] = source.output


def _literal(value: SSAValue, ops: Sequence[Operation]) -> ConstantOp | None:
    """A short value that depends only on constants, as a constant; None if it is long or has no reference."""
    t = tensor_type(value)
    if not 0 < t.num_elements().evaluate({}) <= LONGEST_LITERAL:
        return None
    try:
        numbers = Fold("", graph_of(value, ops, 0)).value({}).reshape(-1).tolist()
    except (ArithmeticError, NotImplementedError, ValueError):
        return None
    numbers = [int(n) if isinstance(n, bool) else n for n in numbers]
    return ConstantOp(numbers[0] if len(numbers) == 1 else numbers, t)


def is_outside(op: Operation) -> bool:
    """Whether an op is an operator from outside."""
    return row_of(type(op)) is not None


def _reads_alone(ops: Sequence[Operation]) -> bool:
    """Whether the params among these ops have no other users."""
    inside = set(ops)
    return all(use.operation in inside for op in ops if isinstance(op, ParamOp) for use in op.output.uses)


def _fixed(graph: GraphOp, known: Collection[str], outside: bool) -> set[Operation]:
    """The ops that depend only on constants and known params.

    An op from outside counts only with `outside`, or if it has a reference and depends only on constants, because the
    artifact does not contain its definition.
    """
    found: set[Operation] = set()
    constant: set[Operation] = set()
    for op in graph.block.ops:
        if isinstance(op, ConstantOp) or (op.operands and all(v.owner in constant for v in op.operands)):
            constant.add(op)
        row = row_of(type(op))
        if row is not None and not outside and (row.rule is None or op not in constant):
            continue
        if _reads_dims(op):
            continue
        is_source = isinstance(op, ConstantOp) or (isinstance(op, ParamOp) and op.param_name.data in known)
        if is_source or (op.operands and op.has_trait(Pure) and all(v.owner in found for v in op.operands)):
            found.add(op)
    return found


def _reads_dims(op: Operation) -> bool:
    """Whether an op has a property that depends on dims, such as the offset of a slice: its value differs with them."""
    return any(isinstance(a, ShapeAttr) and any(e.symbols for e in a.data) for a in op.properties.values())


def _edges(graph: GraphOp, fixed: set[Operation]) -> list[SSAValue]:
    """The values that depend on no input and that ops which depend on an input use; params and constants are left out.
    """
    return [
        result
        for op in graph.block.ops
        if op in fixed and not isinstance(op, ParamOp | ConstantOp)
        for result in op.results
        if any(use.operation not in fixed for use in result.uses)
    ]


def closure(value: SSAValue) -> list[Operation]:
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


def _parted(edges: Sequence[tuple[SSAValue, Sequence[Operation]]], fixed: Collection[Operation]) -> Collection[ParamOp]:
    """The large params that the values of folds replace.

    Only ops of folds use such a param, its folds are not all views, and their values are together not much larger than
    the param.
    """
    found: list[ParamOp] = []
    for param in dict.fromkeys(op for _, ops in edges for op in ops if isinstance(op, ParamOp)):
        values = [(tensor_type(value), ops) for value, ops in edges if param in ops]
        alone = all(use.operation in fixed for use in param.output.uses)
        if not alone or not _is_large(param) or all(_is_view(ops) for _, ops in values):
            continue
        sizes = [t.byte_size().evaluate({}) for t, _ in values if t.static_shape() is not None]
        if len(sizes) == len(values) and sum(sizes) <= GROWTH * tensor_type(param.output).byte_size().evaluate({}):
            found.append(param)
    return found


def _is_large(param: ParamOp) -> bool:
    """Whether a param is so large that the model must not keep a second copy of it."""
    return tensor_type(param.output).byte_size().evaluate({}) > LARGEST_COPY


def _is_view(ops: Sequence[Operation]) -> bool:
    """Whether ops compute a view of a param."""
    return all(isinstance(op, ParamOp | ReshapeOp | SliceOp | SplitOp) for op in ops)


def _pays(value: SSAValue, ops: Sequence[Operation], parted: Collection[ParamOp]) -> bool:
    """Whether storing the value is worthwhile. It is not for a view of a param, for a large value much larger than its
    sources, and for a second copy of a large param. Views of params in `parted` are stored, because folds replace these
    params.
    """
    sources = [op for op in ops if isinstance(op, ParamOp)]
    if not sources:
        return _is_worth_computing(tensor_type(value), ops)
    if _is_view(ops) and not all(p in parted for p in sources):
        return False
    t = tensor_type(value)
    if not is_worth_storing(t, [tensor_type(p.output) for p in sources]):
        return False
    if isinstance(value.owner, OrderOp):  # small beside the indices, and a sort is slow
        return True
    inside = set(ops)
    large = [p for p in sources if _is_large(p) and p not in parted]
    shared = any(use.operation not in inside for p in large for use in p.output.uses)
    return not shared and (
        is_float(t.element_type) or all(isinstance(op, ParamOp | ReshapeOp | PermuteOp) for op in ops)
    )


def _is_worth_computing(t: TensorType, ops: Sequence[Operation]) -> bool:
    """Whether a value that depends only on constants is better stored than computed: not a view, and not too large."""
    views = (ConstantOp, ReshapeOp, SliceOp, SplitOp, ExpandOp, PermuteOp)
    if all(isinstance(op, views) for op in ops):
        return False
    if any(tensor_type(result).static_shape() is None for op in ops for result in op.results):
        return False
    size = t.byte_size().evaluate({})
    operations = sum(op.flops().evaluate({}) for op in ops if isinstance(op, Cost))
    return size <= LARGEST_COPY or (size <= LARGEST_TABLE and operations > size)


def graph_of(value: SSAValue, ops: Sequence[Operation], number: int) -> GraphOp:
    """A graph with copies of these ops and the output `value`."""
    graph = GraphOp(f"fold{number}", [], Scope())
    values: dict[SSAValue, SSAValue] = {}
    for op in ops:
        graph.block.add_op(op.clone(values))
    graph.block.add_op(OutputOp("value", values[value]))
    return graph
