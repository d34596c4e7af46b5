"""Turns the remaining copies into launches of the copy kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.dialects.ait_rt.buffers import CopyOp
from ait_mlir.dialects.ait_rt.loop import program_ops
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp, ReturnOp
from ait_mlir.dialects.ait_rt.types import BufferType


def _copy_kernel(name: str, t: TensorType, program: ProgramOp) -> KernelOp:
    body = Block(arg_types=[t])
    move = ReshapeOp.create(operands=[body.args[0]], result_types=[t])
    body.add_ops([move, ReturnOp(move.results)])
    return KernelOp(name, "native", DictionaryAttr({}), program.scope, Region(body))


@dataclass(frozen=True)
class LowerCopiesPass(ModulePass):
    """Turn `ait_rt.copy` into launches."""

    name = "lower-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in [p for p in op.ops if isinstance(p, ProgramOp)]:
            kernels: dict[TensorType, KernelOp] = {}
            for copy in [c for c in program_ops(program.block) if isinstance(c, CopyOp)]:
                t = cast(BufferType, copy.target.type).tensor()
                kernel = kernels.get(t)
                if kernel is None:
                    kernel = kernels[t] = _copy_kernel(f"{program.sym_name.data}_copy_{len(kernels)}", t, program)
                    op.body.block.insert_op_before(kernel, program)
                launch = LaunchOp(kernel.sym_name.data, [copy.source], [copy.target])
                launch.location = copy.location
                block = copy.parent
                assert block is not None
                block.insert_op_before(launch, copy)
                copy.detach()
                copy.erase()
