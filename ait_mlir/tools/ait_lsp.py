"""`ait-lsp`: the language server of the IR, for editors."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

from ait_mlir.errors import AitError
from ait_mlir.outside import load
from ait_mlir.version import __version__


def argument_parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="ait-lsp",
        description="Serve an editor over standard input and output: errors, hover, completion and more for IR texts. "
        "docs/editors.md shows how editors start it.",
    )
    p.add_argument("--version", action="version", version=f"ait-lsp {__version__}")
    p.add_argument("--stdio", action="store_true", help="use standard input and output (the default)")
    p.add_argument(
        "--tcp", metavar="PORT", type=int, help="listen on a port of this machine instead, for any number of editors"
    )
    p.add_argument(
        "--load",
        action="append",
        default=[],
        metavar="FILE",
        help="run a Python file that defines operators: only one that you trust (docs/trust.md)",
    )
    return p


def main(args: Sequence[str] | None = None) -> int:
    """Run the server until the editor ends it; returns the exit code."""
    options = argument_parser().parse_args(args)
    try:
        from ait_mlir.tools.language.server import new_server, serve_tcp
    except ModuleNotFoundError as e:
        missing = (e.name or "").partition(".")[0]
        if missing not in ("pygls", "lsprotocol", "cattrs", "attrs"):
            raise
        print(f"ait-lsp: error: {missing} is not installed; pip install 'pygls>=2,<3' installs it", file=sys.stderr)
        return 1
    try:
        for file in options.load:
            load(file)
    except AitError as e:
        print(f"ait-lsp: error: {e}", file=sys.stderr)
        return 1
    logging.getLogger("pygls").setLevel(logging.CRITICAL)  # it logs each refused request; nobody may read the log
    if options.tcp is not None:
        return _ended(options.tcp, serve_tcp("127.0.0.1", options.tcp, _tell_port))
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what Python code prints must not disturb the protocol
    new_server().start_io(stdout=output)
    return 0


def _tell_port(port: int) -> None:
    print(f"ait-lsp: listening on 127.0.0.1:{port}", file=sys.stderr, flush=True)


def _ended(port: int, serving: Coroutine[Any, Any, None]) -> int:
    try:
        asyncio.run(serving)
    except (OSError, OverflowError) as e:  # a port above 65,535 overflows
        reason = getattr(e, "strerror", None) or e
        print(f"ait-lsp: error: cannot listen on port {port}: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
