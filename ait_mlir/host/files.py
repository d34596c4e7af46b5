"""Atomic files: written under another name, flushed, then renamed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from ait_mlir.errors import AitError

DIGEST = ".sha256"
"""The end of the name of the file that holds the digest of a kept one."""
_HELD = ".held"
"""The file in a scratch folder that its process holds a lock of."""
_MOST_LINKS = 40
"""As many symbolic links as Linux follows."""


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
    """A file whose content replaces that of `path` when the block ends without an error.

    After an error `path` is as before. A regular file is replaced by renaming: readers see the old content or the new.
    It keeps its mode and owner; a new file has the mode that the umask allows. Links are followed. A device or a pipe
    is written through, at the end. Without `flush` the file may be incomplete after a crash of the machine.
    Raises `AitError` for a folder.
    """
    target = _target(path)
    if target is None:
        with tempfile.TemporaryFile() as content:
            yield content
            content.seek(0)
            with path.open("wb", buffering=0) as sink:
                shutil.copyfileobj(content, sink, 1 << 20)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    name = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(6)}.tmp")
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            _adopt_mode(handle, target)
            yield file
            if flush:
                file.flush()
                os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    if flush:
        _sync_directory(target.parent)


def _target(path: Path) -> Path | None:
    """The regular file that `path` names, after its links; None for a device, a pipe, or the open file of a process."""
    if path.is_dir():
        raise AitError(f"{path} is a folder; give the name of a file to write")
    if path.exists() and not path.is_file():
        return None
    target = path
    for _ in range(_MOST_LINKS):
        target = target.parent.resolve() / target.name
        if target.is_relative_to("/proc"):  # /dev/stdout, /dev/fd/3: a name for a file that a process has opened
            return None
        if not target.is_symlink():
            return target
        target = target.parent / os.readlink(target)
    raise AitError(f"{path}: too many symbolic links")


def _adopt_mode(handle: int, replaced: Path) -> None:
    """Give an open file the mode and the owner of the file that it is going to replace, if there is one."""
    try:
        old = replaced.stat()
    except FileNotFoundError:
        return
    with contextlib.suppress(PermissionError):  # a file of another user's becomes ours
        os.fchown(handle, old.st_uid, old.st_gid)
    os.fchmod(handle, stat.S_IMODE(old.st_mode))


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically."""
    with atomic_file(path) as file:
        file.write(data)


def copy_atomic(source: Path, path: Path) -> None:
    """Copy `source` to `path` atomically."""
    with source.open("rb") as data, atomic_file(path) as file:
        shutil.copyfileobj(data, file, 1 << 20)


def keep(source: Path, path: Path) -> None:
    """Copy `source` to `path` so that `is_kept` holds. The file is not flushed; after a loss `is_kept` is false."""
    with atomic_file(_digest_of(path), flush=False) as file:
        file.write(sha256_file(source).encode())
    with source.open("rb") as data, atomic_file(path, flush=False) as file:
        shutil.copyfileobj(data, file, 1 << 20)


def is_kept(path: Path) -> bool:
    """Whether `path` still has the content that `keep` wrote."""
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


class Scratch:
    """A folder for the files of one build, in the cache. It is removed with `remove`, or at the end of a `with` block.

    A process that is killed leaves its folders: the next one that makes a folder removes those that nobody holds.
    """

    def __init__(self) -> None:
        home = cache_dir() / "tmp"
        home.mkdir(exist_ok=True)
        with locked(cache_dir() / "locks" / "scratch"):
            _remove_abandoned(home)
            self.path = Path(tempfile.mkdtemp(dir=home))
            self._held = (self.path / _HELD).open("ab")
            fcntl.flock(self._held, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._held.close()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def _remove_abandoned(home: Path) -> None:
    """Remove scratch folders whose lock nobody holds. The caller has the lock of scratch folders."""
    for folder in home.iterdir():
        if not folder.is_dir():
            continue
        try:
            with (folder / _HELD).open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # in use, or gone meanwhile
        shutil.rmtree(folder, ignore_errors=True)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some file systems cannot flush a directory; the rename is atomic all the same
        pass
    finally:
        os.close(handle)
