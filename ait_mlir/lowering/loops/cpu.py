"""Loops on a CPU: threads share tasks, vectors hold neighbours along the contiguous axis."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dialects.ait.traits import ScalarLike
from ait_mlir.dims import Expr, const, product, sym
from ait_mlir.lowering.cpp import CppText, element_type
from ait_mlir.lowering.kernels.base import Emission, Launch
from ait_mlir.lowering.loops.body import HIDDEN_ZERO, Accumulator
from ait_mlir.lowering.loops.cpu_body import CpuBody
from ait_mlir.lowering.loops.nest import Axis, Nest, Node, Read, Scalar, nest_of, step
from ait_mlir.lowering.loops.rows import Rows, Walk, best_lane, later_values, nodes_of, results_of_rows, rows_of
from ait_mlir.lowering.loops.text import Numbers

LANES = 32
"""Neighbours that are computed together: as many floats as two registers of AVX-512 hold."""
FEW_LANES = 8
"""Neighbours that are computed together at the end of an axis."""
PART = 64 * LANES
"""The most neighbours of one task."""
FEW_PARTS = 4
"""Tasks in which a short axis is computed."""
SHORT_ROW = 32
"""Rows of at most so many elements are computed side by side. Each is summed in order: the error of longer ones grows
beyond PyTorch's."""
_BY_VALUE = "[="
"""How the captures of a shared loop begin: copies of values stay in registers."""
MANY_ROWS = 64
"""So many rows keep all threads busy."""
FEW_ROWS, LONG_ROW = 4, 32768
"""Up to so many rows of at least so many elements, threads share the elements of a row."""
PARTS = 64
"""The parts of such a row."""
BLOCK = 128
"""Values that a lane's sums take up before they are added to those of the row, so that long sums stay exact."""


def rows_of_cpu(nest: Nest) -> Rows:
    """The rows of a nest, short folds included, so that the results of a row share the value of a fold.

    If there are fewer rows than keep all threads busy, each result with only short folds is its own row.
    """
    rows = rows_of(nest, most=1)
    count = rows.count.as_int()
    return rows_of(nest) if rows.rest and count is not None and count < MANY_ROWS else rows


def lane_of(nest: Nest, rows: Rows) -> Axis | None:
    """The axis of lanes: the one along which most accesses are vectors, unless it is too short for functions that take
    many instructions."""
    lane = best_lane(nest, (*nest.axes, *(a for w in rows.walks() for a in w.axes)))
    if lane not in rows.group:
        return (side_by_side(rows) if are_short(nest, rows) else None) or lane
    functions = any(isinstance(n, Scalar) and isinstance(n.op, ScalarLike) and not n.op.CHEAP for n in nest.walk())
    return side_by_side(rows) or lane if functions and is_narrow(lane) else lane


def are_short(nest: Nest, rows: Rows) -> bool:
    """Whether rows are so short that neighbouring rows are the lanes."""
    return all(nest.around.bounds(walk.points)[1] <= SHORT_ROW for walk in rows.walks())


def is_narrow(lane: Axis | None) -> bool:
    """Whether an axis is too short for lanes."""
    count = None if lane is None else lane.count.as_int()
    return count is not None and count < LANES // 2


def side_by_side(rows: Rows) -> Axis | None:
    """The last axis that has enough neighbouring rows for lanes."""
    return next((axis for axis in reversed(rows.group) if not is_narrow(axis)), None)


class CpuLoops:
    """The code of one launch on a CPU."""

    def __init__(self, launch: Launch[LoopsOp]) -> None:
        self.launch = launch
        self.nest = nest_of(launch.op, [a.strides for a in launch.ins], [a.strides for a in launch.outs])
        self.numbers = Numbers()
        self.body = CpuBody.of(self.nest, "cpu", self.numbers)
        self.rows = rows_of_cpu(self.nest)
        self.lane = lane_of(self.nest, self.rows)
        self.of_rows = results_of_rows(self.nest, self.rows)
        """The results that a row stores before the loops over its other results."""
        self.others = tuple(i for i in range(len(self.nest.yields)) if i not in self.of_rows)

    def emit(self) -> Emission:
        columns = self.lane is None or self.lane in self.rows.group or not self.rows.steps
        (self.print_columns if columns else self.print_rows)()
        sizes = [f"const Index {name} = {self.launch.cpp(e)};" for e, name in self.numbers.names.items()]
        loops = self.body.lines.text()
        checked = "outside" in loops
        if checked:
            loops = loops.replace(_BY_VALUE, f"{_BY_VALUE}, &outside")
        if HIDDEN_ZERO in loops:
            sizes.append(f"const Index {HIDDEN_ZERO} = ait::cpu::hidden_zero();")
        head = ["using Index = int64_t;", *sizes, *(["ait::cpu::Outside outside;"] if checked else [])]
        end = "return outside.found ? outside.fail(ctx) : 0;" if checked else "return 0;"
        text = "".join(f"{line}\n" for line in head) + loops + end + "\n"
        return Emission((self.launch.header("loops"), "ait/math.h"), "", CppText(text))

    # ** lanes are columns: neighbours along an axis of the rows **

    def print_columns(self) -> None:
        lines, body, lane = self.body.lines, self.body, self.lane
        outer = [a for a in self.rows.group if a is not lane]
        size = self.numbers.text(lane.count) if lane is not None else "1"
        few = f"(lanes + {FEW_PARTS * LANES - 1}) / {FEW_PARTS * LANES} * {LANES}"  # if all lanes are in few tasks
        lines.add(f"const Index lanes = {size}, few = {few};")
        lines.add(
            f"const Index kPart = few < {PART} ? (few > 0 ? few : 1) : {PART}, parts = (lanes + kPart - 1) / kPart;"
        )
        self.count_tasks(outer, "parts")
        with lines.braces(self.head_of_tasks(), "});"):
            lines.add("const Index begin = task % parts * kPart, end = begin + kPart < lanes ? begin + kPart : lanes;")
            self.split("task / parts", outer)
            variable = "lane" if lane is None else body.variable(lane)
            with lines.braces(f"const auto columns = [&](auto width, const Index {variable})", "};"):
                lines.add("constexpr int kLanes = decltype(width)::value;", f"(void){variable};")
                body.lane = None if lane is None else lane.name
                self.read_ahead()
                for step_ in self.rows.steps:
                    body.print_nodes(step_.nodes, later=later_values(self.nest, step_.nodes))
                    for walk in step_.walks:
                        for fold in walk.folds:
                            body.print_fold(fold)
                self.print_results(self.rows, body)
            self.lanes_loop("columns", "begin", "end")

    def read_ahead(self) -> None:
        """Read the elements of short rows that lie side by side, and turn them so that lanes are neighbours."""
        body, lane = self.body, self.lane
        if lane is None or not self.rows.steps or not are_short(self.nest, self.rows):
            return
        arrays: dict[object, str] = {}
        for walk in self.rows.walks():
            for axes, nodes in nodes_of(walk, self.rows):
                for read in nodes:
                    if not isinstance(read, Read) or read.gathers or not self.is_turned(read, axes):
                        continue
                    put = {axis.name: sym(f"walked_{i}") for i, axis in enumerate(axes)}
                    guards = tuple((index.substitute(put), size) for index, size in read.guards)
                    sizes = tuple(a.count for a in axes)
                    key = read.tensor, read.offset.substitute(put), guards, read.fill, sizes
                    if key not in arrays:
                        arrays[key] = body.read_ahead(read, axes, self.nest.around.bounds(walk.points)[1])
                    body.ahead[read] = arrays[key], axes

    def is_turned(self, read: Read, axes: Sequence[Axis]) -> bool:
        """Whether a read walks a row, and neighbouring rows do not lie side by side."""
        assert self.lane is not None
        by = step(read.offset, self.lane.name)
        is_along = by is not None and by.as_int() == 1 and not read.guards
        symbols = read.offset.symbols
        return not is_along and self.lane.name in symbols and any(a.name in symbols for a in axes)

    def print_results(self, rows: Rows, body: CpuBody) -> None:
        """Print the values that a row computes once, and the loops over its results."""
        if not rows.rest:
            self.print_stores(rows.once, self.others)
            return
        body.print_nodes(rows.once, later=later_values(self.nest, rows.once))
        self.print_stores((), self.of_rows)
        for axis in rows.rest:
            body.lines.add(self.loop_head(axis))
            body.lines.depth += 1
        self.print_stores(rows.nodes, self.others)
        for _ in rows.rest:
            body.lines.depth -= 1
            body.lines.add("}")

    # ** lanes are neighbours within a row **

    def print_rows(self) -> None:
        lines, body, rows = self.body.lines, self.body, self.rows
        shares_rows = any(self.are_shared(walk) for walk in rows.walks())
        each = "for (Index task = 0; task < tasks; ++task)" if shares_rows else self.head_of_tasks()
        self.count_tasks(rows.group)
        with lines.braces(each, "}" if shares_rows else "});"):
            self.split("task", rows.group)
            for step_ in rows.steps:
                body.print_nodes(step_.nodes)
                for walk in step_.walks:
                    self.print_walk(walk)
            if not rows.rest:
                self.print_stores(rows.once, self.others)
                return
            body.print_nodes(rows.once)
            self.print_stores((), self.of_rows)
            self.print_walk(rows.last)

    def print_walk(self, walk: Walk) -> None:
        """Print the folds of a walk, or the results of a row, vectorised along the contiguous axis."""
        lines, body = self.body.lines, self.body
        lane = best_lane(self.nest, walk.axes) or walk.axes[-1]
        position = walk.axes.index(lane)
        totals: list[str] = []
        accumulators = [Accumulator(fold) for fold in walk.folds]
        for acc in accumulators:
            totals.append(body.new("total"))
            lines.add(f"{acc.type} {totals[-1]} = {acc.start};")
        for axis in walk.axes:
            if axis is not lane:
                lines.add(self.loop_head(axis))
                lines.depth += 1
        size = self.numbers.text(lane.count)
        variable = body.variable(lane)
        shared = self.are_shared(walk)
        block, parts = str(BLOCK * LANES), [f"{total}_parts" for total in totals] if shared else []
        if shared:  # threads share a row in parts, whose states are joined in order
            block = body.new("block")
            least = f"({size} + {PARTS * LANES - 1}) / {PARTS * LANES} * {LANES}"
            lines.add(f"const Index {block} = ait::max<Index>({least}, {LANES});")
            for acc, name in zip(accumulators, parts, strict=True):
                lines.add(f"{acc.type} {name}[{PARTS}];", f"for ({acc.type}& start : {name}) start = {acc.start};")
        each = (
            shared_loop(f"({size} + {block} - 1) / {block}", size, "part", parts)
            if shared
            else f"for (Index begin = 0; begin < {size}; begin += {block})"
        )
        with lines.braces(each, "});" if shared else "}"):
            if shared:
                lines.add(f"const Index begin = part * {block};")
            lines.add(f"const Index end = begin + {block} < {size} ? begin + {block} : {size};")
            states = [body.new(acc.word) for acc in accumulators]
            for acc, state in zip(accumulators, states, strict=True):
                lines.add(f"{acc.type} {state}[{LANES}];", f"for ({acc.type}& start : {state}) start = {acc.start};")
            with lines.braces(f"const auto lanes = [&](auto width, const Index {variable})", "};"):
                lines.add("constexpr int kLanes = decltype(width)::value;")
                if walk.folds:
                    for acc, state in zip(accumulators, states, strict=True):
                        self.print_lanes_of_fold(walk, acc, state, position)
                else:
                    body.lane = lane.name
                    self.print_stores(self.rows.nodes, self.others)
                    body.lane = None
            self.lanes_loop("lanes", "begin", "end")
            targets = [f"{name}[begin / {block}]" for name in parts] or totals
            for acc, state, target in zip(accumulators, states, targets, strict=True):
                lines.add(f"{target} = {acc.kind}::join({target}, ait::cpu::join_lanes<{acc.kind}>({state}));")
        for acc, name, total in zip(accumulators, parts, totals, strict=bool(parts)):
            lines.add(f"for (const {acc.type}& part : {name}) {total} = {acc.kind}::join({total}, part);")
        for axis in walk.axes:
            if axis is not lane:
                lines.depth -= 1
                lines.add("}")
        for acc, total in zip(accumulators, totals, strict=True):
            body.take_results(acc.fold, total)

    def are_shared(self, walk: Walk) -> bool:
        """Whether several threads compute one row: there are few rows, and each has many elements along one axis."""
        bounds = self.nest.around.bounds
        return len(walk.axes) == 1 and bounds(self.rows.count)[1] <= FEW_ROWS < LONG_ROW <= bounds(walk.points)[1]

    def print_lanes_of_fold(self, walk: Walk, acc: Accumulator, state: str, position: int) -> None:
        body, fold = self.body, acc.fold
        for own, shared in zip(fold.axes, walk.axes, strict=True):
            body.index.variables[own.name] = body.index.variables[shared.name]
        body.lane = fold.axes[position].name
        laned = body.in_lanes(fold.value)
        if laned:
            body.print_nodes(fold.nodes, lambda: [body.join_line(acc, state, True)], [fold.value])
        else:  # a value that does not depend on the axis counts once for each lane
            body.print_nodes(fold.nodes)
            body.each_lane([body.join_line(acc, state, True)])
        body.lane = None

    # ** pieces **

    def count_tasks(self, outer: Sequence[Axis], parts: str = "1") -> None:
        """Define the number of tasks."""
        count = self.numbers.text(product(a.count for a in outer))
        self.body.lines.add(f"const Index tasks = {count}{'' if parts == '1' else f' * {parts}'};")

    def head_of_tasks(self) -> str:
        """The head of the loop over the tasks, which threads share."""
        return shared_loop("tasks", self.numbers.text(work_of(self.nest)), "task")

    def split(self, task: str, axes: Sequence[Axis]) -> None:
        """Define the variables of axes from the number of a task."""
        lines, body = self.body.lines, self.body
        names = [body.variable(axis) for axis in axes]
        if len(axes) == 1:
            lines.add(f"const Index {names[0]} = {task};")
        elif axes:
            rest = body.new("rest")
            lines.add(f"Index {rest} = {task};")
            for axis, name in reversed(list(zip(axes[1:], names[1:], strict=True))):
                size = self.numbers.text(axis.count)
                lines.add(f"const Index {name} = {rest} % {size};", f"{rest} /= {size};")
            lines.add(f"const Index {names[0]} = {rest};")

    def loop_head(self, axis: Axis) -> str:
        name = self.body.variable(axis)
        return f"for (Index {name} = 0; {name} < {self.numbers.text(axis.count)}; ++{name}) {{"

    def lanes_loop(self, function: str, begin: str, end: str) -> None:
        at = self.body.new("first")
        self.body.lines.add(f"Index {at} = {begin};")
        for lanes in (LANES, FEW_LANES, 1):
            width = f"std::integral_constant<int, {lanes}>{{}}"
            self.body.lines.add(f"for (; {at} + {lanes} <= {end}; {at} += {lanes}) {function}({width}, {at});")

    def print_stores(self, nodes: Sequence[Node], which: Sequence[int]) -> None:
        """Print nodes, and the stores of the results `which` that follow from them. Lanes are kept, then stored as
        vectors, or one by one.
        """
        body, yields = self.body, self.nest.yields
        if not which:
            return
        if body.lane is None:
            values = [yields[i] for i in which]
            body.print_nodes(nodes, lambda: [self.store(i, body.ref(yields[i])) for i in which], values, each=True)
            return
        names = {i: f"result{i}" for i in which}
        for i, name in names.items():
            t = body.lane_type(compute_type(self.launch.outs[i].type.element_type))
            body.lines.add(f"{t} {name}[kLanes];")
        body.print_nodes(nodes, lambda: [f"{n}[j] = {body.ref(yields[i])};" for i, n in names.items()], each=True)
        for i, name in names.items():
            if self.is_vector_store(i):
                at = f"output{i} + ({body.index.text(self.nest.offsets[i])})"
                body.lines.add(self.guarded(i, f"ait::cpu::store_lanes({at}, {name});"))
                continue
            with body.lanes_by_name() as (before, here):
                store = self.store(i, f"{name}[j]")
            body.each_lane([store], before, here)

    def store(self, i: int, value: str) -> str:
        """The statement that stores one element of a result."""
        t = element_type(self.launch.outs[i].type.element_type)
        at = self.body.index.text(self.nest.offsets[i])
        return self.guarded(i, f"output{i}[{at}] = ait::convert<{t}>({value});")

    def guarded(self, i: int, store: str) -> str:
        """The statement that stores a result; along axes where the result has size 1, only the first index stores."""
        axes = [a for a in self.nest.once_along(i) if i not in self.of_rows or a in self.rows.group]
        parts = [f"{self.body.index.variables[a.name]} == 0" for a in axes]
        return f"if ({' && '.join(parts)}) {store}" if parts else store

    def is_vector_store(self, i: int) -> bool:
        lane = self.body.lane
        found = None if lane is None else step(self.nest.offsets[i], lane)
        return found is not None and found.as_int() == 1



def shared_loop(count: str, work: str, variable: str, written: Sequence[str] = ()) -> str:
    """The head of a loop that threads share if it computes enough values; its iterations write `written`."""
    captured = "".join(f", &{name}" for name in written)
    return f"ait::parallel_for({count}, {work} >= ait::cpu::kParallelElements, {_BY_VALUE}{captured}](Index {variable})"


def work_of(nest: Nest) -> Expr:
    """The number of values that a nest computes, including those inside folds."""
    inner = [f.points for f in nest.folds()]
    return product([*(a.count for a in nest.axes), *(inner[:1] or [const(1)])])
