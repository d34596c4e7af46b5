"""Loops on a GPU: the launches of a schedule."""

from __future__ import annotations

from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.lowering.kernels.base import Emission, Launch
from ait_mlir.lowering.loops.gpu_boxes import BoxThreads
from ait_mlir.lowering.loops.gpu_maps import Maps, Tiles
from ait_mlir.lowering.loops.gpu_rows import ColumnThreads, RowThreads
from ait_mlir.lowering.loops.moments import in_one_pass
from ait_mlir.lowering.loops.nest import nest_of
from ait_mlir.lowering.loops.rows import rows_of_gpu

SCHEDULES = {schedule.kind: schedule for schedule in (Maps, Tiles, BoxThreads, RowThreads, ColumnThreads)}


def emit(launch: Launch[LoopsOp], kind: str) -> Emission:
    """The launch that a schedule needs."""
    return SCHEDULES[kind](launch).emit()


def emit_split(launch: Launch[LoopsOp], kind: str) -> tuple[Emission, ...]:
    """The launches of a schedule in which several blocks compute one row."""
    schedule = {s.kind: s for s in (RowThreads, ColumnThreads)}[kind]
    nest = nest_of(launch.op)
    steps = len(rows_of_gpu(in_one_pass(nest) if launch.config.get("once") else nest).steps)
    return tuple(schedule(launch, phase).emit() for phase in range(steps + 1))
