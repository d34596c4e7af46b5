"""Tries ranges of seeds in several processes; ranges that passed on exactly these sources are not tried again."""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.full import sources_digest


@dataclass(frozen=True)
class Tried:
    """The outcome of a range of seeds: its first seed, the number of checks, and the failures by seed."""

    first: int
    checks: int
    failures: list[tuple[int, str]]


@dataclass(frozen=True)
class Campaign:
    """A kind of seeds: the words for its cases and checks in the output, and the functions that try them.

    `try_range` gets the first of `size` seeds; `save` writes the case of a seed that failed into a folder.
    """

    cases: str
    checks: str
    size: int
    try_range: Callable[[int], Tried]
    save: Callable[[int, Path], None]

    def main(self, description: str, folder: str) -> int:
        """Read the command line and try the seeds; returns the exit code."""
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--count", type=int, default=1000, help=f"{self.cases} (default: %(default)s)")
        parser.add_argument("--first", type=int, default=0, help="the first seed (default: %(default)s)")
        parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)")
        parser.add_argument("--folder", type=Path, default=Path(folder), help="default: %(default)s")
        args = parser.parse_args()
        if args.count < 1 or args.first < 0 or args.jobs < 1:
            parser.error("--count and --jobs are at least 1, --first at least 0")
        return self.run(args.first, args.count, args.jobs, args.folder)

    def run(self, first: int, count: int, jobs: int, folder: Path) -> int:
        """Try the ranges that hold these seeds and have not passed yet; returns the exit code."""
        done = folder / sources_digest()[:16]
        done.mkdir(parents=True, exist_ok=True)
        begin = first // self.size * self.size
        ranges = range(begin, first + count, self.size)
        left = [first for first in ranges if not (done / str(first)).exists()]
        print(f"{len(ranges) * self.size} {self.cases} from seed {begin}, {len(left) * self.size} to try", flush=True)
        start, checks, failed = time.monotonic(), 0, 0
        with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
            for number, tried in enumerate(pool.map(self.try_range, left), 1):
                checks, failed = checks + tried.checks, failed + len(tried.failures)
                for seed, told in tried.failures:
                    self.save(seed, folder)
                    print(told, flush=True)
                if not tried.failures:
                    (done / str(tried.first)).touch()
                if number % 25 == 0:
                    print(f"{number * self.size} {self.cases}, {time.monotonic() - start:.0f} s", flush=True)
        print(
            f"{len(left) * self.size - failed} passed, {failed} failed, {checks} {self.checks}, "
            f"{time.monotonic() - start:.0f} s"
        )
        return 1 if failed else 0
