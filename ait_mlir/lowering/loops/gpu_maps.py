"""Schedules on a GPU in which one thread computes a result alone, including its folds."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dims import product
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.loops.gpu_kernel import BLOCK, STATIC_SHARED, GpuLoops
from ait_mlir.lowering.loops.gpu_words import WIDTH, Words
from ait_mlir.lowering.loops.nest import Axis, Node, Read, best_lane_of_results, operands_of, step, walk
from ait_mlir.lowering.loops.turned import (
    beside_axis,
    turned_axis,
    turned_folds,
    turned_reads,
    turned_types,
    turned_values,
)


class Maps(GpuLoops):
    """A thread computes `lanes` neighbouring results in each of `items` rows."""

    kind = "map"
    serial = True

    def print_body(self) -> tuple[str, int, str]:
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
        if items > 1:
            lines.add(f"const Index first = static_cast<Index>(blockIdx.x) * {BLOCK * items} + threadIdx.x;")
            end = f"first - static_cast<Index>(threadIdx.x) + {BLOCK * items}"
            self.compute_items(items, end, f"item * {BLOCK}", chunks)
        count = self.launch.cpp(total) + (" / lanes" if lane is not None else "")
        what = f"A thread computes {self.lanes} neighbouring results{f', {items} times' if items > 1 else ''}."
        return f"({count} + {BLOCK * items - 1}) / {BLOCK * items}", BLOCK, what

    def print_map_of_rows(self, lane: Axis, others: Sequence[Axis], items: int) -> tuple[str, int, str]:
        """Print the body for threads that compute the same neighbours in several rows, with one computation of their
        index. The rows are neighbours along an axis that has a multiple of `items`, so that they share it, too.
        """
        body, lines = self.body, self.body.lines
        name = body.variable(lane)
        along = next((a for a in reversed(others) if self.nest.around.divisible(a.count, items)), None)
        rows = product(a.count for a in others)
        groups = rows // items if along is not None else (rows + (items - 1)) // items
        what = f"A thread computes {self.lanes} neighbouring results in each of {items} rows."
        lines.add(
            f"const Index thread = static_cast<Index>(blockIdx.x) * {BLOCK} + threadIdx.x;",
            f"const Index columns = {self.numbers.text(lane.count)} / kLanes;",
            f"const Index {name} = ait::remainder<Index>(thread, columns) * kLanes;",
        )
        group = "ait::quotient<Index>(thread, columns)"
        if along is not None:
            lines.add(f"const Index group = {group};", f"if (group >= {self.numbers.text(groups)}) return;")
            self.split("group", [Axis(a.name, a.count // items) if a is along else a for a in others], None)
            first = body.variable(along)
            body.index.variables[along.name] = row = body.new("row")
            self.set_lane(lane)
            lines.add("#pragma unroll")
            with lines.braces(f"for (int item = 0; item < {items}; ++item)"):
                lines.add(f"const Index {row} = {first} * {items} + item;")
                self.print_results(self.rows, "")
        else:
            count = self.numbers.text(rows)
            lines.add(f"const Index first = {group} * {items};", f"if (first >= {count}) return;")
            self.set_lane(lane)
            with lines.braces("const auto compute = [&](const Index row)", "};"):
                self.split("row", others, None)
                self.print_results(self.rows, "")
            self.compute_items(items, f"first + {items}", "item", count)
        threads = f"({self.launch.cpp(groups)}) * ({self.launch.cpp(lane.count)} / lanes)"
        return f"({threads} + {BLOCK - 1}) / {BLOCK}", BLOCK, what

    def compute_items(self, items: int, end: str, step: str, count: str) -> None:
        """Print a call of `compute` for each item of a thread. If all items exist (`end` is at most `count`), no
        condition is checked for each one, so all their accesses are in flight before the first store.
        """
        lines = self.body.lines
        each = f"for (int item = 0; item < {items}; ++item)"
        with lines.braces(f"if ({end} <= {count})", "} else {"):
            lines.add("#pragma unroll", f"{each} compute(first + {step});")
        lines.depth += 1
        with lines.braces(each):
            lines.add(f"if (first + {step} < {count}) compute(first + {step});")
        lines.depth -= 1
        lines.add("}")

    def before(self, computed: Sequence[Node]) -> list[Node]:
        """The other nodes whose results the `computed` nodes need, directly or indirectly, in order."""
        used = {v for node in computed for v in operands_of(node)}
        found: list[Node] = []
        for node in reversed(self.nest.nodes):
            if node not in computed and not used.isdisjoint(node.results):
                found.append(node)
                used.update(operands_of(node))
        return found[::-1]


class Tiles(Maps):
    """A block reads a tile along the contiguous axis of the operands, and writes it along that of the results. Folds
    are computed where they are read, and their results turned.
    """

    kind = "tiles"

    def print_body(self) -> tuple[str, int, str]:
        body, lines, config = self.body, self.body.lines, self.config
        lane = best_lane_of_results(self.nest)
        turn = turned_axis(self.nest)
        if lane is None or turn is None:  # with the strides of this launch nothing is to be turned
            return super().print_body()
        self.fit(lane)
        width = config["lanes"]
        folds, values = (
            turned_folds(self.nest, lane.name, turn.name),
            turned_values(self.nest, lane.name, turn.name, width),
        )
        reads = [read for read in turned_reads(self.nest, lane.name, turn.name) if read not in values.nodes]
        size = config["along"] * config["across"] * width**2
        bytes_ = sum(BY_IR[t].bytes for t in turned_types(self.nest, lane.name, turn.name, width))
        if size * bytes_ > STATIC_SHARED:
            return super().print_body()
        computed = [*folds, *values.nodes]
        block = min(BLOCK, size // (1 if computed else width))
        along, across = config["along"] * width, config["across"] * width
        beside = beside_axis(self.nest, lane.name, turn.name)
        deep = 1 if beside is None else beside.count.as_int() or 1
        if deep * size * bytes_ > STATIC_SHARED:
            beside, deep = None, 1
        sizes = self.numbers.text(lane.count), self.numbers.text(turn.count)
        reads = [read for read in reads if self.vector_along(read, turn.name)]
        here = {node for node in walk(values.nodes) if isinstance(node, Read)} | set(reads)
        apart = [read for read in self.nest.reads() if read not in here and self.is_apart(read, lane)]
        others = self.in_order_of_reads([a for a in self.nest.axes if a not in (lane, turn, beside)], apart)
        names: dict[SSAValue, str] = {}
        turning = [(read.result, read.element) for read in reads]
        turning += [(fold.results[0], fold.results[0].type) for fold in folds]
        turning += zip(values.results, values.types, strict=True)
        types = dict(turning)
        for value, element in turning:
            names[value] = body.new("tile")
            lines.add(f"__shared__ __align__(16) {element_type(element)} {names[value]}[{deep * along * across}];")
        lines.add(
            f"const Index across = ({sizes[0]} + {across - 1}) / {across};",
            f"const Index along = ({sizes[1]} + {along - 1}) / {along};",
            f"const Index first_{body.variable(lane)} = ait::remainder<Index>(blockIdx.x, across) * {across};",
            "const Index stripe = ait::quotient<Index>(blockIdx.x, across);",
            f"const Index first_{body.variable(turn)} = ait::remainder<Index>(stripe, along) * {along};",
        )
        at = {axis: body.variable(axis) for axis in (lane, turn)}
        self.split("ait::quotient<Index>(stripe, along)", others, None)

        @contextlib.contextmanager
        def inside(outer: str, inner: str, length: int, piece: str, item: str = "item") -> Generator[None]:
            """A condition: there is a piece of a tile that a thread moves at a step; `length` elements are adjacent
            along `inner`.
            """
            lines.add(
                f"const int chunk = {item} * {block} + threadIdx.x;",
                f"const int {outer} = chunk / ({length} / {piece});",
                f"const int {inner} = chunk % ({length} / {piece}) * {piece};",
                f"const Index {at[lane]} = first_{at[lane]} + row, {at[turn]} = first_{at[turn]} + column;",
            )
            count = f"{along * across} / {piece}"
            with lines.braces(f"if (chunk < {count} && {at[lane]} < {sizes[0]} && {at[turn]} < {sizes[1]})"):
                yield

        @contextlib.contextmanager
        def pieces(outer: str, inner: str, length: int, piece: str = "kLanes") -> Generator[None]:
            """A loop over the pieces of a tile that one thread moves."""
            lines.add("#pragma unroll")
            count = f"{along * across} / {piece}"
            with (
                lines.braces(f"for (int item = 0; item < ({count} + {block - 1}) / {block}; ++item)"),
                inside(outer, inner, length, piece),
            ):
                yield

        def place(word: int) -> str:
            """Where an element is in a tile whose words have so many elements."""
            return f"ait::gpu::turned<{width}, {along}, {word}>(row, column)"

        each_beside = layer = ""
        if beside is not None:
            layer_of = body.variable(beside)
            each_beside = f"for (Index {layer_of} = 0; {layer_of} < {deep}; ++{layer_of})"
            layer = f"{layer_of} * {along * across} + "
        places: dict[SSAValue, str] = {}
        if reads:
            self.need(turn.count)
            with pieces("row", "column", along):
                lines.add(f"const int place = {place(width)};")
                for read in reads:
                    name = names[read.result]
                    places[read.result] = place(width)
                    body.vectors.append((read, turn.name, self.lanes))
                    lines.add(
                        f"{element_type(read.element)} {name}_lanes[kLanes];",
                        f"ait::gpu::load_lanes({body.pointer(read)}, {name}_lanes);",
                        f"ait::gpu::keep_lanes({name} + place, {name}_lanes);",
                    )
        if folds:
            results = [fold.results[0] for fold in folds]
            with pieces("row", "column", along, "1"):
                lines.add(f"const int place = {place(1)};")
                with self.unrolled(each_beside):
                    body.print_nodes([*self.before(folds), *folds])
                    lines.add(*(f"{names[value]}[{layer}place] = {body.ref(value)};" for value in results))
            places |= dict.fromkeys(results, place(1))
        if values.nodes:
            words = Words(self, values.nodes, turn, self.lanes)
            batch = min(words.batch, max(1, size // (words.count * block)))
            nodes = [*self.before(values.nodes), *values.nodes]
            kept = {value: f"{names[value]}_lanes" for value in values.results if not words.stored(value, types[value])}

            def keep() -> list[str]:
                return [f"{n}[j] = ait::convert<{element_type(types[v])}>({body.ref(v)});" for v, n in kept.items()]

            each_item = f"for (int item = 0; item < {batch}; ++item)"
            words.begin()
            lines.add("#pragma unroll")
            chunks = f"({along * across} / {WIDTH} + {block - 1}) / {block}"
            with lines.braces(f"for (int first = 0; first < {chunks}; first += {batch})"):
                words.declare(batch)
                lines.add("#pragma unroll")
                with lines.braces(each_item), inside("row", "column", along, WIDTH, "(first + item)"):
                    words.print_reads("[item]")
                lines.add("#pragma unroll")
                with lines.braces(each_item), inside("row", "column", along, WIDTH, "(first + item)"):
                    lines.add(*(f"{element_type(types[v])} {name}[{WIDTH}];" for v, name in kept.items()))
                    if kept:
                        words.print_values("[item]", nodes, keep, list(kept))
                    lines.add(f"const int place = {place(words.count)};")
                    for value in values.results:
                        name = kept.get(value) or f"{words.stored(value, types[value])}[item]"
                        lines.add(f"ait::gpu::keep_lanes({names[value]} + place, {name});")
            places |= dict.fromkeys(values.results, place(words.count))
        lines.add("__syncthreads();")
        texts = {text: f"place{i}" for i, text in enumerate(dict.fromkeys(places.values()))}
        for value in (*(fold.results[0] for fold in folds), *values.results):
            kept_at = f"{names[value]}[{layer}{texts[places[value]]} + j * {along}]"
            is_same = types[value] == value.type
            body.names[value] = kept_at if is_same else f"ait::convert<{element_type(value.type)}>({kept_at})"
            self.exact[value] = kept_at, types[value]
        self.rows = replace(self.rows, once=tuple(n for n in self.rows.once if n not in computed))
        tiles = {read.result: f"{names[read.result]}[{texts[places[read.result]]} + j * {along}]" for read in reads}
        self.exact |= {read.result: (tiles[read.result], read.element) for read in reads}
        with pieces("column", "row", across):
            lines.add(*(f"const int {name} = {text};" for text, name in texts.items()))
            with self.unrolled(each_beside):
                body.kept = tiles.get
                self.set_lane(lane)
                self.print_results(self.rows, "")
                body.kept = lambda value: None
        total = f"{self.launch.cpp(product(a.count for a in others))}"
        steps = [f"(({self.launch.cpp(a.count)} + {n - 1}) / {n})" for a, n in ((lane, across), (turn, along))]
        what = f"A block transposes tiles of {along} by {across}; a thread moves {width} neighbours at a time."
        return f"{total} * {' * '.join(steps)}", block, what

    @contextlib.contextmanager
    def unrolled(self, loop: str) -> Generator[None]:
        """A loop that the compiler writes out; nothing if there is none."""
        if not loop:
            yield
            return
        self.body.lines.add("#pragma unroll")
        with self.body.lines.braces(loop):
            yield

    def is_apart(self, read: Read, lane: Axis) -> bool:
        """Whether neighbours along the axis `lane` of the results read elements that are not adjacent in memory."""
        by = step(read.offset, lane.name)
        return by is None or by.as_int() not in (0, 1)

    def in_order_of_reads(self, axes: list[Axis], reads: Sequence[Read]) -> list[Axis]:
        """Axes sorted by the distance of the elements that `reads` read, so that neighbouring blocks share sectors of
        memory.
        """

        def apart(axis: Axis) -> float:
            steps = [step(read.offset, axis.name) for read in reads]
            known = [by.as_int() for by in steps if by is not None]
            return min((abs(n) for n in known if n), default=math.inf)

        return sorted(axes, key=apart, reverse=True) if reads else axes
