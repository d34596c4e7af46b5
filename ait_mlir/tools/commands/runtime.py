"""`ait runtime`: installs the library that runs models from C and C++, without Python."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ait_mlir.tools.commands.common import EXAMPLE_ONLY

_EXAMPLE = """examples:
  cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=$(ait runtime --target cpu)
  ait runtime --target cuda --prefix /opt/ait
  PKG_CONFIG_PATH=/opt/ait/lib/pkgconfig pkg-config --cflags --libs ait-cuda
"""


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "runtime",
        help="install the library that runs models from C and C++",
        description="Build the library that runs models from C and C++, without Python. Install it with its header "
        "(ait/model.h) and its files for CMake and pkg-config, and print the folder.",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("--target", choices=("cpu", "cuda", "rocm"), default="cpu", help="default: %(default)s")
    p.add_argument("--prefix", metavar="DIR", help="where to install it (default: a folder in the cache)")
    p.add_argument(
        "--static",
        action="store_true",
        help="install a static library, too: ait::cpu_static for CMake, ait-cpu-static for pkg-config",
    )
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Install; returns the exit code."""
    from ait_mlir.lowering.deploy import install_runtime

    prefix = None if options.prefix is None else Path(options.prefix)
    print(install_runtime(options.target, prefix, options.static))
    return 0
