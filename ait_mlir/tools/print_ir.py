"""Prints the IR around passes and the time of passes: the options of `ait-opt` that have names of `mlir-opt`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.errors import AitError
from ait_mlir.passes.parse import known_passes
from ait_mlir.rewrites.engine.errors import unknown

_RULE = f"===-{'-' * 73}-==="


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("printing (as in mlir-opt, to standard error)")
    for where in ("before", "after"):
        group.add_argument(
            f"--mlir-print-ir-{where}",
            action="append",
            default=[],
            metavar="PASS",
            help=f"print the IR {where} each run of a pass, or of several with commas between",
        )
        group.add_argument(f"--mlir-print-ir-{where}-all", action="store_true", help=f"print the IR {where} each pass")
    for flag, text in (
        ("change", "of the IR after passes, print only that of passes that changed it"),
        ("failure", "print the IR only after a pass that failed"),
    ):
        group.add_argument(f"--mlir-print-ir-after-{flag}", action="store_true", help=text)
    group.add_argument("--mlir-timing", action="store_true", help="print a table of the times of parser and passes")


@dataclass
class PrintedIR:
    """Prints the IR before and after the passes that the options name."""

    before: frozenset[str] | None
    """The passes before which to print; None for all."""
    after: frozenset[str] | None
    on_change: bool
    on_failure: bool
    text: Callable[[ModuleOp, bool], str]
    """The text of a module, in the generic form if the second argument is True."""
    err: TextIO
    last: str = ""
    """With `on_change`, the text before the running pass."""

    def starting(self, p: ModulePass, module: ModuleOp) -> None:
        """A pass is about to run."""
        if self.on_change:
            self.last = self.text(module, False)
        if _is_among(p.name, self.before):
            self._print(f"IR Dump Before {_title(p)}", self.text(module, False))

    def ended(self, p: ModulePass, module: ModuleOp) -> None:
        """A pass has run without errors."""
        if self.on_failure or not _is_among(p.name, self.after):
            return
        text = self.text(module, False)
        if not self.on_change or text != self.last:
            self._print(f"IR Dump After {_title(p)}", text)

    def failed(self, p: ModulePass, module: ModuleOp) -> None:
        """A pass has failed; the module may be invalid, so it is printed in the generic form."""
        if self.on_failure or _is_among(p.name, self.after):
            self._print(f"IR Dump After {type(p).__name__} Failed ({p.name})", self.text(module, True))

    def _print(self, title: str, text: str) -> None:
        self.err.write(f"// -----// {title} //----- //\n{text}\n")


def _title(p: ModulePass) -> str:
    return f"{type(p).__name__} ({p.name})"


def _is_among(name: str, chosen: frozenset[str] | None) -> bool:
    return chosen is None or name in chosen


def printed_ir(options: argparse.Namespace, text: Callable[[ModuleOp, bool], str], err: TextIO) -> PrintedIR:
    """The printer that the options ask for; raises `AitError` for unknown passes and options without effect."""
    before = None if options.mlir_print_ir_before_all else _names("before", options.mlir_print_ir_before)
    after = None if options.mlir_print_ir_after_all else _names("after", options.mlir_print_ir_after)
    on_change, on_failure = options.mlir_print_ir_after_change, options.mlir_print_ir_after_failure
    if on_change and after is not None and not after:
        raise AitError(
            "--mlir-print-ir-after-change chooses among printed passes; add --mlir-print-ir-after-all, or "
            "--mlir-print-ir-after=PASS"
        )
    return PrintedIR(before, after, on_change, on_failure, text, err)


def _names(where: str, texts: Sequence[str]) -> frozenset[str]:
    names = [name.strip() for text in texts for name in text.split(",")]
    known = known_passes() if names else {}
    for name in names:
        if name not in known:
            raise AitError(f"--mlir-print-ir-{where}: {unknown('pass', name, known)}; ait-opt --list-passes lists them")
    return frozenset(names)


@dataclass
class Times:
    """The times of the steps of a run, for `--mlir-timing`."""

    rows: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])

    def add(self, name: str, seconds: float) -> None:
        """Note a step."""
        self.rows.append((name, seconds))

    def report(self, total: float) -> str:
        """The table that mlir-opt prints; `total` is the time of the whole run in seconds."""
        rows = [*self.rows, ("Rest", total - sum(seconds for _, seconds in self.rows)), ("Total", total)]
        lines = [_RULE, "... Execution time report ...".center(len(_RULE)).rstrip(), _RULE]
        lines += [f"  Total Execution Time: {total:.4f} seconds", "", "  ----Wall Time----  ----Name----"]
        share = 100 / total if total else 0.0
        lines += [f"  {seconds:8.4f} ({seconds * share:5.1f}%)  {name}" for name, seconds in rows]
        return "\n".join(lines) + "\n"
