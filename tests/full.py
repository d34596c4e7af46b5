"""All tests that need no GPU and all generated sources, in shards that can be resumed: `python -m tests.full [--shard 3/8]`.

A shard is a fixed part of the tests: the same on every machine. What passed is remembered in build/test-full for exactly
these sources, so that a run that was cut off, or that failed in one shard, goes on with the rest.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("ait_mlir", "runtime", "tests", "lit_tests", "examples", "benchmarks", "docs")
SOURCE_FILES = ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", "constraints.txt")
SHARDS = 8
PYTEST_NOTHING_COLLECTED = 5


def sources_digest(root: Path = ROOT) -> str:
    """A digest of everything that the tests read."""
    paths = [path for folder in SOURCES for path in (root / folder).rglob("*") if path.is_file()]
    paths += [root / name for name in SOURCE_FILES]
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(p for p in paths if "__pycache__" not in p.parts and p.exists()):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def shard(text: str) -> tuple[int, int]:
    """The number of a shard and how many there are."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no shard; expected one like 3/8, from 1 to the number of shards")
    return int(found[1]), int(found[2])


def commands(number: int, count: int, jobs: int) -> list[list[str]]:
    """The commands of a shard: its part of the tests; the last shard also compiles the generated sources."""
    part = f"{number}/{count}"
    found = [["-m", "pytest", "-q", "-n", str(jobs), "-m", "not gpu", "--shard", part, "--durations=8"]]
    if number == count:
        found.append(["-m", "tests.codegen.run", "--full", "--jobs", str(jobs)])
    return found


def run(number: int, count: int, jobs: int, done: Path) -> bool:
    """Run a shard unless it has passed before; whether it passed."""
    stamp = done / f"{number}_of_{count}"
    if stamp.exists():
        print(f"shard {number}/{count}: passed before, on the same sources", flush=True)
        return True
    print(f"shard {number}/{count}", flush=True)
    for command in commands(number, count, jobs):
        code = subprocess.run([sys.executable, *command], cwd=ROOT, check=False).returncode
        if code not in (0, PYTEST_NOTHING_COLLECTED):
            return False
    done.mkdir(parents=True, exist_ok=True)
    stamp.touch()
    return True


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.full", description=__doc__.split("\n\n")[0])
    parser.add_argument("--shard", type=shard, help="this part alone, like 3/8; default: all, one after the other")
    parser.add_argument("--jobs", type=int, default=2, help="tests at once")
    args = parser.parse_args(argv)
    count = args.shard[1] if args.shard else SHARDS
    numbers = [args.shard[0]] if args.shard else range(1, count + 1)
    done = ROOT / "build" / "test-full" / sources_digest()[:32]
    failed = [number for number in numbers if not run(number, count, args.jobs, done)]
    for number in failed:
        print(f"failed: shard {number}/{count}; again: make test-full SHARD={number}/{count}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
