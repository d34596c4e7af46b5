"""`ait cache`: shows and clears the cache of built files."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ait_mlir.host.cache import FOLDER, TAG, cache_dir, clear, has_cache, size_of
from ait_mlir.host.shared import DAY, shared_cache
from ait_mlir.tools.commands.common import EXAMPLE_ONLY, UsageError, text_of_bytes
from ait_mlir.tools.report import table

_EXAMPLE = """examples:
  ait cache
  ait cache --clear
  AIT_CACHE_DIR=/tmp/mine ait cache
  AIT_SHARED_CACHE=s3://bucket/cache AIT_SHARED_CACHE_GIB=50 ait cache --trim
"""
_PARTS = {
    "objects": "compiled sources",
    "headers": "precompiled headers of the standard library",
    "libraries": "linked models and runtime libraries",
    "templates": "compiled templates of generated code",
    "patterns": "the ops that patterns match",
    "plans": "planned models: IR and C++",
    "models": "libraries taken out of artifacts",
    "weights": "weights that processes map together",
    "prefix": "the library for C and C++ programs",
    "tmp": "builds that are under way, or were killed",
}


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "cache",
        help="show or clear the cache of built code",
        description=f"Show or clear the cache of built code: the folder {FOLDER} in AIT_CACHE_DIR, by default in "
        f"~/.cache. Its marker is {TAG}; a folder without it is never touched. The cache must belong to you, and "
        "nobody else may be able to write to it. AIT_SHARED_CACHE names a second cache that machines and users share.",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument(
        "--clear",
        action="store_true",
        help="delete what was built, once no build is under way; models that run stay loaded, measured times stay",
    )
    p.add_argument(
        "--trim",
        action="store_true",
        help="delete entries of the shared cache that were not used for AIT_SHARED_CACHE_DAYS, then the oldest beyond "
        "AIT_SHARED_CACHE_GIB",
    )
    p.add_argument("--json", action="store_true", help="print the folder and the sizes as one JSON object")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show, clear or trim the cache; returns the exit code."""
    shared = shared_cache()
    if options.trim:
        if shared is None:
            raise UsageError("--trim: AIT_SHARED_CACHE names no shared cache")
        count, freed = shared.trim()
        entries = "1 entry" if count == 1 else f"{count} entries"
        told = {"shared": shared.address, "freed": freed, "entries": count}
        print(json.dumps(told) if options.json else f"freed {text_of_bytes(freed)} in {shared.address} ({entries})")
        return 0
    if shared is not None and not options.json and not options.clear:
        sizes = [entry.size for entry in shared.entries()]
        limits = f"at most {text_of_bytes(shared.size)}, unused for at most {shared.age / DAY:.0f} days"
        total = text_of_bytes(sum(sizes))
        print(f"shared cache {shared.address}: {len(sizes)} entries, {total} ({limits})")
    if not has_cache():
        print("null" if options.json else "there is no cache: nothing was built yet")
        return 0
    root = cache_dir()
    if options.clear:
        freed = sum(map(clear, _PARTS))
        print(
            json.dumps({"folder": str(root), "freed": freed})
            if options.json
            else f"freed {text_of_bytes(freed)} in {root}"
        )
        return 0
    if options.json:
        sizes = {part: dict(zip(("files", "bytes"), size_of(part), strict=True)) for part in _PARTS}
        print(json.dumps({"folder": str(root), "parts": sizes}))
        return 0
    rows = [["part", "files", "size", ""]]
    for part, what in _PARTS.items():
        files, size = size_of(part)
        rows.append([part, str(files), text_of_bytes(size), what])
    print(f"{root}\n{table(rows, right=(1, 2))}")
    return 0
