"""`ait update-checks`: writes the generated FileCheck lines of tests again."""

from __future__ import annotations

import argparse
import json
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any

from ait_mlir.errors import AitError
from ait_mlir.host.files import write_atomic
from ait_mlir.tools.commands.common import EXAMPLE_ONLY, TRUST, note

_EXAMPLE = """A test is a text with RUN lines, such as
  // RUN: ait-opt %s -p simplify | filecheck %s
A RUN line without checks of its prefix gets them; checks that were generated before are replaced; checks written by
hand stay. A test that fails for another reason is not changed, and the exit code is 1.

examples:
  ait update-checks mine.mlir
  ait update-checks lit_tests/rewrites/*.mlir --diff
"""


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "update-checks",
        help="write the FileCheck lines of tests",
        description=f"Write the FileCheck lines of tests from what their RUN lines print now. {TRUST}",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("files", nargs="+", metavar="FILE", help="an .mlir file with RUN lines")
    p.add_argument(
        "--diff", action="store_true", help="print the changes and write nothing; exit code 1 if there are any"
    )
    p.add_argument("--all", action="store_true", help="also replace the checks that were written by hand")
    p.add_argument("--json", action="store_true", help="print one JSON object for each file: its state and its notes")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Update the files; returns the exit code."""
    from ait_mlir.tools.updates import updated

    code = 0
    for name in options.files:
        path = Path(name)
        notes: tuple[str, ...] = ()
        diff, count = "", 0
        try:
            before = path.read_bytes().decode("utf-8", "surrogateescape")
            update = updated(before, path, options.all)
            count, notes, state = update.generated, update.notes, "unchanged" if update.text == before else "changed"
            diff = "".join(
                unified_diff(before.splitlines(True), update.text.splitlines(True), name, f"{name} (updated)")
            )
            if state == "changed" and options.diff:
                code = 1
            elif state == "changed":
                write_atomic(path, update.text.encode("utf-8", "surrogateescape"))
        except (AitError, OSError) as error:
            said = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
            notes, state, code = (said,), "failed", 1
        if options.json:
            print(json.dumps({"file": name, "state": state, "notes": notes, "diff": diff}))
            continue
        if options.diff:
            sys.stdout.write(diff)
        elif state == "changed":
            print(f"{name}: {count} checks written")
        for text in notes:
            if state == "failed":
                print(f"ait: error: {text if text.startswith(name) else f'{name}: {text}'}", file=sys.stderr)
            else:
                note(f"{name}: {text}")
    return code
