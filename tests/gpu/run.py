"""All tests that need a CUDA device, many processes at once: `python -m tests.gpu.run [--sample 40] [--jobs 16]`.

Compilation takes most of the time of a first run and uses one core for each process, so each file, and each family of
operations in it, is a process of its own; files that need the card for themselves come last. The log of each is a file
in `--logs`. With `--under memcheck` or `--under racecheck` (also initcheck and synccheck) the processes run under that
tool of compute-sanitizer. With `--seconds` what has not ended by then is stopped and listed; the kernels that it
compiled are kept in AIT_CACHE_DIR.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.gpu import sampling

ROOT = Path(__file__).parents[2]
ALONE = ("tests/runtime/test_gpu_devices.py",)
"""Files that test how much memory of the card is free, which other processes change: they run last, one by one."""
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
Group = tuple[str, str]


class Collected:
    """A plugin of pytest that notes the names of the selected tests by file and family."""

    def __init__(self) -> None:
        self.groups: dict[Group, list[str]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            path, family = sampling.group(item)
            name = str(Path(path).relative_to(session.config.rootpath))
            self.groups.setdefault((name, family), []).append(item.nodeid)


@dataclass(frozen=True)
class Outcome:
    """How the process of a group ended: pytest's last line, and the seconds that it took."""

    group: Group
    passed: bool
    line: str
    seconds: float


def files(root: Path = ROOT) -> list[str]:
    """The test files with a test that needs a device."""
    found = sorted((root / "tests").rglob("test_*.py"))
    return [str(path.relative_to(root)) for path in found if re.search(r"\bmark\.gpu\b", path.read_text())]


def collect(selected: Sequence[str], sample: str | None) -> Mapping[Group, Sequence[str]]:
    """The tests of some files by file and family, in a sample like that of `pytest --sample`."""
    plugin = Collected()
    options = ["--collect-only", "-qq", "-m", "gpu", *(["--sample", sample] if sample else [])]
    with open(os.devnull, "w") as nowhere:
        kept, sys.stdout = sys.stdout, nowhere
        try:
            code = pytest.main([*options, *selected], plugins=[plugin])
        finally:
            sys.stdout = kept
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise SystemExit(f"the tests could not be collected; see: python -m pytest {' '.join(options)}")
    return plugin.groups


def summary(log: str) -> str:
    """The last line of pytest in a log, with the last line of compute-sanitizer if it wrote one."""
    lines = log.splitlines()
    of_pytest = [line for line in lines if re.match(r"(?:=+ )?\d+ (?:passed|failed|skipped|errors?)\b", line)]
    of_tool = [line for line in lines if re.search(r"(?:ERROR|RACECHECK) SUMMARY", line)]
    return "; ".join(found[-1].strip("= ") for found in (of_pytest, of_tool) if found) or "no outcome"


class Runs:
    """The processes of the groups, until a moment of `time.monotonic`."""

    def __init__(self, logs: Path, tool: str | None, end: float | None) -> None:
        self.logs, self.tool, self.end = logs, tool, end

    def run(self, group: Group, tests: Sequence[str]) -> Outcome:
        """Run the tests of a group in a process of its own, which writes a log."""
        name = "-".join(filter(None, (Path(group[0]).stem, group[1], self.tool or "")))
        given, log = self.logs / f"{name}.tests", self.logs / f"{name}.log"
        given.write_text("\n".join(tests))
        command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", f"@{given}"]
        if self.tool:
            command = ["compute-sanitizer", "--tool", self.tool, "--target-processes", "all", "--error-exitcode", "9", *command]
        start = time.monotonic()
        left = None if self.end is None else self.end - start
        if left is not None and left <= 0:
            return Outcome(group, False, "not begun", 0)
        with log.open("w") as out:
            process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out, start_new_session=True)
            try:
                code = process.wait(left)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return Outcome(group, False, "stopped: out of time", time.monotonic() - start)
        return Outcome(group, code == 0, summary(log.read_text(errors="replace")), time.monotonic() - start)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.run", description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help="test files; default: each with a test marked gpu")
    parser.add_argument("--sample", type=_checked_sample, help="at most N tests of each file and family of tests/gpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once; default: a core each")
    parser.add_argument("--under", choices=TOOLS, help="a tool of compute-sanitizer")
    parser.add_argument("--seconds", type=float, help="stop what has not ended by then")
    parser.add_argument("--logs", type=Path, default=ROOT / "build" / "gpu-tests", help="a folder for the logs")
    args = parser.parse_args(argv)
    args.logs.mkdir(parents=True, exist_ok=True)
    end = None if args.seconds is None else time.monotonic() + args.seconds
    groups = collect(args.files or files(), args.sample)
    if not groups:
        print("no test is marked gpu there", file=sys.stderr)
        return 1
    runs, failed = Runs(args.logs, args.under, end), 0
    largest_first = sorted(groups.items(), key=lambda entry: -len(entry[1]))
    together = [entry for entry in largest_first if entry[0][0] not in ALONE]
    alone = [entry for entry in largest_first if entry[0][0] in ALONE]
    with ThreadPoolExecutor(max(args.jobs, 1)) as pool:
        outcomes = pool.map(lambda entry: runs.run(*entry), together)
        for outcome in itertools.chain(outcomes, (runs.run(*entry) for entry in alone)):
            failed += not outcome.passed
            word = "passed" if outcome.passed else "FAILED"
            print(f"{word} {' '.join(filter(None, outcome.group))}: {outcome.line} ({outcome.seconds:.0f} s)", flush=True)
    print(f"{len(groups)} files and families, {failed} failed; logs: {args.logs}")
    return int(failed > 0)


def _checked_sample(text: str) -> str:
    sampling.sample(text)
    return text


if __name__ == "__main__":
    sys.exit(main())
