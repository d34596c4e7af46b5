"""Schedules on a GPU in which several threads compute a row, or several blocks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dims import Expr, product
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.kernels.base import Launch
from ait_mlir.lowering.loops.body import Accumulator
from ait_mlir.lowering.loops.gpu_kernel import BLOCK, GpuLoops
from ait_mlir.lowering.loops.nest import Axis, Fold, Read
from ait_mlir.lowering.loops.rows import Walk, best_lane, key_of, later_values, nodes_of, row_lanes


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
        self.kept_keys: dict[tuple[int, Expr], str] = {}
        """The registers that hold a read."""
        self.kept_walk: tuple[Expr, ...] = ()
        """The sizes of the walks that read them."""
        self.splits = self.config.get("splits", 1)
        self.is_last = phase is None or phase == len(self.rows.steps)
        self.is_split = phase is not None and (not self.is_last or bool(self.rows.rest))
        """Whether the blocks of this launch share rows."""
        self.part = self.splits if self.is_split else 1

    # ** walking **

    def walking(self, walk: Walk, threads: int, thread: str, lane: Axis | None):
        """The loop over a thread's chunks of a walk, as a context."""
        return _Walking(self, walk, threads, thread, lane)

    def lane_of(self, walk: Walk) -> Axis | None:
        """The axis of a walk along which a thread reads neighbours."""
        lane = best_lane(self.nest, walk.axes)
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
        acc = Accumulator(fold)
        last = body.lane in (None, fold.axes[-1].name) or body.lane not in {a.name for a in fold.axes}
        if body.in_lanes(fold.value) or body.lane is None:
            body.print_nodes(fold.nodes, lambda: [body.join_line(acc, state, laned, last)], [fold.value])
        else:  # a value that is the same in all lanes counts for each of them
            body.print_nodes(fold.nodes)
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
        """Print the loads of elements that several walks need, into registers."""
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
        """Map the axes of a walk to the variables of another walk with the same sizes."""
        for axes, nodes in nodes_of(walk, self.rows):
            if read in nodes:
                for own, shared in zip(axes, first.axes, strict=True):
                    self.body.index.variables[own.name] = self.body.index.variables[shared.name]

    def most(self, e: Expr) -> int:
        return self.nest.around.bounds(e)[1]


class RowThreads(SharedRows):
    """`threads` threads compute a row: each processes every `threads`-th chunk of `lanes` neighbours."""

    kind = "rows"

    def print_body(self) -> tuple[str, int, str]:
        body, rows, threads = self.body, self.rows, self.config["threads"]
        self.lanes = body.lanes = row_lanes(self.nest, rows, self.lanes)
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
        what = f"{threads} threads compute a row, each {self.lanes} neighbours at a time."
        return blocks, block, what

    @property
    def warp(self) -> int:
        return 64 if self.launch.target.kind == "rocm" else 32

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
            with self.walking(rows.last, y * self.part, start, None):
                self.declare_stores()
                body.print_nodes(rows.nodes, self.stores("present"), self.nest.yields, each=True)
                self.flush_stores("present")
        else:
            self.print_results(rows, "present && y == 0")
        others_count = self.launch.cpp(product(a.count for a in others))
        blocks = f"{others_count} * (({self.launch.cpp(lane.count)} / lanes + {x - 1}) / {x}) * {self.part}"
        blocks = blocks.removesuffix(" * 1")
        what = f"{y} threads compute {self.lanes} neighbouring rows; a block has {x} of these groups side by side."
        return blocks, x * y, what


class _Walking:
    """The loop over a thread's chunks of a walk, or over the chunks in registers."""

    def __init__(
        self, code: SharedRows, walk: Walk, threads: int, thread: str, lane: Axis | None, preload: bool = False
    ) -> None:
        self.code, self.walk, self.threads, self.thread, self.lane = code, walk, threads, thread, lane
        counts = tuple(a.count for a in walk.axes)
        self.keeps = preload or bool(code.kept_keys and counts == code.kept_walk)

    def __enter__(self) -> None:
        code, lines = self.code, self.code.body.lines
        code.body.print_divisors([node for _, nodes in nodes_of(self.walk, code.rows) for node in nodes])
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
        """The C++ of a read's element in registers; None if it is not there."""
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
