"""The schedule in which a block turns boxes of results in shared memory (`boxes.py`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

from ait_mlir.dims import Expr, const, floordiv, product
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.loops.boxes import Boxes, Side, boxes_of
from ait_mlir.lowering.loops.gpu_kernel import BLOCK, STATIC_SHARED
from ait_mlir.lowering.loops.gpu_maps import Maps
from ait_mlir.lowering.loops.gpu_words import WIDTH, Words
from ait_mlir.lowering.loops.nest import Axis

MOST_BEYOND = 1.15
"""The places at which threads look, over those of an axis, if the threads of a group lie along it."""
MOST_UNROLLED = 32
"""The most steps that the compiler writes out, so that an index along outer axes is a number."""
FEWEST_STEPS = 4
"""The fewest steps of a round: as many accesses of a thread are on their way."""
MOST_IDLE = 0.2
"""The share of the threads of a block that may be left over where the others keep their index along inner axes."""


@dataclass
class Walk:
    """How the threads of a block walk through a box. Each keeps its index along the `inner` axes, of which there are
    `inside` places. `group` threads have the same index along these, and walk along the `outer` axes in `rounds` rounds
    of `steps` steps, which all threads take together. At each step a thread has `pieces` neighbours `along` an axis.
    """

    along: Axis
    lane: Axis | None
    """The axis `along` which a thread has neighbours, if it stands for several axes."""
    pieces: int
    group: int
    inside: int
    steps: int
    inner: list[tuple[Axis, str]]
    """Axes with the C++ of their place in the box."""
    outer: list[tuple[Axis, str]]
    """The same, of the step `{step}` of the round `{round}`."""
    check: str = ""
    """The condition that the step `{step}` has a place, if it need not have one."""
    rounds: int = 1

    @property
    def threads(self) -> int:
        return self.group * self.inside


class BoxThreads(Maps):
    """A block reads a box of the operands in the order of each, and writes it in the order of the results."""

    kind = "boxes"
    shortest = 1

    def print_body(self) -> tuple[str, int, str]:
        elements, lanes = self.config["elements"], self.config["lanes"]
        found = boxes_of(self.nest, elements, lanes)
        if found is None or found.bytes(lanes) > STATIC_SHARED:
            return super().print_body()  # with the strides of this launch nothing is to be turned
        self.fit(found.joined()[1])
        if self.lanes != lanes and (found := boxes_of(self.nest, elements, self.lanes)) is None:
            return super().print_body()
        self.boxes: Boxes = found
        nest = self.nest
        self.print_origin()
        names = [self.print_side(side) for side in found.sides]
        self.body.lines.add("__syncthreads();")
        joined, lane = found.joined()
        self.nest = self.body.nest = joined
        self.print_results_of_box(names, lane)
        self.nest = self.body.nest = nest
        shape = " x ".join(str(found.extents[a.name]) for a in found.order)
        what = f"A block turns boxes of {shape}; a thread stores {self.lanes} neighbours at a time."
        return self.launch.cpp(product(self.boxes_along(a) for a in found.order)), BLOCK, what

    # ** places **

    def boxes_along(self, axis: Axis) -> Expr:
        """The number of boxes along an axis."""
        extent = self.boxes.extents[axis.name]
        return axis.count if extent == 1 else floordiv(axis.count + (extent - 1), const(extent))

    def print_origin(self) -> None:
        """Print where the box of a block begins. Neighbouring boxes are neighbours along axes of which each has a
        part, so that they share sectors.
        """
        body, lines, extents = self.body, self.body.lines, self.boxes.extents
        parts = [a for a in self.boxes.order if extents[a.name] > 1]
        order = [*(a for a in self.boxes.order if a not in parts), *parts]
        order = [a for a in order if self.boxes_along(a).as_int() != 1]
        self.split("blockIdx.x", [Axis(a.name, self.boxes_along(a)) for a in order], None)
        self.first = {a.name: "0" for a in self.boxes.order}
        for axis in order:
            name = body.index.variables[axis.name]
            self.first[axis.name] = name if axis not in parts else f"first_{name}"
            if axis in parts:
                lines.add(f"const Index first_{name} = {name} * {extents[axis.name]};")
        for axis in self.boxes.order:  # axes without a place in the box
            body.index.variables[axis.name] = self.first[axis.name]

    def walk(self, axes: Sequence[Axis], lane: Axis | None = None, pieces: int = 1) -> Walk:
        """How threads walk through a box, the last one of `axes` fastest; along it, a thread has `pieces` elements.
        `lane` is the last one if it stands for several axes.
        """
        sizes = {a: self.boxes.run_elements if a is lane else self.boxes.extents[a.name] for a in axes}
        order = [a for a in reversed(axes) if sizes[a] > 1]
        lengths = [sizes[a] // (pieces if a is axes[-1] else 1) for a in order]
        held, inside, places = 0, 1, 1
        for i, length in enumerate(lengths):
            places *= length
            if places <= BLOCK and BLOCK // places * places >= (1 - MOST_IDLE) * BLOCK:
                held, inside = i + 1, places
        group, inner, outer = BLOCK // inside, order[:held], order[held:]
        if not outer or math.prod(lengths) <= BLOCK:
            group, inside, held, inner, outer = 1, math.prod(lengths), len(order), order, []
        starts = split_up("threadIdx.x", lengths[:held], True)
        found = Walk(axes[-1], lane, pieces, group, inside, 1, list(zip(inner, starts, strict=True)), [])
        if outer:
            lengths = lengths[held:]
            turns = math.ceil(lengths[0] / group)
            along = "threadIdx.x" if inside == 1 else f"threadIdx.x / {inside}"
            if turns * group <= MOST_BEYOND * lengths[0]:  # the threads of a group lie along the first axis
                found.steps, unrolled = turns, 1
                while unrolled < len(lengths) and found.steps * lengths[unrolled] <= MOST_UNROLLED:
                    found.steps *= lengths[unrolled]
                    unrolled += 1
                if found.steps < FEWEST_STEPS:
                    found.steps, unrolled = turns * math.prod(lengths[1:]), len(lengths)
                found.rounds = math.prod(lengths[unrolled:])
                rest = "{step}" if turns == 1 else f"{{step}} / {turns}"
                turn = "{step}" if unrolled == 1 else f"{{step}} % {turns}"
                first = along if turns == 1 else f"{along} + {turn} * {group}"
                texts = [first, *split_up(rest, lengths[1:unrolled], False)]
                texts += split_up("{round}", lengths[unrolled:], False)
                found.check = f"{first} < {lengths[0]}" if turns * group > lengths[0] else ""
            else:
                places = math.prod(lengths)
                found.steps = math.ceil(places / group)
                texts = split_up(f"({along} + {{step}} * {group})", lengths, False)
                found.check = f"{along} + {{step}} * {group} < {places}" if places % group else ""
            found.outer = list(zip(outer, texts, strict=True))
        return found

    def print_walk(
        self,
        walk: Walk,
        batch: int,
        declare: Callable[[], None],
        *phases: Callable[[], None],
    ) -> None:
        """Print the loop in which the threads of a block walk through a box. A thread has `batch` places in flight, for
        each of which a phase runs before the next one begins. `declare` prints what the phases pass on.
        """
        lines = self.body.lines
        checks = [self.print_place(axis, at, walk) for axis, at in walk.inner]
        whole = f"if (threadIdx.x < {walk.threads})" if walk.threads < BLOCK else ""
        with ExitStack() as loops:
            loops.enter_context(lines.braces(whole) if whole else nullcontext())
            if walk.rounds > 1:
                lines.add("#pragma unroll 1")
                loops.enter_context(lines.braces(f"for (int round = 0; round < {walk.rounds}; ++round)"))
            lines.add(f"#pragma unroll{'' if walk.steps <= MOST_UNROLLED else ' 4' if batch == 1 else ' 1'}")
            with lines.braces(f"for (int step = 0; step < {walk.steps}; step += {batch})"):
                declare()
                is_bare = batch == 1 and len(phases) > 1  # without the loop over places that would be a block
                for phase in phases:
                    with lines.braces("") if is_bare else nullcontext():
                        self.print_phase(walk, batch, checks, phase)

    def print_phase(
        self,
        walk: Walk,
        batch: int,
        checks: Sequence[str],
        phase: Callable[[], None],
    ) -> None:
        """Print a phase for all places of a thread that are in flight."""
        lines, has_pieces = self.body.lines, walk.pieces > 1
        if batch > 1:
            lines.add("#pragma unroll")
        with lines.braces(f"for (int item = 0; item < {batch}; ++item)") if batch > 1 else nullcontext():
            here = "step" if batch == 1 else "(step + item)"
            inside = [walk.check.format(step=here)]
            inside += [f"step + item < {walk.steps}"] if walk.steps % batch else []
            places = [(axis, at.format(step=here, round="round")) for axis, at in walk.outer]
            inside += [self.print_place(axis, at, walk) for axis, at in places]
            with lines.braces(self.over_pieces(walk)) if has_pieces else nullcontext():
                if has_pieces:
                    name = self.body.index.variables[walk.along.name]
                    lines.add(f"const int {name}_at = {name}_of + piece * {self.body.width};")
                    inside.append(self.print_index(walk.along, walk.lane))
                text = " && ".join(c for c in (*inside, *checks) if c)
                with lines.braces(f"if ({text})") if text else nullcontext():
                    phase()

    def over_pieces(self, walk: Walk) -> str:
        """The head of the loop over the accesses of a thread: one, unless operands begin on odd places."""
        self.body.lines.add("#pragma unroll")
        return f"for (int piece = 0; piece < {walk.pieces} / {self.body.width}; ++piece)"

    def print_place(self, axis: Axis, at: str, walk: Walk) -> str:
        """Print the index along an axis from a place in the box; returns the condition that it is inside, if it need
        not be.
        """
        name = self.body.variable(axis)
        if axis is walk.along and walk.pieces > 1:
            self.body.lines.add(f"const int {name}_of = ({at}) * {walk.pieces};")
            return ""
        self.body.lines.add(f"[[maybe_unused]] const int {name}_at = {at};")
        return self.print_index(axis, walk.lane)

    def print_index(self, axis: Axis, lane: Axis | None) -> str:
        """Print the index along an axis; returns the condition that it is inside."""
        name, outer = self.body.index.variables[axis.name], axis
        origin = self.first[axis.name]
        if axis is lane:
            outer = self.boxes.run[-1]
            inner = self.numbers.text(product(a.count for a in self.boxes.run[:-1]))
            origin = self.first[outer.name] if inner == "1" else f"{self.first[outer.name]} * {inner}"
        text = f"{name}_at" if origin == "0" else f"{origin} + {name}_at"
        self.body.lines.add(f"[[maybe_unused]] const Index {name} = {text};")
        is_whole = self.nest.around.divisible(outer.count, self.boxes.extents[outer.name])
        return "" if is_whole else f"{name} < {self.numbers.text(axis.count)}"

    def place(self, side: Side, lane: Axis | None) -> str:
        """Where an element of a box is in the tile of a side."""
        pitches, _ = self.boxes.pitches(side, self.lanes)
        joined = {a.name for a in self.boxes.run} if lane is not None else set[str]()
        terms = [
            (f"{self.body.index.variables[a.name]}_at", pitches[a.name])
            for a in self.boxes.order
            if a in side.axes and a.name not in joined and self.boxes.extents[a.name] > 1
        ]
        terms += [(f"{self.body.index.variables[lane.name]}_at", 1)] if lane is not None else []
        return " + ".join(at if pitch == 1 else f"{at} * {pitch}" for at, pitch in terms) or "0"

    # ** both passes **

    @contextmanager
    def variables(self) -> Generator[None]:
        """C++ variables of axes that go out of scope."""
        body = self.body
        before = dict(body.index.variables)
        with body.lines.braces(""):
            yield
        body.index.variables.clear()
        body.index.variables.update(before)

    def print_side(self, side: Side) -> list[str]:
        """Print the reads of a side, and the stores to its tiles; returns the names of these."""
        body, lines, inner = self.body, self.body.lines, side.axes[-1]
        pitches, size = self.boxes.pitches(side, self.lanes)
        names = [body.new("tile") for _ in side.values]
        for name, t in zip(names, side.types, strict=True):
            lines.add(f"__shared__ __align__(16) {element_type(t)} {name}[{size}];")
        words = Words(self, side.nodes, inner, math.gcd(self.lanes, self.boxes.extents[inner.name]))
        walk = self.walk(side.axes, pieces=words.count)
        batch = min(words.batch, walk.steps)
        nodes = [*self.before(side.nodes), *side.nodes]
        at = f"[{'item' if batch > 1 else 0}]{'[piece]' if words.count > 1 else ''}"
        stored = {value: words.stored(value, t) for value, t in zip(side.values, side.types, strict=True)}
        computed = [value for value in side.values if stored[value] is None]
        types = dict(zip(side.values, side.types, strict=True))
        tiles = dict(zip(side.values, names, strict=True))
        neighbour = f"place + j * {pitches[inner.name]}"

        def compute() -> None:
            lines.add(f"const int place = {self.place(side, None)};")
            if computed:
                words.print_values(
                    at,
                    nodes,
                    lambda: [
                        f"{tiles[v]}[{neighbour}] = ait::convert<{element_type(types[v])}>({body.ref(v)});"
                        for v in computed
                    ],
                    computed,
                )
            for value, array in stored.items():
                if array is not None:
                    lines.add("#pragma unroll")
                    with lines.braces(f"for (int j = 0; j < {WIDTH}; ++j)"):
                        lines.add(f"{tiles[value]}[{neighbour}] = {array}{at}[j];")

        with self.variables():
            words.begin()
            body.width = WIDTH
            self.print_walk(
                walk,
                batch,
                lambda: words.declare(batch, f"[{words.count} / {WIDTH}]" if words.count > 1 else ""),
                lambda: words.print_reads(at),
                compute,
            )
            body.width = "kLanes"
        return names

    def print_results_of_box(self, names: Sequence[Sequence[str]], lane: Axis) -> None:
        """Print the stores of results, in their order, and all that does not turn."""
        body, boxes = self.body, self.boxes
        left = boxes.left(self.nest)

        def store() -> None:
            self.set_lane(lane)
            for side, tiles in zip(boxes.sides, names, strict=True):
                for value, name, t in zip(side.values, tiles, side.types, strict=True):
                    lanes = body.new("turned")
                    body.lines.add(
                        f"{element_type(t)} {lanes}[kLanes];",
                        f"ait::gpu::load_lanes({name} + ({self.place(side, lane)}), {lanes});",
                    )
                    body.names[value] = f"ait::convert<{element_type(value.type)}>({lanes}[j])"
                    self.exact[value] = f"{lanes}[j]", t
            self.print_stores(left, "", self.others)
            body.lane = None

        outer = [a for a in boxes.order if a not in boxes.run]
        with self.variables():
            self.print_walk(self.walk([*outer, lane], lane, self.lanes), 1, lambda: None, store)


def split_up(linear: str, lengths: Sequence[int], is_part: bool) -> list[str]:
    """The C++ of an index along each axis from a linear index, the first axis fastest. Without `is_part`, the linear
    index is below the number of places.
    """
    before, found = 1, list[str]()
    for i, length in enumerate(lengths):
        at = linear if before == 1 else f"{linear} / {before}"
        found.append(at if i == len(lengths) - 1 and not is_part else f"{at} % {length}")
        before *= length
    return found
