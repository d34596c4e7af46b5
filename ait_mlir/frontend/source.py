"""The C++ of one operator."""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.cut_out import cut_out
from ait_mlir.driver import emit as emit_source
from ait_mlir.driver import run_to_phase
from ait_mlir.frontend.compile import file_name
from ait_mlir.frontend.compile_options import points_of
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.lift import emit
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.target import Target
from ait_mlir.frontend.wiring import toposort
from ait_mlir.options import CompileOptions


def source_of(operator: Operator) -> str:
    """The C++ of the launches that compute an operator, for the current target, or that of this machine outside of a
    `with target:`. `NotImplementedError` for an operator that was not called."""
    module = module_of(operator)
    target = Target.current_or_detected()
    run_to_phase(module, "planned", CompileOptions(target.kind, target.arch))
    return "\n".join(emit_source(module).joined().values())


def module_of(operator: Operator) -> ModuleOp:
    """A module of the ops of one operator; the tensors that it reads are its inputs."""
    if not operator.outputs:
        raise NotImplementedError(f"{operator.name} has no source before it is called on its inputs")
    emission = emit(toposort(operator.outputs))
    inside = [s.op for s in emission.groups.get(operator, ())]
    ops = [op for op in emission.graph.block.ops if op in inside]
    if not ops:
        raise BuildError(f"{operator.name} computes nothing: other operators take its place")
    return ModuleOp([cut_out(ops, [emission.values[t] for t in operator.outputs])])


def write_profiler(operator: Operator, workdir: str | None, strategy: object) -> None:
    """Write the source of an operator, which `profile_operator` times, to `WORKDIR/profiler/OPERATOR/`; one file for
    each point of the strategy, whose name it has."""
    folder = Path(workdir or "./") / "profiler" / file_name(str(operator.attrs["op"]))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{points_of(strategy)}.cc").write_text(source_of(operator))
    except OSError as error:
        raise BuildError(f"the profiler cannot be written to {str(folder)!r}: {error.strerror}") from None
