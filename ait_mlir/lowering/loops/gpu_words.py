"""Prints values that a thread computes where they are read, several words of neighbours at a time.

A word has as many neighbours as one access may have, which can be fewer than a store has. All accesses of a batch are
on their way before the first value is used.

    constexpr int kWord = kLanes < 4 ? kLanes : 4;
    ait::half batch0[2][kWord];
    for (int item = 0; item < 2; ++item) { ... ait::gpu::load_lanes(input0 + (...), batch0[item]); }
    for (int item = 0; item < 2; ++item) { ... ait::convert<float>(batch0[item][j]) ... }
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.loops.estimates import BATCH_BYTES
from ait_mlir.lowering.loops.gpu_kernel import GpuLoops
from ait_mlir.lowering.loops.nest import Axis, Node, Read, is_stored, neighbours_of_word

WIDTH = "kWord"
"""The C++ of the elements of a word."""


@dataclass
class Words:
    """The words of some `nodes`, which are reads and scalars, along the axis `inner`; the reads have at most `most`
    steps in all.
    """

    code: GpuLoops
    nodes: Sequence[Node]
    inner: Axis
    most: int

    def __post_init__(self) -> None:
        self.reads = [node for node in self.nodes if isinstance(node, Read)]
        self.count = neighbours_of_word(self.code.nest, self.reads, self.inner, self.most)
        """The neighbours of a word."""
        narrowest = min(BY_IR[read.element].bytes for read in self.reads)
        self.batch = max(1, BATCH_BYTES // (narrowest * self.count))
        """The words of each read that are on their way together."""
        self.names = {read: self.code.body.new("batch") for read in self.reads}

    def begin(self) -> None:
        """Print how many elements a word has: one where operands do not begin on whole words."""
        width = self.count if self.count == 1 else f"kLanes < {self.count} ? kLanes : {self.count}"
        self.code.body.lines.add(f"constexpr int {WIDTH} = {width};")

    def declare(self, batch: int, pieces: str = "") -> None:
        """Print the arrays of a batch; `pieces` is the C++ of a further size."""
        for read, name in self.names.items():
            self.code.body.lines.add(f"{element_type(read.element)} {name}[{batch}]{pieces}[{WIDTH}];")

    def print_reads(self, at: str) -> None:
        """Print the accesses of the word `at` of the arrays, such as `[item]`. The axes are those of its first element.
        """
        body, lines = self.code.body, self.code.body.lines
        for read, name in self.names.items():
            body.vectors.append((read, self.inner.name, self.count))
            load = f"ait::gpu::load_lanes({body.pointer(read)}, {name}{at});"
            inside = body.inside(read)
            if not inside:
                lines.add(load)
                continue
            fill = f"for (int j = 0; j < {WIDTH}; ++j) {name}{at}[j] = "
            fill += f"ait::convert<{element_type(read.element)}>({body.fill(read)});"
            with lines.braces(f"if ({inside})", "} else {" if is_stored(read) else "}"):
                lines.add(load)
            if is_stored(read):
                lines.add("#pragma unroll", f"  {fill}", "}")

    def print_values(
        self, at: str, nodes: Sequence[Node], finish: Callable[[], Sequence[str]], used: Sequence[SSAValue]
    ) -> None:
        """Print `nodes`, all that the values `used` need, for the word `at`; then the lines of `finish` for each of its
        elements.
        """
        body = self.code.body
        kept: dict[SSAValue, str] = {}
        for read, name in self.names.items():
            if is_stored(read):
                body.names[read.result] = f"ait::convert<{element_type(read.result.type)}>({name}{at}[j])"
            else:
                kept[read.result] = f"{name}{at}[j]"
        with self.along():
            body.kept = kept.get
            computed = [node for node in nodes if not isinstance(node, Read) or node.result not in body.names]
            body.print_nodes(computed, finish, used, each=True)
            body.kept = lambda value: None
        for value in (v for node in nodes for v in node.results):
            body.names.pop(value, None)
            body.arrays.discard(value)

    def stored(self, value: SSAValue, t: Attribute) -> str | None:
        """The array with the elements of a value of type `t` as they were read, if it has them."""
        return next((n for r, n in self.names.items() if r.result is value and is_stored(r) and r.element == t), None)

    @contextmanager
    def along(self) -> Generator[None]:
        """A context in which lanes are the elements of a word."""
        body = self.code.body
        before = body.lane, body.lanes, body.width
        body.lane, body.lanes, body.width = self.inner.name, self.count, WIDTH
        yield
        body.lane, body.lanes, body.width = before
