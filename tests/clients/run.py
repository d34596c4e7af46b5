"""Tests that others wrote for the packages whose interfaces ours has, run on ours with another import.

    python -m tests.clients.run --suite aitemplate --checkout DIR --out FILE.jsonl [--files REGEX] [--target cuda]
        [--jobs 16] [--per-test 120] [--sample 2/10] [--seconds 600]

Suites: `aitemplate` (facebookincubator/AITemplate, tests/unittest), `cudnn` and `notebooks` (NVIDIA/cudnn-frontend, test/python
and samples/python). FILE gets a line a test as soon as it ends; a second run goes on where the first one stopped. Tests
run in an order drawn once, so what ran by some moment is a fair sample.
"""

from __future__ import annotations

import argparse
import builtins
import collections
import contextlib
import importlib
import io
import json
import linecache
import os
import random
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import full
from tests.alone import each_alone
from tests.clients.suites import SUITES, Suite, cells, copy, methods
from tests.clients.unfair import documented, unfair, unfair_error

if TYPE_CHECKING:
    from tests.clients.judge import Judge, Verdict

CORES = len(os.sched_getaffinity(0))
KINDS = ("pass", "stricter", "wrong", "refused", "error", "crash", "timeout", "unfair", "skipped")
FAIR = KINDS[:7]
PRELOADED = ("torch", "pytest", "ait_mlir.frontend.nn", "tests.clients.judge")
"""Modules that tests use. They are imported once, before this process is forked, and after the environment is set. None
imports TVM FFI, which asks for a card: in a process forked after that the CUDA driver crashes.
"""
Row = dict[str, Any]


class Collected:
    """A plugin of pytest that notes the names of the tests of a file."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.error = ""

    def pytest_collection_finish(self, session: Any) -> None:
        self.names = [item.nodeid for item in session.items]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.error = str(report.longrepr)


class Runner:
    """Runs the tests of a suite from a changed copy in `folder`, each in the process that calls."""

    def __init__(self, suite: Suite, folder: Path, target: str, threads: int) -> None:
        self.suite, self.folder, self.target, self.threads = suite, folder, target, threads

    def place(self, name: str) -> Path:
        """The working folder of a test, with its `log`."""
        short = re.sub(r"\W", "_", name)[-100:]
        return self.folder / "work" / f"{zlib.crc32(name.encode()):08x}_{short}"

    def words(self, name: str) -> str:
        """The beginning and the end of what a test printed."""
        log = self.place(name) / "log"
        text = log.read_text(errors="replace") if log.exists() else ""
        return text if len(text) < 2000 else f"{text[:1000]} ... {text[-1000:]}"

    def _enter(self, name: str) -> Judge:
        """Prepare this process: its working folder, where its output goes, PyTorch, and what follows its asserts."""
        import torch

        from tests.clients.host import HostCuda
        from tests.clients.judge import Judge

        torch.set_num_threads(self.threads)
        work, judge = self.place(name), Judge(str(self.folder))
        judge.install()
        work.mkdir(parents=True, exist_ok=True)
        os.chdir(work)
        log = os.open(work / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(log, stream)
        builtins.host_cuda = HostCuda()  # type: ignore[attr-defined]
        return judge

    def _pytest(self, name: str, *options: str, plugin: object) -> None:
        import pytest

        root = self.folder / self.suite.folders[0]
        configuration = root / "pytest.ini"
        configuration.touch()
        fixed = ["-q", "-s", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:faulthandler", f"--rootdir={root}", "-c", str(configuration)]
        pytest.main([*fixed, *options, str(self.folder / name)], plugins=[plugin])

    def collect(self, name: str, _: None) -> tuple[list[str], str]:
        """The names of the tests of a file; those that its text has, and the error, if it cannot be imported."""
        if name.endswith(".ipynb"):
            return [name], ""
        self._enter(name)
        plugin = Collected()
        self._pytest(name, "--collect-only", plugin=plugin)
        if plugin.error:
            found = methods((self.folder / name).read_text(encoding="utf-8"))
            return [f"{name}::{method}" for method in found], plugin.error
        return [f"{name}::{found.partition('::')[2]}" for found in plugin.names], ""

    def run(self, name: str, error: str) -> Row:
        """The row of a test; `error` is that of importing its file."""
        from tests.clients.judge import Verdict

        start = time.monotonic()
        judge = self._enter(name)
        if error:
            found = Verdict(*judge_import(error))
        elif name.endswith(".ipynb"):
            found = self._notebook(name, judge)
        else:
            self._pytest(name, plugin=judge)
            found = judge.verdict()
        return {**asdict(found), "seconds": round(time.monotonic() - start, 1)}

    def _notebook(self, name: str, judge: Judge) -> Verdict:
        judge.ran, scope = True, {"__name__": "__main__"}
        try:
            for number, cell in enumerate(cells(self.folder / name, self.suite, self.target)):
                place = str(self.folder / f"{name}:{number}")
                linecache.cache[place] = len(cell), None, cell.splitlines(keepends=True), place
                exec(compile(cell, place, "exec"), scope)
        except Exception as raised:
            judge.raised = raised
        return judge.verdict()


def judge_import(error: str) -> tuple[str, str]:
    """The verdict of a test whose file cannot be imported."""
    lines = [line[1:].strip() for line in error.splitlines() if line.startswith("E ")]
    reason = "; ".join(lines or error.splitlines()[-2:])[:2000]
    if why := unfair_error(reason):
        return "unfair", f"{why}: {reason}"
    return ("refused" if "ait_mlir" in reason else "error"), reason


def failed(stage: str, error: str) -> Row:
    """The row of a test whose process gave none."""
    kind = {"time": "timeout", "crash": "crash"}.get(stage, "error")
    return {"kind": kind, "reason": error[-2000:], "compared": 0, "seconds": 0.0}


def drawn(names: Sequence[str], most: int | None = None, number: int = 1, parts: int = 1) -> list[str]:
    """A part of the tests in an order that is drawn, always the same; of each file at most `most`."""
    mixed, seen = random.Random(0).sample(sorted(names), len(names)), collections.Counter[str]()
    kept: list[str] = []
    for name in mixed:
        seen[file := name.partition("::")[0]] += 1
        if most is None or seen[file] <= most:
            kept.append(name)
    return kept[number - 1 :: parts]


class Results:
    """The rows of a file of results by the names of their tests; a line that was cut off is left out."""

    def __init__(self, path: Path, **fixed: str) -> None:
        self.path, self.fixed, self.rows = path, fixed, dict[str, Row]()
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for line in text.splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                row = json.loads(line)
                self.rows[row["test"]] = row
        if text and not text.endswith("\n"):
            path.write_text(text + "\n", encoding="utf-8")

    def note(self, name: str, row: Row) -> None:
        """Write the row of a test."""
        self.rows[name] = {"test": name, **self.fixed, **row}
        with self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(self.rows[name]) + "\n")


def report(found: Mapping[str, Row]) -> str:
    """Counts by file, and a line for each test that did not pass; of those that are unfair or skipped one for each reason."""
    by_file: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for name, row in found.items():
        by_file[name.partition("::")[0]][row["kind"]] += 1
    total = sum(by_file.values(), collections.Counter[str]())
    out = io.StringIO()
    for title, counts in (*sorted(by_file.items()), ("all", total)):
        out.write(f"{title}: {', '.join(f'{counts[kind]} {kind}' for kind in KINDS if counts[kind])}\n")
    for kind in KINDS[1:]:
        lines = collections.Counter[str]()
        for name, row in sorted(found.items()):
            where = name if kind in FAIR else name.partition("::")[0]
            right = f" ({row['compared']} comparisons right)" if kind == "stricter" else ""
            lines[f"{where}{right}: {' '.join(row['reason'].split())[:400]}"] += row["kind"] == kind
        for line, count in (+lines).items():
            out.write(f"{kind:<8} {line}{f' ({count} tests)' if count > 1 else ''}\n")
    fair = sum(total[kind] for kind in FAIR)
    out.write(f"{fair} fair: {total['pass']} pass, {total['stricter']} with a stricter assertion, {total['wrong']} wrong\n")
    return out.getvalue()


def collect(files: Sequence[str], runner: Runner, kept: Path, jobs: int, limit: float, until: float) -> dict[str, str]:
    """The tests of files, with the errors of files that cannot be imported. The names of the others are kept in a file."""

    def uncollected(stage: str, error: str) -> tuple[list[str], str]:
        return [], f"{stage}: {error}"

    known: dict[str, list[str]] = json.loads(kept.read_text()) if kept.exists() else {}
    found = {name: "" for file in files for name in known.get(file, ())}
    missing = dict.fromkeys(file for file in files if file not in known)
    for file, (tests, error) in each_alone(missing, runner.collect, uncollected, jobs, 0, limit, until):
        found |= dict.fromkeys(tests or ([file] if error else []), error)
        if not error:
            known[file] = tests
    kept.write_text(json.dumps(known))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.run", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--suite", choices=list(SUITES), required=True)
    parser.add_argument("--checkout", type=Path, required=True, help="the work tree of the suite's repository")
    parser.add_argument("--out", type=Path, required=True, help="the file of results, a line of JSON a test")
    parser.add_argument("--files", default="", help="a regular expression of the names of tests")
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--jobs", type=int, default=CORES, help="processes at once; default: a core each")
    parser.add_argument("--threads", type=int, help="threads and compilers of each; default: the cores divided by jobs")
    parser.add_argument("--per-test", type=float, default=120, help="seconds for one test")
    parser.add_argument("--most", type=int, help="of each file at most N fair tests, drawn, and as many others")
    parser.add_argument("--sample", type=full.shard, default=(1, 1), help="with 2/10: the second of ten parts")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="seconds for all")
    args = parser.parse_args(argv)
    until, suite = time.monotonic() + args.seconds, SUITES[args.suite]
    if args.target == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    threads = args.threads or max(1, CORES // args.jobs)
    for variable in ("OMP_NUM_THREADS", "AIT_NUM_THREADS", "AIT_BUILD_JOBS", "TORCHINDUCTOR_COMPILE_THREADS"):
        os.environ[variable] = str(threads)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for module in PRELOADED:
        importlib.import_module(module)

    results = Results(args.out, suite=suite.name, target=args.target)
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept).resolve()
        runner = Runner(suite, folder, args.target, threads)
        of_files = args.files.partition("::")[0]
        files = [name for name in copy(suite, args.checkout, folder, args.target) if re.search(of_files, name)]
        names = collect(files, runner, Path(f"{args.out}.names"), args.jobs, args.per_test, until)
        reasons = {name: unfair(suite.name, args.target, name) for name in names if re.search(args.files, name)}
        chosen = drawn([name for name, why in reasons.items() if not why], args.most, *args.sample)
        todo = {name: names[name] for name in chosen if name not in results.rows}
        for name in drawn([name for name, why in reasons.items() if why], args.most, *args.sample):
            if name not in results.rows:
                results.note(name, {"kind": "unfair", "reason": reasons[name], "compared": 0, "seconds": 0.0})
        for name, row in each_alone(todo, runner.run, failed, args.jobs, 0, args.per_test, until):
            if time.monotonic() > until and row["kind"] == "timeout":
                continue
            if row["kind"] == "crash":
                row["reason"] += f": {runner.words(name)}"
            if row["kind"] == "wrong" and (why := documented(args.target, name, row["reason"])):
                row |= {"kind": "stricter", "reason": f"documented, {why}: {row['reason']}"}
            results.note(name, row)
            print(f"{row['kind']:<8} {name} ({row['seconds']:.0f} s)", flush=True)
    print(report(results.rows), end="")
    print(f"{sum(name not in results.rows for name in todo)} of {len(chosen)} tests were not tried")
    return 0


if __name__ == "__main__":
    sys.exit(main())
