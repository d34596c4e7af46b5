"""Makes the inputs of a graph jagged once, instead of values inside the graph.

Rows that are made jagged at several places have the same sequences if their number is the same total. With one jagged
view for each such input, operators check the offsets once, and everything computed from these inputs is jagged, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from ait_mlir.dialects.ait.data import GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.jagged import MakeJaggedOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dims import Expr
from ait_mlir.ir.pipeline import TellingPass


@dataclass(frozen=True)
class MakeInputsJaggedPass(TellingPass):
    """Let jagged views of one total be views of the inputs.

    Views of a total stay where they are if they differ in offsets, if one of them alone leads from an input to an
    output, if the offsets are computed in the graph, or if an op that reads the rows does not take jagged ones.
    """

    name = "make-inputs-jagged"

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        changed = False
        for graph in [op for op in module.ops if isinstance(op, GraphOp)]:
            for total, views in views_by_total(graph.block).items():
                if not may_move(views, total, graph.block):
                    continue
                trial = graph.clone()
                moved = views_by_total(trial.block)[total]
                make_inputs_jagged(trial.block, moved, total)
                try:
                    trial.verify()
                except (VerifyException, DiagnosticException):
                    continue
                make_inputs_jagged(graph.block, views, total)
                changed = True
        return changed


def views_by_total(block: Block) -> Mapping[Expr, Sequence[MakeJaggedOp]]:
    """The jagged views of a block by the number of rows."""
    found: dict[Expr, list[MakeJaggedOp]] = {}
    for op in block.ops:
        if isinstance(op, MakeJaggedOp):
            found.setdefault(tensor_type(op.input).dims[0], []).append(op)
    return found


def may_move(views: Sequence[MakeJaggedOp], total: Expr, block: Block) -> bool:
    """Whether views inside the graph may become views of its inputs.

    There are several; they have the same jagged dim and the same offsets, which are known before all ops; an input has
    the same number of rows; not all of them are views of inputs already; and none leads from an input to an output.
    """
    first = views[0]
    sources = rows_of(block, total)
    if len(views) < 2 or not sources or {view.input for view in views} == set(sources):
        return False
    known = all(isinstance(value, BlockArgument) or isinstance(value.owner, ParamOp) for value in first.offsets)
    dims = {tensor_type(view.output).dims[0] for view in views}
    alike = len(dims) == 1 and all(tuple(view.offsets) == tuple(first.offsets) for view in views)
    return known and alike and not any(is_between_ends(view) for view in views)


def is_between_ends(view: MakeJaggedOp) -> bool:
    """Whether a view of an input is an output."""
    is_output = any(isinstance(use.operation, OutputOp) for use in view.output.uses)
    return isinstance(view.input, BlockArgument) and is_output


def rows_of(block: Block, total: Expr) -> list[BlockArgument]:
    """The inputs with `total` rows."""
    return [value for value in block.args if (dims := tensor_type(value).dims) and dims[0] is total]


def make_inputs_jagged(block: Block, views: Sequence[MakeJaggedOp], total: Expr) -> None:
    """Replace views inside the graph by one jagged view of each input with the same number of rows; all values with
    this number of rows become jagged.
    """
    offsets, jagged = list(views[0].offsets), tensor_type(views[0].output).dims[0]
    for view in views:
        view.output.replace_all_uses_with(view.input)
        view.detach()
        view.erase()
    for value in offsets:
        if isinstance(value.owner, Operation):
            value.owner.detach()
            block.insert_op_before(value.owner, _first(block))
    for op in block.ops:
        for result in op.results:
            if isinstance(result.type, TensorType) and result.type.dims and result.type.dims[0] is total:
                _retype(result, jagged)
    place = _first(block)
    while place.next_op is not None and isinstance(place, ParamOp):
        place = place.next_op
    for value in rows_of(block, total):
        users = list(value.uses)
        made = MakeJaggedOp.create(operands=[value, *offsets], result_types=[_jagged(value, jagged)])
        block.insert_op_before(made, place)
        for use in users:
            use.operation.operands[use.index] = made.output


def _first(block: Block) -> Operation:
    assert block.first_op is not None
    return block.first_op


def _jagged(value: SSAValue, jagged: Expr) -> TensorType:
    t = tensor_type(value)
    return TensorType.get((jagged, *t.dims[1:]), t.element_type)


def _retype(value: SSAValue, jagged: Expr) -> None:
    value._type = _jagged(value, jagged)  # pyright: ignore[reportPrivateUsage]
