"""A pass that is run twice changes nothing the second time: on all graphs of its text tests, and on random graphs."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import PASSES, PHASE_TABLE, Patterns, passes_between
from tests.generator import random_graph
from tests.mutate.run import LIT, families
from tests.tiers import params

LOWERING = {
    step.partition("{")[0] for phase in ("selected", "bufferized", "planned") for step in PHASE_TABLE[phase].passes
}
ON_GRAPHS = [
    name
    for name in PASSES
    if name not in LOWERING - {"group-products", "group-norms", "group-embeddings", "order-scatters"} and name != "apply-patterns"
]
SEEDS = (29, 56, 134, 171)  # a use that is dead kept a pattern from its root; dead ops in the group of an epilogue


def check_twice(module: ModuleOp, step: str, what: str) -> None:
    run_passes(context(), module, parse_passes(step), verify=False)
    once = str(module)
    if step != "bufferize":  # of a graph that is there no more
        run_passes(context(), module, parse_passes(step), verify=False)
    assert str(module) == once, f"{step} of {what}"


@pytest.mark.parametrize(("name", "files"), [(name, family.tests) for name, family in families().items()])
def test_the_second_run_changes_nothing(name: str, files: tuple[str, ...]) -> None:
    for file in files:
        check_twice(parse_text(context(), (LIT / file).read_text()), name, file)


@pytest.mark.parametrize("seed", params(range(200), SEEDS))
def test_the_second_run_changes_nothing_in_random_graphs(seed: int) -> None:
    """Each pass on the graph as it is, and each step of a compilation."""
    text = random_graph(seed)
    for name in ON_GRAPHS:
        check_twice(parse_text(context(), text), name, f"seed {seed}")
    module = parse_text(context(), text)
    for step in re.split(r",(?![^{]*\})", passes_between("imported", "planned", ("cpu", "cuda", "rocm")[seed % 3])):
        check_twice(module, step, f"seed {seed}")


def test_passes_of_patterns_are_among_those_on_graphs() -> None:
    of_graphs = {name for name, row in PASSES.items() if isinstance(row, Patterns) and row.dialect == "ait"}
    assert of_graphs < set(ON_GRAPHS) and {
        "group-products",
        "group-norms",
        "group-embeddings",
        "order-scatters",
        "remove-duplicates",
        "unroll-scans",
    } < set(ON_GRAPHS)
