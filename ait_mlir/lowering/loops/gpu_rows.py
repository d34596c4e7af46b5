"""Schedules on a GPU in which several threads compute a row, or several blocks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dims import Expr, const, product
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.kernels.base import Launch
from ait_mlir.lowering.loops.body import Accumulator
from ait_mlir.lowering.loops.gpu_kernel import BLOCK, GpuLoops
from ait_mlir.lowering.loops.gpu_turned import TurnedStores
from ait_mlir.lowering.loops.kept import VALUES, Kept, Slot, kept_of
from ait_mlir.lowering.loops.nest import Axis, Fold, Read
from ait_mlir.lowering.loops.rows import Walk, best_lane, lane_along, later_values, nodes_of, row_lanes
from ait_mlir.lowering.loops.staged import Staged, Staging, staging_of
from ait_mlir.lowering.loops.turned_rows import side_of, turned_across_rows, turned_along_rows


class SharedRows(GpuLoops):
    """Several threads compute a row.

    With a `phase`, `splits` blocks compute a row, in one launch for each step. A launch joins the states that the
    blocks of earlier steps wrote to memory, and writes the states of its own part.
    """

    def __init__(self, launch: Launch[LoopsOp], phase: int | None = None) -> None:
        super().__init__(launch)
        self.phase = phase
        self.name += "" if phase is None else f"_step{phase}"
        self.states: dict[Fold, str] = {}
        self.keeping = Kept()
        self.registers: dict[Slot, str] = {}
        """The C++ arrays of what stays in registers."""
        self.splits = self.config.get("splits", 1)
        self.is_last = phase is None or phase == len(self.rows.steps)
        self.is_split = phase is not None and (not self.is_last or bool(self.rows.rest))
        """Whether the blocks of this launch share rows."""
        self.part = self.splits if self.is_split else 1

    # ** walking **

    def walking(
        self, walk: Walk, threads: int, thread: str, lane: Axis | None, after: Callable[[], None] | None = None
    ):
        """The loop over a thread's chunks of a walk, as a context. `after` prints code at the end of each chunk, which
        all threads of a block execute together.
        """
        return _Walking(self, walk, threads, thread, lane, after)

    def lane_of(self, walk: Walk) -> Axis | None:
        """The axis of a walk along which a thread reads neighbours."""
        lane = lane_along(self.nest, self.rows, walk)
        return lane if lane is not None and self.may_divide(lane.count) else None

    def may_divide(self, count: Expr) -> bool:
        return count.as_int() is None or self.nest.around.divisible(count, self.lanes)

    def print_fold_of_walk(self, walk: Walk, fold: Fold, state: str, laned: bool) -> None:
        body = self.body
        outside = body.lane
        for own, shared in zip(fold.axes, walk.axes, strict=True):
            body.index.variables[own.name] = body.index.variables[shared.name]
            if outside == shared.name:
                body.lane = own.name
        acc, nodes = Accumulator(fold), self.keeping.left(fold.nodes)
        last = body.lane in (None, fold.axes[-1].name) or body.lane not in {a.name for a in fold.axes}
        if body.in_lanes(fold.value) or body.lane is None:
            body.print_nodes(nodes, lambda: [body.join_line(acc, state, laned, last)], [fold.value])
        else:  # a value that is the same in all lanes counts for each of them
            body.print_nodes(nodes)
            body.each_lane([body.join_line(acc, state, laned, last)])
        body.lane = outside

    # ** states in memory, between the launches of blocks that share rows **

    def places(self, fold: Fold) -> list[str]:
        """The names of the tensors with the states of a fold: its values, and of `argmax` and `argmin` their places."""
        at = 0
        for other in self.rows.folds():
            count = max(1, len(Accumulator(other).fields))
            if other is fold:
                return [a.name for a in self.launch.between[at : at + count]]
            at += count
        raise AssertionError("the fold belongs to the rows")

    def taken(self, fold: Fold, state: str, at: str) -> str:
        """The statement that reads a state from memory and joins it."""
        acc = Accumulator(fold)
        parts = [f"{name}[{at}]" for name in self.places(fold)]
        if fold.has_place:
            parts[1] = f"static_cast<Index>({parts[1]})"
        given = f"{acc.type}{{{', '.join(parts)}}}" if acc.fields else acc.cast(parts[0], acc.type)
        return f"{state} = {acc.kind}::join({state}, {given});"

    def leave(self, of: Callable[[str, str], str], condition: str, at: str) -> None:
        """Print the stores of the states of this step's folds."""
        assert self.phase is not None
        with self.body.lines.braces(f"if ({condition})"):
            for walk in self.rows.steps[self.phase].walks:
                for fold in walk.folds:
                    state = of(self.states[fold], "j")
                    acc = Accumulator(fold)
                    stored = [f"{state}.{name}" for name in acc.fields] or [acc.cast(state, acc.value_type)]
                    lines = [f"{name}[{at}] = {v};" for name, v in zip(self.places(fold), stored, strict=True)]
                    if "[j]" in state:
                        self.body.each_lane(lines)
                    else:
                        self.body.lines.add(*lines)

    # ** elements that stay in registers **

    def print_kept(self, threads: int, thread: str) -> None:
        """Choose what stays in registers between walks, and print the loads of elements into registers."""
        if not self.config.get("kept") or self.phase is not None:
            return
        lane = None if self.body.lane is not None else self.lane_of
        self.keeping = kept_of(
            self.nest,
            self.rows,
            lane or (lambda walk: None),
            self.config["kept"] == VALUES,
            lambda read, own: self.is_loaded(read, own.name if own is not None else self.body.lane),
            self.body.may_be_narrow,
        )
        if not self.keeping.slots:
            return
        walk = self.keeping.walks[0]
        most = f"{self.most(walk.points)}{' / kLanes' if lane is not None and lane(walk) is not None else ''}"
        self.body.lines.add(f"constexpr int kItems = ({most} + {threads - 1}) / {threads};")
        for slot in self.keeping.slots:
            self.registers[slot] = name = self.body.new("row" if slot.first < 0 else "kept")
            self.body.lines.add(f"{element_type(slot.element)} {name}[kItems][kLanes];")
        for walk, reads in self.keeping.reads:
            with _Walking(self, walk, threads, thread, None if lane is None else lane(walk)):
                for read, slot in reads:
                    own = self.place_axes(read, walk)
                    along = self.body.lane if lane is None else own[lane(walk)]
                    assert along is not None
                    self.print_load(read, f"{self.registers[slot]}[item]", along)

    def is_loaded(self, read: Read, lane: str | None) -> bool:
        """Whether a thread loads the elements of its lanes before all walks: with one access or, of a short row, each
        with its own.
        """
        return lane is not None and (self.rows.are_short or self.vector_along(read, lane))

    def print_load(self, read: Read, to: str, lane: str) -> None:
        """Print the load of the elements of a thread's lanes, which are neighbours along `lane`, into registers."""
        body = self.body
        if self.vector_along(read, lane):
            body.lines.add(f"ait::gpu::load_lanes({body.pointer(read)}, {to});")
            if body.staged(read) is None:
                self.pointers[f"input{read.tensor}"] = None
            return
        before = body.index.variables[lane]
        body.index.variables[lane] = here = f"{before}_j"
        array, place = body.source(read)
        body.index.variables[lane] = before
        body.each_lane([f"{to}[j] = {array}[{place}];"], before, here)

    def place_axes(self, read: Read, walk: Walk) -> dict[Axis | None, str]:
        """Map the axes of the fold that has a read to the variables of its walk; the names of these axes by those of
        the walk.
        """
        for axes, nodes in nodes_of(walk, self.rows):
            if read in nodes:
                for own, shared in zip(axes, walk.axes, strict=True):
                    self.body.index.variables[own.name] = self.body.index.variables[shared.name]
                return {shared: own.name for own, shared in zip(axes, walk.axes, strict=True)}
        raise AssertionError("the walk has the read")

    def most(self, e: Expr) -> int:
        return self.nest.around.bounds(e)[1]


class RowThreads(SharedRows):
    """`threads` threads compute a row: each processes every `threads`-th chunk of `lanes` neighbours.

    If one thread computes a row, the rows of a block that follow each other in memory pass through shared memory, which
    the block reads and writes in the order of global memory.
    """

    kind = "rows"

    def __init__(self, launch: Launch[LoopsOp], phase: int | None = None) -> None:
        super().__init__(launch, phase)
        self.arrays: dict[Staged, str] = {}
        """The C++ arrays of rows that pass through shared memory."""
        self.side: Axis | None = None
        """The axis along which the rows of a block are neighbours, where results turn."""

    def print_body(self) -> tuple[str, int, str]:
        body, rows, threads = self.body, self.rows, self.config["threads"]
        self.lanes = body.lanes = row_lanes(self.nest, rows, self.lanes)
        beside = self.config["turned"] if self.phase is None else 0
        if beside and (side := side_of(self.nest, rows)) is not None:
            return self.print_side(side, threads, beside)
        per_block = max(1, BLOCK // threads) if threads <= self.warp else 1
        staging = staging_of(self.nest, rows) if threads == 1 and self.phase is None else None
        per_block = staging.rows if staging is not None else per_block
        block = threads * per_block
        count = self.numbers.text(rows.count)
        lines = body.lines
        if self.is_split:
            lines.add(
                f"const Index row = blockIdx.x / {self.splits}, split = blockIdx.x % {self.splits};",
                "const Index thread = threadIdx.x;",
            )
            per_block, block, present = 1, threads, ""
        elif staging is not None:
            self.print_staging(staging, count)
            lines.add("constexpr Index thread = 0;", "const Index row = first + static_cast<Index>(threadIdx.x);")
            present = ""
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
        with lines.braces(f"if (row < {count})") if staging is not None else contextlib.nullcontext():
            self.print_row(threads, present)
        if staging is not None:
            self.print_unstaging(staging)
        total = self.launch.cpp(rows.count)
        blocks = f"({total} + {per_block - 1}) / {per_block}" if per_block > 1 else total
        blocks += f" * {self.splits}" if self.is_split else ""
        what = f"{threads} threads compute a row, each {self.lanes} neighbours at a time."
        return blocks, block, what

    def print_side(self, side: Axis, threads: int, beside: int) -> tuple[str, int, str]:
        """Print the body for a block whose `beside` rows are neighbours along an axis, along which results turn."""
        body, rows, size = self.body, self.rows, self.numbers.text(side.count)
        self.side, others = side, [a for a in rows.group if a is not side]
        body.lines.add(
            f"const Index thread = threadIdx.x % {threads};",
            f"const int beside = threadIdx.x / {threads};",
            f"const Index blocks = ({size} + {beside - 1}) / {beside};",
            f"const Index first = ait::remainder<Index>(blockIdx.x, blocks) * {beside};",
            f"const bool present = first + beside < {size};",
            f"const Index {body.variable(side)} = present ? first + beside : first;",
        )
        self.split("ait::quotient<Index>(blockIdx.x, blocks)", others, None)
        self.print_steps(threads, "present")
        total = self.launch.cpp(product(a.count for a in others))
        blocks = f"{total} * (({self.launch.cpp(side.count)} + {beside - 1}) / {beside})"
        what = f"{threads} threads compute a row, each {self.lanes} neighbours at a time. A block turns {beside} rows."
        return blocks, threads * beside, what

    def turned_stores(self, threads: int, lane: Axis | None) -> TurnedStores | None:
        """The tiles in which a block transposes results in shared memory; None if it transposes none."""
        side, walk = self.side, self.rows.last
        if side is None:
            return None
        piece, points = "1" if lane is None else "kLanes", self.numbers.text(walk.points)
        axes = [*(a for a in walk.axes if a is not lane), *([lane] if lane is not None else [])]
        at = f"start * {piece} + column"

        def print_axes() -> None:
            self.body.lines.add(f"const Index {self.body.variable(side)} = first + line;")
            self.split(at, axes, None)

        condition = f"first + line < {self.numbers.text(side.count)} && {at} < {points}"
        results = turned_across_rows(self.nest, self.rows)
        tile = (self.config["turned"], f"{threads} * {piece}", piece)
        stores = TurnedStores(self, results, *tile, side, condition, print_axes)
        stores.declare(("beside", f"static_cast<int>(thread) * {piece}"))
        return stores

    def print_row(self, threads: int, present: str) -> None:
        """Print the axes of a row, its steps and its results."""
        self.split("row", self.rows.group, None)
        self.print_steps(threads, present)

    def print_steps(self, threads: int, present: str) -> None:
        """Print the steps of a row and its results."""
        body, rows = self.body, self.rows
        self.print_kept(threads, "thread")
        for number, step_ in enumerate(rows.steps[: None if self.phase is None else self.phase + 1]):
            body.print_nodes(step_.nodes)
            for walk in step_.walks:
                self.print_walk_of_row(walk, threads, present, self.phase is not None and number < self.phase)
        if not self.is_last:
            self.leave(lambda state, _: state, "thread == 0", f"row * {self.splits} + split")
        elif rows.rest:
            body.print_nodes(rows.once)
            first = ["thread == 0", *(["split == 0"] if self.is_split else [])]
            self.print_stores((), " && ".join([*([present] if present else []), *first]), self.of_rows)
            self.print_walk_of_row(rows.last, threads, present, joined=False)
        else:
            self.print_results(rows, " && ".join([*([present] if present else []), "thread == 0"]))

    @property
    def warp(self) -> int:
        return 64 if self.launch.target.kind == "rocm" else 32

    # ** rows that pass through shared memory **

    def print_staging(self, staging: Staging, count: str) -> None:
        """Print the reads of a block's rows into shared memory."""
        lines, block = self.body.lines, staging.rows
        lines.add(
            f"const Index first = static_cast<Index>(blockIdx.x) * {block};",
            f"const int rows = static_cast<int>({count} - first < {block} ? {count} - first : {block});",
        )
        for staged in staging.arrays():
            self.arrays[staged] = name = self.body.new("tile")
            size = block * staged.points
            lines.add(f"__shared__ __align__(16) {element_type(staged.element)} {name}[{size}];")
            if staged in staging.reads:
                rows = f"input{staged.tensor} + first * {staged.points}, rows * {staged.points}"
                lines.add(f"ait::gpu::take_neighbours<{block}, {size}>({rows}, {name});")
        if staging.reads:
            lines.add("__syncthreads();")
        reads = {read: staged for staged in staging.reads for read in staged.of}
        results = {staged.tensor: staged for staged in staging.results}
        of_group = {axis.name: const(0) for axis in self.rows.group}

        def place(array: Staged, offset: Expr) -> tuple[str, str]:
            inside = self.body.index.text(offset.substitute(of_group))
            return self.arrays[array], f"threadIdx.x * {array.points} + {inside}"

        self.body.staged = lambda read: place(reads[read], read.offset) if read in reads else None
        self.staged_result = lambda i: (
            place(staging.array_of(results[i]), self.nest.offsets[i]) if i in results else None
        )

    def print_unstaging(self, staging: Staging) -> None:
        """Print the writes of a block's rows from shared memory."""
        if staging.results:
            self.body.lines.add("__syncthreads();")
        for staged in staging.results:
            name = self.arrays[staging.array_of(staged)]
            to = f"rows * {staged.points}, output{staged.tensor} + first * {staged.points}"
            self.body.lines.add(f"ait::gpu::put_neighbours<{staging.rows}>({name}, {to});")

    def print_walk_of_row(self, walk: Walk, threads: int, present: str, joined: bool) -> None:
        """Print the folds of a walk, or the results of a row, of which a thread computes every `threads`-th chunk. If
        `joined`, earlier launches computed the folds, and the states in memory are joined.
        """
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
        tiles = self.turned_stores(threads, lane) if not walk.folds and not joined else None
        after = None if tiles is None else lambda: tiles.print(threads * tiles.lines)
        with contextlib.nullcontext() if joined else self.walking(walk, threads * self.part, start, lane, after):
            if joined:
                pass
            elif walk.folds:
                for fold, state in zip(walk.folds, states, strict=True):
                    self.print_fold_of_walk(walk, fold, state, laned=False)
            elif self.rows.segments:
                for fold in self.rows.segments:
                    self.print_fold_of_segment(walk, fold, min(threads, self.warp))
                with body.lines.braces("if (inside)"):
                    self.print_stores(self.keeping.left(self.rows.nodes), present, self.others)
            else:
                self.print_stores(self.keeping.left(self.rows.nodes), present, self.others)
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


    def print_fold_of_segment(self, walk: Walk, fold: Fold, most: int) -> None:
        """Print the fold of the segment of a row that contains the thread's chunk.

        The threads with chunks of one segment join their states. If a segment has more than `most` chunks, each thread
        reads the whole segment instead.
        """
        body, acc = self.body, Accumulator(fold)
        state, lane, span = body.declare(acc, laned=False), body.lane, f"{fold.points.as_int()} / kLanes"
        with body.lines.braces(f"if constexpr ({span} <= {most})", "} else if (inside) {"):
            with body.lines.braces("if (inside)"):
                self.print_fold_of_walk(Walk(walk.axes[-1:], (fold,)), fold, state, laned=False)
            body.lines.add(f"{state} = ait::gpu::join_threads<{acc.kind}, {span}>({state}, nullptr);")
        kept, body.lane = body.kept, None
        body.kept = lambda value: None
        body.lines.depth += 1
        body.open_loop(fold.axes[0])
        body.print_nodes(fold.nodes, lambda: [body.join_line(acc, state, laned=False)], [fold.value])
        body.close_loops(1)
        body.lines.depth -= 1
        body.lines.add("}")
        body.kept, body.lane = kept, lane
        body.take_results(fold, state)


class ColumnThreads(SharedRows):
    """A thread computes a part of `lanes` neighbouring rows: every `rows`-th element of each."""

    kind = "columns"

    def print_body(self) -> tuple[str, int, str]:
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
            first = f"present && y == 0{' && split == 0' if self.is_split else ''}"
            self.print_stores((), first, self.of_rows)
            tiles = self.turned_stores(lane, x, y)
            after = None if tiles is None else lambda: tiles.print(x * y)
            with self.walking(rows.last, y * self.part, start, None, after):
                self.print_stores(self.keeping.left(rows.nodes), "present", self.others)
        else:
            self.print_results(rows, "present && y == 0")
        others_count = self.launch.cpp(product(a.count for a in others))
        blocks = f"{others_count} * (({self.launch.cpp(lane.count)} / lanes + {x - 1}) / {x}) * {self.part}"
        blocks = blocks.removesuffix(" * 1")
        what = f"{y} threads compute {self.lanes} neighbouring rows; a block has {x} of these groups side by side."
        return blocks, x * y, what

    def turned_stores(self, lane: Axis, x: int, y: int) -> TurnedStores | None:
        """The tiles in which a block transposes results in shared memory; None if it transposes none."""
        results = turned_along_rows(self.nest, self.rows) if self.config.get("turned") and self.phase is None else ()
        if not results:
            return None
        walk = self.rows.last
        self.body.lines.add(f"const Index first = ait::remainder<Index>(block, blocks) * ({x} * kLanes);")

        def print_axes() -> None:
            self.body.lines.add(f"const Index {self.body.variable(lane)} = first + column;")
            self.split("start + line", walk.axes, None)

        condition = (
            f"start + line < {self.numbers.text(walk.points)} && first + column < {self.numbers.text(lane.count)}"
        )
        tile = (y, f"{x} * kLanes", "kLanes")
        stores = TurnedStores(self, results, *tile, walk.axes[-1], condition, print_axes)
        stores.declare(("static_cast<int>(y)", f"static_cast<int>(threadIdx.x) % {x} * kLanes"))
        return stores


class _Walking:
    """The loop over a thread's chunks of a walk, or over the chunks in registers."""

    def __init__(
        self,
        code: SharedRows,
        walk: Walk,
        threads: int,
        thread: str,
        lane: Axis | None,
        after: Callable[[], None] | None = None,
    ) -> None:
        self.code, self.walk, self.threads, self.thread, self.lane = code, walk, threads, thread, lane
        self.after = after
        self.keeps = walk in code.keeping.walks
        self.all_enter = not walk.folds and bool(code.rows.segments)
        """Whether threads beyond the end of a row enter the loop, too, with `inside` false: they join states."""

    def __enter__(self) -> None:
        code, lines = self.code, self.code.body.lines
        code.body.print_divisors(
            [node for _, nodes in nodes_of(self.walk, code.rows) for node in code.keeping.left(nodes)]
        )
        chunks = code.chunks(self.walk.points, self.lane)
        if self.keeps:
            # of a known number of chunks, only the last ones of the threads need a condition
            all_are = f"(item + 1) * {self.threads} <= {chunks} || " if self.walk.points.as_int() is not None else ""
            lines.add("#pragma unroll")
            lines.add("for (int item = 0; item < kItems; ++item) {")
            lines.depth += 1
            if self.after is not None:
                lines.add(f"const Index start = item * {self.threads};")
            lines.add(f"const Index chunk = item * {self.threads} + {self.thread};")
            if self.all_enter:
                lines.add(f"const bool inside = {all_are}chunk < {chunks};")
            else:
                lines.add(f"if ({all_are}chunk < {chunks}) {{")
                lines.depth += 1
            code.body.kept, code.body.put = self.of(code.keeping.taken), self.of(code.keeping.put)
        elif self.all_enter:
            lines.add(f"for (Index from = 0; from < {chunks}; from += {self.threads}) {{")
            lines.depth += 1
            lines.add(f"const Index chunk = from + {self.thread};", f"const bool inside = chunk < {chunks};")
        elif self.after is not None:
            lines.add(f"for (Index start = 0; start < {chunks}; start += {self.threads}) {{")
            lines.depth += 1
            lines.add(f"const Index chunk = start + {self.thread};", f"if (chunk < {chunks}) {{")
            lines.depth += 1
        else:
            lines.add("#pragma unroll 4")  # so that several accesses are on their way
            lines.add(f"for (Index chunk = {self.thread}; chunk < {chunks}; chunk += {self.threads}) {{")
            lines.depth += 1
        code.split("chunk", self.walk.axes, self.lane)

    def of(self, slots: Mapping[SSAValue, Slot]) -> Callable[[SSAValue], str | None]:
        """A function that gives the C++ of a value's register; None if it has none."""

        def found(value: SSAValue) -> str | None:
            slot = slots.get(value)
            return None if slot is None else f"{self.code.registers[slot]}[item][j]"

        return found

    def __exit__(self, *error: object) -> None:
        code, lines = self.code, self.code.body.lines
        code.body.kept = code.body.put = lambda value: None
        for level in range(2 if (self.keeps and not self.all_enter) or self.after is not None else 1):
            if level and self.after is not None:
                self.after()
            lines.depth -= 1
            lines.add("}")
