"""Turns one graph of values into a program of launches on buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, i8
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait.ranks import ALONE, ranks_of
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.scan import ScanOp, tensor_ops
from ait_mlir.dialects.ait.strided import ZERO, Strided, contiguous_strides, extent, is_contiguous
from ait_mlir.dialects.ait.structure import op_key
from ait_mlir.dialects.ait.traits import BindsDim, InPlace, UpdatesOperand, ViewLike
from ait_mlir.dialects.ait.types import Induction, KernelAttr, Shape, TensorType, in_loops, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ReshapeOp
from ait_mlir.dialects.ait_rt import buffers as rt
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp, ReturnOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.choices import Selected
from ait_mlir.lowering.module_target import target_of
from ait_mlir.lowering.weights import is_weight
from ait_mlir.passes.bound_dims import BoundDim, place_waits
from ait_mlir.passes.in_place import Donation, donations_of, later_reader, line_of


@dataclass
class Place:
    """The location of a value: a view of the buffer `root`."""

    root: SSAValue
    view: Strided
    whole: SSAValue | None = None
    """A row-major buffer with exactly this value; None before it is needed."""


@dataclass
class Bufferizer:
    """Turns one graph into a program and the kernels it launches."""

    module: ModuleOp
    graph: GraphOp
    bufferize_scan: Callable[[Bufferizer, ScanOp], None]
    """Adds the loop of a scan."""
    kernels: dict[object, KernelOp] = field(default_factory=dict[object, KernelOp])
    choices: dict[object, Selected] = field(default_factory=dict[object, Selected])
    places: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])
    packed: dict[tuple[SSAValue, str], SSAValue] = field(default_factory=dict[tuple[SSAValue, str], SSAValue])
    block: Block = field(default_factory=Block)
    program_block: Block = field(default_factory=Block)
    """The block of the program, which holds all constants, even those used in loops."""
    loops: list[Induction] = field(default_factory=list[Induction])
    """The loops around `block`, outermost first."""
    destinations: dict[OutputOp, Place] = field(default_factory=dict[OutputOp, Place])
    donations: list[Donation] = field(default_factory=list[Donation])
    bound: list[BoundDim] = field(default_factory=list[BoundDim])
    launched: dict[LaunchOp, Selected] = field(default_factory=dict[LaunchOp, Selected])
    """The selected kernel of each launch."""
    order: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """The position of each op of the graph, including the ops in scans."""

    def __post_init__(self) -> None:
        self.block = self.program_block

    @property
    def scope(self) -> Scope:
        """The dims of the graph and of the loops around `block`."""
        return in_loops(self.graph.scope, tuple(self.loops)) if self.loops else self.graph.scope

    def enter(self, count: Expr) -> Induction:
        """Begin the body of a loop; returns its induction dim."""
        self.loops.append(fresh_step([d.name for d in self.scope], count))
        return self.loops[-1]

    def leave(self) -> None:
        """End the body of a loop."""
        self.loops.pop()

    def run(self) -> ProgramOp:
        self.donations = donations_of(self.graph)
        self.order = {op: i for i, op in enumerate(tensor_ops(self.graph.block))}
        state = {donation.value for donation in self.donations}
        strides = self.graph.strides()
        for name, value in self.graph.inputs():
            if name in strides:
                t, view = self.memory(tensor_type(value), strides[name])
                root = self.emit(rt.InputOp(name, t, view=view))
                root.name_hint = value.name_hint
                self.places[value] = Place(root, view)
            else:
                self.define(value, self.emit(rt.InputOp(name, BufferType.of(tensor_type(value)), value in state)))
        self.destinations = {op: self.destination(op) for op in self.graph.outputs()}
        self.run_ops(self.graph.block)
        self.finish_donations()
        place_waits(self.block, self.bound, lambda launch: self.launched[launch].masks())
        for constant in [op for op in self.block.ops if isinstance(op, rt.ConstantOp)]:
            if not list(constant.buffer.uses):  # its launches all read it in panels
                constant.detach()
                constant.erase()
        program = ProgramOp(self.graph.sym_name.data, self.scope, const(0), Region(self.block))
        program.location = self.graph.location
        if (ranks := ranks_of(self.graph)) is not ALONE:
            program.ranks = ranks.attribute()
        return program

    def memory(self, t: TensorType, strides: Shape) -> tuple[BufferType, Strided]:
        """The buffer type for all memory of a caller's tensor with these strides, and the tensor's view of it."""
        return BufferType.get([extent(t.dims, strides, self.scope)], t.element_type), Strided(t.dims, ZERO, strides)

    def destination(self, op: OutputOp) -> Place:
        """The caller's memory of an output."""
        t, name = tensor_type(op.value), op.output_name.data
        if op.strides is not None:
            kind, view = self.memory(t, op.strides.data)
            return Place(self.emit(rt.DestinationOp(name, kind, view=view)), view)
        taken = None if op.in_place_of is None else self.places[op.in_place_of].root
        buffer = self.emit(rt.DestinationOp(name, BufferType.of(t), taken))
        return Place(buffer, Strided.whole(t.dims), buffer)

    def run_ops(self, block: Block) -> None:
        """Add the ops that compute the values of a graph's or scan's block; the caller handles the terminator."""
        for op in block.ops:
            if isinstance(op, YieldOp):
                continue
            if isinstance(op, OutputOp):
                if op.in_place_of is None:
                    target = self.view_of(self.destinations[op], tensor_type(op.value).element_type)
                    self.copy(self.places[op.value], target)
            elif isinstance(op, ParamOp):
                t = BufferType.of(tensor_type(op.output))
                self.define(op.output, self.emit_constant(rt.ConstantOp(t, [op.param_name.data])))
            elif isinstance(op, ConstantOp):
                self.constant(op)
            elif isinstance(op, ScanOp):
                self.bufferize_scan(self, op)
            elif isinstance(op, ViewLike):
                self.view(op)
            else:
                self.launch(op)

    def constant(self, op: ConstantOp) -> None:
        """Add the buffer of a literal. A single number for a dynamic shape is stored once and has strides of 0."""
        t = tensor_type(op.output)
        value = cast(Attribute, op.value)
        if t.static_shape() is not None:
            self.define(op.output, self.emit_constant(rt.ConstantOp(BufferType.of(t), value=value)))
            return
        one = self.emit_constant(rt.ConstantOp(BufferType.get((), t.element_type), value=value))
        one.name_hint = op.output.name_hint
        self.places[op.output] = Place(one, Strided.whole(()).expand(t.dims))

    def emit(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def emit_constant(self, op: rt.ConstantOp) -> SSAValue:
        self.program_block.add_op(op)
        return op.buffer

    def define(self, value: SSAValue, buffer: SSAValue) -> None:
        """Record that `value` fills the whole of `buffer`."""
        buffer.name_hint = buffer.name_hint or value.name_hint
        self.places[value] = Place(buffer, Strided.whole(tensor_type(value).dims), buffer)

    def view_of(self, place: Place, element_type: Attribute) -> SSAValue:
        """A buffer value for a place, strided or not."""
        if place.whole is None and place.view.is_whole(self.scope):
            root = cast(BufferType, place.root.type)
            if root.dims == place.view.dims:
                place.whole = place.root
        if place.whole is not None:
            return place.whole
        t = BufferType.get(place.view.dims, element_type)
        return self.emit(rt.ViewOp(place.root, place.view.offset, place.view.strides, t))

    def row_major(self, value: SSAValue) -> SSAValue:
        """A buffer with exactly the value, row-major; copied if it is a strided view."""
        place = self.places[value]
        if place.whole is None:
            t = tensor_type(value)
            contiguous = is_contiguous(t.dims, place.view.strides, self.scope)
            if contiguous:  # strides of dims of 1 may differ: write row-major strides, which every kernel accepts
                place.view = Strided(t.dims, place.view.offset, contiguous_strides(t.dims))
            buffer = self.view_of(place, t.element_type)
            if not contiguous:
                fresh = self.emit(rt.AllocOp(BufferType.of(t)))
                self.block.add_op(rt.CopyOp(buffer, fresh))
                buffer = fresh
            place.whole = buffer
        return place.whole

    def copy(self, place: Place, target: SSAValue) -> None:
        source = self.view_of(place, cast(BufferType, target.type).element_type)
        self.block.add_op(rt.CopyOp(source, target))

    # ** views **

    def view(self, op: ViewLike) -> None:
        if isinstance(op, ConcatOp):
            self.concat(op)
            return
        place = self.places[op.operands[0]]
        for result in op.results:
            found = op.result_view(result.index, place.view, self.scope)
            if found is None:
                assert isinstance(op, ReshapeOp)
                whole = self.row_major(op.input)
                found, place = Strided.whole(tensor_type(result).dims), Place(whole, place.view)
            self.places[result] = Place(place.root, found)

    def concat(self, op: ConcatOp) -> None:
        t = tensor_type(op.output)
        params = [v.owner for v in op.operands]
        if op.dim.value.data == 0 and all(isinstance(p, ParamOp) for p in params):
            names = [cast(ParamOp, p).param_name.data for p in params]
            rows = [cast(int, tensor_type(v).dims[0].as_int()) for v in op.operands]
            self.define(
                op.output,
                self.emit_constant(rt.ConstantOp(BufferType.of(t), names, rows=rows if len(rows) > 1 else ())),
            )
            return
        whole = self.emit(rt.AllocOp(BufferType.of(t)))
        self.define(op.output, whole)
        for i, value in enumerate(op.operands):
            part = op.operand_view(i, Strided.whole(t.dims), self.scope)
            self.copy(self.places[value], self.view_of(Place(whole, part), t.element_type))

    # ** launches **

    def launch(self, op: Operation) -> None:
        choice = op.attributes.get("kernel")
        if not isinstance(choice, KernelAttr):
            raise PassError(f"{op.name} has no kernel; run the pass 'select' first", op)
        alike = self.graph.scope, op_key(op)
        kernel = self.kernel(op, choice, alike)
        chosen = self.selected(op, choice, alike)
        if isinstance(op, UpdatesOperand):
            updated = self.updated(op, chosen)
            ins = [updated, *(self.row_major(v) for v in op.operands[1:])]
            outs = [updated]
        else:
            ins = [self.operand(v, chosen.panels(i)) for i, v in enumerate(op.operands)]
            outs = [self.result(op, r) for r in op.results]
            for result, buffer in zip(op.results, outs, strict=True):
                self.define(result, buffer)
        workspace: list[SSAValue] = []
        if chosen.workspace.as_int() != 0:
            workspace.append(self.emit(rt.AllocOp(BufferType.get([chosen.workspace], i8))))
        launch = LaunchOp(kernel.sym_name.data, ins, outs, workspace)
        launch.location = op.location
        self.block.add_op(launch)
        self.launched[launch] = chosen
        if isinstance(op, BindsDim):
            self.bound.append(BoundDim(str(op.bound_dim), launch, outs[-1]))

    # ** over older values **

    def held_in(self, root: SSAValue) -> list[SSAValue]:
        """The values whose place is in a buffer."""
        return [value for value, place in self.places.items() if place.root is root]

    def updated(self, op: Operation, chosen: Selected) -> SSAValue:
        """The buffer in which `op` updates its first operand: the operand's own buffer, or a copy."""
        value, result = op.operands[0], op.results[0]
        place = self.places[value]
        t = tensor_type(value)
        if self.may_update(op, place, chosen):
            buffer = self.view_of(place, t.element_type)
            self.places[result] = Place(place.root, place.view, place.whole)
            return buffer
        buffer = self.emit(rt.AllocOp(BufferType.of(t)))
        self.copy(place, buffer)
        self.define(result, buffer)
        return buffer

    def may_update(self, op: Operation, place: Place, chosen: Selected) -> bool:
        """Whether `op` may update its first operand in place; records the reason in the donation if not."""
        root, held = place.root.owner, self.held_in(place.root)
        donation = next((d for d in self.donations if self.places[d.value].root is place.root), None)
        if donation is not None and op not in donation.updates:
            return False
        if donation is None and not (isinstance(root, rt.AllocOp) and root.parent is self.block):
            return False  # of another block: the next step of a loop reads it again
        problem = ""
        if any(v in held for v in op.operands[1:]):
            problem = f"{line_of(op)} also reads it as another operand"
        elif (reader := later_reader(op, held, self.order)) is not None:
            problem = (
                f"{line_of(reader)} reads the old value after {line_of(op)} has written the new one; read it before"
            )
        elif place.view.repeats(self.scope):
            problem = f"several elements of the tensor that {line_of(op)} updates are in one place"
        elif not all(chosen.accepts(i, place.view.strides, self.scope) for i in (0, len(op.operands))):
            problem = f"the kernel of {line_of(op)} does not take the strides of the view that it updates"
        if donation is not None:
            donation.problem = donation.problem or problem
        return not problem

    def result(self, op: Operation, result: SSAValue) -> SSAValue:
        """The buffer of a result: a new one, or the buffer of the donated input that it replaces."""
        donation = next((d for d in self.donations if d.output.value is result), None)
        if donation is not None and self.may_replace(op, donation):
            return self.places[donation.value].root
        return self.emit(rt.AllocOp(BufferType.of(tensor_type(result))))

    def may_replace(self, op: Operation, donation: Donation) -> bool:
        """Whether `op` may overwrite the donated input with its result; records the reason in the donation if not."""
        place = self.places[donation.value]
        held = self.held_in(place.root)
        if (reader := later_reader(op, held, self.order)) is not None:
            donation.problem = f"{line_of(reader)} reads the old value after {line_of(op)} has made the new one"
        elif any(v in held for v in op.operands) and not isinstance(op, InPlace):
            donation.problem = f"{line_of(op)} reads elements of the old value after others have been written"
        elif any(v in held and self.places[v].view != place.view for v in op.operands):
            donation.problem = f"{line_of(op)} reads the old value in another order than it writes the new one"
        return not donation.problem

    def finish_donations(self) -> None:
        """Copy outputs that could not be computed in place, if `or copy` allows it."""
        copies: list[tuple[Place, SSAValue]] = []
        for donation in self.donations:
            target, place = self.places[donation.value].root, self.places[donation.output.value]
            if place.root is target and self.view_of(place, tensor_type(donation.value).element_type) is target:
                continue
            if not donation.allows_copy:
                raise PassError(donation.refusal(), donation.output)
            if isinstance(place.root.owner, rt.InputOp):  # another of these copies may overwrite it
                t = tensor_type(donation.value)
                saved = self.emit(rt.AllocOp(BufferType.of(t)))
                self.copy(place, saved)
                place = Place(saved, Strided.whole(t.dims), saved)
            copies.append((place, target))
        for place, target in copies:
            self.copy(place, target)

    def operand(self, value: SSAValue, panels: str | None) -> SSAValue:
        """The buffer of an operand: row-major, or the constant with its bytes in panels, in the operand's shape."""
        if panels is None:
            return self.row_major(value)
        constant = self.places[value].root.owner
        assert isinstance(constant, rt.ConstantOp)
        found = self.packed.get((constant.buffer, panels))
        if found is None:
            packed = rt.ConstantOp(constant.buffer_type, constant.param_names(), rows=constant.rows(), panels=panels)
            self.program_block.insert_op_after(packed, constant)
            found = self.packed[constant.buffer, panels] = packed.buffer
            found.name_hint = constant.buffer.name_hint
        t = tensor_type(value)
        if constant.buffer_type.dims == t.dims:
            return found
        return self.view_of(Place(found, Strided.whole(t.dims)), t.element_type)

    def selected(self, op: Operation, choice: KernelAttr, alike: object) -> Selected:
        """The selected kernel of an op, with its requirements for buffers; shared with equal earlier ops."""
        key = alike, tuple(is_weight(v) for v in op.operands)
        found = self.choices.get(key)
        if found is None:
            target = target_of(self.module)
            found = self.choices[key] = Selected.of(choice.provider.data, choice.config, op, target)
        return found

    def kernel(self, op: Operation, choice: KernelAttr, alike: object) -> KernelOp:
        """The kernel that computes `op`; shared with equal earlier ops."""
        found = self.kernels.get(alike)
        if found is None:
            name = f"{derived_name(op)}_{len(self.kernels)}"
            body = Block(arg_types=[v.type for v in op.operands])
            clone = op.clone(dict(zip(op.operands, body.args, strict=True)))
            for i, argument in enumerate(body.args):
                clone.operands[i] = argument
            del clone.attributes["kernel"]
            body.add_ops([clone, ReturnOp(clone.results)])
            config = DictionaryAttr(choice.config.data)
            found = self.kernels[alike] = KernelOp(name, choice.provider.data, config, self.graph.scope, Region(body))
            found.location = op.location
        return found


def fresh_step(taken: Sequence[str], count: Expr) -> Induction:
    """An induction dim with an unused name."""
    name = next(n for n in ("step", *(f"step{i}" for i in range(len(taken) + 1))) if n not in taken)
    return Induction(name, count)
