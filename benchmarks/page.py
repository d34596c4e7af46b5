"""Make docs/results.md of the files in `benchmarks/results`: `python -m benchmarks.page`; `--check` only compares.

`benchmarks/results/page.md` is the page without its numbers. A line of it that starts with `::` is replaced:

    :: table FILE + FILE | COLUMN, COLUMN, ... | WORDS; WORDS    the rows of all runs, or those that contain some words
    :: summary FILE | COLUMN | WORDS; WORDS                      how many rows, their geometric mean, smallest, largest
    :: software                                                  the versions that most runs have

`FILE#2` is the second run of a file alone. The column `machine` says where a row comes from.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.errors import AitError
from benchmarks.record import FOLDER, Run, read

TEMPLATE = FOLDER / "page.md"
PAGE = FOLDER.parents[1] / "docs" / "results.md"


def page() -> str:
    """The page, from the template and the files; `AitError` with the line of the template that is wrong."""
    lines: list[str] = []
    for number, line in enumerate(TEMPLATE.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("::"):
            lines.append(line)
            continue
        try:
            lines += made(line)
        except (AitError, OSError, ValueError) as error:
            raise AitError(f"{TEMPLATE}:{number}: {line}: {error}") from error
    return "\n".join(lines) + "\n"


def made(line: str) -> list[str]:
    """The lines that a `::` line stands for."""
    what, *rest = (part.strip() for part in line.removeprefix("::").split("|"))
    kind, _, names = what.partition(" ")
    if kind == "software":
        return [f"Unless a table says otherwise: {usual_software()}."]
    if kind not in ("table", "summary") or not rest:
        raise AitError("expected `:: table FILE | COLUMNS` or `:: summary FILE | COLUMN`")
    columns, words = rest[0].split(", "), rest[1].split("; ") if rest[1:] else []
    runs = [run for name in names.split(" + ") for run in chosen(name)]
    if missing := [c for c in columns if c != "machine" and not any(c in run.heads for run in runs)]:
        raise AitError(f"no run of {names} has the column {missing[0]!r}")
    kept = [(run, rows) for run in runs if (rows := rows_of(run, columns, words))]
    if not kept:
        raise AitError(f"{names} has no such rows")
    rows = [row for _, found in kept for row in found]
    where = source([run for run, _ in kept])
    if kind == "summary":
        return [f"{summary([row[0] for row in rows])} {where}"]
    lines = [columns, ["---"] * len(columns), *rows]
    return [where, "", *(f"| {' | '.join(cells)} |" for cells in lines)]


def chosen(name: str) -> list[Run]:
    """The runs of `FILE`, or the one run of `FILE#2`."""
    file, _, number = name.partition("#")
    runs = read(FOLDER / f"{file}.json")
    if not number:
        return runs
    if not 1 <= int(number) <= len(runs):
        raise AitError(f"{file} has {len(runs)} runs")
    return [runs[int(number) - 1]]


def rows_of(run: Run, columns: Sequence[str], words: Sequence[str]) -> list[list[str]]:
    """Some columns of the rows that contain one of the words, or of all rows without words."""
    rows: list[list[str]] = []
    for cells in run.rows:
        if not words or any(word in " ".join(cells) for word in words):
            named = dict(zip(run.heads, cells, strict=True)) | {"machine": run.machine}
            rows.append([named.get(column, "") for column in columns])
    return rows


def summary(cells: Sequence[str]) -> str:
    """`36 rows: geometric mean 0.72, 0.37 to 1.07, 3 above 1.`"""
    values = [float(cell.split()[0]) for cell in cells if cell]
    mean = math.exp(sum(map(math.log, values)) / len(values))
    above = sum(value > 1 for value in values) or "none"
    return f"{len(values)} rows: geometric mean {mean:.2f}, {min(values):.2f} to {max(values):.2f}, {above} above 1."


def source(runs: Sequence[Run]) -> str:
    """Where rows come from: commands, machines, rates and notes."""
    usual = usual_software()
    where = [", ".join(filter(None, (r.machine, r.software if r.software != usual else "", r.limits))) for r in runs]
    commands = dict.fromkeys(short(run.command) for run in runs)
    notes = [run.note for run in runs if run.note]
    return f"`{'`, `'.join(commands)}`: {'; '.join(dict.fromkeys([*where, *notes]))}."


def usual_software() -> str:
    """The versions that most runs of all files have."""
    counts = Counter(run.software for path in sorted(FOLDER.glob("*.json")) for run in read(path))
    return counts.most_common(1)[0][0]


def short(command: str) -> str:
    """A command without the numbers that differ between its runs, and without a long list of networks."""
    command = re.sub(r"( timm:\w+){3,}", " timm:NAME ...", command)
    return re.sub(r"--(seed|count|tuning|jobs|seconds) [\w.]+", r"--\1 ...", command)


def main() -> int:
    parser = argparse.ArgumentParser(description="Make docs/results.md of the files in benchmarks/results.")
    parser.add_argument("--check", action="store_true", help="only say whether the page is what the files make")
    args = parser.parse_args()
    text = page()
    if not args.check:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE} is old: python -m benchmarks.page writes it again", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
