"""The digest of the package's sources: the key for code that the package derives from itself and keeps in the cache."""

from __future__ import annotations

import functools
import hashlib
import sys
from pathlib import Path

from ait_mlir.version import LOADED

PACKAGE = Path(__file__).resolve().parent.parent


@functools.cache
def package_digest() -> str | None:
    """A digest of the Python sources of the package and of the versions of Python and of the packages that generate
    code with it.

    None if it cannot be known which sources this process runs, or if nothing can be kept: in a package that is
    installed as bytecode, after a source has changed since the process loaded the package, and in a browser.
    """
    from importlib.metadata import PackageNotFoundError, version

    paths = sorted(PACKAGE.rglob("*.py"))
    if sys.platform == "emscripten" or not paths:
        return None
    try:
        versions = [str(sys.implementation.cache_tag), version("xdsl"), version("jinja2")]
    except PackageNotFoundError:  # copied without their metadata
        return None
    digest = hashlib.sha256("\n".join(versions).encode())
    for path in paths:
        if path.stat().st_mtime > LOADED:
            return None
        data = path.read_bytes()
        digest.update(f"{path.relative_to(PACKAGE)} {len(data)}\n".encode() + data)
    return digest.hexdigest()
