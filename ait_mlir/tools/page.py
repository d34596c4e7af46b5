"""`ait compile --report FILE`: one HTML page that shows how a module was compiled."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from difflib import unified_diff
from itertools import accumulate
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait_rt.loop import program_ops
from ait_mlir.dialects.ait_rt.program import LaunchOp, ProgramOp
from ait_mlir.passes.lifetimes import lifetimes
from ait_mlir.rewrites.engine.driver import Statistics
from ait_mlir.selection.select import Selections
from ait_mlir.tools.report import Report, report
from ait_mlir.tools.steady import Names, steady_text

_WIDTH = 1000
_HEIGHT = 300


@dataclass(frozen=True)
class Step:
    """A pass that ran: its seconds, the number of applications of each pattern, and the changes of the IR as the lines
    of a unified diff, empty without changes."""

    name: str
    seconds: float
    applied: Mapping[str, int]
    changes: str


@dataclass
class Trace:
    """The record of one compilation's passes; `observe` is an observer of `run_passes`."""

    statistics: Statistics
    """The counts of rewrites of the running pass."""
    module: InitVar[ModuleOp]
    """The module before the first pass."""
    names: Names = field(default_factory=Names)
    text: str = ""
    """The IR after the last pass, with `names`."""
    steps: list[Step] = field(default_factory=list[Step])
    rewrites: Statistics = field(default_factory=Statistics)
    """The counts of rewrites of all steps."""

    def __post_init__(self, module: ModuleOp) -> None:
        self.text = steady_text(module, self.names)

    def observe(self, p: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Record a pass that has run."""
        after = steady_text(module, self.names)
        changes = "\n".join(list(unified_diff(self.text.splitlines(), after.splitlines(), lineterm="", n=2))[2:])
        taken = self.statistics.taken()
        self.rewrites.add(taken)
        self.steps.append(Step(p.name, seconds, taken.applied, changes))
        self.text = after


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
    template = environment.from_string((Path(__file__).parent / "templates" / "report.html.j2").read_text("utf-8"))
    return template.render(
        name=name,
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
