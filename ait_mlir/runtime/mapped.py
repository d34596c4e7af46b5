"""Files of the cache with the values of constants. The processes of a machine that run one model map one file, so its
weights are in memory once.

A file has the values as the model library lays them out, then a trailer: a magic word, and the BLAKE3 of key and
values. A process holds a shared lock on a file as long as it maps it. The process that makes a file removes those that
nobody maps.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import mmap
import os
import struct
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

from ait_mlir.host.cache import cache_dir, is_plain, locked, private_folder
from ait_mlir.runtime.artifact import parallel_blake3

FOLDER = "weights"
"""The part of the cache with these files."""
_TRAILER = struct.Struct("<16s32s")
_MAGIC = b"ait constants 1"


@contextlib.contextmanager
def values_file(key: str, write: Callable[[int], None]) -> Generator[int]:
    """An open file with the values of `key`, from its start. It may be mapped as long as its description is open.

    If there is no such file, or it is damaged, `write` writes the values to an open file, in one process at a time.
    Raises what `write` raises, `OSError` from the disk, and `AitError` like `cache_dir`.
    """
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    path = private_folder(cache_dir() / FOLDER) / f"{name}.bin"
    with locked(f"weights-{name}"):
        handle = _opened(path, key)
        if handle is None:
            handle = _written(path, key, write)
    try:
        yield handle
    finally:
        os.close(handle)


def _opened(path: Path, key: str) -> int | None:
    """A file with a shared lock; None if it is not there, being removed, or damaged."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        size = os.fstat(handle).st_size - _TRAILER.size
        if _is_at(path, handle) and size >= 0 and os.pread(handle, _TRAILER.size, size) == _trailer(handle, size, key):
            return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _written(path: Path, key: str, write: Callable[[int], None]) -> int:
    """A new file at `path`, with a shared lock."""
    _remove_unused(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        write(handle)
        size = os.fstat(handle).st_size
        trailer = _trailer(handle, size, key)
        if os.pwrite(handle, trailer, size) != len(trailer):
            raise OSError(f"{name} takes no more bytes")
        os.replace(name, path)
    except BaseException:
        os.close(handle)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    return handle


def _trailer(handle: int, size: int, key: str) -> bytes:
    """The trailer of a file whose values have `size` bytes."""
    digest = parallel_blake3()
    digest.update(key.encode())
    if size:
        with mmap.mmap(handle, size, prot=mmap.PROT_READ) as values:
            digest.update(values)
    return _TRAILER.pack(_MAGIC, digest.digest())


def _is_at(path: Path, handle: int) -> bool:
    """Whether an open file is still the one at `path`."""
    return is_plain(path) and os.path.samestat(path.lstat(), os.fstat(handle))


def _remove_unused(folder: Path) -> None:
    """Remove the files of a folder that no process has open with a lock."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(handle)
