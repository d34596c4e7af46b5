"""Random graphs through every pipeline and through passes in random order: `python -m tests.fuzz.run --count 10000`.

Each seed makes one graph (tests/generator.py). It takes the pipeline of one target, then a few passes over `ait` in an
order that the seed draws, each twice. After every pass the reference computes the outputs again, in float64; the second
run of a pass must change nothing. What has passed is remembered in build/fuzz for exactly these sources, in ranges of
seeds, so that a run that was cut off goes on. The graph of a failure is written to build/fuzz/seed_N.mlir.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import random
import sys
import time
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import PASSES, Patterns, passes_between
from tests.full import sources_digest
from tests.generator import random_graph

TARGETS = ("cpu", "cuda", "rocm")
RANGE = 20
"""Seeds that are remembered together."""
ORDER = 6
"""Passes of a random order."""
VALUE_PASSES = sorted(
    [name for name, row in PASSES.items() if isinstance(row, Patterns) and row.dialect == "ait" and not row.assumption]
    + ["group-embeddings", "group-norms", "group-products", "pad-products", "remove-duplicates", "rotate-products"]
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
    """The evaluations compared for a seed, and what went wrong, with the graph."""
    text = random_graph(seed)
    order = random.Random(seed).sample(VALUE_PASSES, ORDER)
    try:
        checks = checked(text, passes_between("imported", "planned", TARGETS[seed % len(TARGETS)]))
        return checks + checked(text, ",".join(order), twice=True), ""
    except Exception as error:
        return 0, f"seed {seed} ({','.join(order)}): {type(error).__name__}: {error}\n{text}"


def try_range(first: int) -> tuple[int, int, list[tuple[int, str]]]:
    """The first seed of a range, the evaluations compared, and the failures."""
    found = [(seed, *try_seed(seed)) for seed in range(first, first + RANGE)]
    return first, sum(checks for _, checks, _ in found), [(seed, told) for seed, _, told in found if told]


def main() -> int:
    parser = argparse.ArgumentParser(description="Random graphs through the passes, against the reference.")
    parser.add_argument("--count", type=int, default=1000, help="graphs (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"), help="default: %(default)s")
    args = parser.parse_args()
    if args.count < 1 or args.first < 0 or args.jobs < 1:
        parser.error("--count and --jobs are at least 1, --first at least 0")
    done = args.folder / sources_digest()[:16]
    done.mkdir(parents=True, exist_ok=True)
    begin = args.first // RANGE * RANGE
    ranges = range(begin, args.first + args.count, RANGE)
    left = [first for first in ranges if not (done / str(first)).exists()]
    print(f"{len(ranges) * RANGE} graphs from seed {begin}, {len(left) * RANGE} to try", flush=True)
    start, checks, failed = time.monotonic(), 0, 0
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for number, (first, compared, failures) in enumerate(pool.map(try_range, left), 1):
            checks, failed = checks + compared, failed + len(failures)
            for seed, told in failures:
                (args.folder / f"seed_{seed}.mlir").write_text(random_graph(seed))
                print(told, flush=True)
            if not failures:
                (done / str(first)).touch()
            if number % 25 == 0:
                print(f"{number * RANGE} graphs, {time.monotonic() - start:.0f} s", flush=True)
    print(
        f"{len(left) * RANGE - failed} passed, {failed} failed, {checks} evaluations compared, "
        f"{time.monotonic() - start:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
