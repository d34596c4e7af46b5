"""A card that is not there: times from a formula, with noise."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.parser import Parser

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.dtypes import BY_MLIR
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType
from ait_mlir.dims import Expr, Scope
from ait_mlir.dims import parse as parse_dim
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.points import Point
from ait_mlir.selection.lanes import Lanes
from ait_mlir.selection.race import race
from ait_mlir.selection.ranges import Times
from ait_mlir.selection.select import needs_kernel
from ait_mlir.selection.tasks import Task, make_task
from ait_mlir.selection.timings import Setting

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


def task_of(key: str, values: Mapping[str, Expr] | None = None) -> Task:
    """The task that a key says, its dims from 1 to 4096, or with `values` for them."""
    arguments, ops, *_ = json.loads(key)
    used = sorted({*re.findall(r"\bd\d+\b", key)} - (values or {}).keys(), key=lambda name: int(name[1:]))
    scope = Scope.parse(", ".join(f"{name} = 1 to 4096" for name in used))

    def dims(shape: list[int | str]) -> tuple[Expr, ...]:
        return tuple(parse_dim(str(d)).substitute(values or {}) for d in shape)

    def typed(t: Any) -> Attribute:
        return TensorType.get(dims(t[:-1]), BY_MLIR[t[-1]].ir) if isinstance(t, list) else BY_MLIR[t].ir

    def attribute(value: Any) -> Attribute:
        return (
            ShapeAttr(dims(value["shape"])) if isinstance(value, dict) else Parser(context(), value).parse_attribute()
        )

    def fill(block: Block, ops: Any) -> None:
        found: list[SSAValue] = list(block.args)
        for name, properties, operands, results, regions in ops:
            inner: list[Region] = []
            for region in regions:
                inner.append(Region(Block(arg_types=[typed(t) for t in region[0]]) if region else []))
                if region:
                    fill(inner[-1].block, region[1])
            op = (
                context()
                .get_op(name)
                .create(
                    operands=[found[i] for i in operands],
                    result_types=[typed(t) for t in results],
                    properties={k: attribute(v) for k, v in properties.items()},
                    regions=inner,
                )
            )
            block.add_op(op)
            found += op.results

    graph = GraphOp("task", [(f"x{i}", cast(TensorType, typed(t))) for i, t in enumerate(arguments)], scope)
    fill(graph.block, ops)
    _keep.append(graph)
    (op,) = (op for op in graph.block.ops if needs_kernel(op))
    return make_task(op)


_keep: list[GraphOp] = []
"""Ops hold no reference to their graph that keeps it alive."""

Formula = Callable[[Candidate, dict[str, int]], float | None]


@dataclass
class FakeMeter:
    """Answers with `seconds(candidate, dims)`, each sample off by up to `noise`; None means that the candidate cannot run."""

    seconds: Formula
    noise: float = 0.0
    seed: int = 0
    lanes: Lanes = field(default_factory=Lanes)
    revision: str = "r1"
    raced: list[tuple[Point, tuple[Candidate, ...]]] = field(default_factory=list[tuple[Point, tuple[Candidate, ...]]])
    built: int = 0
    listed: int = 0
    waited: float = 0.0
    library: Callable[[Point], list[tuple[int, ...]]] = lambda point: []

    def prepare(self) -> None: ...

    def source(self, task: Task, candidate: Candidate) -> str:
        return f"{self.revision}{hash(candidate) & 0xFFFFFFFF:08x}".ljust(64, "0")

    def build(self, wanted: Sequence[tuple[Task, Candidate]]) -> None:
        self.built += len(wanted)

    def algorithms(self, task: Task, point: Point, candidate: Candidate) -> list[tuple[int, ...]]:
        self.listed += 1
        return self.library(point)

    def close(self) -> None:
        pass

    def race(
        self, task: Task, point: Point, candidates: Sequence[Candidate], estimate: float
    ) -> dict[Candidate, Times]:
        assert estimate > 0
        self.raced.append((point, tuple(candidates)))
        rng = random.Random(self.seed * 1000 + len(self.raced))
        true = [self.seconds(candidate, task.environment(point)) for candidate in candidates]
        running = [i for i, t in enumerate(true) if t is not None]

        def sample(i: int) -> float:
            t = true[running[i]]
            assert t is not None
            spike = 1.5 if rng.random() < 0.05 else 1.0
            return t * (1 + rng.uniform(-self.noise, self.noise)) * spike

        return dict(zip((candidates[i] for i in running), race(sample, len(running)), strict=True)) if running else {}
