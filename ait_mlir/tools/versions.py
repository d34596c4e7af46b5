"""`--version` of the tools."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class VersionAction(argparse.Action):
    """Prints the versions of the package and of the compilers that are found, and ends the program."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: Any) -> None:
        super().__init__(
            option_strings, dest, nargs=0, help="print the versions of ait_mlir and of the compilers found"
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from ait_mlir.tools.commands.doctor import versions

        print("\n".join(versions()))
        parser.exit()
