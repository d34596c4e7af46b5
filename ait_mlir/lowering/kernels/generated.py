"""Generated loops: `ait.loops` by a schedule."""

from __future__ import annotations

import math
from abc import abstractmethod

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch
from ait_mlir.lowering.loops.cpu import CpuLoops
from ait_mlir.lowering.loops.estimates import Estimate
from ait_mlir.lowering.loops.gpu import GpuLoops, best_lane_of_results, fitting
from ait_mlir.lowering.loops.nest import Axis, Nest, nest_of
from ait_mlir.lowering.loops.rows import best_lane, rows_of
from ait_mlir.lowering.target import Target

MAX_LANES = 8
MAX_THREADS = 1024
STATIC_SHARED = 48 * 1024
"""Shared memory that a kernel may declare."""
STATE_BYTES = 16
"""The largest state of a fold: a value and its place."""
THREADS = (8, 16, 32, 64, 128, 256, 512, 1024)
ROW_COLUMNS = ((8, 32), (4, 64), (16, 16), (32, 8), (2, 128), (8, 64), (8, 128))
"""Threads side by side, and threads that share the elements of a row."""


def lanes_of(op: LoopsOp) -> int:
    """The neighbours in 16 bytes of the narrowest operand or result."""
    widths = [BY_IR[tensor_type(v).element_type].bytes for v in (*op.operands, *op.results)]
    return min(MAX_LANES, 16 // min(widths))


class Generated(Kernel[LoopsOp]):
    """What the schedules on a GPU have in common: their configurations are ranked by estimate."""

    ops = (LoopsOp,)

    @abstractmethod
    def seconds_of(self, op: LoopsOp, nest: Nest, config: Config, target: Target) -> float:
        """Estimated seconds with a configuration."""

    def ranked(self, op: LoopsOp, target: Target) -> list[tuple[dict[str, int], float]]:
        if not target.is_gpu:
            return super().ranked(op, target)
        nest = nest_of(op)
        found = [(config, self.seconds_of(op, nest, config, target)) for config in self.configs(op, target)]
        return sorted(found, key=lambda pair: pair[1])

    def estimate(self, op: LoopsOp, config: Config, target: Target) -> float:
        if not target.is_gpu:
            return super().estimate(op, config, target)
        return self.seconds_of(op, nest_of(op), config, target)

    def check(self, op: LoopsOp, config: Config, target: Target) -> None:
        for key, value in config.items():
            if key != "kept" and (value < 1 or value & (value - 1)):
                raise ValueError(f"configuration {key!r} is {value}, expected a power of two")
        if config.get("lanes", 1) > MAX_LANES:
            raise ValueError(f"configuration 'lanes' is {config['lanes']}, expected at most {MAX_LANES}")


def check_lanes(axis: Axis | None, lanes: int) -> None:
    """Raise `ValueError` if a result would not be covered exactly once."""
    if axis is None and lanes > 1:
        raise ValueError(f"configuration 'lanes' is {lanes}, but no axis of the results is contiguous")
    if axis is not None and fitting(axis.count, lanes) != lanes:
        raise ValueError(
            f"configuration 'lanes' is {lanes}, which does not divide the {axis.count} neighbours of a result"
        )


class LoopsKernel(Generated):
    """Any loops: a thread computes neighbouring results, and folds alone. On a CPU, rows or columns in vectors."""

    name = "loops"

    def configs(self, op: LoopsOp, target: Target) -> list[dict[str, int]]:
        if not target.is_gpu:
            return [{}]
        lane = best_lane_of_results(nest_of(op))
        most = 1 if lane is None else fitting(lane.count, lanes_of(op))
        return [{"lanes": most >> i} for i in range(most.bit_length())]

    def seconds_of(self, op: LoopsOp, nest: Nest, config: Config, target: Target) -> float:
        return Estimate.of(nest, target).map_seconds(op, best_lane_of_results(nest), config["lanes"])

    def check(self, op: LoopsOp, config: Config, target: Target) -> None:
        super().check(op, config, target)
        check_lanes(best_lane_of_results(nest_of(op)), config.get("lanes", 1))

    def emit(self, launch: Launch[LoopsOp]) -> Emission:
        return GpuLoops(launch, "map").emit() if launch.target.is_gpu else CpuLoops(launch).emit()


class LoopsRows(Generated):
    """Loops with long folds, on a GPU: a part of a warp, a warp or a block has a row."""

    name = "loops_rows"
    provider = "rows"
    gpu_only = True

    def matches(self, op: LoopsOp, target: Target) -> bool:
        return target.is_gpu and bool(rows_of(nest_of(op)).steps)

    def configs(self, op: LoopsOp, target: Target) -> list[dict[str, int]]:
        lanes = lanes_of(op)
        found = [
            {"threads": threads, "lanes": lanes, "kept": 1} for threads in THREADS if self.fits(op, threads, lanes)
        ]
        return found or [{"threads": 1024, "lanes": lanes, "kept": 0}]

    def fits(self, op: LoopsOp, threads: int, lanes: int) -> bool:
        """Whether the elements of a row that stay in registers have room there."""
        return kept_bytes(op, threads) <= KEPT_BYTES

    def seconds_of(self, op: LoopsOp, nest: Nest, config: Config, target: Target) -> float:
        rows = rows_of(nest)
        lane = best_lane(nest, rows.walks()[-1].axes)
        return Estimate.of(nest, target).rows_seconds(op, rows, lane, config["lanes"], config["threads"], 0)

    def check(self, op: LoopsOp, config: Config, target: Target) -> None:
        super().check(op, config, target)
        threads = config.get("threads", 1)
        if threads > MAX_THREADS:
            raise ValueError(f"configuration 'threads' is {threads}, a block has at most {MAX_THREADS}")
        if config.get("kept") and not self.fits(op, threads, config["lanes"]):
            raise ValueError(f"{threads} threads have no room for the elements of a row in registers; set 'kept' to 0")

    def emit(self, launch: Launch[LoopsOp]) -> Emission:
        return GpuLoops(launch, "rows").emit()


KEPT_BYTES = 128
"""The most bytes of a row that one thread keeps in registers."""


def kept_bytes(op: LoopsOp, threads: int, lanes: int = 1) -> int:
    """The most bytes that a thread keeps of a row, if each operand is kept."""
    nest = nest_of(op)
    rows = rows_of(nest)
    most = max((nest.around.bounds(walk.points)[1] for walk in rows.walks()), default=0)
    tensors = {read.tensor for read in nest.reads()}
    width = sum(BY_IR[tensor_type(op.operands[i]).element_type].bytes for i in tensors)
    return math.ceil(most / threads) * width * lanes


class LoopsColumns(Generated):
    """Loops with long folds, on a GPU: threads side by side have neighbouring rows, others share them."""

    name = "loops_columns"
    provider = "columns"
    gpu_only = True

    def matches(self, op: LoopsOp, target: Target) -> bool:
        return target.is_gpu and self.lane(op) is not None

    def lane(self, op: LoopsOp) -> Axis | None:
        """The axis along which rows are neighbours."""
        nest = nest_of(op)
        rows = rows_of(nest)
        return best_lane(nest, rows.group) if rows.steps else None

    def configs(self, op: LoopsOp, target: Target) -> list[dict[str, int]]:
        lane = self.lane(op)
        assert lane is not None
        lanes = fitting(lane.count, lanes_of(op))
        found: list[dict[str, int]] = []
        for columns, rows in ROW_COLUMNS:
            here = lanes
            while here > 1 and 2 * columns * rows * here * state_bytes(op) > STATIC_SHARED:
                here //= 2
            if 2 * columns * rows * here * state_bytes(op) <= STATIC_SHARED:
                kept = int(kept_bytes(op, rows, here) <= KEPT_BYTES)
                found.append({"columns": columns, "rows": rows, "lanes": here, "kept": kept})
        return found

    def seconds_of(self, op: LoopsOp, nest: Nest, config: Config, target: Target) -> float:
        rows = rows_of(nest)
        lane = best_lane(nest, rows.group)
        columns, below = config["columns"], config["rows"]
        seconds = Estimate.of(nest, target).rows_seconds(op, rows, lane, config["lanes"], below, columns)
        width = BY_IR[tensor_type(op.operands[0]).element_type].bytes if op.operands else 4
        return seconds * max(1.0, 64 / (columns * config["lanes"] * width)) ** 0.5

    def check(self, op: LoopsOp, config: Config, target: Target) -> None:
        super().check(op, config, target)
        columns, rows, lanes = config.get("columns", 1), config.get("rows", 1), config.get("lanes", 1)
        if columns * rows > MAX_THREADS:
            raise ValueError(
                f"{columns} columns of {rows} rows are {columns * rows} threads, a block has {MAX_THREADS}"
            )
        shared = 2 * columns * rows * lanes * state_bytes(op)
        if shared > STATIC_SHARED:
            raise ValueError(
                f"the folds of {columns} columns of {rows} rows take {shared} bytes of shared memory, "
                f"there are {STATIC_SHARED}"
            )
        check_lanes(self.lane(op), lanes)
        if config.get("kept") and kept_bytes(op, rows, lanes) > KEPT_BYTES:
            raise ValueError(f"{rows} threads have no room for the elements of a row in registers; set 'kept' to 0")

    def emit(self, launch: Launch[LoopsOp]) -> Emission:
        return GpuLoops(launch, "columns").emit()


def state_bytes(op: LoopsOp) -> int:
    """The bytes of the largest state of a fold that threads join."""
    found = 4
    for fold in rows_of(nest_of(op)).folds():
        width = max(4, BY_IR[fold.results[0].type].bytes)
        found = max(found, STATE_BYTES if fold.has_place else width)
    return found


KERNELS = (LoopsRows(), LoopsColumns(), LoopsKernel())
