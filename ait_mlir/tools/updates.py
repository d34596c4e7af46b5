"""`ait update-checks`: writes the generated FileCheck lines of a test again, from what its RUN lines print now."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ait_mlir.errors import AitError
from ait_mlir.ir.source import SourceText
from ait_mlir.tools import ait_opt
from ait_mlir.tools.checks import MARK, Block, blocks, check_of, inserted, without_checks
from ait_mlir.tools.run_lines import Command, RunLine, failure, run_command, run_lines

_SPLIT = re.compile(r"^(// -----[^\n]*\n)", re.MULTILINE)


@dataclass(frozen=True)
class Update:
    """The new text of a test, and the notes on prefixes and RUN lines that it leaves alone."""

    text: str
    generated: int
    """The number of generated checks."""
    notes: tuple[str, ...]


def updated(text: str, path: Path, by_hand: bool = False) -> Update:
    """The update of the text of a test; `by_hand` also replaces checks that were written by hand.

    Raises `AitError` if a RUN line fails for another reason than its generated checks: nothing is to be written then.
    """
    if "\r" in text:
        return _with_returns(text, path, by_hand)
    lines = list(run_lines(text, path))
    if not lines:
        raise AitError(f"{path}: no RUN line; write one, such as `// RUN: ait-opt %s -p simplify | filecheck %s`")
    notes: list[str] = []
    prefixes = [found[1] for found in re.finditer(r"--?check-prefix[= ](\w+)", "\n".join(line.text for line in lines))]
    made: dict[str, list[list[Block]]] = {}
    for line in lines:
        prefix = _prefix(line)
        if prefix is None:
            notes.append(f"line {line.line}: its output is no IR alone, so its checks are written by hand")
        elif (present := _present(text, prefix)) == "by hand" and not by_hand:
            notes.append(f"line {line.line}: the checks of {prefix} are written by hand; --all replaces them")
        else:
            found = _blocks(line, prefix, prefixes)
            if prefix in made and made[prefix] != found:
                raise AitError(f"{path}:{line.line}: two RUN lines print different IR for prefix {prefix}")
            if present == "both" and not by_hand:
                notes.append(f"line {line.line}: of the checks of {prefix}, those written by hand stay")
            made[prefix] = found
    new = text if not made else _written(text, made, by_hand)
    folder = path.parent.absolute()
    with tempfile.TemporaryDirectory(prefix="ait_checks_") as scratch:
        trial = Path(scratch) / path.name
        trial.write_bytes(new.encode("utf-8", "surrogateescape"))
        failed = failure(run_lines(new, trial, folder))
        failed = failed and failed.replace(str(trial), str(path))
    if failed is not None:
        raise AitError(f"{path}: fails for another reason than its generated checks: {failed}".rstrip())
    count = sum(len(block.lines) for parts in made.values() for part in parts for block in part)
    return Update(new, count, tuple(notes))


def _with_returns(text: str, path: Path, by_hand: bool) -> Update:
    """The update of a text whose lines end with carriage returns, which it keeps."""
    plain = text.replace("\r\n", "\n")
    if text.count("\r\n") != plain.count("\n") or "\r" in plain:
        raise AitError(f"{path}: some lines end with a carriage return, others do not; make them equal")
    update = updated(plain, path, by_hand)
    return replace(update, text=update.text.replace("\n", "\r\n"))


def _prefix(line: RunLine) -> str | None:
    """The prefix of the checks of a RUN line; None unless the line pipes the IR that `ait-opt` prints to `filecheck`.
    """
    *front, last = line.pipe
    if not front or last.words[:1] != ["filecheck"] or last.negated:
        return None
    if any(c.words[:1] != ["ait-opt"] or c.negated or c.joined for c in front):
        return None
    printed = {word.partition("=")[0] for command in front for word in command.words}
    if printed & {"-o", "--output", "--explain", "--print-debuginfo", "--mlir-print-debuginfo"}:
        return None
    prefix, words = "CHECK", last.words[2:]
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name not in ("--check-prefix", "-check-prefix") or not (equals or words):
            return None
        prefix = value if equals else words.pop(0)
    return prefix


def _present(text: str, prefix: str) -> str:
    """How the checks of a prefix came into a text: "none", "generated", "by hand" or "both"."""
    marked = text.count(MARK) > 0 and without_checks(text, [prefix]) != text
    left = any(check_of(line) == prefix for line in without_checks(text, [prefix]).split("\n"))
    return {(False, False): "none", (True, False): "generated", (False, True): "by hand", (True, True): "both"}[
        marked, left
    ]


def _blocks(line: RunLine, prefix: str, prefixes: Sequence[str]) -> list[list[Block]]:
    """The checks of a RUN line for each part of its input."""
    *front, last = line.pipe[:-1]
    stream = ""
    for command in front:
        outcome = run_command(command, stream)
        if outcome.code != 0:
            raise _failed(line, command, outcome.stderr)
        stream = outcome.stdout
    errors = io.StringIO()
    found: list[list[Block]] = []
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            options = ait_opt.argument_parser().parse_args(last.words[1:], namespace=ait_opt.Options())
    except SystemExit:
        raise _failed(line, last, errors.getvalue()) from None

    def show(module: ModuleOp, source: SourceText) -> str:
        found.append(blocks(module, prefix, options.print_op_generic, prefixes))
        return ""

    code = ait_opt.run(options, io.StringIO(), errors, show, stream.encode())
    if code != 0 or not found:
        raise _failed(line, last, errors.getvalue())
    return found


def _failed(line: RunLine, command: Command, errors: str) -> AitError:
    return AitError(f"line {line.line}: `{' '.join(command.words)}` fails:\n{errors or 'it prints no IR'}".rstrip())


def _written(text: str, made: Mapping[str, Sequence[Sequence[Block]]], by_hand: bool) -> str:
    """The text of a test with its checks. In a split file, each part gets the checks of its own module."""
    for prefix, found in made.items():
        text = without_checks(text, [prefix], by_hand)
        if len(found) == 1:
            text = inserted(text, found[0])
            continue
        pieces = _SPLIT.split(text)
        pieces[::2] = [inserted(part, own) for part, own in zip(pieces[::2], found, strict=True)]
        text = "".join(pieces)
    return text
