"""Loops on a GPU: the kernel of a schedule, and its launch.

| schedule | a thread has | folds |
|---|---|---|
| `map` | `lanes` neighbouring results, in `items` rows | are computed by one thread |
| `rows` | every `threads`-th chunk of `lanes` neighbours of a row | are joined by shuffles, and through shared memory |
| `tiles` | `lanes` neighbouring results, whose elements lie apart in memory | are computed by one thread |
| `columns` | `lanes` neighbouring rows, of which it walks every `rows`-th element | are joined through shared memory |

With `splits`, so many blocks share a row of `rows` or `columns`. Each step is a launch: it joins what the blocks of
the steps before have left in memory, and leaves the states of its own part.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dims import Expr, product, total
from ait_mlir.lowering.cpp import CppText, comment, element_type
from ait_mlir.lowering.kernels.base import Emission, Launch
from ait_mlir.lowering.loops.body import Accumulator, Body
from ait_mlir.lowering.loops.nest import (
    Axis,
    Fold,
    Nest,
    Read,
    alignment,
    best_lane_of_results,
    nest_of,
    picked,
    step,
    turned_axis,
    turned_reads,
)
from ait_mlir.lowering.loops.rows import Rows, Walk, best_lane, key_of, later_values, nodes_of, rows_of
from ait_mlir.lowering.loops.text import Numbers, comment_of

BLOCK = 256
"""Threads of a block where the schedule does not say how many."""
NARROW = 2**31 - 2**24
"""Indices that are proved to be below are counted in 32 bits; a thread counts a little beyond the last element."""
NARROW_RUN = 2**30
"""In a run whose tensors and loops have fewer elements, indices have 32 bits: terms of offsets are below twice that."""


@dataclass
class Shared:
    """The buffers in shared memory with which threads join their states: two in turn, so that one barrier is enough."""

    bytes: list[str] = field(default_factory=list[str])
    used: int = 0

    def next(self, size: str) -> str:
        """The name of the buffer for the next join, of so many bytes."""
        self.used += 1
        self.bytes.append(size)
        return f"shared{self.used % 2}"

    def declarations(self) -> list[str]:
        found: list[str] = []
        for turn in (1, 0):
            sizes = self.bytes[1 - turn :: 2]
            if sizes:
                size = sizes[0]
                for other in dict.fromkeys(sizes[1:]):
                    size = f"({size}) > ({other}) ? ({size}) : ({other})" if other != size else size
                found.append(f"__shared__ __align__(16) char shared{turn}[{size}];")
        return found


class GpuLoops:
    """The code of one launch on a GPU."""

    def __init__(self, launch: Launch[LoopsOp], kind: str, phase: int | None = None) -> None:
        self.launch, self.kind, self.config, self.phase = launch, kind, launch.config, phase
        self.nest = nest_of(launch.op, [a.strides for a in launch.ins], [a.strides for a in launch.outs])
        self.numbers = Numbers()
        self.body = Body.of(self.nest, "gpu", self.numbers)
        self.body.lanes = self.lanes = self.config["lanes"]
        self.rows = rows_of(self.nest, serial=kind in ("map", "tiles"))
        self.shared = Shared()
        self.states: dict[Fold, str] = {}
        self.checks: dict[Expr, None] = {}
        """Numbers that must be multiples of the lanes."""
        self.pointers: dict[str, None] = {}
        """Tensors that are accessed in lanes."""
        self.splits = self.config.get("splits", 1)
        self.is_last = phase is None or phase == len(self.rows.steps)
        self.is_split = phase is not None and (not self.is_last or bool(self.rows.rest))
        """Whether the blocks of this launch share rows."""
        self.part = self.splits if self.is_split else 1

    # ** the kernel **

    def emit(self) -> Emission:
        kinds = {
            "map": self.print_map,
            "tiles": self.print_tiles,
            "rows": self.print_rows,
            "columns": self.print_columns,
        }
        blocks, block, what = kinds[self.kind]()
        for read, lane in self.body.vectors:
            self.pointers[f"input{read.tensor}"] = None
            if picked(self.nest, read, lane, self.lanes) is None:
                for e in alignment(self.nest, read, lane, self.lanes) or []:
                    self.need(e)
        self.is_wide = is_wide(self.nest)
        name = f"loops_{self.kind}{'' if self.phase is None else f'_step{self.phase}'}_kernel_@ID@"
        kernel = self.kernel(name, block, what)
        return Emission((self.launch.header("loops"),), CppText(kernel), CppText(self.host(name, blocks, block)))

    def kernel(self, name: str, block: int, what: str) -> str:
        parameters = [
            *(f"const {element_type(a.type.element_type)}* __restrict__ {a.name}" for a in self.launch.ins),
            *(f"{element_type(a.type.element_type)}* __restrict__ {a.name}" for a in self.launch.outs),
            *(f"{element_type(a.type.element_type)}* {a.name}" for a in self.launch.between),
            *(f"{'Index' if self.is_wide else 'int32_t'} {n}" for n in self.numbers.names.values()),
        ]
        sizes = f"{comment(comment_of(self.numbers.names))}\n" if self.numbers.names else ""
        head = [
            *(() if self.is_wide else ("using Index = int32_t;",)),
            *self.shared.declarations(),
            "ait::gpu::wait_for_previous();",
            "ait::gpu::allow_next();",
        ]
        text = "".join(f"  {line}\n" for line in head)
        text += "".join(
            line if line.startswith("#") else f"  {line}" for line in self.body.lines.text().splitlines(True)
        )
        return (
            f"{comment(what)}\n{sizes}template <int kLanes{', class Index' if self.is_wide else ''}>\n"
            f"__global__ void __launch_bounds__({block}) {name}({', '.join(parameters)}) {{\n{text}}}\n"
        )

    def host(self, name: str, blocks: str, block: int) -> str:
        """The statements that choose an instance of the kernel, and launch it."""
        launch = self.launch
        arguments = [a.name for a in (*launch.ins, *launch.outs, *launch.between)]
        arguments += [launch.cpp(e) for e in self.numbers.names]
        aligned = [f"ait::gpu::is_aligned<{self.lanes}>({p})" for p in self.pointers]
        checks = [f"{launch.cpp(e)} % {self.lanes} == 0" for e in self.checks]
        index = ", int32_t" if self.is_wide else ""
        lines: list[str] = []
        if self.is_wide:
            most = [f"{launch.cpp(e)} < {NARROW_RUN}" for e in extents(self.launch, self.nest)]
            lines.append(f"const bool is_narrow = {' && '.join(dict.fromkeys(most))};")
            checks = ["is_narrow", *checks]
        kernel, lanes = f"{name}<{self.lanes}{index}>", str(self.lanes)
        if self.lanes > 1 and (aligned or checks):
            lines.append(f"const bool is_vector = {' && '.join([*checks, *aligned])};")
            kernel, lanes = f"is_vector ? {kernel} : {name}<1{index}>", f"is_vector ? {lanes} : 1"
        if "lanes" in blocks:
            lines.append(f"const int64_t lanes = {lanes};")
        lines += [
            "ait::gpu::LaunchConfig config;",
            f"config.grid = dim3(ait::gpu::grid_size({blocks}));",
            f"config.block = dim3({block});",
            "config.dependent = true;",
        ]
        given = ", ".join(arguments)
        if self.is_wide:
            lines.append(f"if (!is_narrow) return ait::gpu::launch(ctx, config, {name}<1, int64_t>, {given});")
        lines += [
            f"const auto kernel = {kernel};",
            f"return ait::gpu::launch(ctx, config, kernel, {given});",
        ]
        return "".join(f"{line}\n" for line in lines)

    # ** map **

    def print_map(self) -> tuple[str, int, str]:
        body, rows = self.body, self.rows
        lane = best_lane_of_results(self.nest)
        self.fit(lane)
        axes = list(self.nest.axes)
        total = product(a.count for a in axes)
        items = self.config.get("items", 1)
        chunks = self.chunks(total, lane)
        lines = body.lines
        others = [a for a in axes if a is not lane]
        if items > 1 and lane is not None and others:
            return self.print_map_of_rows(lane, others, items)
        if items == 1:
            lines.add(
                f"const Index chunk = static_cast<Index>(blockIdx.x) * {BLOCK} + threadIdx.x;",
                f"if (chunk >= {chunks}) return;",
            )
        with (
            contextlib.nullcontext()
            if items == 1
            else lines.braces("const auto compute = [&](const Index chunk)", "};")
        ):
            self.split("chunk", axes, lane)
            self.set_lane(lane)
            self.print_results(rows, "")
        if items > 1:  # without a condition for each chunk, all their accesses are on their way before the first store
            each = f"for (int item = 0; item < {items}; ++item)"
            lines.add(f"const Index first = static_cast<Index>(blockIdx.x) * {BLOCK * items} + threadIdx.x;")
            with lines.braces(
                f"if (first - static_cast<Index>(threadIdx.x) + {BLOCK * items} <= {chunks})", "} else {"
            ):
                lines.add("#pragma unroll", f"{each} compute(first + item * {BLOCK});")
            lines.depth += 1
            with lines.braces(each):
                lines.add(f"if (first + item * {BLOCK} < {chunks}) compute(first + item * {BLOCK});")
            lines.depth -= 1
            lines.add("}")
        count = self.launch.cpp(total) + (" / lanes" if lane is not None else "")
        what = f"A thread has {self.lanes} neighbouring results{f', {items} times' if items > 1 else ''}."
        return f"({count} + {BLOCK * items - 1}) / {BLOCK * items}", BLOCK, what

    def print_map_of_rows(self, lane: Axis, others: Sequence[Axis], items: int) -> tuple[str, int, str]:
        """A thread has the same neighbours in several rows, so that it computes their index once."""
        body, lines = self.body, self.body.lines
        rows = product(a.count for a in others)
        name, count = body.variable(lane), self.numbers.text(rows)
        lines.add(
            f"const Index thread = static_cast<Index>(blockIdx.x) * {BLOCK} + threadIdx.x;",
            f"const Index columns = {self.numbers.text(lane.count)} / kLanes;",
            f"const Index first = ait::quotient<Index>(thread, columns) * {items};",
            f"const Index {name} = ait::remainder<Index>(thread, columns) * kLanes;",
            f"if (first >= {count}) return;",
        )
        self.set_lane(lane)
        with lines.braces("const auto compute = [&](const Index row)", "};"):
            self.split("row", others, None)
            self.print_results(self.rows, "")
        each = f"for (int item = 0; item < {items}; ++item)"
        with lines.braces(f"if (first + {items} <= {count})", "} else {"):
            lines.add("#pragma unroll", f"{each} compute(first + item);")
        lines.depth += 1
        with lines.braces(each):
            lines.add(f"if (first + item < {count}) compute(first + item);")
        lines.depth -= 1
        lines.add("}")
        groups = f"(({self.launch.cpp(rows)} + {items - 1}) / {items})"
        threads = f"{groups} * ({self.launch.cpp(lane.count)} / lanes)"
        what = f"A thread has {self.lanes} neighbouring results in {items} rows."
        return f"({threads} + {BLOCK - 1}) / {BLOCK}", BLOCK, what

    def fit(self, lane: Axis | None) -> None:
        """Take fewer lanes if strides have split the axis into shorter ones."""
        self.lanes = self.body.lanes = 1 if lane is None else fitting(lane.count, self.lanes)

    def set_lane(self, lane: Axis | None) -> None:
        self.body.lane = None if lane is None else lane.name
        if lane is not None:
            self.need(lane.count)

    def print_results(self, rows: Rows, condition: str) -> None:
        """The values of a row, and its result if the row has only one."""
        body = self.body
        if rows.rest:
            body.print_nodes(rows.once, later=later_values(self.nest, rows.once))
            return
        self.declare_stores()
        body.print_nodes(rows.once, self.stores(condition), self.nest.yields, each=True)
        self.flush_stores(condition)

    # ** tiles **

    def print_tiles(self) -> tuple[str, int, str]:
        """A block reads a tile along the axis that memory has together, and writes it along that of the results."""
        body, lines, config = self.body, self.body.lines, self.config
        lane = best_lane_of_results(self.nest)
        turn = turned_axis(self.nest)
        if lane is None or turn is None:  # with the strides of this launch nothing is to be turned
            return self.print_map()
        self.fit(lane)
        width = config["lanes"]
        along, across = config["along"] * width, config["across"] * width
        others = [a for a in self.nest.axes if a not in (lane, turn)]
        sizes = self.numbers.text(lane.count), self.numbers.text(turn.count)
        reads = [r for r in turned_reads(self.nest, lane.name, turn.name) if self.vector_along(r, turn.name)]
        names: dict[Read, str] = {}
        for read in reads:
            names[read] = body.new("tile")
            t = element_type(read.element)
            lines.add(f"__shared__ __align__(16) {t} {names[read]}[{along * across}];")
        lines.add(
            f"const Index across = ({sizes[0]} + {across - 1}) / {across};",
            f"const Index along = ({sizes[1]} + {along - 1}) / {along};",
            f"const Index first_{body.variable(lane)} = ait::remainder<Index>(blockIdx.x, across) * {across};",
            "const Index stripe = ait::quotient<Index>(blockIdx.x, across);",
            f"const Index first_{body.variable(turn)} = ait::remainder<Index>(stripe, along) * {along};",
        )
        at_lane, at_turn = body.variable(lane), body.variable(turn)
        self.split("ait::quotient<Index>(stripe, along)", others, None)
        inside = f"chunk < {along * across} / kLanes && {at_lane} < {sizes[0]} && {at_turn} < {sizes[1]}"
        lines.add("#pragma unroll")
        with lines.braces(f"for (int item = 0; item < ({along * across} / kLanes + {BLOCK - 1}) / {BLOCK}; ++item)"):
            lines.add(
                f"const int chunk = item * {BLOCK} + threadIdx.x;",
                f"const int row = chunk / ({along} / kLanes), column = chunk % ({along} / kLanes) * kLanes;",
                f"const Index {at_lane} = first_{at_lane} + row, {at_turn} = first_{at_turn} + column;",
            )
            with lines.braces(f"if ({inside})"):
                lines.add(f"const int place = ait::gpu::turned<{width}, {along}>(row, column);")
                for read, name in names.items():
                    t = element_type(read.element)
                    self.body.vectors.append((read, turn.name))
                    lines.add(
                        f"{t} {name}_lanes[kLanes];",
                        f"ait::gpu::load_lanes({body.pointer(read)}, {name}_lanes);",
                        f"ait::gpu::keep_lanes({name} + place, {name}_lanes);",
                    )
        lines.add("__syncthreads();")
        self.need(turn.count)
        lines.add("#pragma unroll")
        with lines.braces(f"for (int item = 0; item < ({along * across} / kLanes + {BLOCK - 1}) / {BLOCK}; ++item)"):
            lines.add(
                f"const int chunk = item * {BLOCK} + threadIdx.x;",
                f"const int column = chunk / ({across} / kLanes), row = chunk % ({across} / kLanes) * kLanes;",
                f"const Index {at_lane} = first_{at_lane} + row, {at_turn} = first_{at_turn} + column;",
            )
            with lines.braces(f"if ({inside})"):
                lines.add(f"const int place = ait::gpu::turned<{width}, {along}>(row, column);")
                body.kept = lambda read: f"{names[read]}[place + j * {along}]" if read in names else None
                self.set_lane(lane)
                self.print_results(self.rows, "")
                body.kept = lambda read: None
        total = f"{self.launch.cpp(product(a.count for a in others))}"
        steps = [f"(({self.launch.cpp(a.count)} + {n - 1}) / {n})" for a, n in ((lane, across), (turn, along))]
        what = f"A block turns tiles of {along} by {across}; a thread has {width} neighbours on both sides."
        return f"{total} * {' * '.join(steps)}", BLOCK, what

    # ** rows **

    def print_rows(self) -> tuple[str, int, str]:
        body, rows, threads = self.body, self.rows, self.config["threads"]
        per_block = max(1, BLOCK // threads) if threads <= self.warp else 1
        block = threads * per_block
        count = self.numbers.text(rows.count)
        lines = body.lines
        if self.is_split:
            lines.add(
                f"const Index row = blockIdx.x / {self.splits}, split = blockIdx.x % {self.splits};",
                "const Index thread = threadIdx.x;",
            )
            per_block, block, present = 1, threads, ""
        elif per_block == 1:
            lines.add("const Index row = blockIdx.x, thread = threadIdx.x;")
            present = ""
        else:
            lines.add(
                f"const Index thread = threadIdx.x % {threads};",
                f"const Index wanted = static_cast<Index>(blockIdx.x) * {per_block} + threadIdx.x / {threads};",
                f"const bool present = wanted < {count};",
                "const Index row = present ? wanted : 0;",
            )
            present = "present"
        self.split("row", rows.group, None)
        self.print_kept(threads, "thread")
        for number, step_ in enumerate(rows.steps[: None if self.phase is None else self.phase + 1]):
            body.print_nodes(step_.nodes)
            for walk in step_.walks:
                self.print_walk_of_row(walk, threads, present, self.phase is not None and number < self.phase)
        if not self.is_last:
            self.leave(lambda state, _: state, "thread == 0", f"row * {self.splits} + split")
        elif rows.rest:
            body.print_nodes(rows.once)
            self.print_walk_of_row(rows.last, threads, present, joined=False)
        else:
            self.print_results(rows, " && ".join([*([present] if present else []), "thread == 0"]))
        total = self.launch.cpp(rows.count)
        blocks = f"({total} + {per_block - 1}) / {per_block}" if per_block > 1 else total
        blocks += f" * {self.splits}" if self.is_split else ""
        what = f"{threads} threads have a row, each {self.lanes} neighbours at a time."
        return blocks, block, what

    @property
    def warp(self) -> int:
        return 64 if self.launch.target.kind == "rocm" else 32

    def print_walk_of_row(self, walk: Walk, threads: int, present: str, joined: bool) -> None:
        """The folds of a walk, or the results of a row: a thread has every `threads`-th chunk. If the states of a fold
        are in memory, they are `joined`."""
        body = self.body
        lane = self.lane_of(walk)
        states = [body.declare(Accumulator(fold), laned=False) for fold in walk.folds]
        if joined:
            with body.lines.braces(f"for (Index part = thread; part < {self.splits}; part += {threads})"):
                for fold, state in zip(walk.folds, states, strict=True):
                    body.lines.add(self.taken(fold, state, f"row * {self.splits} + part"))
        else:
            self.set_lane(lane)
        start = f"split * {threads} + thread" if self.is_split else "thread"
        with contextlib.nullcontext() if joined else self.walking(walk, threads * self.part, start, lane):
            if joined:
                pass
            elif walk.folds:
                for fold, state in zip(walk.folds, states, strict=True):
                    self.print_fold_of_walk(walk, fold, state, laned=False)
            else:
                self.declare_stores()
                body.print_nodes(self.rows.nodes, self.stores(present), self.nest.yields, each=True)
                self.flush_stores(present)
        body.lane = None
        for fold, state in zip(walk.folds, states, strict=True):
            acc = Accumulator(fold)
            shared = (
                self.shared.next(f"ait::gpu::kJoinBytes<{threads}, sizeof({acc.type})>")
                if threads > self.warp
                else "nullptr"
            )
            body.lines.add(f"{state} = ait::gpu::join_threads<{acc.kind}, {threads}>({state}, {shared});")
            self.states[fold] = state
            body.take_results(fold, state)

    # ** states in memory, between the launches of blocks that share rows **

    def places(self, fold: Fold) -> list[str]:
        """The tensors with the states of a fold: its values, and their places."""
        at = 0
        for other in self.rows.folds():
            if other is fold:
                return [a.name for a in self.launch.between[at : at + len(fold.results)]]
            at += len(other.results)
        raise AssertionError("the fold belongs to the rows")

    def taken(self, fold: Fold, state: str, at: str) -> str:
        """The statement that joins a state in memory."""
        acc = Accumulator(fold)
        parts = [f"{name}[{at}]" for name in self.places(fold)]
        if fold.has_place:
            parts[1] = f"static_cast<Index>({parts[1]})"
        given = f"{acc.type}{{{', '.join(parts)}}}" if fold.has_place else acc.cast(parts[0], acc.type)
        return f"{state} = {acc.kind}::join({state}, {given});"

    def leave(self, of: Callable[[str, str], str], condition: str, at: str) -> None:
        """Write the states of the folds of this step."""
        assert self.phase is not None
        with self.body.lines.braces(f"if ({condition})"):
            for walk in self.rows.steps[self.phase].walks:
                for fold in walk.folds:
                    state = of(self.states[fold], "j")
                    acc = Accumulator(fold)
                    stored = (
                        [f"{state}.value", f"{state}.place"] if fold.has_place else [acc.cast(state, acc.value_type)]
                    )
                    lines = [f"{name}[{at}] = {v};" for name, v in zip(self.places(fold), stored, strict=True)]
                    if "[j]" in state:
                        self.body.each_lane(lines)
                    else:
                        self.body.lines.add(*lines)

    def print_fold_of_walk(self, walk: Walk, fold: Fold, state: str, laned: bool) -> None:
        body = self.body
        outside = body.lane
        for own, shared in zip(fold.axes, walk.axes, strict=True):
            body.index.variables[own.name] = body.index.variables[shared.name]
            if outside == shared.name:
                body.lane = own.name
        acc = Accumulator(fold)
        last = body.lane in (None, fold.axes[-1].name) or body.lane not in {a.name for a in fold.axes}
        if body.in_lanes(fold.value) or body.lane is None:
            body.print_nodes(fold.nodes, lambda: [body.join_line(acc, state, laned, last)], [fold.value])
        else:  # a value that is the same in all lanes counts for each of them
            body.print_nodes(fold.nodes)
            body.each_lane([body.join_line(acc, state, laned, last)])
        body.lane = outside

    # ** columns **

    def print_columns(self) -> tuple[str, int, str]:
        body, rows = self.body, self.rows
        x, y = self.config["columns"], self.config["rows"]
        lane = best_lane(self.nest, rows.group) or rows.group[-1]
        self.fit(lane)
        others = [a for a in rows.group if a is not lane]
        size = self.numbers.text(lane.count)
        lines = body.lines
        self.need(lane.count)
        lines.add(
            f"const Index blocks = ({size} / kLanes + {x - 1}) / {x};",
            *(
                (f"const Index block = blockIdx.x / {self.splits}, split = blockIdx.x % {self.splits};",)
                if self.is_split
                else ("const Index block = blockIdx.x;",)
            ),
            f"const Index y = threadIdx.x / {x};",
            f"const Index wanted = (ait::remainder<Index>(block, blocks) * {x} + threadIdx.x % {x}) * kLanes;",
            f"const bool present = wanted < {size};",
            f"const Index {body.variable(lane)} = present ? wanted : 0;",
        )
        self.split("ait::quotient<Index>(block, blocks)", others, None)
        row = f"ait::quotient<Index>(block, blocks) * {size} + {body.index.variables[lane.name]} + j"
        body.lane = lane.name
        self.print_kept(y, "y")
        start = f"split * {y} + y" if self.is_split else "y"
        count = self.numbers.text(rows.count)
        for number, step_ in enumerate(rows.steps[: None if self.phase is None else self.phase + 1]):
            body.print_nodes(step_.nodes, later=later_values(self.nest, step_.nodes))
            for walk in step_.walks:
                states = [body.declare(Accumulator(fold), laned=True) for fold in walk.folds]
                self.states.update(zip(walk.folds, states, strict=True))
                if self.phase is not None and number < self.phase:
                    with lines.braces(f"for (Index part = y; part < {self.splits}; part += {y})"):
                        for fold, state in zip(walk.folds, states, strict=True):
                            body.each_lane([self.taken(fold, f"{state}[j]", f"part * {count} + {row}")])
                else:
                    with self.walking(walk, y * self.part, start, None):
                        for fold, state in zip(walk.folds, states, strict=True):
                            self.print_fold_of_walk(walk, fold, state, laned=True)
                for fold, state in zip(walk.folds, states, strict=True):
                    acc = Accumulator(fold)
                    shared = self.shared.next(f"{x * y} * kLanes * sizeof({acc.type})") if y > 1 else "nullptr"
                    lines.add(f"ait::gpu::join_columns<{acc.kind}, {x}, {y}>({state}, {shared});")
                    body.take_results(fold, state, is_array=True)
        if not self.is_last:
            self.leave(lambda state, lane: f"{state}[{lane}]", "present && y == 0", f"split * {count} + {row}")
        elif rows.rest:
            body.print_nodes(rows.once, later=later_values(self.nest, rows.once))
            with self.walking(rows.last, y * self.part, start, None):
                self.declare_stores()
                body.print_nodes(rows.nodes, self.stores("present"), self.nest.yields, each=True)
                self.flush_stores("present")
        else:
            self.print_results(rows, "present && y == 0")
        others_count = self.launch.cpp(product(a.count for a in others))
        blocks = f"{others_count} * (({self.launch.cpp(lane.count)} / lanes + {x - 1}) / {x}) * {self.part}"
        blocks = blocks.removesuffix(" * 1")
        what = f"{y} threads have {self.lanes} neighbouring rows, {x} of these are side by side."
        return blocks, x * y, what

    # ** walking **

    def walking(self, walk: Walk, threads: int, thread: str, lane: Axis | None):
        """A loop over the chunks of a walk that a thread has."""
        return _Walking(self, walk, threads, thread, lane)

    def lane_of(self, walk: Walk) -> Axis | None:
        """The axis of lanes within a walk."""
        lane = best_lane(self.nest, walk.axes)
        return lane if lane is not None and self.may_divide(lane.count) else None

    def may_divide(self, count: Expr) -> bool:
        return count.as_int() is None or self.nest.around.divisible(count, self.lanes)

    def need(self, e: Expr) -> None:
        """The vector kernel needs this number to be a multiple of the lanes."""
        if self.lanes > 1 and not self.nest.around.divisible(e, self.lanes):
            self.checks[e] = None

    def chunks(self, total: Expr, lane: Axis | None) -> str:
        return self.numbers.text(total) + (" / kLanes" if lane is not None else "")

    def split(self, linear: str, axes: Sequence[Axis], lane: Axis | None) -> None:
        """The variables of axes from a linear index, the last fastest; the lane axis is counted in lanes."""
        body, lines = self.body, self.body.lines
        names = {a.name: body.variable(a) for a in axes}
        order = [a for a in axes if a is not lane] + ([lane] if lane is not None else [])
        if len(order) == 1:
            lines.add(f"const Index {names[order[0].name]} = {linear}{' * kLanes' if lane is not None else ''};")
            return
        if not order:
            return
        rest = body.new("rest")
        lines.add(f"Index {rest} = {linear};")
        for axis in reversed(order[1:]):
            size = self.numbers.text(axis.count) + (" / kLanes" if axis is lane else "")
            value = f"ait::remainder<Index>({rest}, {size})"
            lines.add(
                f"const Index {names[axis.name]} = {value}{' * kLanes' if axis is lane else ''};",
                f"{rest} = ait::quotient<Index>({rest}, {size});",
            )
        lines.add(f"const Index {names[order[0].name]} = {rest};")

    # ** elements that stay in registers **

    def print_kept(self, threads: int, thread: str) -> None:
        """Read the elements that several walks need into registers."""
        self.kept_keys: dict[tuple[int, Expr], str] = {}
        if not self.config.get("kept") or self.phase is not None:
            return
        counts: dict[tuple[tuple[int, Expr], tuple[Expr, ...]], int] = {}
        where: dict[tuple[tuple[int, Expr], tuple[Expr, ...]], tuple[Walk, Axis | None, Read]] = {}
        in_lanes = self.body.lane is not None
        for walk in self.rows.walks():
            lane = None if in_lanes else self.lane_of(walk)
            seen: set[tuple[tuple[int, Expr], tuple[Expr, ...]]] = set()
            for axes, nodes in nodes_of(walk, self.rows):
                mine = self.body.lane if in_lanes else axes[walk.axes.index(lane)].name if lane is not None else None
                for node in nodes:
                    if isinstance(node, Read) and mine is not None and self.vector_along(node, mine):
                        key = key_of(node, axes)
                        if key is not None and any(a.name in node.offset.symbols for a in axes):
                            full = (key, tuple(a.count for a in walk.axes))
                            seen.add(full)
                            where.setdefault(full, (walk, lane, node))
            for full in seen:
                counts[full] = counts.get(full, 0) + 1
        found = [full for full, n in counts.items() if n > 1]
        if not found:
            return
        for full in found:
            self.kept_keys[full[0]] = self.body.new("row")
        first = where[found[0]]
        same = [full for full in found if full[1] == found[0][1]]
        for full in found:
            if full not in same:
                del self.kept_keys[full[0]]
        self.kept_walk = found[0][1]
        walk, lane, _ = first
        most = f"{self.most(walk.points)}{' / kLanes' if lane is not None else ''}"
        self.body.lines.add(f"constexpr int kItems = ({most} + {threads - 1}) / {threads};")
        for full in same:
            t = element_type(where[full][2].element)
            self.body.lines.add(f"{t} {self.kept_keys[full[0]]}[kItems][kLanes];")
        outside = self.body.lane
        with _Walking(self, walk, threads, thread, lane, preload=True):
            for full in same:
                read = where[full][2]
                # the read may stand in another walk with the same sizes
                self.place_axes(read, where[full][0], walk)
                self.body.lines.add(
                    f"ait::gpu::load_lanes({self.body.pointer(read)}, {self.kept_keys[full[0]]}[item]);"
                )
                self.pointers[f"input{read.tensor}"] = None
        self.body.lane = outside

    def place_axes(self, read: Read, walk: Walk, first: Walk) -> None:
        """Give the axes of a walk the variables of another with the same sizes."""
        for axes, nodes in nodes_of(walk, self.rows):
            if read in nodes:
                for own, shared in zip(axes, first.axes, strict=True):
                    self.body.index.variables[own.name] = self.body.index.variables[shared.name]

    def most(self, e: Expr) -> int:
        return self.nest.around.bounds(e)[1]

    def vector_along(self, read: Read, lane: str) -> bool:
        found = step(read.offset, lane)
        if found is None or found.as_int() != 1 or read.guards or read.gathers:
            return False
        return self.lanes == 1 or alignment(self.nest, read, lane, self.lanes) is not None

    # ** results **

    def declare_stores(self) -> None:
        for i, arg in enumerate(self.launch.outs):
            if self.is_vector_store(i):
                self.body.lines.add(f"{element_type(arg.type.element_type)} result{i}[kLanes];")

    def stores(self, condition: str):
        def found() -> list[str]:
            body = self.body
            lines: list[str] = []
            for i, (value, arg) in enumerate(zip(self.nest.yields, self.launch.outs, strict=True)):
                stored = f"ait::convert<{element_type(arg.type.element_type)}>({body.ref(value)})"
                if self.is_vector_store(i):
                    lines.append(f"result{i}[j] = {stored};")
                else:
                    store = f"output{i}[{body.index.text(self.nest.offsets[i])}] = {stored};"
                    lines.append(f"if ({condition}) {store}" if condition else store)
            return lines

        return found

    def is_vector_store(self, i: int) -> bool:
        lane, offset = self.body.lane, self.nest.offsets[i]
        found = None if lane is None else step(offset, lane)
        if lane is None or found is None or found.as_int() != 1:
            return False
        return self.lanes == 1 or alignment(self.nest, offset, lane, self.lanes) is not None

    def flush_stores(self, condition: str) -> None:
        for i in range(len(self.launch.outs)):
            if self.is_vector_store(i):
                self.pointers[f"output{i}"] = None
                assert self.body.lane is not None
                for e in alignment(self.nest, self.nest.offsets[i], self.body.lane, self.lanes) or []:
                    self.need(e)
                store = f"ait::gpu::store_lanes(output{i} + ({self.body.index.text(self.nest.offsets[i])}), result{i});"
                self.body.lines.add(f"if ({condition}) {store}" if condition else store)


class _Walking:
    """The loop of a walk: over all chunks, or over those of the elements in registers."""

    def __init__(
        self, code: GpuLoops, walk: Walk, threads: int, thread: str, lane: Axis | None, preload: bool = False
    ) -> None:
        self.code, self.walk, self.threads, self.thread, self.lane = code, walk, threads, thread, lane
        counts = tuple(a.count for a in walk.axes)
        self.keeps = preload or bool(code.kept_keys and counts == code.kept_walk)

    def __enter__(self) -> None:
        code, lines = self.code, self.code.body.lines
        chunks = code.chunks(self.walk.points, self.lane)
        if self.keeps:
            lines.add("#pragma unroll")
            lines.add("for (int item = 0; item < kItems; ++item) {")
            lines.depth += 1
            lines.add(f"const Index chunk = item * {self.threads} + {self.thread};", f"if (chunk < {chunks}) {{")
            lines.depth += 1
            code.body.kept = self.kept
        else:
            lines.add("#pragma unroll 4")  # so that several accesses are on their way
            lines.add(f"for (Index chunk = {self.thread}; chunk < {chunks}; chunk += {self.threads}) {{")
            lines.depth += 1
        code.split("chunk", self.walk.axes, self.lane)

    def kept(self, read: Read) -> str | None:
        """The registers that hold a read of this walk."""
        for axes, nodes in nodes_of(self.walk, self.code.rows):
            if read in nodes and (key := key_of(read, axes)) is not None and key in self.code.kept_keys:
                return f"{self.code.kept_keys[key]}[item][j]"
        return None

    def __exit__(self, *error: object) -> None:
        code = self.code
        code.body.kept = lambda read: None
        for _level in range(2 if self.keeps else 1):
            code.body.lines.depth -= 1
            code.body.lines.add("}")


def emit_split(launch: Launch[LoopsOp], kind: str) -> tuple[Emission, ...]:
    """The launches of rows that several blocks share."""
    steps = len(rows_of(nest_of(launch.op)).steps)
    return tuple(GpuLoops(launch, kind, phase).emit() for phase in range(steps + 1))


def fitting(count: Expr, lanes: int) -> int:
    """The most lanes, at most so many, that divide a count; those of an unknown count are asked for when it runs."""
    known = count.as_int()
    return lanes if known is None else math.gcd(known, lanes)


def extents(launch: Launch[LoopsOp], nest: Nest) -> list[Expr]:
    """Numbers that are as large as any index of a run: the last places of tensors, and the points of loops."""
    tensors = [
        total((d - 1) * s for d, s in zip(a.type.dims, a.strides, strict=True)) for a in (*launch.ins, *launch.outs)
    ]
    folds = [fold.points for fold in nest.walk() if isinstance(fold, Fold)]
    return [e for e in (*tensors, product(a.count for a in nest.axes), *folds) if e.as_int() is None]


def is_wide(nest: Nest) -> bool:
    """Whether indices may need more than 31 bits."""
    exprs = [read.offset for read in nest.reads()] + [i for read in nest.reads() for i, _ in read.guards]
    exprs += [*nest.offsets, product(a.count for a in nest.axes)]
    exprs += [fold.points for fold in nest.walk() if isinstance(fold, Fold)]
    gathered = [g.size * g.stride for read in nest.reads() for g in read.gathers]
    return any(nest.scope.magnitude(e) >= NARROW for e in [*exprs, *gathered])
