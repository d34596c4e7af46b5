"""Atomic files: written under another name, flushed, then renamed."""

from __future__ import annotations

import contextlib
import errno
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

_LONGEST_NAME = 200
"""Bytes of a file's name that the name of its temporary file contains, so that it is not too long for file systems."""
_MOST_LINKS = 40
"""The most symbolic links to follow in a path, as on Linux."""


@contextlib.contextmanager
def atomic_file(path: Path, executable: bool = False) -> Generator[BinaryIO]:
    """A file whose content replaces that of `path` when the block ends without an error.

    After an error `path` is as before. A regular file is replaced by renaming: readers see the old content or the new.
    It keeps its mode and owner; a new file has the mode that the umask allows. Links are followed. A device or a pipe
    is written through, at the end. Raises `AitError` like `check_output`.
    """
    target = check_output(path)
    if target is not None:
        with _named(path), replaced_file(target, executable=executable) as content:
            yield content
        return
    with _named(path), tempfile.TemporaryFile() as content:
        yield content
        content.seek(0)
        with path.open("wb", buffering=0) as sink:
            shutil.copyfileobj(content, sink, 1 << 20)


def is_written_through(path: Path) -> bool:
    """Whether `path` names a device, a pipe or the open file of a process, which `atomic_file` does not replace."""
    return _target(path) is None


@contextlib.contextmanager
def replaced_file(target: Path, flush: bool = True, executable: bool = False) -> Generator[BinaryIO]:
    """Like `atomic_file`, for the name of a regular file: a link of this name is replaced, not followed.

    Without `flush` the file may be incomplete after a crash of the machine.
    """
    start = os.fsdecode(os.fsencode(target.name)[:_LONGEST_NAME])
    name = target.with_name(f".{start}.{os.getpid()}.{secrets.token_hex(6)}.tmp")
    is_new = not os.path.lexists(target)
    mode = (0o777 if executable else 0o666) if is_new else 0o600  # nobody opens it before it has the mode of the old
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            if not is_new:
                _adopt_mode(handle, target)
            yield file
            if flush:
                file.flush()
                os.fsync(file.fileno())
        _rename(name, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    if flush:
        _sync_directory(target.parent)


def _rename(name: Path, target: Path) -> None:
    """Rename a file to `target`; if `target` is itself a mount point, write into it instead."""
    try:
        os.replace(name, target)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        shutil.copyfile(name, target)
        os.unlink(name)


@contextlib.contextmanager
def _named(path: Path) -> Generator[None]:
    """A context in which errors of a full disk name `path`."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


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
    """Give an open file the mode and the owner of the regular file that it is going to replace."""
    try:
        old = replaced.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(old.st_mode):
        return
    with contextlib.suppress(PermissionError):  # a file of another user's becomes ours
        os.fchown(handle, old.st_uid, old.st_gid)
    os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)  # other content is not to run as another user


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically."""
    with atomic_file(path) as file:
        file.write(data)


def check_output(path: Path) -> Path | None:
    """The regular file that `path` names, after its links; None for a device, a pipe or an open file.

    Raises `AitError` if `path` is a folder or lies in none: folders are not made. Call it before long work whose result
    is written to `path`.
    """
    target = _target(path)
    if target is not None and not target.parent.is_dir():
        what = "is no folder" if target.parent.exists() else "does not exist: make this folder first"
        raise AitError(f"{path} cannot be written: {target.parent} {what}")
    return target


def check_report(path: Path, *others: str | None) -> None:
    """Raise `AitError` if no page can be written to `path`, or if that would replace one of the other files of a
    command; None and "-" are no files.
    """
    target = check_output(path)
    for other in others:
        if target is not None and other not in (None, "-") and target == Path(other).resolve():
            raise AitError(f"--report {path}: the page would replace {other}; give it another name")


def copy_atomic(source: Path, path: Path) -> None:
    """Copy `source` to `path` atomically."""
    with source.open("rb") as data, atomic_file(path) as file:
        shutil.copyfileobj(data, file, 1 << 20)


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some file systems cannot flush a directory; the rename is atomic all the same
        pass
    finally:
        os.close(handle)
