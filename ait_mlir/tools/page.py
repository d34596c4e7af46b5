"""`ait compile --report FILE`: one HTML page that shows how a module was compiled."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait_rt.loop import program_ops
from ait_mlir.dialects.ait_rt.program import LaunchOp, ProgramOp
from ait_mlir.passes.lifetimes import lifetimes
from ait_mlir.selection.select import Selections
from ait_mlir.tools.explain import Step, Trace
from ait_mlir.tools.report import Report, report

_WIDTH = 1000
_HEIGHT = 300


@dataclass(frozen=True)
class Box:
    """A rectangle of a picture, in its units, with the text that the browser shows on hover."""

    x: float
    y: float
    width: float
    height: float
    title: str


def arena_boxes(program: ProgramOp, dims: Mapping[str, int]) -> list[Box]:
    """A rectangle for each planned buffer: launches to the right, byte offsets downwards."""
    ops = program_ops(program.block)
    before = list(accumulate((isinstance(op, LaunchOp) for op in ops), initial=0))
    count, arena = max(before[-1], 1), max(program.arena_size.evaluate(dims), 1)
    boxes: list[Box] = []
    for i, life in enumerate(lifetimes(program)):
        if life.alloc.at is None:
            continue
        offset, size = life.alloc.at.evaluate(dims), life.alloc.buffer_type.byte_size().evaluate(dims)
        first, last = before[life.start], max(before[life.end], before[life.start] + 1)
        name = life.alloc.buffer.name_hint or f"buffer {i}"
        title = f"%{name}: {size} bytes at {offset}, launches {first} to {last - 1}"
        x, y = first / count * _WIDTH, offset / arena * _HEIGHT
        boxes.append(Box(x, y, (last - first) / count * _WIDTH, size / arena * _HEIGHT, title))
    return boxes


def lanes(program: ProgramOp) -> dict[int, list[Box]]:
    """A rectangle for each launch, in the lane of its stream."""
    launches = [op for op in program_ops(program.block) if isinstance(op, LaunchOp)]
    width = _WIDTH / max(len(launches), 1)
    found: dict[int, list[Box]] = {}
    for i, op in enumerate(launches):
        box = Box(i * width, 2, width, 20, f"launch {i}: {op.kernel_name}")
        found.setdefault(op.stream.value.data, []).append(box)
    return found


def packed(text: str) -> str:
    """A text as gzip in base64, which the page's script unpacks. The changes of a large network are several times as
    long as its IR, and compress well."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def changes(step: Step) -> str:
    """The changes of a step, packed; a tab separates a line from the pattern that caused it."""
    return packed("\n".join(f"{line}\t{pattern}" if pattern else line for line, pattern in step.annotated()))


def page(
    name: str,
    trace: Trace,
    selections: Selections,
    program: ProgramOp | None,
    module: ModuleOp,
    dims: Mapping[str, int],
) -> str:
    """The page as HTML. A module that is not planned yet has no launches and no pictures."""
    import jinja2

    counted: Report | None = None if program is None else report(module, program, dims)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["packed"] = packed
    environment.filters["changes"] = changes
    template = environment.from_string((Path(__file__).parent / "templates" / "report.html.j2").read_text("utf-8"))
    return template.render(
        name=name,
        first=trace.first,
        steps=trace.steps,
        text=str(module),
        applied=sorted(trace.rewrites.applied.items(), key=lambda row: (-row[1], row[0])),
        selections=selections,
        report=counted,
        dims=dims,
        boxes=[] if program is None else arena_boxes(program, dims),
        lanes={} if program is None else lanes(program),
        width=_WIDTH,
        height=_HEIGHT,
    )
