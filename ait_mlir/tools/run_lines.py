"""Runs the `// RUN:` lines of a text test inside this process: milliseconds, where two processes take a second.

A line is a pipe of `ait-opt` and `filecheck`, with `not` before a command and `2>&1` after it. `%s` is the file, `%S`
its folder.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ait_mlir.errors import AitError
from ait_mlir.tools import ait_opt

_SHELL = re.compile(r"\|\||&&?|;|\d?[<>]+")
"""Words, or heads of words, that a shell obeys."""


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
    pipe: list[Command]


def run_lines(source: str, path: Path, folder: Path | None = None) -> Iterator[RunLine]:
    """Yield the RUN lines of a text. `%s` stands for `path`, `%S` for `folder`, by default the folder of `path`."""
    text, start = "", 0
    for number, line in enumerate(source.splitlines(), 1):
        _, found, rest = line.partition("RUN:")
        if not found or not line.lstrip().startswith("//"):
            continue
        start = start or number
        text += rest.strip()
        if text.endswith("\\"):
            text = text[:-1] + " "
            continue
        try:
            yield RunLine(start, text, parse_pipe(text, path, folder or path.parent))
        except AitError as error:
            raise AitError(f"{path}:{start}: RUN: {text}: {error}") from None
        text, start = "", 0
    if text:
        raise AitError(f"{path}:{start}: the last RUN line goes on after its backslash, but no line follows")


def parse_pipe(text: str, path: Path, folder: Path) -> list[Command]:
    """Split a RUN line into the commands of its pipe."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    pipe = [Command([])]
    try:
        words = list(lexer)
    except ValueError as error:
        raise AitError(str(error)) from None
    test = f"./{path}" if str(path).startswith("-") else str(path)
    for word in words:
        if word == "|":
            pipe.append(Command([]))
        elif word == "2>&1":
            pipe[-1].joined = True
        elif (shell := _SHELL.match(word)) is not None:
            raise AitError(
                f"found {shell[0]!r}; expected one pipe of ait-opt and filecheck, without other shell syntax"
            )
        elif word == "not" and not pipe[-1].words:
            pipe[-1].negated = True
        else:
            pipe[-1].words.append(re.sub("%[sS]", lambda found: test if found[0] == "%s" else str(folder), word))
    for command in pipe:
        if command.words[:1] not in (["ait-opt"], ["filecheck"]):
            found = f"the command {command.words[0]!r}" if command.words else "no command"
            raise AitError(f"found {found}; expected ait-opt or filecheck, with or without `not` before it")
    return pipe


def run_command(command: Command, stdin: str) -> Outcome:
    """Run one command on its standard input."""
    name, *arguments = command.words
    outcome = run_ait_opt(arguments, stdin) if name == "ait-opt" else run_filecheck(arguments, stdin)
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
    try:
        from filecheck.finput import FInput
        from filecheck.matcher import Matcher
        from filecheck.options import parse_argv_options
        from filecheck.parser import Parser
    except ModuleNotFoundError:
        raise AitError("checks need the package filecheck: pip install filecheck") from None
    try:
        options = parse_argv_options(["filecheck", *arguments])
    except (RuntimeError, ValueError) as error:
        return Outcome(2, "", f"filecheck: error: {error}\n")
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(err):
        code = Matcher(options, FInput("<stdin>", stdin), Parser.from_opts(options)).run()
    return Outcome(code, "", err.getvalue())


def failure(lines: Iterable[RunLine]) -> str | None:
    """The output of the first RUN line that fails, or None."""
    for line in lines:
        stream, log = "", ""
        for command in line.pipe:
            outcome = run_command(command, stream)
            log += outcome.stderr
            stream = outcome.stdout
            if outcome.code != 0:
                how = "succeeded, failure was expected" if command.negated else f"gave exit code {outcome.code}"
                return f"line {line.line}: RUN: {line.text}\n`{' '.join(command.words)}` {how}\n{log}\n{stream}"
    return None
