"""A table of the networks, row by row: `python -m tests.networks.run [NAME...] [--families] [--target cuda]`.

Each row says whether the network imports or what is missing, whether it compiles, and its errors over eager's. What
was found for exactly these sources is remembered in build/networks and not computed again. `--families` adds the
architectures of `families.py`; `--target cuda` compares in f16 on the cards of the machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import random
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from tests.alone import each_alone
from tests.importers.vision import timm
from tests.networks.check import CPU, Outcome, Place, check
from tests.networks.families import FAMILIES
from tests.networks.network import Network
from tests.networks.networks import NETWORKS

ROOT = Path(__file__).parents[2]
SOURCES = ("ait_mlir", "runtime", "tests/networks")
SECONDS = 600
"""The seconds after which a network is stopped."""


def digest(sources: Sequence[str] = SOURCES, without: Sequence[str] = ()) -> str:
    """A digest of the files of folders, but for some folders; by default of the inputs of the table."""
    found = hashlib.sha256()
    for path in sorted(p for folder in sources for p in (ROOT / folder).rglob("*") if p.is_file()):
        kept = str(path.relative_to(ROOT))
        if "__pycache__" not in path.parts and not kept.startswith(tuple(f"{folder}/" for folder in without)):
            found.update(kept.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def import_libraries() -> None:
    """Import the modules that networks need, before this process is forked. Networks of one that is missing fail."""
    timm()
    try:
        import transformers
    except ImportError as error:
        print(f"transformers is missing: {error}")
    else:
        assert transformers.AutoModel


def row(name: str, outcome: Outcome) -> str:
    """One line of the table, followed by the missing operations."""
    seconds = ", ".join(f"{stage} {s:.0f} s" for stage, s in outcome.seconds.items() if s >= 1)
    if outcome.ratios:
        largest = [max(r[i] for r in outcome.ratios) for i in range(2)]
        told = f"{outcome.launches} launches, max error ratio {largest[0]:.2f}, rmse {largest[1]:.2f}"
    else:
        told = "imports" if outcome.passed else ""
    word = "ok" if outcome.passed else {"import": "refused", "done": "wrong"}.get(outcome.stage, "failed")
    line = f"{word:<7} {name}: {told} "
    if not outcome.passed:
        line += f"{outcome.stage}: {re.sub(chr(10), ' | ', outcome.error)[:1500]}"
    missing = [f"\n       {operation} ({count}x) {place}" for operation, count, place in outcome.missing]
    return f"{line} ({seconds})" + "".join(missing)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.networks.run", description=__doc__)
    parser.add_argument("names", nargs="*", help="names or parts of names; default: all")
    parser.add_argument("--families", action="store_true", help="the architectures of families.py, too")
    parser.add_argument("--import-only", action="store_true", help="compile and run nothing")
    parser.add_argument("--again", action="store_true", help="forget what was found before")
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu", help="cuda: in f16, on a card")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--cards", type=int, default=1, help="cards of the machine")
    parser.add_argument("--limit", type=float, default=SECONDS, help="seconds for one network")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="seconds for all")
    args = parser.parse_args(argv)
    until = time.monotonic() + args.seconds
    place = Place("cuda", torch.float16) if args.target == "cuda" else CPU
    known = {**NETWORKS, **FAMILIES} if args.families else NETWORKS
    chosen = {n: known[n] for n in known if not args.names or any(part in n for part in args.names)}
    kind = ".import" if args.import_only else ".cuda" if args.target == "cuda" else ""
    done = ROOT / "build" / "networks" / digest()
    done.mkdir(parents=True, exist_ok=True)
    files = {n: done / f"{n.replace(' ', '_')}{kind}.json" for n in chosen}
    import_libraries()
    found = {n: Outcome(**json.loads(f.read_text())) for n, f in files.items() if f.exists() and not args.again}
    for name, outcome in found.items():
        print(row(name, outcome), flush=True)
    missing = {n: network for n, network in chosen.items() if n not in found}
    if args.jobs > 1:  # networks that share kernels do not compile them at the same time
        missing = dict(random.Random(0).sample(list(missing.items()), len(missing)))

    def work(name: str, network: Network) -> Outcome:
        return check(network, args.import_only, place)

    def failed(stage: str, error: str) -> Outcome:
        return Outcome(stage=stage, error=error)

    cards = args.cards if place.target == "cuda" else 0
    for name, outcome in each_alone(missing, work, failed, args.jobs, cards, args.limit, until):
        if time.monotonic() < until or outcome.stage != "time":
            if outcome.stage != "time":
                files[name].write_text(json.dumps(dataclasses.asdict(outcome)))
            found[name] = outcome
            print(row(name, outcome), flush=True)
    passed = sum(outcome.passed for outcome in found.values())
    what = "import" if args.import_only else "agree with eager"
    print(f"{passed} of {len(found)} networks {what}; {len(chosen) - len(found)} were not tried")
    return int(passed < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
