"""Random networks that nobody has tuned for, compiled as a user compiles, beside PyTorch.

    python -m benchmarks.unseen --seed 1 --count 20                # on the GPU: eager and torch.compile in CUDA graphs
    python -m benchmarks.unseen --seed 1 --count 10 --device cpu   # small ones, beside eager
    python -m benchmarks.unseen --seed 1 --jobs 2 --rows seed-1.jsonl --seconds 500     # can be stopped and resumed

A seed always draws the same networks of the same families; `--family graph` draws networks of graphs alone.
The table has the worst rows first. With `--jobs 2`, two processes share the networks and the card: one compiles while
the other times. Otherwise as `benchmarks/networks.py`.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ait_mlir.errors import AitError
from benchmarks import record
from benchmarks.networks import Network, add_options, measure_all, print_table, settle_options
from benchmarks.random_networks import FAMILIES, networks
from benchmarks.shared import Results, Row


def main() -> int:
    parser = argparse.ArgumentParser(description="Random networks beside PyTorch.")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn (default: %(default)s)")
    parser.add_argument("--count", type=int, default=20, help="how many networks (default: %(default)s)")
    parser.add_argument("--only", type=int, action="append", metavar="N", help="network N of the seed alone, from 0 on")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="draw of this family (default: of all)")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the card (default: %(default)s)")
    parser.add_argument("--no-table", action="store_true", help="print rows only")
    add_options(parser)
    args = parser.parse_args()
    settle_options(parser, args)
    if args.count < 1 or any(not 0 <= n < args.count for n in args.only or ()):
        parser.error(f"--count is at least 1, and --only from 0 to {args.count - 1}")
    if args.jobs < 1:
        parser.error("--jobs is at least 1")
    drawn = networks(args.seed, args.count, args.device == "cpu", args.family or FAMILIES)
    entries = {
        f"{args.seed}.{i} {net.text}": Network(
            net.make, net.inputs, (net.batch,), net.dynamic, largest=max(64, net.batch)
        )
        for i, net in enumerate(drawn)
        if args.only is None or i in args.only
    }
    with tempfile.TemporaryDirectory() as folder:
        results = Results(args.rows or (Path(folder) / "rows.jsonl" if args.jobs > 1 else None))
        (measure_all if args.jobs == 1 else share)(entries, results, args)
        if args.no_table:
            return 0
        save, args.save = args.save, None
        failed = print_table(entries, results, args)
        if rows := [row for done in results.read() if done.network in entries for row in done.rows]:
            record.show(save, HEADS, [[str(args.seed), args.dtype, *summary(rows)]], args.device)
        return failed


HEADS = ["seed", "dtype", "networks", "geometric mean", "smallest", "largest", "above 1"]
HEADS += ["max err / eager's", "rmse / eager's"]


def summary(rows: Sequence[Row]) -> list[str]:
    """How many networks there are, their ratios, and their largest errors."""
    ratios = [row.ratio for row in rows]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    errors = [[float(row.cells[column].split()[0]) for row in rows] for column in (-2, -1)]
    cells = [f"{mean:.2f}", f"{min(ratios):.2f}", f"{max(ratios):.2f}", str(sum(r > 1 for r in ratios))]
    return [str(len(rows)), *cells, *(f"{max(values):.2f}" for values in errors)]


def share(entries: Mapping[str, Network], results: Results, args: argparse.Namespace) -> None:
    """Measure networks in several processes, including this one."""
    options = [*sys.argv[1:], "--jobs", "1", "--rows", str(results.path), "--no-table"]  # the last of each counts
    others = [subprocess.Popen([sys.executable, "-m", "benchmarks.unseen", *options]) for _ in range(args.jobs - 1)]
    try:
        measure_all(entries, results, args)
    finally:
        for other in others:
            other.wait()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
