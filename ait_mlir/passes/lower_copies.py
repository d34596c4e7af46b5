"""Turns the remaining copies into launches; independent neighbouring copies share a launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dialects.ait.view import CopiesOp, ReshapeOp
from ait_mlir.dialects.ait_rt.buffers import AllocOp, BufferOp, CopyOp, DestinationOp, InputOp, ViewOp, root_of
from ait_mlir.dialects.ait_rt.loop import program_ops
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp, ReturnOp
from ait_mlir.dialects.ait_rt.types import BufferType

MAX_PIECES = 1024
"""Most copies in one launch: the code of a kernel grows with them."""


def type_of(copy: CopyOp) -> TensorType:
    """The type of the copied tensor."""
    return cast(BufferType, copy.target.type).tensor()


# ** copies that become one launch **


@dataclass
class Run:
    """Successive copies with no launch between them; no copy reads or overwrites the target of another."""

    copies: list[CopyOp] = field(default_factory=list[CopyOp])
    read: set[Operation | None] = field(default_factory=set[Operation | None])
    written: set[Operation | None] = field(default_factory=set[Operation | None])
    targets: set[SSAValue] = field(default_factory=set[SSAValue])

    def takes(self, copy: CopyOp) -> bool:
        """Whether another copy may join the run."""
        source, target = root_of(copy.source), root_of(copy.target)
        alone = target is None or isinstance(target, InputOp)  # an input's other users are not checked
        if not self.copies:
            return True
        first = self.copies[0]
        together = (
            BY_IR[type_of(copy).element_type].bytes == BY_IR[type_of(first).element_type].bytes
            and len(self.copies) < MAX_PIECES
        )
        # Parts of one buffer are disjoint: before memory is planned, every element is written once.
        return (
            together
            and not alone
            and source not in self.written
            and target not in self.read
            and copy.target not in self.targets
        )

    def add(self, copy: CopyOp) -> None:
        self.copies.append(copy)
        self.read.add(root_of(copy.source))
        self.written.add(root_of(copy.target))
        self.targets.add(copy.target)


NEAR = 8
"""Most operations that a copy may move past, besides views and buffers."""


def gather(block: Block) -> None:
    """Move each copy up to an earlier copy of the same buffer, so that both become one launch, as for the pieces of a
    product. No operation between them may use the copy's target or write its source."""
    for op in list(block.ops):
        if not isinstance(op, CopyOp):
            continue
        place = _place(op)
        if place is not None:
            op.detach()
            block.insert_op_after(op, place)
            _move_up(op.target, op)
            _move_up(op.source, op)


def _place(copy: CopyOp) -> CopyOp | None:
    """The earlier copy from the same buffer behind which this copy may move. None if there is none, or if it is the
    previous op.
    """
    source, left, op = root_of(copy.source), NEAR, copy.prev_op
    if not isinstance(root_of(copy.target), AllocOp | DestinationOp):
        return None
    while op is not None and left:
        if isinstance(op, CopyOp | LaunchOp):
            if isinstance(op, CopyOp) and root_of(op.source) is source:
                return None if left == NEAR else op
            if _meets(op, copy):
                return None
            left -= 1
        elif not isinstance(op, ViewOp | BufferOp):
            return None
        op = op.prev_op
    return None


def _meets(op: CopyOp | LaunchOp, copy: CopyOp) -> bool:
    """Whether an operation writes a copy's source or uses its target; different parts of one buffer do not conflict."""
    ins, outs = (op.ins, op.outs) if isinstance(op, LaunchOp) else ([op.source], [op.target])
    source, target = root_of(copy.source), root_of(copy.target)
    parts = [value for value in outs if root_of(value) is target]
    return (
        any(root_of(value) is source for value in outs)
        or any(root_of(value) is target for value in ins)
        or not all(isinstance(value.owner, ViewOp) for value in (*parts, *([copy.target] if parts else [])))
        or copy.target in parts
    )


def _move_up(value: SSAValue, before: Operation) -> None:
    """Move the definition of a buffer, and of the buffers that it views, before an operation of the same block."""
    owner, block = value.owner, before.parent
    if isinstance(owner, ViewOp | AllocOp) and owner.parent is block and not owner.is_before_in_block(before):
        owner.detach()
        assert block is not None
        block.insert_op_before(owner, before)
        if isinstance(owner, ViewOp):
            _move_up(owner.source, owner)


def runs(block: Block) -> Iterator[list[CopyOp]]:
    """The copies of a block in order, in lists that can each become one launch."""
    run = Run()
    for op in block.ops:
        if isinstance(op, CopyOp):
            if not run.takes(op):
                yield run.copies
                run = Run()
            run.add(op)
        elif not isinstance(op, ViewOp | BufferOp) and run.copies:
            yield run.copies
            run = Run()
    if run.copies:
        yield run.copies


# ** kernels **


@dataclass
class CopyKernels:
    """The kernels of a program's copies, one for each list of types."""

    program: ProgramOp
    made: dict[tuple[TensorType, ...], KernelOp] = field(default_factory=dict[tuple[TensorType, ...], KernelOp])

    def of(self, copies: list[CopyOp]) -> KernelOp:
        """The kernel for these copies."""
        types = tuple([type_of(copy) for copy in copies])
        found = self.made.get(types)
        if found is None:
            body = Block(arg_types=types)
            if len(types) > 1:
                move: Operation = CopiesOp(body.args)
            else:
                move = ReshapeOp.create(operands=body.args, result_types=types)
            body.add_ops([move, ReturnOp(move.results)])
            kind = "copies" if len(types) > 1 else "copy"
            name = f"{self.program.sym_name.data}_{kind}_{len(self.made)}"
            found = self.made[types] = KernelOp(name, "native", DictionaryAttr({}), self.program.scope, Region(body))
            module = self.program.parent
            assert module is not None
            module.insert_op_before(found, self.program)
        return found


@dataclass(frozen=True)
class LowerCopiesPass(ModulePass):
    """Turn `ait_rt.copy` into launches; neighbours, and nearby copies of parts of one buffer, share a launch."""

    name = "lower-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in [p for p in op.ops if isinstance(p, ProgramOp)]:
            kernels = CopyKernels(program)
            blocks = list(dict.fromkeys(c.parent for c in program_ops(program.block) if isinstance(c, CopyOp)))
            for block in blocks:
                assert block is not None
                gather(block)
                for copies in list(runs(block)):
                    kernel = kernels.of(copies)
                    launch = LaunchOp(kernel.sym_name.data, [c.source for c in copies], [c.target for c in copies])
                    launch.location = copies[0].location
                    block.insert_op_before(launch, copies[-1])
                    for copy in copies:
                        copy.detach()
                        copy.erase()
