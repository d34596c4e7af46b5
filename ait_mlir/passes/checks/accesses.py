"""Checks the memory accesses of a program: views stay inside their buffers, and each read follows a write.

This check is independent of the memory plan, which `memory_plan` checks. It resolves views to the input, output,
constant or allocation that they show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.strided import Strided
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
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp, kernel_named
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import DimError, Scope, const
from ait_mlir.lowering.choices import Selected
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.module_target import target_of
from ait_mlir.passes.bound_dims import mask_problem
from ait_mlir.passes.checks.loop_accesses import (
    LoopEnd,
    ops_and_ends,
    over_steps,
    read_problem,
    still_unwritten,
    write_problem,
)

Problem = tuple[str, Operation]
"""An error text, and the op at fault."""


@dataclass(frozen=True)
class Elements:
    """The part of the buffer `root` that a launch, copy or view accesses."""

    root: BufferOp
    view: Strided

    @property
    def name(self) -> str:
        return name_of(self.root)


def name_of(op: BufferOp) -> str:
    """The name of a buffer in messages: `output 'y'`, `%h`, `a constant`."""
    if isinstance(op, NamedBufferOp):
        return f"{'input' if isinstance(op, InputOp) else 'output'} {op.buffer_name.data!r}"
    if isinstance(op, AllocOp):
        return f"%{op.buffer.name_hint}" if op.buffer.name_hint else "an allocation"
    return "a constant"


def access_problems(program: ProgramOp) -> Iterator[Problem]:
    """The errors of the views, launches and copies of a program, in order."""
    module = program.parent_op()
    seen: dict[SSAValue, Elements] = {}
    written: set[Operation] = set()
    before: dict[LoopOp, set[Operation]] = {}
    kernels: dict[str, Selected | str] = {}
    known: set[str] = set()
    for op in ops_and_ends(program.block):
        if isinstance(op, LoopEnd):
            written -= still_unwritten(op.loop, written, before[op.loop], scope_of(op.loop.parent_op()))
            continue
        scope = scope_of(op)
        if isinstance(op, LoopOp):
            before[op] = set(written)
        elif isinstance(op, ViewOp):
            source = seen[op.source]
            offset = source.view.offset + op.offset.data[0]
            part = Elements(source.root, Strided(op.buffer_type.dims, offset, op.strides.data))
            if panels_of(source.root.results[0]) is not None and not _is_reshaped(part, scope):
                yield "views a constant in panels, of which only the whole with its rows can be viewed", op
            seen[op.buffer] = part
            yield from ((problem, op) for problem in view_problems(part, scope, loops_around(op)))
        elif isinstance(op, BufferOp):
            dims = op.buffer_type.dims
            seen[op.results[0]] = Elements(op, Strided.whole(dims))
            if not isinstance(op, AllocOp | DestinationOp) or op.operands:
                written.add(op)
        elif isinstance(op, ReadDimOp):
            if seen[op.source].root not in written:
                yield f"reads {seen[op.source].name}, which nothing has written yet", op
            known.add(op.dim.data)
        if isinstance(op, LaunchOp | CopyOp | ViewOp) and scope.bound:
            yield from ((problem, op) for problem in unread_problems(op, known, scope, module))
        if isinstance(op, LaunchOp | CopyOp):
            reads = (
                (*op.ins, *([op.count] if op.count is not None else [])) if isinstance(op, LaunchOp) else (op.source,)
            )
            writes = op.outs if isinstance(op, LaunchOp) else (op.target,)
            if isinstance(op, CopyOp) and panels_of(seen[op.source].root.results[0]) is not None:
                yield "copies a constant in panels, which only launches can read", op
            for value in reads:
                if (part := seen[value]).root not in written and not _is_empty(part.view.dims):
                    yield f"reads {part.name}, which nothing has written yet", op
                elif (shared := read_problem(part.root, part.name, op)) is not None:
                    yield shared, op
            for value in writes:
                part = seen[value]
                yield from ((problem, op) for problem in write_problems(part, scope))
                if (shared := write_problem(part.root, part.name, part.view.offset, op)) is not None:
                    yield shared, op
            written.update(seen[value].root for value in writes)
            if isinstance(op, LaunchOp) and isinstance(module, ModuleOp) and "ait.target" in module.attributes:
                if op.kernel_name not in kernels:
                    kernel = kernel_named(op.kernel_name, module)
                    assert kernel is not None
                    kernels[op.kernel_name] = selected_of(kernel, target_of(module))
                yield from ((problem, op) for problem in launch_problems(op, kernels[op.kernel_name], seen, scope))
    for op in program.block.ops:
        if isinstance(op, DestinationOp) and op not in written:
            yield f"{name_of(op)} is never written", op


def unread_problems(op: Operation, known: set[str], scope: Scope, module: Operation | None) -> Iterator[str]:
    """The error if an op uses a bound dim before it is read. The launch that binds the dim may use it."""
    dims = [e for t in op.operand_types if isinstance(t, BufferType) for e in t.dims]
    if isinstance(op, ViewOp):  # its shape and strides matter only to launches
        dims = list(op.offset.data)
    if isinstance(op, LaunchOp) and isinstance(module, ModuleOp):
        kernel = kernel_named(op.kernel_name, module)
        if kernel is not None and isinstance(bound := kernel.compute_op(), BindsDim):
            known = {*known, str(bound.bound_dim)}
    if isinstance(op, LaunchOp) and op.masked is not None:
        known = {*known, op.masked.data}
    for name in sorted({name for e in dims for name in scope.host_symbols(e)} - known):
        yield f"uses dim {name!r}, which no ait_rt.read_dim has read yet"


def _is_empty(dims: Shape) -> bool:
    return any(d.as_int() == 0 for d in dims)


def view_problems(part: Elements, scope: Scope, loops: Sequence[LoopOp] = ()) -> Iterator[str]:
    """The error if a view is not proved to stay inside its buffer, in all steps of the loops around it."""
    if _is_empty(part.view.dims):
        return
    size = cast(BufferType, part.root.results[0].type).num_elements()
    last = part.view.offset
    try:
        for dim, stride in zip(part.view.dims, part.view.strides, strict=True):
            last = last + (dim - 1) * stride
            if not scope.le(0, stride):
                yield f"the stride {stride} of a view of {part.name} is not proved to be at least 0"
        first, last = over_steps(part.view.offset, loops, scope)[0], over_steps(last, loops, scope)[1]
        if not scope.le(0, first):
            yield f"the offset {part.view.offset} of a view of {part.name} is not proved to be at least 0"
        if not scope.lt(last, size):
            yield (
                f"a view of {part.name} reaches element {last}, which is not proved to be one of its {size} elements"
            )
    except DimError as error:
        yield f"a view of {part.name}: {error}"


def write_problems(part: Elements, scope: Scope) -> Iterator[str]:
    """The error if a buffer cannot be written through this view."""
    if _is_empty(part.view.dims):
        return
    for dim, stride in zip(part.view.dims, part.view.strides, strict=True):
        if stride.as_int() == 0 and not scope.le(dim, 1):
            yield f"writes {part.name} through strides {shape_text(part.view.strides)}: several elements in one place"


def selected_of(kernel: KernelOp, target: Target) -> Selected | str:
    """The choice of the kernel of some launches, or the reason why it cannot run its op."""
    try:
        return Selected.checked(kernel.provider.data, kernel.config, kernel.compute_op(), target)
    except ValueError as error:
        return str(error)


def launch_problems(
    launch: LaunchOp, selected: Selected | str, seen: dict[SSAValue, Elements], scope: Scope
) -> Iterator[str]:
    """The error if the kernel of a launch cannot run on these buffers."""
    name = f"@{launch.kernel_name}"
    if isinstance(selected, str):
        yield f"{name}: {selected}"
        return
    for i, value in enumerate((*launch.ins, *launch.outs)):
        part = seen[value]
        in_panels = i < len(launch.ins) and selected.panels(i) is not None
        if isinstance(value.owner, ViewOp) and not in_panels and not selected.accepts(i, part.view.strides, scope):
            what = f"operand {i}" if i < len(launch.ins) else f"result {i - len(launch.ins)}"
            yield f"{name} does not take {what} with the strides {shape_text(part.view.strides)}; copy it into a buffer"
    for i, value in enumerate(launch.ins):
        wanted, found = selected.panels(i), panels_of(seen[value].root.results[0])
        if wanted != found:
            yield f"{name} reads operand {i} {_layout(wanted)}, the buffer is {_layout(found)}"
    given = sum((cast(BufferType, v.type).byte_size() for v in launch.workspace), start=const(0))
    if len(launch.workspace) > 1 or not scope.le(selected.workspace, given):
        yield f"{name} needs one workspace of {selected.workspace} bytes, the launch gives {given}"
    if launch.masked is not None and launch.count is not None:
        if not selected.masks():
            yield f"{name} cannot read dim {launch.masked.data!r} from memory; let the host wait: ait_rt.read_dim"
        elif (problem := mask_problem(launch, launch.masked.data)) is not None:
            yield f"{name} cannot be masked: {problem}"
        if any(seen[launch.count].root is seen[out].root for out in launch.outs):
            yield f"{name} is masked by a number that it overwrites"
    yield from _in_place(launch, selected.op, [seen[v] for v in launch.ins], [seen[v] for v in launch.outs])


def _is_reshaped(part: Elements, scope: Scope) -> bool:
    """Whether a view shows the whole buffer in another shape with the same leading dim."""
    dims = cast(BufferType, part.root.results[0].type).dims
    return part.view.dims[:1] == dims[:1] and part.view.is_whole(scope)


def panels_of(value: SSAValue) -> str | None:
    """The panel layout of a buffer; None if it is row-major."""
    root = value.owner
    return root.panels.data if isinstance(root, ConstantOp) and root.panels is not None else None


def _layout(panels: str | None) -> str:
    return "row-major" if panels is None else f"a constant in panels {panels}"


def _in_place(launch: LaunchOp, op: Operation, ins: Sequence[Elements], outs: Sequence[Elements]) -> Iterator[str]:
    """Check that a launch overwrites an operand only element by element or as an update of operand 0, and that its
    results do not overlap."""
    each_alone = isinstance(op, InPlace)
    if isinstance(op, UpdatesOperand):
        if ins[0] != outs[0]:
            yield f"@{launch.kernel_name} updates operand 0, so its result must be the same buffer"
        ins = ins[1:]
    for i, out in enumerate(outs):
        if _is_empty(out.view.dims):
            continue
        if out in outs[:i]:
            yield f"@{launch.kernel_name} writes two results to one place in {out.name}"
        for source in ins:
            if source.root is out.root and not _apart(source, out) and not (each_alone and source == out):
                yield f"@{launch.kernel_name} writes {out.name} over an operand"


def _apart(a: Elements, b: Elements) -> bool:
    """Whether two views of one buffer are assumed to be disjoint: they differ, and both are parts of it."""
    return a != b and all(p.view.dims != cast(BufferType, p.root.results[0].type).dims for p in (a, b))
