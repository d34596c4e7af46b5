"""Makes one op of a scan whose steps are a product with the carried state and elementwise ops: a recurrent layer.

The launches of the steps then become one launch that keeps the weight on chip. The function of a step is written by the
table of elements (`ait_mlir/elements`), so any views and any elementwise ops may stand in the step.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.dtypes import compute_type, is_computed_float, is_float
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.loops import AtOp, FoldOp, IndexOp
from ait_mlir.dialects.ait.recurrence import RecurrenceOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.scan import ScanOp
from ait_mlir.dialects.ait.types import Induction, TensorType, in_nest, scope_of, tensor_type
from ait_mlir.dims import Expr, const, sym
from ait_mlir.elements import ROWS, NoElements, has_elements
from ait_mlir.elements.writer import ElementWriter
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.grouping import best_seconds

ROW, COLUMN = "row", "column"
"""The iteration dims of an element of the state."""
Gate = tuple[GemmOp, int]
"""A product of a step, and the first of the columns that are one gate."""


@dataclass(frozen=True)
class FormRecurrencesPass(ByEstimatePass):
    """Make `ait.recurrence` of scans whose steps are products with the state and a function of each element; with a
    target, only where estimates say that it is faster than the launches of the steps.
    """

    name = "form-recurrences"

    def rewrite(self, block: Block, target: Target | None) -> bool:
        return any([form(op, target) for op in list(block.ops) if isinstance(op, ScanOp)])


def form(scan: ScanOp, target: Target | None) -> bool:
    """Replace a scan by a recurrence; returns False if it is none, or if no kernel for it is faster."""
    try:
        step = Step(scan)
    except NoElements:
        return False
    writer = Before(scan)
    op = step.recurrence(writer)
    if target is not None and best_seconds(op, target) >= step.least_seconds(target):
        for new in reversed(writer.new):
            new.detach()
            new.erase()
        return False
    for old, new in step.results(op, writer).items():
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    scan.detach()
    scan.erase()
    return True


class Before(Writer):
    """Writes ops before a scan."""

    def __init__(self, scan: ScanOp) -> None:
        block = scan.parent
        assert block is not None
        super().__init__(block)
        self.place = scan
        self.new: list[Operation] = []

    def insert(self, op: AitOp) -> Operation:
        op.location = self.place.location
        self.block.insert_op_before(op, self.place)
        self.new.append(op)
        return op


class Step:
    """The step of a scan as products and a function of each element. `NoElements` if it is something else."""

    def __init__(self, scan: ScanOp) -> None:
        self.scan = scan
        count, carry = len(scan.scanned), len(scan.init)
        self.products = [op for op in scan.block.ops if isinstance(op, GemmOp)]
        arguments = scan.block.args
        states = arguments[count : count + carry]
        sources = {op.a for op in self.products}
        if len(sources) != 1 or (h := sources.pop()) not in states:
            raise NoElements("the products of a step do not all multiply one carried value")
        for op in self.products:
            if not is_computed_float(tensor_type(op.a).element_type):
                raise NoElements("a product of a step is one of integers or of 8-bit floats")
            if op.layout.data != "rcr" or op.epilogue.blocks or op.b not in arguments[count + carry :]:
                raise NoElements("a product of a step is not with the rows of a captured tensor")
        self.states = [h, *(v for v in states if v is not h)]
        """The carried values, h first."""
        self.batch, self.hidden = _state_dims(self.states)
        used = [r for r in scan.results[carry:] if r.uses]
        self.stacked = used
        """The stacked results that are used."""
        yielded = {r: v for r, v in zip(scan.results, scan.yielded, strict=True)}
        after: dict[SSAValue, SSAValue] = dict(zip(states, scan.yielded, strict=False))
        wanted = [*(after[v] for v in self.states), *(yielded[r] for r in used)]
        self._write([self._whole(v) for v in wanted])

    def _whole(self, value: SSAValue) -> SSAValue:
        """The value, if it has one element for each element of the state."""
        scope = scope_of(self.scan)
        dims = tensor_type(value).dims
        if len(dims) != 2 or not scope.equal(dims[0], self.batch) or not scope.equal(dims[1], self.hidden):
            raise NoElements("a step yields a value of another shape than the state")
        return value

    def _write(self, wanted: list[SSAValue]) -> None:
        """Find the function of an element: scalar ops on gates, inputs and states."""
        scan = self.scan
        members = {op for op in scan.block.ops if has_elements(op) and op not in self.products}
        loops = (Induction(ROW, self.batch), Induction(COLUMN, self.hidden))
        scope = scope_of(scan)
        if ROW in scope or COLUMN in scope:
            raise NoElements("the graph has a dim of the name of an iteration dim")
        writer = ElementWriter(scope, members, ROWS, loops, has_errors=False)
        index = [const(0) if loop.count.as_int() == 1 else sym(loop.name) for loop in loops]
        results = [writer.element(value, index) for value in wanted]
        self.scope = in_nest(scope, loops)
        tensors: dict[SSAValue, SSAValue] = {argument: value for value, argument in writer.operands.items()}
        self.gates: list[Gate] = []
        self.inputs: list[tuple[SSAValue, tuple[Expr, ...]]] = []
        self.reads: dict[SSAValue, Gate | tuple[SSAValue, tuple[Expr, ...]] | SSAValue] = {}
        """What each read of an element is: a gate, an input at an index, or a state."""
        self.ops: list[Operation] = []
        for op in writer.levels[0].block.ops:
            if isinstance(op, AtOp):
                self.reads[op.output] = self._read(tensors[op.tensor], op)
            elif isinstance(op, FoldOp | IndexOp):
                raise NoElements("an element depends on its place, or on several elements")
            else:
                self.ops.append(op)
        self.yielded = results
        if not self.gates or not any(value in scan.block.args[: len(scan.scanned)] for value, _ in self.inputs):
            raise NoElements("a step uses no product, or nothing of the scanned tensors")
        self.gates.sort(key=lambda gate: (self.products.index(gate[0]), gate[1]))
        # the first input has the number of steps
        self.inputs.sort(key=lambda item: item[0] not in scan.block.args[: len(scan.scanned)])

    def _read(self, tensor: SSAValue, op: AtOp) -> Gate | tuple[SSAValue, tuple[Expr, ...]] | SSAValue:
        index = op.index()
        if op.number is not None or any(not isinstance(e, Expr) for e in index):
            raise NoElements("a step reads elements by index")
        index = tuple(e for e in index if isinstance(e, Expr))
        if tensor in self.states:
            if not self._is_row(index[0]) or self._column(index[1]) != 0:
                raise NoElements("a step moves elements of the state")
            return tensor
        if isinstance(tensor.owner, GemmOp):
            first = self._column(index[1])
            if not self._is_row(index[0]) or first is None or first % self.hidden.evaluate({}) != 0:
                raise NoElements("a step moves elements of a product")
            gate = tensor.owner, first
            if gate not in self.gates:
                self.gates.append(gate)
            return gate
        if not isinstance(tensor, BlockArgument):
            raise NoElements("a step uses an op that has no elements")
        kinds = [self._kind(e) for e in index]
        if None in kinds or [k for k in kinds if k] not in ([], [ROW], [COLUMN], [ROW, COLUMN]):
            raise NoElements("a step moves elements of an input")
        item = tensor, index
        if item not in self.inputs:
            self.inputs.append(item)
        return item

    def _is_row(self, e: Expr) -> bool:
        return e is sym(ROW) or (self.batch.as_int() == 1 and e.as_int() == 0)

    def _column(self, e: Expr) -> int | None:
        """The first column, if `e` reads a column for each column of the state; else None."""
        return (e - sym(COLUMN)).as_int()

    def _kind(self, e: Expr) -> str | None:
        """The dim of the state that an index counts: `ROW`, `COLUMN`, or "" if it depends on neither.

        None for another expression of the two dims.
        """
        if e is sym(ROW):
            return ROW
        if self._column(e) is not None:
            return COLUMN
        return None if {ROW, COLUMN} & set(e.symbols) else ""

    # ** the recurrence **

    def recurrence(self, w: Before) -> RecurrenceOp:
        """Write the op, and the views that it needs, before the scan."""
        scan = self.scan
        arguments = scan.block.args[len(scan.scanned) :]
        init: dict[SSAValue, SSAValue] = dict(zip(arguments, scan.init, strict=False))
        weight = self._weight(w)
        inputs = [self._input(w, tensor, index) for tensor, index in self.inputs]
        stacked = [
            TensorType.get((scan.length, self.batch, self.hidden), tensor_type(r).element_type) for r in self.stacked
        ]
        states = [init[v] for v in self.states]
        op = RecurrenceOp(weight, states, inputs, self._body(), stacked, scan.reverse is not None)
        w.insert(op)
        return op

    def _body(self) -> Region:
        gate = compute_type(tensor_type(self.states[0]).element_type)
        values = [*(v for v, _ in self.inputs), *self.states]
        types = [compute_type(tensor_type(v).element_type) for v in values]
        block = Block(arg_types=[*[gate] * len(self.gates), *types])
        order: list[object] = [*self.gates, *self.inputs, *self.states]
        known: dict[SSAValue, SSAValue] = {read: block.args[order.index(what)] for read, what in self.reads.items()}
        for op in self.ops:
            block.add_op(op.clone(known))
        block.add_op(YieldOp(*(known.get(v, v) for v in self.yielded)))
        return Region(block)

    def _outside(self, value: SSAValue) -> SSAValue:
        """The value from outside of the scan that an argument of the step stands for, or is a slice of."""
        assert isinstance(value, BlockArgument)
        return self.scan.operands[value.index]

    def _weight(self, w: Before) -> SSAValue:
        """The rows of all gates, in their order."""
        hidden = self.hidden.evaluate({})
        product = self.gates[0][0]
        rows = tensor_type(product.b).dims[0].as_int() or 0
        if self.gates == [(product, first) for first in range(0, rows, hidden)]:
            return self._outside(product.b)
        return w.concat([w.slice(self._outside(op.b), 0, first, hidden) for op, first in self.gates], 0)

    def _input(self, w: Before, tensor: SSAValue, index: tuple[Expr, ...]) -> SSAValue:
        """[S, B, H], with 1 for a dim along which an input does not change."""
        value, scan = self._outside(tensor), self.scan
        steps = const(1)
        if tensor in scan.block.args[: len(scan.scanned)]:
            others = [a for a in range(len(index) + 1) if a != scan.axis]
            value, steps = w.permute(value, [scan.axis, *others]), scan.length
        leading = tensor_type(value).rank - len(index)
        kinds = [self._kind(e) for e in index]
        for axis, (e, kind) in enumerate(zip(index, kinds, strict=True), leading):
            if kind == COLUMN:
                value = w.slice(value, axis, e - sym(COLUMN), self.hidden)
            elif kind != ROW:
                value = w.slice(value, axis, e, 1)
        batch = self.batch if ROW in kinds else const(1)
        return w.reshape(value, (steps, batch, self.hidden if COLUMN in kinds else const(1)))

    def results(self, op: RecurrenceOp, w: Before) -> dict[SSAValue, SSAValue]:
        """What replaces each used result of the scan."""
        scan = self.scan
        states = scan.block.args[len(scan.scanned) :][: len(scan.init)]
        found: dict[SSAValue, SSAValue] = {}
        for state, old in zip(states, scan.results, strict=False):
            found[old] = op.results[self.states.index(state)]
        axis = scan.axis
        order = [*range(1, axis + 1), 0, *range(axis + 1, 3)]
        for old, new in zip(self.stacked, op.results[len(states) :], strict=True):
            found[old] = w.permute(new, order)
        return found

    def least_seconds(self, target: Target) -> float:
        """The least seconds of the launches of all steps: of the products, and of a launch for several gates."""
        scope = scope_of(self.scan)
        steps = self.scan.length.evaluate(estimate_env(scope))
        step = sum(best_seconds(op, target) for op in self.products)
        return steps * (step + (target.launch_seconds if len(self.gates) > 1 else 0))


def _state_dims(states: list[SSAValue]) -> tuple[Expr, Expr]:
    """Rows and columns of the state; `NoElements` unless all carried values are matrices of one shape."""
    types = [tensor_type(v) for v in states]
    dims = types[0].dims
    if any(t.rank != 2 or t.dims != dims or not is_float(t.element_type) for t in types) or dims[1].as_int() is None:
        raise NoElements("the carried values are no matrices of one shape, of floats")
    return dims[0], dims[1]
