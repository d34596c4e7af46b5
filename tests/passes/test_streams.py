"""Streams: the plan of memory, the check of events, and orders that events allow."""

from __future__ import annotations

from random import Random

import pytest

from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dialects.ait_rt.program import LaunchOp, ProgramOp
from ait_mlir.dialects.ait_rt.streams import WaitOp
from ait_mlir.dims import Scope, const
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.pipeline import PassError, run_passes
from ait_mlir.ir.source import SourceText
from ait_mlir.passes.checks.disjoint import are_disjoint
from ait_mlir.passes.checks.verify_plan import verify_program, verify_streams
from ait_mlir.passes.lifetimes import in_text_order, lifetimes
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.schedule import EVENT_SECONDS, Task, best_schedule, simulate
from ait_mlir.passes.step_order import shuffled

TYPE = "!ait.tensor<64 x 64 x f16>"


def branches(length: int = 5, count: int = 3) -> str:
    """A launch, chains of launches that read it, and a launch that reads their ends."""
    lines = [f"%0 = ait.softmax %x dim 1 : {TYPE}"]
    for b in range(count):
        for i in range(length):
            source = "%0" if i == 0 else f"%b{b}_{i - 1}"
            lines.append(f"%b{b}_{i} = ait.softmax {source} dim {b % 2} : {TYPE}")
    joined = ", ".join(f"%b{b}_{length - 1}" for b in range(count))
    wide = f"!ait.tensor<64 x {64 * count} x f16>"
    lines += [f"%y = ait.concat {joined} dim 1 : {wide}", f"%z = ait.softmax %y dim 1 : {wide}"]
    body = "\n  ".join([*lines, f'ait.output "z" %z : {wide}'])
    return f"ait.graph @net(%x: {TYPE}) {{\n  {body}\n}}\n"


def program(text: str, options: str = "{streams=4}") -> ProgramOp:
    module = parse_source(context(), SourceText("<text>", text))
    first = 'select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies'
    passes = f"{first},assign-streams{options},plan-memory,verify-plan"
    run_passes(context(), module, parse_passes(passes), verify="end")
    (found,) = (op for op in module.ops if isinstance(op, ProgramOp))
    return found


def streams(p: ProgramOp) -> list[int]:
    return [op.on for op in p.block.ops if isinstance(op, LaunchOp)]


def test_chains_are_on_streams_of_their_own() -> None:
    found = streams(program(branches()))
    assert found[0] == found[-1] == 0
    assert [sorted(set(found[1 + 5 * b : 6 + 5 * b])) for b in range(3)] == [[0], [1], [2]]


@pytest.mark.parametrize("limit", [0, 1])
def test_one_stream(limit: int) -> None:
    assert set(streams(program(branches(), f"{{streams={limit}}}"))) == {0}


def test_each_wait_is_needed() -> None:
    waits = sum(isinstance(op, WaitOp) for op in program(branches()).block.ops)
    assert waits == 4
    for i in range(waits):
        p = program(branches())
        wait = [op for op in p.block.ops if isinstance(op, WaitOp)][i]
        wait.detach()
        with pytest.raises(PassError, match=r"begins without a wait|no event orders|does not wait for the end"):
            verify_streams(p)


def test_buffers_of_parallel_launches_do_not_share_memory() -> None:
    p = program(branches())
    early = {life.alloc: life for life in in_text_order(p)}
    assert any(life.end > early[life.alloc].end for life in lifetimes(p))
    first, second = (
        next(op.outs[0].owner for op in p.block.ops if isinstance(op, LaunchOp) and op.on == s) for s in (1, 2)
    )
    second.properties["offset"] = first.properties["offset"]
    with pytest.raises(PassError, match="overlap"):
        verify_program(p)


def test_orders_that_events_allow() -> None:
    p = program(branches())
    found = [[op for op in shuffled(p, Random(seed)) if isinstance(op, LaunchOp)] for seed in range(8)]
    text = [op for op in p.block.ops if isinstance(op, LaunchOp)]
    assert all(order[0] is text[0] and order[-1] is text[-1] and set(order) == set(text) for order in found)
    assert len({tuple(map(id, order)) for order in found}) > 4


def part(offset: int, *sizes: tuple[int, int]) -> Strided:
    return Strided(tuple(const(n) for n, _ in sizes), const(offset), tuple(const(s) for _, s in sizes))


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [
        (part(0, (4, 96), (64, 1)), part(64, (4, 96), (32, 1)), True),
        (part(0, (4, 96), (64, 1)), part(63, (4, 96), (32, 1)), False),
        (part(0, (4, 96), (64, 1)), part(64, (4, 96), (33, 1)), False),
        (part(0, (4, 96), (64, 1)), part(96 + 64, (4, 96), (32, 1)), True),
        (part(0, (4, 96), (64, 1)), part(64, (4, 32), (32, 1)), False),
        (part(0, (2, 96), (96, 1)), part(192, (2, 96), (96, 1)), True),
        (part(0, (2, 96), (96, 1)), part(191, (2, 96), (96, 1)), False),
        (part(0, (0, 96), (96, 1)), part(0, (2, 96), (96, 1)), True),
    ],
)
def test_disjoint(a: Strided, b: Strided, apart: bool) -> None:
    assert are_disjoint(a, b, Scope()) == are_disjoint(b, a, Scope()) == apart


def test_a_task_that_fills_the_card_gains_nothing() -> None:
    long = [Task(1e-4, 1.0, ()), Task(1e-4, 1.0, ())]
    assert simulate(long, (0, 1)) == pytest.approx(2e-4 + EVENT_SECONDS, rel=0.02)
    assert best_schedule(long, 4).streams == (0, 0)
    half = [Task(1e-4, 0.5, ()), Task(1e-4, 0.5, ())]
    assert best_schedule(half, 4).seconds == pytest.approx(1e-4 + 2 * EVENT_SECONDS)


def test_no_more_streams_than_pay() -> None:
    tasks = [Task(1e-5, 0.4, ()) for _ in range(8)]
    assert max(best_schedule(tasks, 16).streams) < 4
