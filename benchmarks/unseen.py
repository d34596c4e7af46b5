"""Random networks beside PyTorch, compiled as a user compiles: what nobody has tuned for.

    python -m benchmarks.unseen --seed 1 --count 20                # on the GPU: eager and torch.compile in CUDA graphs
    python -m benchmarks.unseen --seed 1 --count 10 --device cpu   # small ones, beside eager

A seed always draws the same networks. The table has the worst rows first. Otherwise as `benchmarks/networks.py`.
"""

from __future__ import annotations

import argparse
import sys

from ait_mlir.errors import AitError
from benchmarks.networks import Network, add_options, report, settle_options
from benchmarks.random_networks import networks


def main() -> int:
    parser = argparse.ArgumentParser(description="Random networks beside PyTorch.")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn (default: %(default)s)")
    parser.add_argument("--count", type=int, default=20, help="how many networks (default: %(default)s)")
    parser.add_argument("--only", type=int, action="append", metavar="N", help="network N of the seed alone, from 0 on")
    add_options(parser)
    args = parser.parse_args()
    settle_options(parser, args)
    if args.count < 1 or any(not 0 <= n < args.count for n in args.only or ()):
        parser.error(f"--count is at least 1, and --only from 0 to {args.count - 1}")
    drawn = networks(args.seed, args.count, small=args.device == "cpu")
    entries = {
        f"{args.seed}.{i} {net.text}": Network(
            net.make, net.inputs, (net.batch,), net.dynamic, largest=max(64, net.batch)
        )
        for i, net in enumerate(drawn)
        if args.only is None or i in args.only
    }
    return report(entries, args)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
