"""Prints the tiles in which a block turns results of its rows (`turned_rows.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.loops.gpu_kernel import GpuLoops
from ait_mlir.lowering.loops.nest import Axis, alignment


@dataclass
class TurnedStores:
    """The tiles of `results`. Neighbouring threads keep neighbours of a line of `along` elements, `piece` at a time,
    and store neighbours along `inner`, which have the `lines` of a tile. `print_axes` prints the variables of the axes
    of the element `column` of a line; `condition` says whether there is one.
    """

    code: GpuLoops
    results: tuple[int, ...]
    lines: int
    along: str
    piece: str
    inner: Axis
    condition: str
    print_axes: Callable[[], None]

    def declare(self, place: tuple[str, str]) -> None:
        """Print the tiles; a thread keeps its elements from the line and the column `place` on."""
        code = self.code
        self.names = {i: code.body.new("turned") for i in self.results}
        for i, name in self.names.items():
            t = element_type(code.nest.elements[i])
            code.body.lines.add(f"__shared__ __align__(16) {t} {name}[{self.lines} * {self.along}];")
        line, column = place
        code.body.lines.add(f"const int kept_at = {self.turned(line, column)};")
        code.turned = self.results
        code.staged_result = lambda i: (self.names[i], "kept_at") if i in self.names else None

    def turned(self, line: str, column: str) -> str:
        return f"ait::gpu::turned<{self.piece}, {self.along}>({line}, {column})"

    def print(self, block: int) -> None:
        """Print the stores of all tiles by the `block` threads of a block."""
        code, body = self.code, self.code.body
        width = "kLanes" if all(self.has_vectors(i) for i in self.results) else "1"
        outside = dict(body.index.variables)
        body.lines.add("__syncthreads();")
        pieces = f"for (int piece = threadIdx.x; piece < {self.lines} * {self.along} / {width}; piece += {block})"
        with body.lines.braces(pieces):
            body.lines.add(
                f"const int column = piece / ({self.lines} / {width});",
                f"const int line = piece % ({self.lines} / {width}) * {width};",
            )
            with body.lines.braces(f"if ({self.condition})"):
                self.print_axes()
                body.lines.add(f"const int place = {self.turned('line', 'column')};")
                for i, name in self.names.items():
                    values, t = body.new("stored"), element_type(code.nest.elements[i])
                    body.lines.add(f"{t} {values}[{width}];", "#pragma unroll")
                    body.lines.add(
                        f"for (int j = 0; j < {width}; ++j) {values}[j] = {name}[place + j * {self.along}];",
                        f"ait::gpu::store_lanes(output{i} + ({body.index.text(code.nest.offsets[i])}), {values});",
                    )
                    if width != "1":
                        code.pointers[f"output{i}"] = None
        body.lines.add("__syncthreads();")
        body.index.variables.update(outside)

    def has_vectors(self, i: int) -> bool:
        """Whether neighbours of a result along `inner` are proved to begin on multiples of the lanes."""
        code, lanes = self.code, self.code.lanes
        if self.piece != "kLanes" or self.lines % lanes or not code.nest.around.divisible(self.inner.count, lanes):
            return False
        return lanes == 1 or alignment(code.nest, code.nest.offsets[i], self.inner.name, lanes) == []
