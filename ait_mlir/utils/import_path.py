"""Lets scripts like AITemplate's examples use relative imports when they run as files."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from ait_mlir.frontend.errors import BuildError


def import_parent(filename: str, level: int = 1) -> None:
    """Make the folder of `filename` a package whose name begins `level` folders above it.

    Afterwards the folder above the package is on `sys.path`, and the folder itself is not. `__package__` of the module
    `__main__` is set if that is in the folder. Raises `BuildError` if there are not that many folders.
    """
    folder = Path(filename).resolve().parent
    if not 1 <= level < len(folder.parts):
        raise BuildError(
            f"import_parent: level is {level}, expected 1 to {len(folder.parts) - 1}, the folders of {folder}"
        )
    top = folder.parents[level - 1]
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != folder]
    if str(top) not in sys.path:
        sys.path.append(str(top))
    package = ".".join(folder.relative_to(top).parts)
    importlib.invalidate_caches()
    importlib.import_module(package)
    main = sys.modules.get("__main__")
    if main is not None and getattr(main, "__file__", None) and Path(str(main.__file__)).resolve().parent == folder:
        main.__package__ = package
