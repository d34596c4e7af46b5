"""Make docs/results.md of the files in `benchmarks/results`: `python -m benchmarks.page`; `--check` only compares.

`benchmarks/results/page.md` is the page without its numbers. A line of it that starts with `::` is replaced:

    :: table FILE + FILE | COLUMN, COLUMN, ... | WORDS; WORDS    the rows of all runs, or those that contain some words
    :: ratios                                                    begins a table of ratios; each next line adds a row:
    :: ratio LABEL | FILE | COLUMN | WORDS; WORDS                geometric mean, smallest, largest, number above 1
    :: software                                                  the versions that most runs have

`FILE#2` is the second run of a file. Files keep the whole commands; the page leaves out options for time and choice.
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
COUNTS = ("networks", "problems")
RATIOS = ("measured", "rows", "mean", "smallest", "largest", "above 1", "machine", "`python -m`")


def page() -> str:
    """The page, from the template and the files; `AitError` with the line of the template that is wrong."""
    lines: list[str] = []
    for number, line in enumerate(TEMPLATE.read_text(encoding="utf-8").splitlines(), 1):
        try:
            lines += made(line) if line.startswith("::") else [line]
        except (AitError, OSError, ValueError) as error:
            raise AitError(f"{TEMPLATE}:{number}: {line}: {error}") from error
    return "\n".join(lines) + "\n"


def made(line: str) -> list[str]:
    """The lines that a `::` line stands for."""
    kind, _, rest = line.removeprefix("::").strip().partition(" ")
    fields = [part.strip() for part in rest.split("|") if rest]
    if kind == "software":
        return [f"Unless a table says otherwise: {usual_software()}."]
    if kind == "ratios":
        return ["", f"| {' | '.join(RATIOS)} |", f"|{' --- |' * len(RATIOS)}"]
    if kind == "ratio" and len(fields) >= 3:
        label, names, column, *words = fields
        runs, rows = found(names, [column], words)
        is_summary = any(count in runs[0].heads for count in COUNTS)
        numbers = pooled(runs, column) if is_summary else summary([float(row[0].split()[0]) for row in rows if row[0]])
        cells = [
            label,
            *numbers,
            ", ".join(dict.fromkeys(r.machine for r in runs)),
            commands(runs).replace("python -m ", ""),
        ]
        return [f"| {' | '.join(cells)} |"]
    if kind != "table" or len(fields) < 2:
        raise AitError("expected `:: table FILE | COLUMNS`, `:: ratios` or `:: ratio LABEL | FILE | COLUMN`")
    columns = fields[1].split(", ")
    runs, rows = found(fields[0], columns, fields[2:])
    lines = [columns, ["---"] * len(columns), *rows]
    return [source(runs), "", *(f"| {' | '.join(cells)} |" for cells in lines)]


def found(names: str, columns: Sequence[str], words: Sequence[str]) -> tuple[list[Run], list[list[str]]]:
    """The runs that have matching rows, and some columns of these rows."""
    runs = [run for name in names.split(" + ") for run in chosen(name)]
    if missing := [c for c in columns if c != "machine" and not any(c in run.heads for run in runs)]:
        raise AitError(f"no run of {names} has the column {missing[0]!r}")
    kept = [(run, rows) for run in runs if (rows := rows_of(run, columns, words[0].split("; ") if words else []))]
    if not kept:
        raise AitError(f"{names} has no such rows")
    return [run for run, _ in kept], [row for _, rows in kept for row in rows]


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


def summary(values: Sequence[float]) -> list[str]:
    """How many ratios, their geometric mean, the smallest, the largest, and how many are above 1."""
    mean = math.exp(sum(map(math.log, values)) / len(values))
    return [str(len(values)), *(f"{x:.2f}" for x in (mean, min(values), max(values))), str(sum(v > 1 for v in values))]


def pooled(runs: Sequence[Run], column: str) -> list[str]:
    """The same for rows that each summarise many ratios; a cell is empty if rows lack its number."""
    rows = [dict(zip(run.heads, cells, strict=True)) for run in runs for cells in run.rows]
    counts = [float(row[name]) for row in rows for name in COUNTS if name in row]
    mean = math.exp(sum(n * math.log(float(row[column])) for n, row in zip(counts, rows, strict=True)) / sum(counts))
    smallest, largest, above = (
        [row.get(name, "") for row in rows for name in names if name in row]
        for names in (("smallest",), ("largest", "worst"), ("above 1",))
    )
    ends = [f(cells, key=float) if cells and all(cells) else "" for f, cells in ((min, smallest), (max, largest))]
    return [f"{sum(counts):.0f}", f"{mean:.2f}", *ends, str(sum(map(int, above))) if above and all(above) else ""]


def source(runs: Sequence[Run]) -> str:
    """Where rows come from: commands, machines, rates and notes."""
    usual = usual_software()
    where = [", ".join(filter(None, (r.machine, r.software if r.software != usual else "", r.limits))) for r in runs]
    notes = [run.note for run in runs if run.note]
    return f"{commands(runs)}: {'; '.join(dict.fromkeys([*where, *notes]))}."


def usual_software() -> str:
    """The versions that most runs of all files have."""
    counts = Counter(run.software for path in sorted(FOLDER.glob("*.json")) for run in read(path))
    return counts.most_common(1)[0][0]


def commands(runs: Sequence[Run]) -> str:
    """The commands of runs, without repetitions."""
    return ", ".join(dict.fromkeys(f"`{short(run.command)}`" for run in runs))


def short(command: str) -> str:
    """A command without `python -m`, options for time and choice, and a list of networks."""
    command = re.sub(r"( timm:\w+)+", " timm:NAME ...", command)
    return re.sub(
        r" --(seed|count|tuning|jobs|seconds|budget|peers|own-clock|shortest|no-measure)( [\w.,]+)?", "", command
    )


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
