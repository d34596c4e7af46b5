"""The Python code of the Jinja2 templates, in the cache: making it takes 0.2 s, as long as it takes to plan one op."""

from __future__ import annotations

import contextlib
import hashlib
import io

import jinja2
from jinja2.bccache import Bucket

from ait_mlir.errors import AitError
from ait_mlir.host.cache import cache_dir, is_kept, keep_bytes


class CompiledTemplates(jinja2.BytecodeCache):
    """Code of templates by their names, texts and folder, for the sources of the package with this digest: they decide
    how templates are compiled. Jinja2 adds the version of Python.

    Nothing is kept where the cache cannot be used.
    """

    def __init__(self, digest: str) -> None:
        self._digest = digest

    def load_bytecode(self, bucket: Bucket) -> None:
        """Set the code of a bucket, if it is in the cache."""
        with contextlib.suppress(AitError, OSError):
            key = self._key(bucket)
            path = cache_dir() / "templates" / key
            if is_kept(path, key):
                bucket.load_bytecode(io.BytesIO(path.read_bytes()))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a bucket."""
        with contextlib.suppress(AitError, OSError):
            key = self._key(bucket)
            keep_bytes(bucket.bytecode_to_string(), cache_dir() / "templates" / key, key)

    def _key(self, bucket: Bucket) -> str:
        return hashlib.sha256("\0".join((self._digest, bucket.key, bucket.checksum)).encode()).hexdigest()
