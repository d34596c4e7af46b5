"""`ait completion`: prints the completions of `ait` and `ait-opt` for a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, cast

import shtab

from ait_mlir.tools.commands.common import EXAMPLE_ONLY

_EXAMPLE = """examples:
  source <(ait completion bash)           (for this shell; put the line into ~/.bashrc for all)
  ait completion zsh > ~/.zsh/completions/_ait
"""
_FILES = ("file", "files", "input", "output", "artifact", "weights", "report", "workdir", "load")
"""The arguments that name files."""


def add(subparsers: Any, parser: argparse.ArgumentParser) -> None:
    """Declare the command; `parser` is the parser of `ait`."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "completion",
        help="print completions for a shell",
        description="Print the completions of ait and ait-opt for a shell.",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)

    def command(options: argparse.Namespace) -> int:
        return run(options.shell, parser)

    p.set_defaults(run=command)


def run(shell: str, parser: argparse.ArgumentParser) -> int:
    """Print the completions; returns the exit code."""
    from ait_mlir.tools import ait_opt

    for own in (parser, ait_opt.argument_parser()):
        for action in _actions(own):
            if action.dest in _FILES:
                cast(Any, action).complete = shtab.FILE
        print(shtab.complete(own, shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments of a parser and of its subcommands."""
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]  # argparse has no public list
        yield action
        choices = cast(object, action.choices)
        if isinstance(choices, dict):
            for sub in cast("dict[str, argparse.ArgumentParser]", choices).values():
                yield from _actions(sub)
