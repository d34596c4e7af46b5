"""From values to memory: every op with a `kernel` becomes a launch that writes its own buffer, every view op a view
or a copy.

The result is plain on purpose: operands that are strided views are copied, parts of a concat are copied into place,
outputs are
copied out. `remove-copies` then removes what the kernels make unnecessary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, i8
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.elementwise import YieldOp
from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait.scan import ScanOp
from ait_mlir.dialects.ait.traits import View
from ait_mlir.dialects.ait.types import Induction, KernelAttr, in_loops, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ReshapeOp
from ait_mlir.dialects.ait_rt import buffers as rt
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp, ReturnOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.choices import chosen_kernel, workspace_of
from ait_mlir.passes.loops import bufferize_scan, fresh_step
from ait_mlir.passes.strides import ZERO, Strided, through
from ait_mlir.passes.target import target_of


@dataclass
class Place:
    """Where a value lives: a view of the buffer `root`."""

    root: SSAValue
    view: Strided
    whole: SSAValue | None = None
    """A buffer that holds exactly the value, row-major, once there is one."""


@dataclass
class Bufferizer:
    """Turns one graph into a program and the kernels it launches."""

    module: ModuleOp
    graph: GraphOp
    kernels: dict[object, KernelOp] = field(default_factory=dict[object, KernelOp])
    places: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])
    packed: dict[tuple[SSAValue, str], SSAValue] = field(default_factory=dict[tuple[SSAValue, str], SSAValue])
    block: Block = field(default_factory=Block)
    program_block: Block = field(default_factory=Block)
    """Where constants stand, in whatever loop they are used."""
    loops: list[Induction] = field(default_factory=list[Induction])
    """The loops around `block`, outermost first."""
    destinations: dict[OutputOp, SSAValue] = field(default_factory=dict[OutputOp, SSAValue])

    def __post_init__(self) -> None:
        self.block = self.program_block

    @property
    def scope(self) -> Scope:
        """The dims of the graph and of the loops around."""
        return in_loops(self.graph.scope, tuple(self.loops)) if self.loops else self.graph.scope

    def enter(self, count: Expr) -> Induction:
        """Begin the body of a loop; returns its induction dim."""
        self.loops.append(fresh_step([d.name for d in self.scope], count))
        return self.loops[-1]

    def leave(self) -> None:
        """End the body of a loop."""
        self.loops.pop()

    def run(self) -> ProgramOp:
        for name, value in self.graph.inputs():
            self.define(value, self.emit(rt.InputOp(name, BufferType.of(tensor_type(value)))))
        self.destinations = {
            op: self.emit(rt.DestinationOp(op.output_name.data, BufferType.of(tensor_type(op.value))))
            for op in self.graph.outputs()
        }
        self.run_ops(self.graph.block)
        for constant in [op for op in self.block.ops if isinstance(op, rt.ConstantOp)]:
            if not list(constant.buffer.uses):  # all its launches read it in panels
                constant.detach()
                constant.erase()
        program = ProgramOp(self.graph.sym_name.data, self.scope, const(0), Region(self.block))
        program.location = self.graph.location
        return program

    def run_ops(self, block: Block) -> None:
        """Add what computes the values of the graph's block, or of a scan's; what a step yields is the caller's."""
        for op in block.ops:
            if isinstance(op, YieldOp):
                continue
            if isinstance(op, OutputOp):
                self.copy(self.places[op.value], self.destinations[op])
            elif isinstance(op, ParamOp):
                t = BufferType.of(tensor_type(op.output))
                self.define(op.output, self.emit_constant(rt.ConstantOp(t, [op.param_name.data])))
            elif isinstance(op, ConstantOp):
                self.constant(op)
            elif isinstance(op, ScanOp):
                bufferize_scan(self, op)
            elif op.has_trait(View):
                self.view(op)
            else:
                self.launch(op)

    def constant(self, op: ConstantOp) -> None:
        """A literal; one number for a dynamic shape is stored once and has strides of 0."""
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
        """`value` is all of `buffer`."""
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
            contiguous = rt.is_contiguous(t.dims, place.view.strides, self.scope)
            if contiguous:  # strides of dims of 1 may be anything: write the plain ones, which every kernel accepts
                place.view = Strided(t.dims, place.view.offset, rt.contiguous_strides(t.dims))
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

    def view(self, op: Operation) -> None:
        if isinstance(op, ConcatOp):
            self.concat(op)
            return
        place = self.places[op.operands[0]]
        for result in op.results:
            found = through(op, result, place.view, self.scope)
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
        axis, at = op.dim.value.data, ZERO
        for value in op.operands:
            dims = tensor_type(value).dims
            offsets = tuple(at if i == axis else ZERO for i in range(len(dims)))
            part = Place(whole, Strided.whole(t.dims).slice(offsets, dims))
            self.copy(self.places[value], self.view_of(part, t.element_type))
            at = at + dims[axis]

    # ** launches **

    def launch(self, op: Operation) -> None:
        choice = op.attributes.get("kernel")
        if not isinstance(choice, KernelAttr):
            raise PassError(f"{op.name} has no kernel; run the pass 'select' first", op)
        kernel = self.kernel(op, choice)
        chosen = chosen_kernel(choice.provider.data, choice.config, op, target_of(self.module))
        ins = [self.operand(v, chosen.panels(op, i)) for i, v in enumerate(op.operands)]
        outs = [self.emit(rt.AllocOp(BufferType.of(tensor_type(r)))) for r in op.results]
        for result, buffer in zip(op.results, outs, strict=True):
            self.define(result, buffer)
        workspace: list[SSAValue] = []
        size = workspace_of(chosen, op, choice.config)
        if size.as_int() != 0:
            workspace.append(self.emit(rt.AllocOp(BufferType.get([size], i8))))
        launch = LaunchOp(kernel.sym_name.data, ins, outs, workspace)
        launch.location = op.location
        self.block.add_op(launch)

    def operand(self, value: SSAValue, panels: str | None) -> SSAValue:
        """The buffer of an operand: row-major, or the constant with its bytes in panels."""
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
        return found

    def kernel(self, op: Operation, choice: KernelAttr) -> KernelOp:
        """The kernel that computes `op`, shared with earlier ops that are alike."""
        scope = self.graph.scope
        key = (scope, op_key(op))
        found = self.kernels.get(key)
        if found is None:
            name = f"{derived_name(op)}_{len(self.kernels)}"
            body = Block(arg_types=[v.type for v in op.operands])
            clone = op.clone(dict(zip(op.operands, body.args, strict=True)))
            for i, argument in enumerate(body.args):
                clone.operands[i] = argument
            del clone.attributes["kernel"]
            body.add_ops([clone, ReturnOp(clone.results)])
            found = KernelOp(name, choice.provider.data, DictionaryAttr(choice.config.data), scope, Region(body))
            found.location = op.location
            self.kernels[key] = found
        return found


def op_key(op: Operation) -> object:
    """Equal for ops that compute the same on operands of the same types."""
    return (
        op.name,
        tuple(sorted(op.properties.items(), key=lambda item: item[0])),
        tuple(sorted(op.attributes.items(), key=lambda item: item[0])),
        tuple(op.operand_types),
        tuple(op.result_types),
        tuple(_region_key(region) for region in op.regions),
    )


def _region_key(region: Region) -> object:
    if not region.blocks:
        return ()
    block = region.block
    numbers: dict[SSAValue, int] = {a: i for i, a in enumerate(block.args)}
    out: list[object] = [tuple(block.arg_types)]
    for op in block.ops:
        operands = tuple(numbers[v] for v in op.operands)
        for r in op.results:
            numbers[r] = len(numbers)
        properties = tuple(sorted(op.properties.items(), key=lambda item: item[0]))
        out.append((op.name, properties, operands, tuple(op.result_types)))
    return tuple(out)


def bufferize_module(module: ModuleOp) -> None:
    """Replace each graph of the module by its kernels and its program."""
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    if not graphs:
        raise PassError("there is no ait.graph to bufferize")
    kernels: dict[object, KernelOp] = {}
    for graph in graphs:
        program = Bufferizer(module, graph, kernels).run()
        for kernel in kernels.values():
            if kernel.parent is None:
                module.body.block.insert_op_before(kernel, graph)
        module.body.block.insert_op_before(program, graph)
        graph.detach()
        graph.erase()


@dataclass(frozen=True)
class BufferizePass(ModulePass):
    """Turn graphs of selected ops into programs of launches."""

    name = "bufferize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bufferize_module(op)
