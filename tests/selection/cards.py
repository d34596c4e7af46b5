"""A card that is not there: times from a formula, with noise."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.fragments import Fragment
from ait_mlir.passes.race import race
from ait_mlir.passes.ranges import Times
from ait_mlir.passes.select import needs_kernel
from ait_mlir.passes.tasks import Point, Task, make_task
from ait_mlir.passes.timings import Setting
from ait_mlir.universe import context

SETTING = Setting("a card", "1.0", "13.0", "libraries 1")

GEMM = """
ait.graph @g(%x: !ait.tensor<{lead} x 512 x f16>) dims {{batch = 1 to 64{hints}, seq = 1 to 512}} {{
  %w = ait.param "w" : !ait.tensor<1024 x 512 x f16>
  %v = ait.param "v" : !ait.tensor<1024 x f16>
  %0 = ait.gemm rcr %x, %w epilogue(%v) {{
  ^bb0(%acc: f32, %1: f32):
    %2 = ait.add %acc, %1 : f32
    %3 = ait.gelu %2 : f32
    ait.yield %3 : f32
  }} : !ait.tensor<{lead} x 1024 x f16>
  ait.output "y" %0 : !ait.tensor<{lead} x 1024 x f16>
}}
"""


def parse(text: str) -> ModuleOp:
    return parse_text(context(), text)


def gemm_task(lead: str = "batch x 128", hints: str = " hints [1, 32]") -> Task:
    return tasks_of(GEMM.format(lead=lead, hints=hints))[0]


def tasks_of(text: str) -> list[Task]:
    graph = next(op for op in parse(text).ops if isinstance(op, GraphOp))
    _keep.append(graph)
    return [make_task(op) for op in graph.block.ops if needs_kernel(op)]


_keep: list[GraphOp] = []
"""Ops hold no reference to their graph that keeps it alive."""

Formula = Callable[[Fragment, dict[str, int]], float | None]


@dataclass
class FakeMeter:
    """Answers with `seconds(way, dims)`, each sample off by up to `noise`; None means that the way cannot run."""

    seconds: Formula
    noise: float = 0.0
    seed: int = 0
    revision: str = "r1"
    raced: list[tuple[Point, tuple[Fragment, ...]]] = field(default_factory=list[tuple[Point, tuple[Fragment, ...]]])
    built: int = 0
    listed: int = 0
    library: Callable[[Point], list[tuple[int, ...]]] = lambda point: []

    def source(self, task: Task, way: Fragment) -> str:
        return f"{self.revision}{hash(way) & 0xFFFFFFFF:08x}".ljust(64, "0")

    def build(self, wanted: Sequence[tuple[Task, Fragment]]) -> None:
        self.built += len(wanted)

    def algorithms(self, task: Task, point: Point, way: Fragment) -> list[tuple[int, ...]]:
        self.listed += 1
        return self.library(point)

    def close(self) -> None:
        pass

    def race(self, task: Task, point: Point, ways: Sequence[Fragment], estimate: float) -> dict[Fragment, Times]:
        assert estimate > 0
        self.raced.append((point, tuple(ways)))
        rng = random.Random(self.seed * 1000 + len(self.raced))
        true = [self.seconds(way, task.environment(point)) for way in ways]
        running = [i for i, t in enumerate(true) if t is not None]

        def sample(i: int) -> float:
            t = true[running[i]]
            assert t is not None
            spike = 1.5 if rng.random() < 0.05 else 1.0
            return t * (1 + rng.uniform(-self.noise, self.noise)) * spike

        return dict(zip((ways[i] for i in running), race(sample, len(running)), strict=True)) if running else {}
