"""`ait reduce`: reduces a failing text to the smallest text that still fails."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ait_mlir.host.processes import run as run_program
from ait_mlir.tools.commands.common import EXAMPLE_ONLY, TRUST, UsageError, check_text, note, write_text

_EXAMPLE = """A text fails if the command ends as it does on the file: with the same exit status, not 0, or not in time.

examples:
  ait reduce model.mlir --command 'ait-opt {} -p fuse-epilogue --check-semantics' -o small.mlir
  ait reduce model.mlir --command 'ait compile {} --target cuda -o /dev/null' --message 'no kernel for'
"""


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "reduce",
        help="cut a failing text down to the smallest that still fails",
        description="Remove outputs, ops, inputs and dims from IR text as long as a command still fails on it. "
        f"The command is run many times. {TRUST}",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("file", help="an .mlir file with ait.graph")
    p.add_argument("--command", required=True, help="what fails; {} stands for the file, else it is the last argument")
    p.add_argument("--message", help="only what prints this text, on either output, counts as the same failure")
    p.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for a run (default: %(default)s)")
    p.add_argument("-o", "--output", help="where to write; '-' and the default are standard output")
    p.set_defaults(run=run)


@dataclass(frozen=True)
class Trial:
    """Runs the command on a module."""

    command: str
    message: str | None
    timeout: float
    path: Path

    def outcome(self, text: str) -> int | None:
        """The exit status of the command for a text; None after a timeout, 0 if its output lacks the message."""
        self.path.write_text(text, encoding="utf-8")
        words = [w.replace("{}", str(self.path)) for w in shlex.split(self.command)]
        if "{}" not in self.command:
            words.append(str(self.path))
        try:
            done = run_program(words, self.timeout)
        except subprocess.TimeoutExpired:
            return None
        except OSError as error:
            raise UsageError(f"--command: {words[0]} cannot be run: {error.strerror}") from error
        return 0 if self.message is not None and self.message not in done.stdout + done.stderr else done.returncode


def run(options: argparse.Namespace) -> int:
    """Reduce the file; returns the exit code."""
    from ait_mlir import driver
    from ait_mlir.tools.reducer import Reducer

    check_text(options.output)
    try:
        shlex.split(options.command)
    except ValueError as error:
        raise UsageError(f"--command: {error}") from error
    if not options.command.strip():
        raise UsageError("--command is empty")
    if not options.timeout > 0:
        raise UsageError(f"--timeout {options.timeout}: expected seconds above 0")
    try:
        module, _ = driver.read_module(options.file)
    except OSError as error:
        raise UsageError(f"cannot read {options.file}: {error.strerror}") from error
    with tempfile.TemporaryDirectory(prefix="ait_reduce_") as folder:
        trial = Trial(options.command, options.message, options.timeout, Path(folder) / "reduced.mlir")
        wanted = trial.outcome(Path(options.file).read_text(encoding="utf-8"))
        if wanted == 0:
            unlike = "" if options.message is None else f" or does not print {options.message!r}"
            raise UsageError(f"the command does not fail on {options.file}{unlike}: there is nothing to reduce")

        def fails(module: ModuleOp) -> bool:
            return trial.outcome(f"{module!s}\n") == wanted

        if not fails(module):
            raise UsageError("the command fails on the file, but not on the same IR as it is printed again")
        before, reducer = len(list(module.walk())), Reducer(fails)
        module = reducer.reduce(module)
    note(f"{before} ops became {len(list(module.walk()))} in {reducer.tried} runs of the command")
    text = f"{module!s}\n"
    write_text(options.output, text)
    return 0
