"""Random graphs through every pipeline and through passes in random order: `python -m tests.fuzz.run --count 10000`.

Each seed makes one graph (tests/generator.py). It takes the pipeline of one target, then a few passes over `ait` in an
order that the seed draws, each twice. After every pass the reference computes the outputs again, in float64; the second
run of a pass must change nothing. What has passed is remembered in build/fuzz for exactly these sources, in ranges of
seeds, so that a run that was cut off goes on. The graph of a failure is written to build/fuzz/seed_N.mlir.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import PASSES, Patterns, passes_between
from tests.fuzz.ranges import Campaign, Tried
from tests.generator import random_graph

TARGETS = ("cpu", "cuda", "rocm")
RANGE = 20
"""Seeds that are remembered together."""
ORDER = 6
"""Passes of a random order."""
VALUE_PASSES = sorted(
    [name for name, row in PASSES.items() if isinstance(row, Patterns) and row.dialect == "ait" and not row.assumption]
    + ["group-embeddings", "group-norms", "group-products", "order-scatters", "pad-products", "remove-duplicates", "rotate-products", "split-products"]
    + ["unroll-scans"]
)


def checked(text: str, pipeline: str, twice: bool = False) -> int:
    """Run passes with a check after each; how many evaluations were compared. Raises `AssertionError`."""
    ctx = context()
    module = parse_text(ctx, text)
    checker = SemanticsChecker(module)

    def observe(p: ModulePass, module: ModuleOp, seconds: float) -> None:
        found = checker.after(p.name, module, lambda copy: p.apply(ctx, copy))
        assert not found, "\n".join(map(str, found[:3]))
        if twice:
            once, again = str(module), module.clone()
            p.apply(ctx, again)
            assert str(again) == once, f"pass '{p.name}' changes its own result"

    run_passes(ctx, module, parse_passes(pipeline), observe=observe)
    return checker.checks


def try_seed(seed: int) -> tuple[int, str]:
    """The number of evaluations compared for a seed, and its failures, with the graph."""
    text = random_graph(seed)
    order = random.Random(seed).sample(VALUE_PASSES, ORDER)
    try:
        checks = checked(text, passes_between("imported", "planned", TARGETS[seed % len(TARGETS)]))
        return checks + checked(text, ",".join(order), twice=True), ""
    except Exception as error:
        return 0, f"seed {seed} ({','.join(order)}): {type(error).__name__}: {error}\n{text}"


def try_range(first: int) -> Tried:
    """Try a range of seeds."""
    found = [(seed, *try_seed(seed)) for seed in range(first, first + RANGE)]
    return Tried(first, sum(checks for _, checks, _ in found), [(seed, told) for seed, _, told in found if told])


def save(seed: int, folder: Path) -> None:
    """Write the graph of a seed that failed."""
    (folder / f"seed_{seed}.mlir").write_text(random_graph(seed))


CAMPAIGN = Campaign("graphs", "evaluations compared", RANGE, try_range, save)

if __name__ == "__main__":
    sys.exit(CAMPAIGN.main("Random graphs through the passes, against the reference.", "build/fuzz"))
