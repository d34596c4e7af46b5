"""`ait`: compile, run, time and look into models."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ait_mlir import outside
from ait_mlir.errors import AitError
from ait_mlir.host import progress
from ait_mlir.tools.ending import ended_cleanly, internal_error
from ait_mlir.tools.versions import VersionAction

_DESCRIPTION = "Compile neural networks to C++ for the CPU, CUDA or ROCm, and run them."
_EXAMPLE = """example:
  ait compile examples/ffn.mlir --target cpu -o ffn.ait
  ait run ffn.ait --input x=random:8x768 --compare reference
  ait inspect ffn.ait --launches

Each command has its own --help.
"""


class _Parser(argparse.ArgumentParser):
    """Reports wrong options as `ait: error: ...` with exit code 1."""

    def error(self, message: str):  # type: ignore[override]
        print(f"ait: error: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(1)


def argument_parser() -> argparse.ArgumentParser:
    """The parser with all subcommands."""
    from ait_mlir.tools.commands import (
        bench,
        bisect,
        cache,
        compile,
        completion,
        doctor,
        import_,
        inspect,
        quantize,
        reduce,
        run,
        runtime,
        scale,
        update_checks,
    )

    parser = _Parser(
        prog="ait", description=_DESCRIPTION, epilog=_EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action=VersionAction)
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    commands = (compile, import_, quantize, run, bench, inspect, scale, reduce, bisect, update_checks, cache, runtime)
    commands += (doctor,)
    for command in commands:
        command.add(subparsers)
    completion.add(subparsers, parser)
    for name, command in subparsers.choices.items():
        if name not in ("cache", "runtime", "doctor", "completion"):
            command.add_argument(
                "--load",
                action="append",
                default=[],
                metavar="FILE",
                help="run a Python file that defines operators: only one that you trust",
            )
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool.

    Every failure is one message on stderr and exit code 1; `AIT_TRACEBACK=1` adds the traceback.
    """
    return ended_cleanly("ait", lambda: _run(args))


def _run(args: Sequence[str] | None) -> int:
    options = argument_parser().parse_args(args)
    try:
        for path in getattr(options, "load", ()):
            outside.load(path)
        with progress.shown():
            return int(options.run(options))
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("AIT_TRACEBACK"):
            raise
        print(_message(error), file=sys.stderr)
        return 1


def _message(error: BaseException) -> str:
    from xdsl.utils.exceptions import PassFailedException

    from ait_mlir.ir.source import SourceError
    from ait_mlir.reference.core import EvaluationError

    match error:
        case SourceError():
            return str(error)  # has its places
        case AitError() | PassFailedException() | EvaluationError():
            return f"ait: error: {error}"
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return f"ait: error: {place}{error.strerror or error}"
        case MemoryError():
            return "ait: error: out of memory"
        case KeyboardInterrupt():
            return "ait: interrupted"
        case _:  # a mistake of ours: still no traceback, unless it is asked for
            return internal_error("ait", error)


if __name__ == "__main__":
    sys.exit(main())
