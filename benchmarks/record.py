"""Rows of measurements in files: `--save FILE` writes them, `python -m benchmarks.page` makes docs/results.md from
them.

A file in `benchmarks/results` has the runs of one benchmark on one machine. A run replaces the one with its command.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch

from ait_mlir.errors import AitError
from ait_mlir.host.card import driver_version
from ait_mlir.host.cpu import cpu_fields
from ait_mlir.host.files import write_atomic
from benchmarks import measure

FOLDER = Path(__file__).with_name("results")


@dataclass(frozen=True)
class Run:
    """The table that a command printed, and where it ran; `limits` are the rates of the machine in the same run."""

    command: str
    machine: str
    software: str
    limits: str
    note: str
    heads: list[str]
    rows: list[list[str]]


def add_save(parser: argparse.ArgumentParser) -> None:
    """The option that names the file."""
    help = "write the rows to FILE, such as benchmarks/results/models-h200.json, in place of those of the same command"
    parser.add_argument("--save", type=Path, metavar="FILE", help=help)


def show(
    save: Path | None, heads: Sequence[str], rows: Sequence[Sequence[str]], device: str = "cuda", limits: str = ""
) -> None:
    """Print a table, and write it to the file if one is named."""
    print(measure.table([list(heads), *map(list, rows)]))
    if save is not None:
        write(save, Run(command(), machine(device), software(device), limits, "", list(heads), list(map(list, rows))))


def measured(save: Path | None, heads: Sequence[str], work: Iterable[Callable[[], list[str]]], limits: str) -> int:
    """Measure rows on the card, print each at once, then `show` them; the exit status: 1 if a row ends with FAILED."""
    rows: list[list[str]] = []
    with torch.inference_mode():
        for row in work:
            rows.append(row())
            print("  ".join(rows[-1]), flush=True)
            torch.cuda.empty_cache()
    show(save, heads, rows, limits=limits)
    return 1 if any("FAILED" in r[-1] for r in rows) else 0


def read(path: Path) -> list[Run]:
    """The runs of a file; `AitError` for another kind of file."""
    try:
        runs = [Run(**run) for run in json.loads(path.read_text(encoding="utf-8"))["runs"]]
    except (ValueError, TypeError, KeyError) as error:
        raise AitError(f"{path} has no rows of a benchmark: {error}") from error
    for run in runs:
        if wrong := [row for row in run.rows if len(row) != len(run.heads)]:
            raise AitError(f"{path}: {run.command}: expected {len(run.heads)} cells in a row, found {wrong[0]}")
    return runs


def write(path: Path, run: Run) -> None:
    """Put a run into a file, in place of the one with the same command."""
    runs = read(path) if path.exists() else []
    places = [i for i, old in enumerate(runs) if old.command == run.command]
    runs[places[0] if places else len(runs) :] = [run, *(runs[places[0] + 1 :] if places else [])]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text(runs).encode())


def text(runs: Sequence[Run]) -> str:
    """The runs as JSON, a row in a line."""
    blocks: list[str] = []
    for run in runs:
        values = asdict(run)
        lines = [f"  {json.dumps(f.name)}: {json.dumps(values[f.name])}" for f in fields(Run) if f.name != "rows"]
        rows = ",\n".join(f"   {json.dumps(row)}" for row in run.rows)
        blocks.append(" {\n" + ",\n".join([*lines, f'  "rows": [\n{rows}\n  ]']) + "\n }")
    return '{"runs": [\n' + ",\n".join(blocks) + "\n]}\n"


PLACES = ("--save", "--rows", "--workdir")
"""Options that name places, and say nothing about what is measured."""


def command() -> str:
    """How this process was started, without the places of files."""
    words = iter(sys.argv[1:])
    kept: list[str] = []
    for word in words:
        if word in PLACES:
            next(words, None)
        elif word.partition("=")[0] not in PLACES:
            kept.append(word)
    return shlex.join(["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *kept])


def machine(device: str) -> str:
    """The card, or the processor and the cores that this process may use."""
    if device != "cpu":
        return torch.cuda.get_device_name()
    return f"{cpu_fields().get('model name', 'a processor')}, {len(os.sched_getaffinity(0))} cores"


def software(device: str) -> str:
    """The versions that times depend on."""
    if device == "cpu":
        return f"torch {torch.__version__}"
    return f"driver {driver_version()}, CUDA {torch.version.cuda}, torch {torch.__version__}"
