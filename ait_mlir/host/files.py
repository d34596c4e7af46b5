"""Files that are whole or absent: written beside, flushed, then renamed into place."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from ait_mlir.errors import AitError

DIGEST = ".sha256"
"""The end of the name of the file that holds the digest of a kept one."""


def cache_dir() -> Path:
    """The directory of what is built once: `AIT_CACHE_DIR`, else `~/.cache/ait_mlir`. Made for its owner alone.

    Raises `AitError` where it can be neither made nor written to.
    """
    text = os.environ.get("AIT_CACHE_DIR")
    path = Path(text).expanduser() if text else Path.home() / ".cache" / "ait_mlir"
    problem = None
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(path, os.W_OK | os.X_OK):
            problem = "nothing can be written there"
    except OSError as error:
        problem = error.strerror
    if problem is not None:
        raise AitError(f"{path} cannot be the cache directory: {problem}; set AIT_CACHE_DIR to one that can be written")
    return path.resolve()


@contextlib.contextmanager
def atomic_file(path: Path, flush: bool = True) -> Generator[BinaryIO]:
    """A file to write that becomes `path` when the block ends well, and leaves nothing behind when it does not.

    Without `flush` it may be cut off where the machine itself goes down.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(6)}.tmp")
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if flush:
                file.flush()
                os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    if flush:
        _sync_directory(path.parent)


def write_atomic(path: Path, data: bytes) -> None:
    """Make `path` hold `data`, whole or not at all."""
    with atomic_file(path) as file:
        file.write(data)


def copy_atomic(source: Path, path: Path) -> None:
    """Make `path` a copy of `source`, whole or not at all."""
    with source.open("rb") as data, atomic_file(path) as file:
        shutil.copyfileobj(data, file, 1 << 20)


def keep(source: Path, path: Path) -> None:
    """Make `path` a copy of `source` that `is_kept`. Nothing is flushed: what gets lost is not kept."""
    with atomic_file(_digest_of(path), flush=False) as file:
        file.write(sha256_file(source).encode())
    with source.open("rb") as data, atomic_file(path, flush=False) as file:
        shutil.copyfileobj(data, file, 1 << 20)


def is_kept(path: Path) -> bool:
    """Whether `path` is what `keep` put there: not cut off, nor changed, since."""
    try:
        return _digest_of(path).read_text() == sha256_file(path)
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def _digest_of(path: Path) -> Path:
    return path.with_name(path.name + DIGEST)


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock of a lock file, across threads and processes; a process that dies lets go of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some file systems cannot flush a directory; the rename is atomic all the same
        pass
    finally:
        os.close(handle)
