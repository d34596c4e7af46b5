"""The shared cache: a second level behind the cache of this machine, for many machines and users.

`AIT_SHARED_CACHE` names it: a folder, or an address of fsspec, such as `s3://bucket/cache`. An entry is one file, named
by its key, whose first line has the digests of the key and of the content. So a half-written or damaged entry is found
when it is read; it counts as missing. Writers of one entry write equal contents, each whole or not at all where the
store can do that. An entry that cannot be read or written costs only time; a warning says so once.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ait_mlir import callers
from ait_mlir.errors import InputError, ToolchainError
from ait_mlir.host.cache import CONTROL, cache_dir, is_kept, keep_bytes
from ait_mlir.host.files import replaced_file
from ait_mlir.host.settings import whole_number

VERSION = "ait_mlir-cache-1"
"""The folder of all entries in the store, and the first word of each. Another format of entries has another one."""
_TRIMMED = "trimmed"
"""The entry that was written when a machine last looked at sizes and ages."""
TRIM_SECONDS = 3600.0
"""How often writers look at sizes and ages."""
GIB, DAY = 1 << 30, 86400.0
KIND = re.compile(r"[A-Za-z][\w+.:-]*://")
"""How an address of fsspec begins; kinds may be chained, as in `simplecache::s3://bucket`."""
SIZE_GIB, AGE_DAYS = 20, 60
_TIMES = ("mtime", "LastModified", "last_modified", "created")
"""The names of the time of the last change in different file systems."""
AT_ONCE = 8
"""Entries that are looked up at the same time."""
_NAME = re.compile(r"\w+/[0-9a-f]{2}/[\w.-]+")


class Entry(NamedTuple):
    """A file of a store: name, bytes, and the time of its last change or use, in seconds since 1970."""

    name: str
    size: int
    changed: float


class Store(Protocol):
    """Files by name, with `/` between folders. A method that fails raises `OSError`."""

    def read(self, name: str) -> bytes | None:
        """The content; None if there is no such file."""
        ...

    def write(self, name: str, data: bytes) -> None: ...
    def delete(self, name: str) -> None: ...
    def used(self, name: str) -> None:
        """Note that a file is used, if the store can keep such a time."""
        ...

    def entries(self) -> Iterator[Entry]: ...


@dataclass(frozen=True)
class Folder:
    """A folder that several users or machines mount. Files appear by renaming."""

    root: Path

    def read(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(path, flush=False) as file:
            file.write(data)

    def delete(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)

    def used(self, name: str) -> None:
        os.utime(self.root / name)

    def entries(self) -> Iterator[Entry]:
        for folder, _, names in os.walk(self.root):
            for path in (Path(folder) / name for name in names):
                with contextlib.suppress(FileNotFoundError):
                    state = path.stat()
                    yield Entry(path.relative_to(self.root).as_posix(), state.st_size, state.st_mtime)


@dataclass(frozen=True)
class Remote:
    """A folder in a file system of fsspec. Its errors of all kinds become `OSError`."""

    system: Any
    root: str

    def read(self, name: str) -> bytes | None:
        with _as_os_error():
            try:
                return bytes(self.system.cat_file(self._path(name)))
            except FileNotFoundError:
                return None

    def write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        with _as_os_error():
            self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
            self.system.pipe_file(path, data)

    def delete(self, name: str) -> None:
        with _as_os_error(), contextlib.suppress(FileNotFoundError):
            self.system.rm_file(self._path(name))

    def used(self, name: str) -> None:
        """Object stores keep no such time: an entry is as old as its last write."""

    def entries(self) -> Iterator[Entry]:
        with _as_os_error():
            self.system.invalidate_cache()
            found: dict[str, Any] = self.system.find(self.root, detail=True)
        for path, info in found.items():
            changed: Any = next((info[name] for name in _TIMES if info.get(name)), None)
            seconds: Any = changed.timestamp() if hasattr(changed, "timestamp") else changed
            yield Entry(
                path.removeprefix(self.root).lstrip("/"),
                int(info.get("size") or 0),
                float(seconds) if isinstance(seconds, int | float) else time.time(),
            )

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"


@contextlib.contextmanager
def _as_os_error() -> Generator[None]:
    """A context in which other errors than `OSError` become one: each file system has errors of its own."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


@dataclass(eq=False)
class SharedCache:
    """The entries in a store."""

    address: str
    store: Store
    size: int
    """The most bytes of all entries, after `trim`."""
    age: float
    """Seconds after which an entry that is not used is deleted."""
    told: set[str] = field(default_factory=set[str])
    looked: float = 0.0

    def fetch(self, path: Path, key: str) -> bool:
        """Copy an entry to its place in the cache of this machine; returns whether there is a whole one."""
        name = _name(path)
        data: bytes | None = None
        with self._told("read"):
            data = self.store.read(name)
        if data is None:
            return False
        head, _, content = data.partition(b"\n")
        if head != _head(key, content):
            with self._told("written"):
                self.store.delete(name)
            return False
        with self._told("read"):
            self.store.used(name)
        try:
            keep_bytes(content, path, key)
        except OSError as error:
            self._tell("read", error)
            return False
        return True

    def push(self, path: Path, key: str) -> None:
        """Copy a file that `keep` wrote from the cache of this machine to the store."""
        with self._told("written"):
            content = path.read_bytes()
            self.store.write(_name(path), _head(key, content) + b"\n" + content)
            self._trim_sometimes()

    def _trim_sometimes(self) -> None:
        """Trim the store if no machine did so for a while."""
        now = time.time()
        if now - self.looked < TRIM_SECONDS:
            return
        self.looked = now
        last = self.store.read(f"{VERSION}/{_TRIMMED}") or b"0"
        if last.isdigit() and abs(now - int(last)) < TRIM_SECONDS:
            return
        self.store.write(f"{VERSION}/{_TRIMMED}", str(int(now)).encode())
        self.trim()

    def trim(self) -> tuple[int, int]:
        """Delete entries that are too old, then the oldest while there are too many bytes. Returns the number of
        deleted entries and their bytes. Nothing but entries of this version is deleted."""
        now, count, freed = time.time(), 0, 0
        found = sorted(self.entries(), key=lambda entry: entry.changed)
        total = sum(entry.size for entry in found)
        for entry in found:
            if now - entry.changed <= self.age and total <= self.size:
                break
            self.store.delete(entry.name)
            total, count, freed = total - entry.size, count + 1, freed + entry.size
        return count, freed

    def entries(self) -> Iterable[Entry]:
        """The entries of this version."""
        head = VERSION + "/"
        for entry in self.store.entries():
            if entry.name.startswith(head) and _NAME.fullmatch(entry.name.removeprefix(head)):
                yield entry

    @contextlib.contextmanager
    def _told(self, what: str) -> Generator[None]:
        """A context in which an `OSError` becomes a warning, the first of its kind."""
        try:
            yield
        except OSError as error:
            self._tell(what, error)

    def _tell(self, what: str, error: OSError) -> None:
        if what not in self.told:
            self.told.add(what)
            reason = error.strerror or str(error)
            callers.warn(f"the shared cache {self.address} cannot be {what}: {reason}; builds go on without")


def _name(path: Path) -> str:
    """The name of an entry in a store, for its path in the cache of this machine."""
    return f"{VERSION}/{path.relative_to(cache_dir()).as_posix()}"


def _head(key: str, content: bytes) -> bytes:
    """The first line of an entry."""
    digests = (hashlib.sha256(key.encode()).hexdigest(), hashlib.sha256(content).hexdigest())
    return " ".join((VERSION, *digests)).encode()


def checked_address() -> str | None:
    """The address of `AIT_SHARED_CACHE`; None if it is not set. Raises `InputError` for one that no cache can have."""
    address = os.environ.get("AIT_SHARED_CACHE")
    if not address:
        return None
    if CONTROL.search(address):
        raise InputError(f"AIT_SHARED_CACHE is {address!r}: an address with control characters cannot be used")
    if "://" not in address:
        if not _folder(address).is_absolute():
            raise InputError(f"AIT_SHARED_CACHE is {address!r}: give the path of the folder in full")
    elif not KIND.match(address):
        raise InputError(f"AIT_SHARED_CACHE is {address!r}: expected a kind of address before '://', as in s3://bucket")
    return address


def _folder(address: str) -> Path:
    return Path(address).expanduser() if address == "~" or address.startswith("~/") else Path(address)


def shared_cache() -> SharedCache | None:
    """The shared cache of `AIT_SHARED_CACHE`; None if it is not set.

    Raises `InputError` for an address that fsspec does not know, `ToolchainError` if fsspec or the package for its kind
    of address is missing.
    """
    address = checked_address()
    if address is None:
        return None
    size = whole_number("AIT_SHARED_CACHE_GIB", 1 << 20) or SIZE_GIB
    age = whole_number("AIT_SHARED_CACHE_DAYS", 36500) or AGE_DAYS
    return _opened(address, size * GIB, age * DAY)


@functools.lru_cache(maxsize=8)
def _opened(address: str, size: int, age: float) -> SharedCache:
    return SharedCache(address, _store(address), size, age)


def _store(address: str) -> Store:
    if "://" not in address:
        return Folder(_folder(address))
    try:
        fsspec: Any = import_module("fsspec")
    except ImportError:
        raise ToolchainError(
            f"AIT_SHARED_CACHE is {address!r}: an address needs fsspec; pip install 'ait_mlir[shared]'"
        ) from None
    try:
        system, root = fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise ToolchainError(f"AIT_SHARED_CACHE is {address!r}: {error}") from None
    except Exception as error:
        raise InputError(f"AIT_SHARED_CACHE is {address!r}, which fsspec cannot open: {error}") from None
    return Remote(system, str(root).rstrip("/"))


def obtain(entries: Sequence[tuple[Path, str]]) -> list[bool]:
    """For each path and key, whether the path is kept for the key in the cache of this machine. Entries of the shared
    cache that are missing here are copied first.

    Raises like `shared_cache`, for a wrong address also if nothing is missing.
    """
    checked_address()
    found = [is_kept(path, key) for path, key in entries]
    missing = [entry for entry, is_here in zip(entries, found, strict=True) if not is_here]
    shared = shared_cache() if missing else None
    if shared is None:
        return found
    with ThreadPoolExecutor(AT_ONCE, "ait-cache") as pool:
        fetched = list(pool.map(shared.fetch, *zip(*missing, strict=True)))
    return [is_here or fetched.pop(0) for is_here in found]


def share(path: Path, key: str) -> None:
    """Copy a file that is kept in the cache of this machine to the shared one, if there is one."""
    if (shared := shared_cache()) is not None:
        shared.push(path, key)


__all__ = ["Entry", "Folder", "Remote", "SharedCache", "obtain", "share", "shared_cache"]
