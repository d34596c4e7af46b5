"""Bufferisation: every op with a `kernel` becomes a launch that writes its own buffer, every view op a view or a copy.

The result is deliberately simple: strided operands, parts of a concat and outputs are copied. `remove-copies` then
removes the copies that the kernels do not need. This pass overwrites older values only for updates and for outputs in
place of an input, if `in_place` proves that no later op reads them.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait_rt.program import KernelOp
from ait_mlir.ir.pipeline import PassError
from ait_mlir.passes.bufferizer import Bufferizer
from ait_mlir.passes.loops import bufferize_scan


def check_outputs(module: ModuleOp) -> None:
    """Raise `PassError` for a graph without an output: a program computes outputs, and this one would be empty."""
    for graph in (op for op in module.ops if isinstance(op, GraphOp) and not op.outputs()):
        message = f"graph @{graph.sym_name.data} has no output, so it would compute nothing"
        raise PassError(f'{message}; add: ait.output "y" %VALUE : TYPE', graph)


def bufferize_module(module: ModuleOp) -> None:
    """Replace each graph of the module by its kernels and its program."""
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    if not graphs:
        raise PassError("there is no ait.graph to bufferize")
    check_outputs(module)
    kernels: dict[object, KernelOp] = {}
    for graph in graphs:
        program = Bufferizer(module, graph, bufferize_scan, kernels).run()
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
