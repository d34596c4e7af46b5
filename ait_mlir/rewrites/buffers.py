"""Removes copies by reads and writes in place, if the kernels accept the strides.

Before memory planning every buffer is written once (each part of a concat once). A kernel can therefore read the source
of a copy instead of its target, or write the target instead of the source; only the strides change. The exceptions are
buffers that a launch updates and donated inputs: patterns require that no such write comes in between.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue, Use

from ait_mlir.dialects.ait.strided import contiguous_strides, is_contiguous
from ait_mlir.dialects.ait.types import Shape, scope_of
from ait_mlir.dialects.ait_rt.buffers import (
    AllocOp,
    CopyOp,
    DestinationOp,
    InputOp,
    ReadDimOp,
    ViewOp,
    root_of,
)
from ait_mlir.dialects.ait_rt.loop import LoopOp
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, kernel_named, program_around
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Scope, const, product
from ait_mlir.lowering.choices import Selected
from ait_mlir.lowering.kernels.amounts import FEW_ELEMENTS
from ait_mlir.lowering.module_target import target_of
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native

# ** patterns **


@pattern(benefit=3)
def read_in_place(p: PatternBuilder) -> None:
    """All kernels that read a copy accept the strides of its source: they read the source."""
    source, target = p.value(), p.result(p.op("ait_rt.alloc", []))
    root = p.op("ait_rt.copy", [source, target], results=0)
    p.require("readers_accept_strides_of", target, source)
    p.require("is_unchanged_for_readers_of", source, target, root)
    p.apply(root, "read_source", root)


@pattern(benefit=3)
def write_output(p: PatternBuilder) -> None:
    """A buffer is copied whole into another: its writers write the copy's target directly."""
    source, target = p.result(p.op("ait_rt.alloc", [])), p.value()
    root = p.op("ait_rt.copy", [source, target], results=0)
    p.require("is_whole_buffer", target)
    p.require("only_written_by", target, root)
    p.require("is_made_beside", source, root)
    p.require("is_final_at", source, root)
    p.apply(root, "write_target", root)


@pattern(benefit=3)
def write_reshaped(p: PatternBuilder) -> None:
    """A buffer is copied whole into another of a different shape: it becomes a view of the copy's target."""
    source, target = p.result(p.op("ait_rt.alloc", [])), p.value()
    view = p.op("ait_rt.view", [source])
    root = p.op("ait_rt.copy", [p.result(view), target], results=0)
    p.require("shows_all_in_order", view)
    p.require("is_whole_buffer", target)
    p.require("only_written_by", target, root)
    p.require("is_made_beside", source, root)
    p.require("is_final_at", source, root)
    p.apply(root, "become_view_of_target", root)


@pattern(benefit=2)
def write_in_place(p: PatternBuilder) -> None:
    """A buffer is copied, for example into a part of another: a kernel that accepts the strides writes the copy's
    target directly."""
    source, target = p.result(p.op("ait_rt.alloc", [])), p.value()
    root = p.op("ait_rt.copy", [source, target], results=0)
    p.require("users_accept_strides_of", source, target)
    p.require("is_made_beside", source, root)
    p.require("is_not_carried_on", target, source, root)
    p.require("is_written_once", target)
    p.apply(root, "write_target", root)


@pattern(benefit=1)
def write_permuted(p: PatternBuilder) -> None:
    """A buffer's only use is a copy with permuted dims: a kernel that accepts the strides writes the copy's target
    directly. The kernel's innermost dim must stay innermost, or be contiguous in the target, unless it writes any order
    as fast or writes few elements."""
    source, target = p.result(p.op("ait_rt.alloc", [])), p.value()
    view = p.op("ait_rt.view", [source])
    root = p.op("ait_rt.copy", [p.result(view), target], results=0)
    p.require("is_permutation", view)
    p.require("only_viewed_by", source, view)
    p.require("keeps_neighbours", view, target)
    p.require("writer_accepts_inverse_of", source, view, target)
    p.require("is_made_beside", source, root)
    p.require("is_written_once", target)
    p.apply(root, "write_inverse", root)


REMOVE_COPIES = patterns(read_in_place, write_output, write_reshaped, write_in_place, write_permuted)

# ** constraints **

def strides_of(buffer: SSAValue) -> Shape:
    """The strides of a buffer: its view's, or row-major."""
    owner = buffer.owner
    if isinstance(owner, ViewOp):
        return owner.strides.data
    return contiguous_strides(cast(BufferType, buffer.type).dims)


def kernel_of_launch(launch: LaunchOp) -> KernelOp:
    """The kernel that a launch runs."""
    program = program_around(launch)
    module = None if program is None else program.parent_op()
    assert module is not None
    kernel = kernel_named(launch.kernel_name, module)
    assert kernel is not None
    return kernel


def launch_accepts(use: Use, strides: Shape, scope: Scope) -> bool:
    """Whether the launch accepts a buffer of these strides in place of the operand of this use."""
    launch = use.operation
    if not isinstance(launch, LaunchOp) or use.index >= len(launch.ins) + len(launch.outs):
        return False
    return selected_by(launch).accepts(use.index, strides, scope)


def selected_by(launch: LaunchOp) -> Selected:
    """The kernels that a launch runs."""
    kernel = kernel_of_launch(launch)
    module = kernel.parent_op()
    assert isinstance(module, ModuleOp)
    return Selected.of(kernel.provider.data, kernel.config, kernel.compute_op(), target_of(module))


def is_write(use: Use) -> bool:
    """Whether the use writes the buffer."""
    op = use.operation
    if isinstance(op, LaunchOp):
        return use.index >= len(op.ins)
    return isinstance(op, CopyOp) and use.index == 1


def _scope(value: SSAValue) -> Scope:
    return scope_of(value.owner if isinstance(value.owner, Operation) else None)


@constraint
def readers_accept_strides_of(value: SSAValue, like: SSAValue) -> bool:
    """The buffer is written once, and its readers are copies or kernels that accept the strides of `like`."""
    strides, scope = strides_of(like), _scope(value)
    writes = [use for use in value.uses if is_write(use)]
    reads = [use for use in value.uses if not is_write(use)]
    return len(writes) == 1 and all(
        isinstance(use.operation, CopyOp) or launch_accepts(use, strides, scope) for use in reads
    )


@constraint
def users_accept_strides_of(value: SSAValue, like: SSAValue) -> bool:
    """The buffer is written by one kernel, and all kernels that use it accept the strides of `like`; if it has views,
    these strides are row-major."""
    strides, scope = strides_of(like), _scope(value)
    writes = [use for use in value.uses if is_write(use)]
    if len(writes) != 1 or not isinstance(writes[0].operation, LaunchOp):
        return False
    row_major = strides == contiguous_strides(cast(BufferType, value.type).dims)
    return all(
        isinstance(use.operation, CopyOp)
        or (isinstance(use.operation, ViewOp) and row_major)
        or launch_accepts(use, strides, scope)
        for use in value.uses
    )


@constraint
def is_whole_buffer(value: SSAValue) -> bool:
    """The buffer is an allocation or an output, not a view."""
    return isinstance(value.owner, AllocOp | DestinationOp)


@constraint
def only_written_by(value: SSAValue, op: Operation) -> bool:
    """`op` is the only user of the buffer before its readers: nothing else writes it, and there is no view of it."""
    return all(use.operation is op or not (is_write(use) or isinstance(use.operation, ViewOp)) for use in value.uses)


def accesses(root: SSAValue) -> list[Use]:
    """The uses of a buffer by launches, copies and loops, directly or through views."""
    found: list[Use] = []
    work = [root]
    while work:
        for use in work.pop().uses:
            if isinstance(use.operation, ViewOp):
                work.append(use.operation.buffer)
            else:
                found.append(use)
    return found


def is_update(use: Use) -> bool:
    """Whether the use is a launch that writes the buffer and also reads it."""
    op = use.operation
    if not isinstance(op, LaunchOp) or not is_write(use):
        return False
    return any(root_of(v) is root_of(op.operands[use.index]) for v in op.ins)


def _root_buffer(value: SSAValue) -> SSAValue:
    root = root_of(value)
    return value if root is None else root.results[0]


@constraint
def is_written_once(value: SSAValue) -> bool:
    """The buffer of the value is not an input, and no launch updates it."""
    root = root_of(value)
    return not isinstance(root, InputOp) and not any(is_update(use) for use in accesses(_root_buffer(value)))


@constraint
def is_final_at(value: SSAValue, copy: Operation) -> bool:
    """No launch updates the buffer of the value after the copy."""
    return not any(is_update(u) and not u.operation.is_before_in_block(copy) for u in accesses(_root_buffer(value)))


@constraint
def is_unchanged_for_readers_of(source: SSAValue, target: SSAValue, copy: Operation) -> bool:
    """Nothing writes the buffer of the source between the copy and the last reader of its target."""
    root = root_of(source)
    is_state = isinstance(root, InputOp) and root.is_state
    if not is_state and not isinstance(root, AllocOp | DestinationOp):
        return True
    block = copy.parent
    assert block is not None
    # An op in a loop beside the copy counts as at the position of the loop.
    used = [use for use in accesses(_root_buffer(source)) if is_update(use) or (is_state and is_write(use))]
    writers = {block.find_ancestor_op_in_block(use.operation) for use in used}
    readers = {block.find_ancestor_op_in_block(use.operation) for use in accesses(target)} - {copy}
    op = copy.next_op
    while writers and readers and op is not None:
        if op in writers:
            return False
        readers.discard(op)
        op = op.next_op
    return True


@constraint
def is_made_beside(value: SSAValue, copy: Operation) -> bool:
    """The buffer is an allocation in the copy's own block, so that the copy's target can replace it."""
    return isinstance(value.owner, Operation) and value.owner.parent is copy.parent


@constraint
def is_not_carried_on(target: SSAValue, source: SSAValue, copy: Operation) -> bool:
    """If the copy gives a loop its first carried value, which the loop overwrites, only its writer and the copy use
    `source`."""
    root = root_of(target)
    loops = [] if root is None else [u.operation for u in root.results[0].uses if isinstance(u.operation, LoopOp)]
    return all(loop.is_ancestor(copy) for loop in loops) or len(list(source.uses)) == 2


@constraint
def shows_all_in_order(view: Operation) -> bool:
    """The view shows all elements of a row-major buffer, in the same order, in another shape."""
    assert isinstance(view, ViewOp)
    source, target, scope = cast(BufferType, view.source.type), view.buffer_type, scope_of(view)
    in_order = view.offset.data[0] is const(0) and is_contiguous(target.dims, view.strides.data, scope)
    return in_order and scope.equal(product(source.dims), product(target.dims))


@constraint
def is_permutation(view: Operation) -> bool:
    """The view shows all of a row-major buffer with its dims in another order; dims of 1 may come and go."""
    return isinstance(view, ViewOp) and permutation(view) is not None


@constraint
def keeps_neighbours(view: Operation, target: SSAValue) -> bool:
    """The buffer can be written through the permutation without slow stores.

    Its last dim stays last, or the elements of `target` are adjacent, or the only kernel that uses the buffer writes
    any order equally fast, or there are so few elements that a launch would take longer.
    """
    order = permutation(cast(ViewOp, view))
    assert order is not None, "keeps_neighbours needs is_permutation"
    last_stays = not order or order[-1] == cast(ViewOp, view).buffer_type.rank - 1
    if last_stays or inverse_strides(cast(ViewOp, view), target)[-1] is const(1):
        return True
    launches = [use.operation for use in view.operands[0].uses if isinstance(use.operation, LaunchOp)]
    if len(launches) != 1:
        return False
    selected = selected_by(launches[0])
    elements = product(cast(ViewOp, view).buffer_type.dims)
    is_small = selected.target.is_gpu and _scope(view.results[0]).le(elements, FEW_ELEMENTS)
    return is_small or selected.any_order


@constraint
def only_viewed_by(value: SSAValue, view: Operation) -> bool:
    """One kernel writes the buffer, and nothing else uses it but `view`, whose only use is one copy."""
    users = [use.operation for use in value.uses]
    others = [u for u in users if u is not view]
    return len(users) == 2 and len(others) == 1 and isinstance(others[0], LaunchOp) and view.results[0].has_one_use()


@constraint
def writer_accepts_inverse_of(value: SSAValue, view: Operation, target: SSAValue) -> bool:
    """The kernel that writes the buffer accepts the strides with which `view` would become `target`."""
    writes = [use for use in value.uses if is_write(use)]
    return len(writes) == 1 and launch_accepts(writes[0], inverse_strides(cast(ViewOp, view), target), _scope(value))


def permutation(view: ViewOp) -> list[int | None] | None:
    """For each dim of the viewed buffer, its index in the view, or None for a dim of 1 that the view lacks.

    None if the view is not a permutation of the buffer.
    """
    source, target = cast(BufferType, view.source.type), view.buffer_type
    if view.offset.data[0] is not const(0) or isinstance(view.source.owner, ViewOp):
        return None
    rest = list(range(target.rank))
    order: list[int | None] = []
    for dim, stride in zip(source.dims, contiguous_strides(source.dims), strict=True):
        j = next((j for j in rest if target.dims[j] is dim and view.strides.data[j] is stride), None)
        if j is not None:
            rest.remove(j)
        elif dim is not const(1):
            return None
        order.append(j)
    return order if all(target.dims[j] is const(1) for j in rest) else None


def inverse_strides(view: ViewOp, target: SSAValue) -> Shape:
    """Strides for the viewed buffer under which the view, a permutation, would be `target`.

    Dims of 1 that the view lacks have the stride of the whole buffer.
    """
    order, strides = permutation(view), strides_of(target)
    assert order is not None, "inverse_strides needs is_permutation"
    whole = product(cast(BufferType, view.source.type).dims)
    return tuple(whole if j is None else strides[j] for j in order)


# ** rewrites **


def hoist(r: Rewriter, value: SSAValue, before: Operation) -> None:
    """Move the definition of a buffer, and of the buffers that it is a view of, before an op of the same block, with
    the reads of dims that the places of views depend on."""
    chain: list[Operation] = []
    owner = value.owner
    while isinstance(owner, ViewOp | AllocOp):
        chain.append(owner)
        if isinstance(owner, AllocOp):
            break
        owner = owner.source.owner
    block = before.parent
    assert block is not None
    place = before
    for op in chain:
        if op.parent is block and not r.is_before(op, place):
            r.move(op, before=place)
        place = op if op.parent is block else place
    for view in [op for op in chain if isinstance(op, ViewOp) and op.parent is block]:
        bound = {name for e in view.offset.data for name in e.symbols}
        for read in [op for op in block.ops if isinstance(op, ReadDimOp) and op.dim.data in bound]:
            if not r.is_before(read, view):
                r.move(read, before=view)


@native
def read_source(r: Rewriter, copy: Operation) -> None:
    """Let the readers of a copy read its source."""
    source, target = copy.operands
    alloc = cast(Operation, target.owner)
    r.erase(copy)
    r.replace_value(target, source)
    r.erase(alloc)


@native
def write_target(r: Rewriter, copy: Operation) -> None:
    """Let the kernel that writes the source of a copy write its target."""
    source, target = copy.operands
    alloc = cast(Operation, source.owner)
    r.erase(copy)
    hoist(r, target, alloc)
    r.replace_value(source, target)
    r.erase(alloc)


@native
def become_view_of_target(r: Rewriter, copy: Operation) -> None:
    """Let the buffer that a copy reads through a view be a view of the copy's target."""
    view, target = copy.operands
    source = cast(ViewOp, view.owner).source
    alloc = cast(Operation, source.owner)
    r.erase(copy)
    hoist(r, target, alloc)
    t = cast(BufferType, source.type)
    whole = ViewOp(target, const(0), contiguous_strides(t.dims), t)
    r.insert(whole, before=alloc)
    r.replace_value(source, whole.buffer)
    r.erase(alloc)


@native
def write_inverse(r: Rewriter, copy: Operation) -> None:
    """Let the kernel write through the inverse of the permutation that the copy reads through."""
    permuted, target = copy.operands
    view = cast(ViewOp, permuted.owner)
    source = view.source
    alloc = cast(Operation, source.owner)
    strides = inverse_strides(view, target)
    launch = next(use.operation for use in source.uses if is_write(use))
    r.erase(copy)
    r.erase(view)
    hoist(r, target, launch)
    inverse = ViewOp(target, const(0), strides, cast(BufferType, source.type))
    r.insert(inverse, before=launch)
    r.replace_value(source, inverse.buffer)
    r.erase(alloc)
