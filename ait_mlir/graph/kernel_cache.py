"""The cache of compiled kernels."""

from __future__ import annotations

import base64
import binascii
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from ait_mlir.errors import InputError
from ait_mlir.host.cache import cache_dir, is_kept, keep, locked, uses_kept
from ait_mlir.runtime.json_values import JsonError, parse_json

FORMAT = "ait_mlir kernel cache 1"
_KEY = re.compile(r"[0-9a-f]{64}")


class KernelCache:
    """Represents the compiled code that graphs share, for scripts that pass a kernel cache.

    Compiled libraries are in the cache directory, which all graphs and processes use; loaded libraries are kept by the
    process. A graph therefore shares its kernels with or without a `kernel_cache`. The object lists the libraries of
    the graphs that were built with it, so that they can be taken to the cache directory of another machine.
    """

    def __init__(self) -> None:
        self._libraries: dict[str, bytes] = {}

    @property
    def path(self) -> str:
        """The directory of the compiled objects."""
        return str(cache_dir())

    def add(self, library: Path) -> None:
        """Keep the library of a graph, a file of the cache directory."""
        if library.stem not in self._libraries:
            self._libraries[library.stem] = library.read_bytes()

    def serialize(self) -> str:
        """The libraries of the graphs that were built with this cache, as text."""
        files = {key: base64.b64encode(data).decode() for key, data in self._libraries.items()}
        return json.dumps({"format": FORMAT, "libraries": files})

    def deserialize(self, text: str) -> None:
        """Add the libraries of `serialize` to the cache directory. They are code that graphs will run: take them from a
        source that you trust.

        Raises `InputError` for a cache that has libraries already, and for other or damaged text.
        """
        if self._libraries:
            raise InputError("the kernel cache has libraries already: deserialize into a new create_kernel_cache()")
        for key, data in _libraries_in(text).items():
            path = cache_dir() / "libraries" / key[:2] / f"{key}.so"
            with uses_kept(), locked(key):
                if not is_kept(path, key):
                    with TemporaryDirectory(prefix="ait_graph_") as folder:
                        file = Path(folder) / "library.so"
                        file.write_bytes(data)
                        keep(file, path, key)
            self._libraries[key] = data

    def __repr__(self) -> str:
        return f"<KernelCache {self.path}, {len(self._libraries)} libraries>"


def checked_cache(value: object) -> KernelCache | None:
    """The kernel cache of a graph; `InputError` for another object."""
    if value is not None and not isinstance(value, KernelCache):
        raise InputError(f"kernel_cache is a {type(value).__name__}, expected one of create_kernel_cache()")
    return value


def _libraries_in(text: object) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        if not isinstance(text, str):
            raise JsonError(f"it is a {type(text).__name__}")
        data = parse_json(text.encode(), "the kernel cache")
        if data.at("format").text() != FORMAT:
            data.at("format").refuse(repr(FORMAT))
        for key, value in data.at("libraries").members().items():
            if not _KEY.fullmatch(key):
                value.refuse("a library by the 64 digits of its key")
            found[key] = base64.b64decode(value.text(), validate=True)
    except (JsonError, binascii.Error) as error:
        raise InputError(f"the text is not from serialize() of a kernel cache: {error}") from None
    return found


def create_kernel_cache() -> KernelCache:
    """A kernel cache for `pygraph(kernel_cache=)`."""
    return KernelCache()
