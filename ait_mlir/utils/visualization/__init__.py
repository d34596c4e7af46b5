"""A graph of operators as a picture, in a page for a browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort
from ait_mlir.utils.graph_utils import get_sorted_ops, sorted_op_pseudo_code

WIDTH, HEIGHT, GAP, ROW = 168, 26, 12, 64
"""Of a box, of the space beside it, and of a row of boxes, in pixels."""


@dataclass
class Box:
    """An operator, an input or a weight: its place, its label, and the text that the browser shows on hover."""

    label: str
    title: str
    kind: str
    row: int
    x: float = 0.0
    sources: list[Box] = field(default_factory=list["Box"])

    @property
    def y(self) -> int:
        return GAP + self.row * ROW


def plot_graph(tensors: Tensor | Sequence[Tensor], file_path: str | Path, network_name: str = "") -> None:
    """Write the graph that computes `tensors` to `file_path`, an HTML page that needs nothing else.

    Boxes are operators, inputs and weights, each below all that it depends on. The browser shows the tensors of a box
    when the pointer is over it. Raises `OSError` if the file cannot be written.
    """
    import jinja2

    boxes = boxes_of(tensors)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((Path(__file__).parent / "graph.html.j2").read_text("utf-8"))
    page = template.render(
        name=network_name or "graph",
        boxes=boxes,
        width=max((box.x + WIDTH for box in boxes), default=0) + GAP,
        height=max((box.y + HEIGHT for box in boxes), default=0) + GAP,
        box_width=WIDTH,
        box_height=HEIGHT,
    )
    Path(file_path).write_text(page, encoding="utf-8")


def boxes_of(tensors: Tensor | Sequence[Tensor]) -> list[Box]:
    """The boxes of a graph, in rows."""
    order = toposort(tensors)
    leaves = {t: _leaf(t) for t in order if not t.src_ops()}
    boxes: dict[Operator, Box] = {}
    for op in get_sorted_ops(order):
        sources = [boxes[source] for t in op.inputs for source in t.src_ops() if source in boxes]
        sources += [leaves[t] for t in op.inputs if t in leaves]
        used = list({id(box): box for box in sources}.values())
        marked = any(t.is_output for t in op.outputs)
        row = 1 + max((box.row for box in used), default=0)
        boxes[op] = Box(op.name, sorted_op_pseudo_code(op), "output" if marked else "operator", row, sources=used)
    found = [*leaves.values(), *boxes.values()]
    counts: dict[int, int] = {}
    for box in found:
        box.x = GAP + counts.get(box.row, 0) * (WIDTH + GAP)
        counts[box.row] = counts.get(box.row, 0) + 1
    widest = max(counts.values(), default=0)
    for box in found:
        box.x += (widest - counts[box.row]) * (WIDTH + GAP) / 2
    return found


def _leaf(tensor: Tensor) -> Box:
    kind = "input" if tensor.is_input else "weight"
    return Box(tensor.name or kind, tensor.describe(), kind, 0)


__all__ = ["Box", "boxes_of", "plot_graph"]
