"""Records the changes of passes, with the patterns that caused them and the laws of these patterns.

`ait-opt --explain` prints the record as text; the page of `--report` shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from difflib import unified_diff
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ait_mlir.passes.apply_patterns import ApplyPatternsPass
from ait_mlir.rewrites.engine.driver import Application, Statistics
from ait_mlir.rewrites.families import family_of
from ait_mlir.tools.steady import Names, steady_text

_PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Rewrite:
    """The applications of a pattern by a pass: their number, the law that they follow, and the place of the pattern,
    `FILE:LINE`."""

    pattern: str
    count: int
    law: str
    place: str


@dataclass(frozen=True)
class Step:
    """A pass that ran, with the changes of the IR as the lines of a unified diff, empty without changes."""

    name: str
    summary: str
    """The first line of the pass's docstring."""
    seconds: float
    rewrites: tuple[Rewrite, ...]
    removed: int
    """The number of dead ops that were removed."""
    changes: str
    by: Mapping[str, str]
    """The pattern of each changed line, by the line."""

    def annotated(self) -> Iterator[tuple[str, str]]:
        """The lines of `changes`, each with the pattern that removed or created its op, or ""."""
        for line in self.changes.split("\n"):
            yield line, self.by.get(line, "")


@dataclass
class Trace:
    """The record of one compilation's passes; `observe` is an observer of `run_passes`."""

    statistics: Statistics
    """The counts of rewrites of the running pass."""
    module: InitVar[ModuleOp]
    """The module before the first pass."""
    names: Names = field(default_factory=Names)
    first: str = ""
    """The IR before the first pass, with `names`."""
    text: str = ""
    """The IR after the last pass, with `names`."""
    steps: list[Step] = field(default_factory=list[Step])
    rewrites: Statistics = field(default_factory=Statistics)
    """The counts of rewrites of all steps."""
    taken: Statistics = field(default_factory=Statistics)
    """The counts of rewrites of the last step."""

    def __post_init__(self, module: ModuleOp) -> None:
        self.first = self.text = steady_text(module, self.names)

    def observe(self, p: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Record a pass that has run."""
        after = steady_text(module, self.names)
        changes = list(unified_diff(self.text.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
        self.taken = taken = self.statistics.taken()
        self.rewrites.add(Statistics(dict(taken.applied)))
        rewrites = sorted((_rewrite(p, name, count) for name, count in taken.applied.items()), key=_by_count)
        by = dict(_causes(changes, taken.applications, self.names))
        summary = (p.__doc__ or "").strip().partition("\n")[0]
        step = Step(p.name, summary, seconds, tuple(rewrites), taken.removed, "\n".join(changes), by)
        self.steps.append(step)
        self.text = after


def _by_count(rewrite: Rewrite) -> tuple[int, str]:
    return -rewrite.count, rewrite.pattern


def _rewrite(p: ModulePass, name: str, count: int) -> Rewrite:
    """A pattern that a pass applied, with its law and place."""
    if isinstance(p, ApplyPatternsPass):
        law, line = _in_file(Path(p.file), name)
        return Rewrite(name, count, law, f"{p.file}:{line}")
    family = family_of(name)
    if family is None:
        return Rewrite(name, count, "", "")
    file, line = family.place
    path = Path(file)
    shown = path.relative_to(_PACKAGE) if path.is_relative_to(_PACKAGE) else path
    return Rewrite(name, count, family.law, f"{shown}:{line}")


def _in_file(file: Path, name: str) -> tuple[str, int]:
    """The comment above a pattern of a pattern file, and its line."""
    lines = file.read_text(encoding="utf-8").splitlines()
    at = next((i for i, line in enumerate(lines) if re.search(rf"pdl\.pattern\s+@\"?{re.escape(name)}\b", line)), 0)
    first = at
    while first > 0 and lines[first - 1].lstrip().startswith("//"):
        first -= 1
    return " ".join(line.strip().lstrip("/").strip() for line in lines[first:at]), at + 1


def _causes(lines: list[str], applications: list[Application], names: Names) -> Iterator[tuple[str, str]]:
    """Each changed line that defines values, with the pattern that removed or created them."""
    gone: dict[SSAValue, str] = {value: a.pattern for a in applications for value in a.replaced}
    new: dict[SSAValue, str] = {value: a.pattern for a in applications for op in a.created for value in op.results}
    by_name = {"-": _by_name(gone, names), "+": _by_name(new, names)}
    for line in lines:
        found = re.match(r"([-+]) *%([\w.$-]+)(?:, %[\w.$-]+)* = ", line)
        if found is not None and (pattern := by_name[found[1]].get(found[2])) is not None:
            yield line, pattern


def _by_name(causes: Mapping[SSAValue, str], names: Names) -> dict[str, str]:
    return {names.of[value]: pattern for value, pattern in causes.items() if value in names.of}


def explanation(trace: Trace) -> str:
    """The record as text: for each pass its patterns with their laws, and its changes."""
    lines: list[str] = []
    for step in trace.steps:
        count = sum(rewrite.count for rewrite in step.rewrites)
        parts = [f"{count} rewrite{'s' * (count != 1)}"] if count else []
        parts += [f"{step.removed} dead ops removed"] if step.removed else []
        parts += [] if step.changes else ["no change"]
        lines.append(f"==== {step.name}: {', '.join([*parts, f'{step.seconds * 1e3:.1f} ms'])}")
        if not step.changes:
            continue
        lines += [f"     {step.summary}"] if step.summary else []
        for r in step.rewrites:
            place = f" ({r.place})" if r.place else ""
            lines.append(f"  {r.pattern} x {r.count}: {r.law or 'no law is written'}{place}")
        lines += [f"    {line}" + (f"  // {pattern}" if pattern else "") for line, pattern in step.annotated()]
    return "\n".join(lines or ["no pass ran; -p names passes"]) + "\n"
