"""What looks for siblings stops after a few steps, however large the graph."""

from __future__ import annotations

import pytest

from ait_mlir.ir.parser import check
from ait_mlir.rewrites.apply import rewrite
from ait_mlir.rewrites.elementwise.merge import ELEMENTWISE, MOST_VIEWS
from ait_mlir.rewrites.elementwise.siblings import LOOK_BACK, MAX_TOGETHER, SIBLINGS
from tests.rewrites.support import names, parse

T, ROW = "!ait.tensor<4 x 4 x f32>", "!ait.tensor<4 x f32>"


def merges(lines: list[str], inputs: int, outputs: list[str]) -> int:
    """How many operations are merged with neighbours in a graph that reads %x0 ... and the row %c."""
    arguments = ", ".join(f"%x{i}: {T}" for i in range(inputs))
    lines = [*lines, *(f'ait.output "{name}" %{name} : {T}' for name in outputs)]
    module = parse(f"ait.graph @g({arguments}, %c: {ROW}) {{\n" + "\n".join(lines) + "\n}")
    rewrite(module, ELEMENTWISE)
    before = names(module).count("ait.fused_elementwise")
    statistics = rewrite(module, SIBLINGS)
    check(module)
    assert set(statistics.applied) <= {"merge_with_neighbour"}
    assert names(module).count("ait.fused_elementwise") == before - statistics.rewrites
    return statistics.rewrites


def test_many_neighbours_become_groups() -> None:
    count, group = 2_000, (MAX_TOGETHER - 1) // 2
    lines = [f"%r{i} = ait.mul %x{i}, %c : {T}" for i in range(count)]
    assert merges(lines, count, [f"r{i}" for i in range(count)]) == count - -(-count // group)


@pytest.mark.parametrize(("between", "merged"), [(0, 1), (LOOK_BACK - 1, 1), (LOOK_BACK, 0)])
def test_a_neighbour_is_at_most_so_far_away(between: int, merged: int) -> None:
    views = [f"%v{i} = ait.permute %x0 [1, 0] : {T}" for i in range(between)]
    lines = [f"%r0 = ait.mul %x0, %c : {T}", *views, f"%r1 = ait.mul %x1, %c : {T}"]
    assert merges(lines, 2, ["r0", "r1", *(f"v{i}" for i in range(between))]) == merged


@pytest.mark.parametrize(("between", "merged"), [(1, 1), (MOST_VIEWS, 1), (MOST_VIEWS + 1, 0)])
def test_so_many_views_make_way(between: int, merged: int) -> None:
    """The first has a user between the two, so that both stand where it stood, and the views that lead to the second
    before it."""
    views = [f"%v{i + 1} = ait.permute %{f'v{i}' if i else 'x1'} [1, 0] : {T}" for i in range(between)]
    lines = [f"%r0 = ait.mul %x0, %c : {T}", f"%t = ait.permute %r0 [1, 0] : {T}", *views]
    assert merges([*lines, f"%r1 = ait.mul %v{between}, %c : {T}"], 2, ["t", "r1"]) == merged
