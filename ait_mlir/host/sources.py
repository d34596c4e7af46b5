"""The digest of the package's sources: the key for code that the package derives from itself and keeps in the cache."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterable
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
    return _digest(versions, paths)


@functools.cache
def tables_digest() -> str | None:
    """A digest of the package's templates of C++, tables of times and tables of estimates; None if one has changed
    since the process loaded the package."""
    files = (("lowering/templates", "*.j2"), ("timings", "*.json"), ("timings/estimates", "*.json"))
    return _digest([], sorted(path for folder, name in files for path in (PACKAGE / folder).glob(name)))


def _digest(texts: Iterable[str], paths: Iterable[Path]) -> str | None:
    """A digest of texts, and of the names and contents of files; None if one changed after the package was loaded."""
    digest = hashlib.sha256("\n".join(texts).encode())
    for path in paths:
        if path.stat().st_mtime > LOADED:
            return None
        data = path.read_bytes()
        digest.update(f"{path.relative_to(PACKAGE)} {len(data)}\n".encode() + data)
    return digest.hexdigest()
