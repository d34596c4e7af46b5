"""`ait cache`: what has been built and kept."""

from __future__ import annotations

import argparse
import shutil
from typing import Any

from ait_mlir.host.files import DIGEST, cache_dir
from ait_mlir.tools.commands.common import EXAMPLE_ONLY, text_of_bytes
from ait_mlir.tools.report import table

_EXAMPLE = """examples:
  ait cache
  ait cache --clear
  AIT_CACHE_DIR=/tmp/cache ait cache
"""
_PARTS = {
    "objects": "compiled sources",
    "headers": "precompiled headers of the standard library",
    "libraries": "linked models and runtime libraries",
    "models": "libraries taken out of artifacts",
    "prefix": "the library for C and C++ programs",
    "tmp": "left by builds that were killed",
    "locks": "locks",
}


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "cache",
        help="show or clear the cache of built code",
        description="Show or clear the cache of built code: AIT_CACHE_DIR, by default ~/.cache/ait_mlir.",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("--clear", action="store_true", help="delete everything in it; models that run are not disturbed")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show or clear; returns the exit code."""
    root = cache_dir()
    rows = [["part", "files", "size", ""]]
    freed = 0
    for part, what in _PARTS.items():
        files = [path for path in (root / part).rglob("*") if path.is_file() and path.suffix != DIGEST]
        size = sum(path.stat().st_size for path in files)
        freed += size
        rows.append([part, str(len(files)), text_of_bytes(size), what])
        if options.clear:
            shutil.rmtree(root / part, ignore_errors=True)
    if options.clear:
        print(f"freed {text_of_bytes(freed)} in {root}")
    else:
        print(f"{root}\n{table(rows, right=(1, 2))}")
    return 0
