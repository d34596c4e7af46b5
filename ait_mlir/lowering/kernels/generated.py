"""Kernels that are generated from `ait.loops`, one for each schedule."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

from xdsl.dialects.builtin import i32, i64

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Scope
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch
from ait_mlir.lowering.loops.body import Accumulator
from ait_mlir.lowering.loops.cpu import CpuLoops
from ait_mlir.lowering.loops.estimates import RESIDENT, SECTOR, Estimate
from ait_mlir.lowering.loops.gpu import emit, emit_split
from ait_mlir.lowering.loops.gpu_kernel import STATIC_SHARED
from ait_mlir.lowering.loops.kept import VALUES, Kept, kept_of
from ait_mlir.lowering.loops.moments import in_one_pass
from ait_mlir.lowering.loops.nest import Axis, Nest, best_lane_of_results, nest_of
from ait_mlir.lowering.loops.rows import Rows, best_lane, fitting, lane_along, row_lanes, rows_of_gpu
from ait_mlir.lowering.loops.short_estimates import Short
from ait_mlir.lowering.loops.turned import turned_axis, turned_types
from ait_mlir.lowering.loops.turned_rows import tiles_bytes, turned_across_rows, turned_along_rows
from ait_mlir.lowering.target import Target

MAX_LANES = 8
MAX_ITEMS = 16
MAX_SPLITS = 4096
MAX_THREADS = 1024
STATE_BYTES = 16
"""The largest state of a fold: a value and its place."""
THREADS = (8, 16, 32, 64, 128, 256, 512, 1024)
FEW_BLOCKS = 512
"""Threads of a block that, with a row in its registers, may have a multiprocessor for itself."""
SHORT_THREADS = (1, 2, 4, 8, 16, 32)
"""Threads of a short row."""
ITEMS = (1, 2, 4)
"""Chunks of a thread that computes single results."""
TILES = ((16, 4), (8, 8), (4, 16), (4, 8), (8, 4), (2, 32), (32, 2), (4, 4))
"""Pieces of 16 bytes along the axis of the operands, and along that of the results; as many elements if lanes have
fewer."""
TURNED_ROWS = ((32, 16), (32, 8), (32, 32), (16, 16), (16, 32))
"""Threads of a row, and rows of a block that turns results."""
ROW_COLUMNS = ((8, 32), (4, 64), (16, 16), (32, 8), (2, 128), (8, 64), (8, 128))
"""Threads side by side, and threads that share the elements of a row."""
SHORT_COLUMNS = ((128, 1), (256, 1), (64, 1), (32, 1), (64, 2), (32, 4))
"""The same for short rows."""


def lanes_of(op: LoopsOp) -> int:
    """The number of elements of the narrowest operand or result in 16 bytes."""
    widths = [BY_IR[tensor_type(v).element_type].bytes for v in (*op.operands, *op.results)]
    return min(MAX_LANES, 16 // min(widths))


@lru_cache(maxsize=64)
def _nest_in(op: LoopsOp, scope: Scope) -> Nest:
    return nest_of(op)


def nest_known(op: LoopsOp) -> Nest:
    """The nest of an op with row-major tensors, cached."""
    return _nest_in(op, scope_of(op))


def nest_for(op: LoopsOp, config: Config) -> Nest:
    """The nest of an op as a configuration computes it: with `once`, sums and squared distances in one pass."""
    nest = nest_known(op)
    return in_one_pass(nest) if config.get("once") else nest


def read_once(op: LoopsOp, config: dict[str, int]) -> dict[str, int]:
    """A configuration with `once` if rows that are not kept in registers would be read a second time for squares."""
    nest = nest_known(op)
    return config if config.get("kept") or in_one_pass(nest) is nest else {**config, "once": 1}


@lru_cache(maxsize=64)
def rows_known(nest: Nest) -> Rows:
    """The rows of a nest, cached."""
    return rows_of_gpu(nest)


def lanes_of_row(op: LoopsOp) -> int:
    """The number of neighbours of an access along a row."""
    nest = nest_known(op)
    return row_lanes(nest, rows_known(nest), lanes_of(op))


@lru_cache(maxsize=64)
def estimate_of(op: LoopsOp, nest: Nest, target: Target) -> Estimate:
    """The estimates of a nest, cached with the numbers that all configurations share."""
    return Estimate.of(op, nest, target)


def operand_width(op: LoopsOp) -> int:
    """The bytes of an element of the first operand."""
    return BY_IR[tensor_type(op.operands[0]).element_type].bytes if op.operands else 4


def threads_of_segment(op: LoopsOp, lanes: int) -> int:
    """The threads that have a segment of a row together; 1 without segments."""
    return max((fold.points.as_int() or 0 for fold in rows_known(nest_known(op)).segments), default=lanes) // lanes


class Generated(Kernel[LoopsOp]):
    """Base of the kernels of `ait.loops`. On a GPU their configurations are ranked by estimate."""

    ops = (LoopsOp,)
    defaults: ClassVar[Config] = {"lanes": 1}
    """The values of missing keys."""

    def full(self, config: Config) -> Config:
        """The configuration with defaults for missing keys."""
        return {**self.defaults, **config}

    @abstractmethod
    def seconds_of(self, op: LoopsOp, nest: Nest, config: Config, target: Target) -> float:
        """Estimated seconds with a configuration in which no entry is missing."""

    @abstractmethod
    def check_full(self, op: LoopsOp, config: Config) -> None:
        """Raise `ValueError` if a configuration in which no entry is missing does not fit the op."""

    @abstractmethod
    def code(self, launch: Launch[LoopsOp]) -> Emission | tuple[Emission, ...]:
        """The code of a launch whose configuration has all entries."""

    def ranked(self, op: LoopsOp, target: Target) -> list[tuple[dict[str, int], float]]:
        if not target.is_gpu:
            return super().ranked(op, target)
        nest = nest_known(op)
        found = [(c, self.seconds_of(op, nest, self.full(c), target)) for c in self.configs(op, target)]
        return sorted(found, key=lambda pair: pair[1])

    def estimate(self, op: LoopsOp, config: Config, target: Target) -> float:
        if not target.is_gpu:
            return super().estimate(op, config, target)
        return self.seconds_of(op, nest_known(op), self.full(config), target)

    def emit(self, launch: Launch[LoopsOp]) -> Emission | tuple[Emission, ...]:
        return self.code(replace(launch, config=self.full(launch.config)))

    def check(self, op: LoopsOp, config: Config, target: Target) -> None:
        for key, value in config.items():
            if key not in ("kept", "once", "splits") and (value < (key != "turned") or value & (value - 1)):
                raise ValueError(f"configuration {key!r} is {value}, expected a power of two")
        if config.get("lanes", 1) > MAX_LANES:
            raise ValueError(f"configuration 'lanes' is {config['lanes']}, expected at most {MAX_LANES}")
        self.check_full(op, self.full(config))


def check_lanes(axis: Axis | None, lanes: int) -> None:
    """Raise `ValueError` unless the lanes divide the axis of results."""
    if axis is None and lanes > 1:
        raise ValueError(f"configuration 'lanes' is {lanes}, but no axis of the results is contiguous")
    if axis is not None and fitting(axis.count, lanes) != lanes:
        raise ValueError(
            f"configuration 'lanes' is {lanes}, which does not divide the {axis.count} neighbours of a result"
        )


def check_kept(op: LoopsOp, kept: int, threads: int, lanes: int, block: int, rows: int = 1) -> None:
    """Raise `ValueError` unless `threads` threads of a block have room for what they keep."""
    if not 0 <= kept <= VALUES:
        raise ValueError(f"configuration 'kept' is {kept}, expected 0, 1 or {VALUES}")
    if kept and kept_bytes(op, threads, lanes, rows, kept) > most_kept(block):
        less = "0" if kept == 1 else "1 or 0"
        raise ValueError(f"{threads} threads have no room for the elements of a row in registers; set 'kept' to {less}")


class LoopsKernel(Generated):
    """Any loops: one thread computes neighbouring results, folds included. On a CPU, rows or columns are vectorised."""

    name = "loops"
    defaults: ClassVar[Config] = {"lanes": 1, "items": 1}

    def configs(self, op: LoopsOp, target: Target) -> list[dict[str, int]]:
        if not target.is_gpu:
            return [{}]
        lane = best_lane_of_results(nest_known(op))
        most = 1 if lane is None else fitting(lane.count, lanes_of(op))
        return [{"lanes": most >> i, "items": n} for i in range(most.bit_length()) for n in ITEMS]

    def seconds_of(self, op: LoopsOp, nest: Nest, config: Config, target: Target) -> float:
        lane = best_lane_of_results(nest)
        return estimate_of(op, nest, target).map_seconds(lane, config["lanes"], config["items"])

    def check_full(self, op: LoopsOp, config: Config) -> None:
        check_lanes(best_lane_of_results(nest_known(op)), config["lanes"])
        if config["items"] > MAX_ITEMS:
            raise ValueError(f"configuration 'items' is {config['items']}, expected at most {MAX_ITEMS}")

    def code(self, launch: Launch[LoopsOp]) -> Emission:
        return emit(launch, "map") if launch.target.is_gpu else CpuLoops(launch).emit()


class LoopsRows(Generated):
    """Loops with long folds, on a GPU: a part of a warp, a warp or a block computes a row."""

    name = "loops_rows"
    provider = "rows"
    gpu_only = True
    defaults: ClassVar[Config] = {"threads": 256, "lanes": 1, "kept": 0, "turned": 0}

    def matches(self, op: LoopsOp, target: Target) -> bool:
        return target.is_gpu and bool(rows_known(nest_known(op)).steps)

    def configs(self, op: LoopsOp, target: Target) -> list[dict[str, int]]:
        lanes = lanes_of_row(op)
        if rows_known(nest_known(op)).are_short:
            pairs = [(threads, n) for threads in SHORT_THREADS for n in dict.fromkeys((lanes, 1))]
            return [
                read_once(op, {"threads": threads, "lanes": n, "kept": most_to_keep(op, threads, n, 256)})
                for threads, n in pairs
            ]
        least = threads_of_segment(op, lanes)
        kept = {n: most_to_keep(op, n, lanes, max(n, 256)) for n in THREADS if n >= least}
        found = [{"threads": threads, "lanes": lanes, "kept": n} for threads, n in kept.items() if n]
        if not found or found[0]["threads"] >= FEW_BLOCKS:
            found += [{"threads": threads, "lanes": lanes, "kept": 0} for threads in (256, 512, 1024)]
        nest = nest_known(op)
        results = turned_across_rows(nest, rows_known(nest))
        for threads, beside in TURNED_ROWS if results else ():
            if is_run(nest, results, beside) and self.tile_bytes(nest, threads, lanes, beside) <= STATIC_SHARED:
                kept = most_to_keep(op, threads, lanes, threads * beside)
                found.append({"threads": threads, "lanes": lanes, "kept": kept, "turned": beside})
        return [read_once(op, config) for config in found]

    @staticmethod
    def tile_bytes(nest: Nest, threads: int, lanes: int, beside: int) -> int:
        """The bytes of the tiles in which `beside` rows turn."""
        return tiles_bytes(nest, turned_across_rows(nest, rows_known(nest)), threads * lanes * beside)

    def seconds_of(self, op: LoopsOp, nest: Nest, config: Config, target: Target) -> float:
        threads, nest = config["threads"], nest_for(op, config)
        rows, estimate, keeping = rows_known(nest), estimate_of(op, nest, target), keeping_of(nest, config["kept"])
        if rows.are_short:
            return Short(estimate, rows, None, config["lanes"], threads, 0, keeping).seconds()
        beside = config["turned"]
        runs = dict.fromkeys(turned_across_rows(nest, rows), beside) if beside else {}
        return estimate.rows_seconds(
            rows, None, config["lanes"], threads, 0, threads * max(beside, 1), keeping, runs
        )

    def check_full(self, op: LoopsOp, config: Config) -> None:
        threads = config["threads"]
        if threads > MAX_THREADS:
            raise ValueError(f"configuration 'threads' is {threads}, a block has at most {MAX_THREADS}")
        if threads < (least := threads_of_segment(op, config["lanes"])):
            raise ValueError(f"configuration 'threads' is {threads}, but {least} have a segment of a row together")
        if beside := config["turned"]:
            if threads > MAX_TURNING:
                raise ValueError(
                    f"configuration 'turned' is {beside}, which takes at most {MAX_TURNING} threads a row"
                )
            if threads * beside > MAX_THREADS:
                raise ValueError(f"{beside} rows of {threads} threads are more than the {MAX_THREADS} of a block")
            check_tiles(self.tile_bytes(nest_known(op), threads, config["lanes"], beside))
        check_kept(op, config["kept"], threads, config["lanes"], max(threads * max(beside, 1), 256))

    def code(self, launch: Launch[LoopsOp]) -> Emission:
        return emit(launch, "rows")


REGISTERS = 65536
"""The registers of a multiprocessor."""
OTHER_REGISTERS = 48
"""Registers of a thread for all but the elements of a row."""


def most_kept(block: int) -> int:
    """The most bytes of a row that one thread may keep in registers, in a block of `block` threads."""
    return min(256, 4 * (min(REGISTERS // block, 255) - OTHER_REGISTERS))


def kept_bytes(op: LoopsOp, threads: int, lanes: int, rows: int = 1, kept: int = 1) -> int:
    """The most bytes of `rows` rows that a thread keeps in registers from one walk to the next.

    If nothing is kept, the bytes of all operands. An element takes a whole register, 4 bytes, if `lanes` is 1.
    """
    nest = nest_known(op)
    parts, keeping = rows_known(nest), keeping_of(nest, kept)
    most = max((nest.around.bounds(walk.points)[1] for walk in parts.walks()), default=0)
    least = 4 if lanes == 1 else 0
    width = keeping.bytes(least)
    if not keeping.slots:
        width = sum(max(BY_IR[t].bytes, least) for t in {read.tensor: read.element for read in nest.reads()}.values())
    return math.ceil(most / threads) * width * rows


@lru_cache(maxsize=64)
def keeping_of(nest: Nest, kept: int) -> Kept:
    """The values that the threads of a row keep in registers, by the entry `kept` of a configuration; cached."""
    if not kept:
        return Kept()
    rows = rows_known(nest)
    return kept_of(nest, rows, lambda walk: lane_along(nest, rows, walk), kept == VALUES)


def most_to_keep(op: LoopsOp, threads: int, lanes: int, block: int, rows: int = 1) -> int:
    """The `kept` of a configuration: values of functions, if they take few registers or no more than elements do;
    elements, if there is room.
    """
    elements, most = kept_bytes(op, threads, lanes, rows), most_kept(block)
    has_values = bool(keeping_of(nest_known(op), VALUES).put)
    if has_values and kept_bytes(op, threads, lanes, rows, VALUES) <= min(max(FEW_BYTES, elements), most):
        return VALUES
    return int(elements <= most)


FEW_BYTES = 128
"""Bytes of a thread that leave a multiprocessor enough threads to hide the time of instructions."""


class LoopsColumns(Generated):
    """Loops with long folds, on a GPU, by blocks of `rows` x `columns` threads.

    Neighbouring threads along the columns compute neighbouring rows of the nest; the `rows` threads of a column share
    the work on their row.
    """

    name = "loops_columns"
    provider = "columns"
    gpu_only = True
    defaults: ClassVar[Config] = {"columns": 8, "rows": 32, "lanes": 1, "kept": 0, "turned": 0}

    def matches(self, op: LoopsOp, target: Target) -> bool:
        return target.is_gpu and self.lane(op) is not None

    def lane(self, op: LoopsOp) -> Axis | None:
        """The axis along which rows are neighbours."""
        nest = nest_known(op)
        rows = rows_known(nest)
        return best_lane(nest, rows.group) if rows.steps and not rows.segments else None

    def configs(self, op: LoopsOp, target: Target) -> list[dict[str, int]]:
        lane = self.lane(op)
        assert lane is not None
        lanes, state = fitting(lane.count, lanes_of(op)), state_bytes(in_one_pass(nest_known(op)))
        found: list[dict[str, int]] = []
        if rows_known(nest_known(op)).are_short:
            pairs = [(pair, lanes >> i) for pair in SHORT_COLUMNS for i in range(lanes.bit_length())]
            found = [
                {"columns": columns, "rows": rows, "lanes": n, "kept": kept}
                for (columns, rows), n in pairs
                if (kept := most_to_keep(op, rows, n, columns * rows, n))
            ]
        for columns, rows in ROW_COLUMNS if not found else ():
            here = lanes
            while here > 1 and 2 * columns * rows * here * state > STATIC_SHARED:
                here //= 2
            if 2 * columns * rows * here * state <= STATIC_SHARED:
                kept = most_to_keep(op, rows, here, columns * rows, here)
                found.append({"columns": columns, "rows": rows, "lanes": here, "kept": kept})
                if not kept and here > 1 and (kept := most_to_keep(op, rows, here // 2, columns * rows, here // 2)):
                    found.append({"columns": columns, "rows": rows, "lanes": here // 2, "kept": kept})
        found = [read_once(op, config) for config in found]
        return [*found, *(turned for config in found if self.turns(op, turned := {**config, "turned": 1}))]

    def turns(self, op: LoopsOp, config: Config) -> bool:
        """Whether a block transposes results in shared memory: there is room, and threads then store long enough runs.

        False if the rows have a known length and are not kept in registers, because rows that lie across the memory
        would be read again.
        """
        nest = nest_known(op)
        rows = rows_known(nest)
        results = turned_along_rows(nest, rows)
        if rows.are_short or not results or not is_run(nest, results, config["rows"]):
            return False
        read = config["columns"] * config["lanes"] * operand_width(op)  # a sector alone is half an access to memory
        is_kept = bool(config["kept"]) or rows.last.points.as_int() is None
        return is_kept and read >= 2 * SECTOR and self.shared_bytes(op, config) <= STATIC_SHARED

    def shared_bytes(self, op: LoopsOp, config: Config) -> int:
        """The bytes of shared memory in which folds are joined and results turn."""
        nest = nest_for(op, config)
        results = turned_along_rows(nest, rows_known(nest)) if config["turned"] else ()
        elements = config["columns"] * config["rows"] * config["lanes"]
        return 2 * elements * state_bytes(nest) + tiles_bytes(nest, results, elements)

    def seconds_of(self, op: LoopsOp, nest: Nest, config: Config, target: Target) -> float:
        nest = nest_for(op, config)
        rows = rows_known(nest)
        lane = best_lane(nest, rows.group)
        columns, below = config["columns"], config["rows"]
        block, keeping = columns * below, keeping_of(nest, config["kept"])
        estimate = estimate_of(op, nest, target)
        if rows.are_short:
            return Short(estimate, rows, lane, config["lanes"], below, columns, keeping).seconds()
        runs = dict.fromkeys(turned_along_rows(nest, rows), below) if config["turned"] else {}
        seconds = estimate.rows_seconds(rows, lane, config["lanes"], below, columns, block, keeping, runs)
        return seconds * max(1.0, 64 / (columns * config["lanes"] * operand_width(op))) ** 0.5

    def check_full(self, op: LoopsOp, config: Config) -> None:
        columns, rows, lanes = config["columns"], config["rows"], config["lanes"]
        if columns * rows > MAX_THREADS:
            raise ValueError(
                f"{columns} columns of {rows} rows are {columns * rows} threads, a block has {MAX_THREADS}"
            )
        if config["turned"] > 1:
            raise ValueError(f"configuration 'turned' is {config['turned']}, expected 0 or 1")
        shared = self.shared_bytes(op, config)
        if shared > STATIC_SHARED:
            raise ValueError(
                f"the folds of {columns} columns of {rows} rows take {shared} bytes of shared memory, "
                f"there are {STATIC_SHARED}"
            )
        check_lanes(self.lane(op), lanes)
        check_kept(op, config["kept"], rows, lanes, columns * rows, lanes)

    def code(self, launch: Launch[LoopsOp]) -> Emission:
        return emit(launch, "columns")


MAX_TURNING = 32
"""The most threads of a row of which a block turns several: those of a warp."""


def is_run(nest: Nest, results: tuple[int, ...], count: int) -> bool:
    """Whether `count` neighbours of each result fill a sector of memory."""
    return all(count * BY_IR[nest.elements[i]].bytes >= SECTOR for i in results)


def check_tiles(found: int) -> None:
    """Raise `ValueError` unless tiles fit into shared memory."""
    if found > STATIC_SHARED:
        raise ValueError(f"the tiles take {found} bytes of shared memory, there are {STATIC_SHARED}")


def state_bytes(nest: Nest) -> int:
    """The bytes of the largest state of a fold that threads join."""
    found = 4
    for fold in rows_known(nest).folds():
        width = max(4, BY_IR[fold.results[0].type].bytes)
        found = max(found, STATE_BYTES if fold.has_place else width * max(1, len(Accumulator(fold).fields)))
    return found


class LoopsTiles(Generated):
    """Loops whose operands and results are contiguous along different axes, on a GPU: tiles are transposed in shared
    memory.
    """

    name = "loops_tiles"
    provider = "tiles"
    gpu_only = True
    defaults: ClassVar[Config] = {"along": 8, "across": 8, "lanes": 1}

    def matches(self, op: LoopsOp, target: Target) -> bool:
        return target.is_gpu and turned_axis(nest_known(op)) is not None

    def configs(self, op: LoopsOp, target: Target) -> list[dict[str, int]]:
        nest = nest_known(op)
        lane = best_lane_of_results(nest)
        assert lane is not None
        lanes = fitting(lane.count, lanes_of(op))
        wider = lanes_of(op) // lanes
        found = [{"along": along * wider, "across": across * wider, "lanes": lanes} for along, across in TILES]
        return [c for c in found if tile_bytes(op, nest, c) <= STATIC_SHARED] or [{"along": 1, "across": 1, "lanes": 1}]

    def seconds_of(self, op: LoopsOp, nest: Nest, config: Config, target: Target) -> float:
        lane, turn = best_lane_of_results(nest), turned_axis(nest)
        assert lane is not None and turn is not None
        return estimate_of(op, nest, target).tiles_seconds(lane, turn, config)

    def check_full(self, op: LoopsOp, config: Config) -> None:
        nest = nest_known(op)
        check_lanes(best_lane_of_results(nest), config["lanes"])
        check_tiles(tile_bytes(op, nest, config))

    def code(self, launch: Launch[LoopsOp]) -> Emission:
        return emit(launch, "tiles")


def tile_bytes(op: LoopsOp, nest: Nest, config: Config) -> int:
    """The bytes of all tiles."""
    lane, turn = best_lane_of_results(nest), turned_axis(nest)
    if lane is None or turn is None:
        return 0
    types = turned_types(nest, lane.name, turn.name, config["lanes"])
    return sum(config["along"] * config["across"] * config["lanes"] ** 2 * BY_IR[t].bytes for t in types)


class LoopsSplit(Generated):
    """Loops with few rows, on a GPU: several blocks compute a row, and one launch for each step joins their states."""

    name = "loops_split"
    provider = "split"
    gpu_only = True
    defaults: ClassVar[Config] = {"lanes": 1, "splits": 4}

    def full(self, config: Config) -> Config:
        block = {"columns": 8, "rows": 32} if "columns" in config else {"threads": 256}
        return {**self.defaults, **block, **config}

    def matches(self, op: LoopsOp, target: Target) -> bool:
        rows = rows_known(nest_known(op))
        return LoopsRows().matches(op, target) and not rows.are_short and not rows.segments

    def configs(self, op: LoopsOp, target: Target) -> list[dict[str, int]]:
        nest = nest_known(op)
        count = estimate_of(op, nest, target).points(rows_known(nest).group)
        found: list[dict[str, int]] = []
        for config in self.of_one_block(op, target):
            blocks = count
            if "columns" in config:
                blocks = math.ceil(count / (config["columns"] * config["lanes"]))
            most = 8 * target.multiprocessors / blocks
            splits = [n for n in (4, 16, 64, 256, 1024) if most / 8 <= n <= max(2 * most, 4)]
            if "threads" in config and splits:  # as many blocks as run at once
                splits.insert(0, int(most * RESIDENT / 8 / config["threads"]))
            splits = [n for n in dict.fromkeys(splits) if 1 < n <= MAX_SPLITS]
            found += [{**{k: v for k, v in config.items() if k != "kept"}, "splits": n} for n in splits]
        found = found or [{"threads": 256, "lanes": lanes_of_row(op), "splits": 4}]
        return [read_once(op, config) for config in found]

    def of_one_block(self, op: LoopsOp, target: Target) -> list[dict[str, int]]:
        """The configurations of a block's threads."""
        columns = LoopsColumns()
        rows = [{"threads": threads, "lanes": lanes_of_row(op)} for threads in (256, 512)]
        return [*rows, *(columns.configs(op, target)[:3] if columns.matches(op, target) else [])]

    def seconds_of(self, op: LoopsOp, nest: Nest, config: Config, target: Target) -> float:
        nest = nest_for(op, config)
        rows = rows_known(nest)
        estimate = estimate_of(op, nest, target)
        columns, splits = config.get("columns", 0), config["splits"]
        lane = best_lane(nest, rows.group) if columns else None
        threads = config["rows"] if columns else config["threads"]
        block = threads * max(columns, 1)
        once = estimate.rows_seconds(rows, lane, config["lanes"], threads * splits, columns, block)
        if columns:
            once *= max(1.0, 128 / (columns * config["lanes"] * operand_width(op))) ** 0.25
        return once + len(rows.steps) * (target.launch_seconds + JOIN_SECONDS)

    def check_full(self, op: LoopsOp, config: Config) -> None:
        if "columns" in config:
            LoopsColumns().check_full(op, {**config, "kept": 0, "turned": 0})
        elif not 32 <= config["threads"] <= MAX_THREADS:
            raise ValueError(f"configuration 'threads' is {config['threads']}, expected 32 to {MAX_THREADS}")
        if not 1 <= config["splits"] <= MAX_SPLITS:
            raise ValueError(f"configuration 'splits' is {config['splits']}, expected 1 to {MAX_SPLITS}")

    def between(self, op: LoopsOp, config: Config, target: Target) -> tuple[TensorType, ...]:
        """The tensors with the states of the folds of each block: a tensor for each number of a state."""
        rows = rows_known(nest_for(op, config))
        count = rows.count * self.full(config)["splits"]
        types: list[TensorType] = []
        for fold in rows.folds():
            value = fold.results[0].type
            state = value if BY_IR[value].is_float or BY_IR[value].bytes >= 4 or fold.has_place else i32
            states = (state, i64) if fold.has_place else (state,) * max(1, len(Accumulator(fold).fields))
            types += [TensorType.get([count], t) for t in states]
        return tuple(types)

    def code(self, launch: Launch[LoopsOp]) -> tuple[Emission, ...]:
        return emit_split(launch, "columns" if "columns" in launch.config else "rows")


JOIN_SECONDS = 1e-6
"""Seconds of a launch that joins the states of blocks, in addition to the launch itself."""

KERNELS = (LoopsRows(), LoopsColumns(), LoopsSplit(), LoopsTiles(), LoopsKernel())
