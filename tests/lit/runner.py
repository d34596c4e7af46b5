"""Run the `// RUN:` lines of a text test inside this process.

Understood are pipes of `ait-opt` and `filecheck`, `not` before a command, and `2>&1`; `%s` is the file. That is all
our tests use, and it takes a few milliseconds where starting two processes takes a second.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from ait_mlir.tools import ait_opt


@dataclass
class Command:
    """One command of a pipe."""

    words: list[str]
    negated: bool = False
    joined: bool = False
    """Whether stderr goes where stdout goes."""


@dataclass
class Outcome:
    """The outcome of a command."""

    code: int
    stdout: str = ""
    stderr: str = ""


@dataclass
class RunLine:
    """One RUN directive, continued over lines that end with a backslash."""

    line: int
    text: str
    pipe: list[Command] = field(default_factory=list)


def run_lines(path: Path) -> Iterator[RunLine]:
    """Yield the RUN directives of a file."""
    text, start = "", 0
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="surrogateescape").splitlines(), 1):
        _, found, rest = line.partition("RUN:")
        if not found or not line.lstrip().startswith("//"):
            continue
        start = start or number
        text += rest.strip()
        if text.endswith("\\"):
            text = text[:-1] + " "
            continue
        yield RunLine(start, text, parse_pipe(text, path))
        text, start = "", 0


def parse_pipe(text: str, path: Path) -> list[Command]:
    """Split a RUN line into the commands of its pipe."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    pipe = [Command([])]
    for word in lexer:
        if word == "|":
            pipe.append(Command([]))
        elif word == "2>&1":
            pipe[-1].joined = True
        elif word == "not" and not pipe[-1].words:
            pipe[-1].negated = True
        else:
            pipe[-1].words.append(word.replace("%s", str(path)).replace("%S", str(path.parent)))
    return pipe


def run_command(command: Command, stdin: str) -> Outcome:
    """Run one command on its standard input."""
    name, *arguments = command.words
    if name == "ait-opt":
        outcome = run_ait_opt(arguments, stdin)
    elif name == "filecheck":
        outcome = run_filecheck(arguments, stdin)
    else:
        raise ValueError(f"RUN lines know ait-opt, filecheck and not; found {name!r}")
    if command.negated:
        outcome.code = int(outcome.code == 0)
    if command.joined:
        outcome.stdout, outcome.stderr = outcome.stderr + outcome.stdout, ""
    return outcome


def run_ait_opt(arguments: list[str], stdin: str = "") -> Outcome:
    """Run ait-opt with its streams captured."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape")), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = ait_opt.main(arguments)
            except SystemExit as e:
                code = e.code if isinstance(e.code, int) else int(e.code is not None)
    finally:
        sys.stdin = before
    return Outcome(code or 0, out.getvalue(), err.getvalue())


def run_filecheck(arguments: list[str], stdin: str) -> Outcome:
    """Run filecheck on a text."""
    options = parse_argv_options(["filecheck", *arguments])
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(err):
        code = Matcher(options, FInput("<stdin>", stdin), Parser.from_opts(options)).run()
    return Outcome(code, "", err.getvalue())


def check_file(path: Path) -> None:
    """Run all RUN lines of a file; raise AssertionError with the output of the pipe that fails."""
    lines = list(run_lines(path))
    assert lines, f"{path} has no RUN line"
    for line in lines:
        stream, log = "", ""
        for command in line.pipe:
            outcome = run_command(command, stream)
            log += outcome.stderr
            stream = outcome.stdout
            assert outcome.code == 0, (
                f"{path}:{line.line}: RUN: {line.text}\n`{' '.join(command.words)}` "
                f"{'succeeded, failure was expected' if command.negated else f'gave exit code {outcome.code}'}\n"
                f"{log}\n{stream}"
            )
