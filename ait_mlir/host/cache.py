"""The cache directory: our folder, with a marker, for everything that is built once and kept.

No file outside of this folder is written or deleted, and no symbolic link in it is followed. Code from the cache is
loaded and run. So the folder must belong to the user of this process, and no other user may be able to write to it.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import grp
import hashlib
import os
import pwd
import re
import shutil
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path

from ait_mlir.errors import AitError
from ait_mlir.host.files import replaced_file, sha256_file

FOLDER = "ait_mlir_cache"
"""The name of our folder in the directory that `AIT_CACHE_DIR` names."""
TAG = "CACHEDIR.TAG"
"""The marker file; backup programs know its first line (https://bford.info/cachedir)."""
TAG_TEXT = b"""Signature: 8a477f597d28d172789f06886806bc55
# This folder belongs to ait_mlir. `ait cache --clear` deletes the files in it.
"""
DIGEST = ".sha256"
"""The suffix of the file with the record of a kept file."""
_SCRATCH = "build-"
"""The prefix of the names of scratch folders."""
_HELD = ".held"
"""The lock file in a scratch folder; the folder's process holds the lock."""
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ADVICE = "set AIT_CACHE_DIR to a folder of your own"


def cache_dir() -> Path:
    """Our folder in the directory that `AIT_CACHE_DIR` names, by default `~/.cache`. Only its owner can access it.

    Raises `AitError` if it cannot be made or written, if another user could write to it or replace it, and if there is
    a folder of this name without our marker.
    """
    home = _home()
    folder = home / FOLDER
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        home = home.resolve()
        _check_home(home)
        folder = home / FOLDER
        if not os.path.lexists(folder):
            if not os.access(home, os.W_OK | os.X_OK):
                raise PermissionError(0, "nothing can be written there")
            _make_marked(folder)
        _check_ours(folder)
        _check_marker(folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(0, "nothing can be written there")
    except (OSError, RuntimeError) as error:
        problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise AitError(
            f"{home} cannot be the cache directory: {problem}; set AIT_CACHE_DIR to one that can be written"
        ) from error
    return folder


def has_cache() -> bool:
    """Whether our folder is there; unlike `cache_dir`, this makes no folder."""
    return os.path.lexists(_home() / FOLDER)


def _home() -> Path:
    """The directory that `AIT_CACHE_DIR` names, or the default."""
    text = os.environ.get("AIT_CACHE_DIR")
    if not text:
        try:
            return Path.home() / ".cache"
        except RuntimeError:  # a user without a home, as in some containers
            raise AitError("there is no home directory for the cache: set AIT_CACHE_DIR to a folder") from None
    if CONTROL.search(text):
        raise AitError(f"AIT_CACHE_DIR is {text!r}: a path with control characters cannot be used")
    if text.startswith("~") and text != "~" and not text.startswith("~/"):
        raise AitError(f"AIT_CACHE_DIR is {text!r}: only your own ~ is expanded; give the path in full")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise AitError(f"AIT_CACHE_DIR is {text!r}, but there is no home directory; give the path in full") from None


def _check_home(home: Path) -> None:
    """Raise `AitError` for a directory in which other users could replace our folder."""
    found = home.stat()
    if found.st_uid not in (0, os.geteuid()):
        raise AitError(
            f"{home} belongs to {_user(found.st_uid)}, who could replace a cache in it; you are "
            f"{_user(os.geteuid())}: {_ADVICE}"
        )
    for path, state in ((path, path.stat()) for path in (home, *home.parents)):
        if state.st_mode & stat.S_ISVTX:
            continue
        by_others = state.st_mode & stat.S_IWOTH or (path == home and _group_may_write(state))
        if by_others:
            raise AitError(
                f"others may write to {path} (its mode is {stat.S_IMODE(state.st_mode):04o}) and could replace the "
                f"cache in it: {_ADVICE}, or run `chmod go-w {path}`"
            )


def _check_ours(path: Path) -> None:
    """Raise `AitError` unless `path` is a folder that belongs to this user and that no other user may write to."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise AitError(f"{path} is a symbolic link, and the cache follows none: remove the link, or {_ADVICE}")
    if not stat.S_ISDIR(found.st_mode):
        raise AitError(f"{path} cannot be a part of the cache, because it is no folder: move it away, or {_ADVICE}")
    if found.st_uid != os.geteuid():
        raise AitError(
            f"the cache {path} belongs to {_user(found.st_uid)}, you are {_user(os.geteuid())}: its owner could put "
            f"code there that you would run; {_ADVICE}"
        )
    if found.st_mode & stat.S_IWOTH or _group_may_write(found):
        raise AitError(
            f"others may write to the cache {path} (its mode is {stat.S_IMODE(found.st_mode):04o}) and could put code "
            f"there that you would run: if nobody did, run `chmod go-w {path}`, else delete it"
        )


def _group_may_write(found: os.stat_result) -> bool:
    """Whether members of a group other than this user may write."""
    return bool(found.st_mode & stat.S_IWGRP) and not _is_private_group(found.st_gid)


@functools.cache
def _is_private_group(gid: int) -> bool:
    """Whether a group is this user's private group: it has the user's name, and no other members."""
    try:
        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return group.gr_name == user.pw_name and gid == user.pw_gid and set(group.gr_mem) <= {user.pw_name}


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _make_marked(folder: Path) -> None:
    """Make our folder with its marker, atomically: another process sees both or neither."""
    made = Path(tempfile.mkdtemp(prefix=f".{FOLDER}-", dir=folder.parent))
    try:
        (made / TAG).write_bytes(TAG_TEXT)
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            os.rename(made, folder)
    except OSError as error:
        if not os.path.lexists(folder):  # else another process was faster
            raise error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _check_marker(folder: Path) -> None:
    tag = folder / TAG
    if not is_plain(tag) or tag.read_bytes() != TAG_TEXT:
        raise AitError(
            f"{folder} is not the cache of ait_mlir: it has no {TAG} that ait_mlir wrote, so nothing in it is touched; "
            f"move it away, or {_ADVICE}"
        )


def is_plain(path: Path) -> bool:
    """Whether there is a regular file, not behind a symbolic link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def private_folder(path: Path) -> Path:
    """Make a folder of the cache that only its owner can access; returns it. Raises `AitError` like `cache_dir`."""
    folder = cache_dir()
    for name in path.relative_to(folder).parts:
        folder = folder / name
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        _check_ours(folder)
    return folder


def put(path: Path, data: bytes) -> None:
    """Write a file of the cache. A link of this name is replaced, not followed. The file is not flushed."""
    private_folder(path.parent)
    with replaced_file(path, flush=False) as file:
        file.write(data)


def keep(source: Path, path: Path, key: str) -> None:
    """Copy `source` to `path` in the cache so that `is_kept` holds for `key`. The files are not flushed."""
    private_folder(path.parent)
    put(_record_of(path), _record(key, sha256_file(source)))
    with source.open("rb") as data, replaced_file(path, flush=False) as file:
        shutil.copyfileobj(data, file, 1 << 20)


def keep_bytes(data: bytes, path: Path, key: str) -> None:
    """Write `data` to `path` in the cache so that `is_kept` holds for `key`. The files are not flushed."""
    put(_record_of(path), _record(key, hashlib.sha256(data).hexdigest()))
    put(path, data)


def is_kept(path: Path, key: str) -> bool:
    """Whether `path` has the content that `keep` wrote for `key`, and its path contains no link.

    The record beside the file has a digest of the key and of the content, so a file kept for another key does not
    count.
    """
    if not _is_in_place(path):
        return False
    try:
        return _record_of(path).read_bytes() == _record(key, sha256_file(path))
    except FileNotFoundError:
        return False


def kept_bytes(path: Path, key: str) -> bytes | None:
    """The content that `keep` or `keep_bytes` wrote for `key`; None if `is_kept` does not hold."""
    if not _is_in_place(path):
        return None
    try:
        data = path.read_bytes()
        return data if _record_of(path).read_bytes() == _record(key, hashlib.sha256(data).hexdigest()) else None
    except FileNotFoundError:
        return None


def _is_in_place(path: Path) -> bool:
    """Whether a file and the record beside it are there, and the path contains no link."""
    return Path(os.path.realpath(path.parent)) == path.parent and is_plain(path) and is_plain(_record_of(path))


def _record_of(path: Path) -> Path:
    return path.with_name(path.name + DIGEST)


def _record(key: str, digest: str) -> bytes:
    """The record that is written beside a file: the digests of its key and of its content."""
    return f"{hashlib.sha256(key.encode()).hexdigest()} {digest}\n".encode()


@contextlib.contextmanager
def locked(name: str, *, shared: bool = False) -> Generator[None]:
    """Hold a lock of the cache, across threads and processes; the death of a process releases its lock.

    Several threads or processes may hold a `shared` lock at the same time.
    """
    with _lock_file(private_folder(cache_dir() / "locks") / name) as handle:
        fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


def uses_kept() -> contextlib.AbstractContextManager[None]:
    """A context in which `clear` waits, so that kept files stay. For builds, which check a file first and use it
    later."""
    return locked("clear", shared=True)


@contextlib.contextmanager
def _lock_file(path: Path, flags: int = os.O_CREAT) -> Generator[int]:
    """A file to lock, opened without following a link. Raises `AitError` for a link."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | flags, 0o600)
    except OSError as error:
        if path.is_symlink():
            raise AitError(f"{path} is a symbolic link, and the cache follows none: remove the link") from error
        raise
    try:
        yield handle
    finally:
        os.close(handle)


class Scratch:
    """A folder for the files of one build, in the cache. It is removed with `remove`, or at the end of a `with` block.

    A killed process leaves its folders; the next process that makes a folder removes folders without a live owner.
    """

    def __init__(self) -> None:
        with locked("scratch"):
            home = private_folder(cache_dir() / "tmp")
            remove_abandoned(home)
            self.path = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=home))
            self._held = (self.path / _HELD).open("xb")
            fcntl.flock(self._held, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the folder and its contents."""
        _remove_scratch(self.path)
        self._held.close()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def remove_abandoned(home: Path) -> None:
    """Remove scratch folders in `home` whose lock no process holds. The caller must hold the lock `scratch`.

    A scratch folder has our prefix, our user as owner and a lock file; all other files and folders stay. A process
    that was killed before it made the lock file leaves an empty folder, which is removed, too.
    """
    for folder in home.glob(f"{_SCRATCH}*"):
        try:
            state = folder.lstat()
        except FileNotFoundError:  # its process removed it meanwhile
            continue
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
            continue
        with contextlib.suppress(OSError):
            folder.rmdir()
            continue
        try:
            with _lock_file(folder / _HELD, flags=0) as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (OSError, AitError):
            continue  # in use, not ours, or gone meanwhile
        _remove_scratch(folder)


def _remove_scratch(folder: Path) -> None:
    """Remove a scratch folder, its lock file last, so that a later process removes the rest if this one is killed."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != _HELD:
                path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def clear(part: str) -> int:
    """Delete a part of the cache, once no build uses it; returns the bytes that this freed.

    Raises `AitError` like `cache_dir`: nothing is deleted in a folder without our marker.
    """
    folder = cache_dir() / part
    if not os.path.lexists(folder):
        return 0
    _check_ours(folder)
    before = size_of(part)[1]
    with locked("clear"), locked("scratch"):
        if part == "tmp":
            remove_abandoned(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return before - size_of(part)[1]


def size_of(part: str) -> tuple[int, int]:
    """The number of files in a part of the cache, without their records, and their bytes; links are not followed."""
    files = size = 0
    for folder, _, names in os.walk(cache_dir() / part):
        for path in (Path(folder) / name for name in names if not name.endswith(DIGEST)):
            with contextlib.suppress(FileNotFoundError):
                size += path.lstat().st_size
                files += 1
    return files, size
