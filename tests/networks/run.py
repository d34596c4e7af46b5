"""A table of the networks, row by row: `python -m tests.networks.run [NAME...] [--import-only]`.

Each row says whether the network imports or what is missing, whether it compiles, and its errors over eager's. What
was found for exactly these sources is remembered in build/networks and not computed again.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import multiprocessing
import re
import sys
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from tests.importers.vision import timm
from tests.networks.check import Outcome, check
from tests.networks.networks import NETWORKS

ROOT = Path(__file__).parents[2]
SOURCES = ("ait_mlir", "runtime", "tests/networks")
SECONDS = 600
"""The seconds after which a network is stopped."""


def digest() -> str:
    """A digest of the inputs of the table."""
    found = hashlib.sha256()
    for path in sorted(p for folder in SOURCES for p in (ROOT / folder).rglob("*") if p.is_file()):
        if "__pycache__" not in path.parts:
            found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def import_libraries() -> None:
    """Import the modules that every network needs, before this process is forked."""
    import transformers

    timm()
    assert transformers.AutoModel


def _child(name: str, import_only: bool, pipe: Connection) -> None:
    try:
        outcome = check(NETWORKS[name], import_only)
    except Exception as error:
        outcome = Outcome(error=f"{type(error).__name__}: {error}\n{traceback.format_exc()}", stage="traceback")
    pipe.send(outcome)


def alone(name: str, import_only: bool, seconds: float = SECONDS) -> Outcome:
    """The outcome of a network in a process of its own, which may end or take too long."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(name, import_only, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(seconds) else Outcome(error=f"not done after {seconds} s", stage="time")
    except EOFError:
        return Outcome(error="the process ended", stage="crash")
    finally:
        process.kill()
        process.join()


def row(name: str, outcome: Outcome) -> str:
    """One line of the table, followed by the missing operations."""
    seconds = ", ".join(f"{stage} {s:.0f} s" for stage, s in outcome.seconds.items() if s >= 1)
    if outcome.ratios:
        largest = [max(r[i] for r in outcome.ratios) for i in range(2)]
        told = f"{outcome.launches} launches, max error ratio {largest[0]:.2f}, rmse {largest[1]:.2f}"
    else:
        told = "imports" if outcome.passed else ""
    line = f"{'ok  ' if outcome.passed else 'FAIL'} {name}: {told}"
    if not outcome.passed:
        line += f"{outcome.stage}: {re.sub(chr(10), ' | ', outcome.error)[:1500]}"
    missing = [f"\n       {operation} ({count}x) {place}" for operation, count, place in outcome.missing]
    return f"{line} ({seconds})" + "".join(missing)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.networks.run", description=__doc__)
    parser.add_argument("names", nargs="*", help="names or parts of names; default: all")
    parser.add_argument("--import-only", action="store_true", help="compile and run nothing")
    parser.add_argument("--again", action="store_true", help="forget what was found before")
    args = parser.parse_args(argv)
    chosen = [n for n in NETWORKS if not args.names or any(part in n for part in args.names)]
    done = ROOT / "build" / "networks" / digest()
    done.mkdir(parents=True, exist_ok=True)
    import_libraries()
    failed = 0
    for name in chosen:
        stored = done / f"{name.replace(' ', '_')}{'.import' if args.import_only else ''}.json"
        if stored.exists() and not args.again:
            outcome = Outcome(**json.loads(stored.read_text()))
        else:
            outcome = alone(name, args.import_only)
            stored.write_text(json.dumps(dataclasses.asdict(outcome)))
        failed += not outcome.passed
        print(row(name, outcome), flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} networks {'import' if args.import_only else 'agree with eager'}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
