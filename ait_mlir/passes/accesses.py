"""Checks the memory accesses of a program: views stay inside their buffers, and each read follows a write.

This check is independent of the memory plan, which `memory.verifier` checks. It resolves views to the input, output,
constant or allocation that they show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolTable

from ait_mlir.dialects.ait.strided import contiguous_strides
from ait_mlir.dialects.ait.traits import BindsDim, InPlace, UpdatesOperand
from ait_mlir.dialects.ait.types import Shape, scope_of, shape_text
from ait_mlir.dialects.ait_rt.buffers import (
    AllocOp,
    BufferOp,
    ConstantOp,
    CopyOp,
    DestinationOp,
    InputOp,
    NamedBufferOp,
    ReadDimOp,
    ViewOp,
)
from ait_mlir.dialects.ait_rt.loop import LoopOp, loops_around
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import DimError, Expr, Scope, const
from ait_mlir.lowering.choices import Selected, choice_problem
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.module_target import target_of
from ait_mlir.passes.loop_accesses import (
    LoopEnd,
    ops_and_ends,
    over_steps,
    read_problem,
    still_unwritten,
    write_problem,
)

Problem = tuple[str, Operation]
"""What is wrong, and with which op."""


@dataclass(frozen=True)
class Place:
    """Elements of the buffer `root`: the first stands `offset` elements from its start."""

    root: BufferOp
    offset: Expr
    dims: Shape
    strides: Shape

    @property
    def name(self) -> str:
        return name_of(self.root)


def name_of(op: BufferOp) -> str:
    """A buffer as messages call it: `output 'y'`, `%h`, `a constant`."""
    if isinstance(op, NamedBufferOp):
        return f"{'input' if isinstance(op, InputOp) else 'output'} {op.buffer_name.data!r}"
    if isinstance(op, AllocOp):
        return f"%{op.buffer.name_hint}" if op.buffer.name_hint else "an allocation"
    return "a constant"


def access_problems(program: ProgramOp) -> Iterator[Problem]:
    """The errors of the views, launches and copies of a program, in order."""
    module = program.parent_op()
    places: dict[SSAValue, Place] = {}
    written: set[Operation] = set()
    before: dict[LoopOp, set[Operation]] = {}
    kernels: dict[str, Chosen] = {}
    known: set[str] = set()
    for op in ops_and_ends(program.block):
        if isinstance(op, LoopEnd):
            written -= still_unwritten(op.loop, written, before[op.loop], scope_of(op.loop.parent_op()))
            continue
        scope = scope_of(op)
        if isinstance(op, LoopOp):
            before[op] = set(written)
        elif isinstance(op, ViewOp):
            source = places[op.source]
            if panels_of(source.root.results[0]) is not None:
                yield "views a constant in panels, which only launches can read", op
            place = Place(source.root, source.offset + op.offset.data[0], op.buffer_type.dims, op.strides.data)
            places[op.buffer] = place
            yield from ((problem, op) for problem in view_problems(place, scope, loops_around(op)))
        elif isinstance(op, BufferOp):
            dims = op.buffer_type.dims
            places[op.results[0]] = Place(op, const(0), dims, contiguous_strides(dims))
            if not isinstance(op, AllocOp | DestinationOp) or op.operands:
                written.add(op)
        elif isinstance(op, ReadDimOp):
            if places[op.source].root not in written:
                yield f"reads {places[op.source].name}, which nothing has written yet", op
            known.add(op.dim.data)
        if isinstance(op, LaunchOp | CopyOp | ViewOp) and scope.bound:
            yield from ((problem, op) for problem in unread_problems(op, known, scope, module))
        if isinstance(op, LaunchOp | CopyOp):
            reads = op.ins if isinstance(op, LaunchOp) else (op.source,)
            writes = op.outs if isinstance(op, LaunchOp) else (op.target,)
            if isinstance(op, CopyOp) and panels_of(op.source) is not None:
                yield "copies a constant in panels, which only launches can read", op
            for value in reads:
                if (place := places[value]).root not in written and not _is_empty(place.dims):
                    yield f"reads {place.name}, which nothing has written yet", op
                elif (shared := read_problem(place.root, place.name, op)) is not None:
                    yield shared, op
            for value in writes:
                place = places[value]
                yield from ((problem, op) for problem in write_problems(place, scope))
                if (shared := write_problem(place.root, place.name, place.offset, op)) is not None:
                    yield shared, op
            written.update(places[value].root for value in writes)
            if isinstance(op, LaunchOp) and isinstance(module, ModuleOp) and "ait.target" in module.attributes:
                if op.kernel_name not in kernels:
                    kernel = SymbolTable.lookup_symbol(module, op.kernel_name)
                    assert isinstance(kernel, KernelOp)
                    kernels[op.kernel_name] = Chosen(kernel, target_of(module))
                yield from ((problem, op) for problem in launch_problems(op, kernels[op.kernel_name], places, scope))
    for op in program.block.ops:
        if isinstance(op, DestinationOp) and op not in written:
            yield f"{name_of(op)} is never written", op


def unread_problems(op: Operation, known: set[str], scope: Scope, module: Operation | None) -> Iterator[str]:
    """The error if an op uses a bound dim before it is read. The launch that binds the dim may use it."""
    dims = [e for t in op.operand_types if isinstance(t, BufferType) for e in t.dims]
    if isinstance(op, ViewOp):  # whose shape and strides matter to launches alone
        dims = list(op.offset.data)
    if isinstance(op, LaunchOp) and isinstance(module, ModuleOp):
        kernel = SymbolTable.lookup_symbol(module, op.kernel_name)
        if isinstance(kernel, KernelOp) and isinstance(bound := kernel.compute_op(), BindsDim):
            known = {*known, str(bound.bound_dim)}
    for name in sorted({name for e in dims for name in scope.host_symbols(e)} - known):
        yield f"uses dim {name!r}, which no ait_rt.read_dim has read yet"


def _is_empty(dims: Shape) -> bool:
    return any(d.as_int() == 0 for d in dims)


def view_problems(place: Place, scope: Scope, loops: Sequence[LoopOp] = ()) -> Iterator[str]:
    """The error if a view is not proved to stay inside its buffer, in all steps of the loops around it."""
    if _is_empty(place.dims):
        return
    size = cast(BufferType, place.root.results[0].type).num_elements()
    last = place.offset
    try:
        for dim, stride in zip(place.dims, place.strides, strict=True):
            last = last + (dim - 1) * stride
            if not scope.le(0, stride):
                yield f"the stride {stride} of a view of {place.name} is not proved to be at least 0"
        first, last = over_steps(place.offset, loops, scope)[0], over_steps(last, loops, scope)[1]
        if not scope.le(0, first):
            yield f"the offset {place.offset} of a view of {place.name} is not proved to be at least 0"
        if not scope.lt(last, size):
            yield (
                f"a view of {place.name} reaches element {last}, which is not proved to be one of its {size} elements"
            )
    except DimError as error:
        yield f"a view of {place.name}: {error}"


def write_problems(place: Place, scope: Scope) -> Iterator[str]:
    """The error if a buffer cannot be written through this view."""
    if _is_empty(place.dims):
        return
    for dim, stride in zip(place.dims, place.strides, strict=True):
        if stride.as_int() == 0 and not scope.le(dim, 1):
            yield f"writes {place.name} through strides {shape_text(place.strides)}: several elements in one place"


class Chosen:
    """The requirements of the kernel of some launches, computed once."""

    def __init__(self, kernel: KernelOp, target: Target) -> None:
        self.op = kernel.compute_op()
        provider, config = kernel.provider.data, kernel.config
        self.problem = choice_problem(provider, config, self.op, target)
        if self.problem is None:
            self.selected = Selected.of(provider, config, self.op, target)
        self._accepted: dict[tuple[int, Shape], bool] = {}

    def accepts(self, index: int, strides: Shape, scope: Scope) -> bool:
        """Whether operand or result `index` may have these strides; all launches of a program have one scope."""
        key = index, strides
        if key not in self._accepted:
            self._accepted[key] = self.selected.accepts(index, strides, scope)
        return self._accepted[key]


def launch_problems(launch: LaunchOp, chosen: Chosen, places: dict[SSAValue, Place], scope: Scope) -> Iterator[str]:
    """The error if the kernel of a launch cannot run on these buffers."""
    op, name = chosen.op, f"@{launch.kernel_name}"
    if chosen.problem is not None:
        yield f"{name}: {chosen.problem}"
        return
    for i, value in enumerate((*launch.ins, *launch.outs)):
        place = places[value]
        if isinstance(value.owner, ViewOp) and not chosen.accepts(i, place.strides, scope):
            what = f"operand {i}" if i < len(launch.ins) else f"result {i - len(launch.ins)}"
            yield f"{name} does not take {what} with the strides {shape_text(place.strides)}; copy it into a buffer"
    for i, value in enumerate(launch.ins):
        wanted, found = chosen.selected.panels(i), panels_of(value)
        if wanted != found:
            yield f"{name} reads operand {i} {_layout(wanted)}, the buffer is {_layout(found)}"
    given = sum((cast(BufferType, v.type).byte_size() for v in launch.workspace), start=const(0))
    if len(launch.workspace) > 1 or not scope.le(chosen.selected.workspace, given):
        yield f"{name} needs one workspace of {chosen.selected.workspace} bytes, the launch gives {given}"
    yield from _in_place(launch, op, [places[v] for v in launch.ins], [places[v] for v in launch.outs])


def panels_of(value: SSAValue) -> str | None:
    """The panel layout of a buffer; None if it is row-major."""
    root = value.owner
    return root.panels.data if isinstance(root, ConstantOp) and root.panels is not None else None


def _layout(panels: str | None) -> str:
    return "row-major" if panels is None else f"a constant in panels {panels}"


def _in_place(launch: LaunchOp, op: Operation, ins: Sequence[Place], outs: Sequence[Place]) -> Iterator[str]:
    """Check that a launch overwrites an operand only element by element or as an update of operand 0, and that its
    results do not overlap."""
    each_alone = isinstance(op, InPlace)
    if isinstance(op, UpdatesOperand):
        if ins[0] != outs[0]:
            yield f"@{launch.kernel_name} updates operand 0, so its result must be the same buffer"
        ins = ins[1:]
    for i, out in enumerate(outs):
        if _is_empty(out.dims):
            continue
        if out in outs[:i]:
            yield f"@{launch.kernel_name} writes two results to one place in {out.name}"
        for source in ins:
            if source.root is out.root and not _apart(source, out) and not (each_alone and source == out):
                yield f"@{launch.kernel_name} writes {out.name} over an operand"


def _apart(a: Place, b: Place) -> bool:
    """Whether two views of one buffer are assumed to be disjoint: they differ, and both are parts of it."""
    return a != b and all(p.dims != cast(BufferType, p.root.results[0].type).dims for p in (a, b))
