"""The shared cache: what is taken from it, several writers, damaged entries, no room, no permission, sizes and ages."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ait_mlir.errors import InputError, ToolchainError
from ait_mlir.host import shared
from ait_mlir.host.cache import cache_dir, is_kept, keep_bytes
from ait_mlir.host.shared import GIB, VERSION, Folder, Remote, SharedCache, obtain, share, shared_cache
from ait_mlir.lowering import build
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.tools.cli import main

CPU = Target("cpu", "native")
SOURCES = {"a.cc": 'extern "C" int a() { return 1; }\n', "b.cc": 'extern "C" int b() { return 2; }\n'}
KEY = "ab" * 32


@pytest.fixture(params=["folder", "memory"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty shared cache, and an empty cache of this machine."""
    text = str(tmp_path / "shared") if request.param == "folder" else f"memory://{tmp_path.name}/cache"
    monkeypatch.setenv("AIT_SHARED_CACHE", text)
    on_machine("first", tmp_path, monkeypatch)
    shared._opened.cache_clear()
    yield text
    shared._opened.cache_clear()


def on_machine(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / name))


def cache() -> SharedCache:
    found = shared_cache()
    assert found is not None
    return found


def entry(key: str = KEY) -> Path:
    return cache_dir() / "objects" / key[:2] / f"{key}.o"


def names(of: SharedCache) -> list[str]:
    return sorted(e.name for e in of.entries())


def no_compiler(*_: object) -> None:
    pytest.fail("compiled again")


@pytest.mark.usefixtures("address")
def test_another_machine_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_library(SOURCES, CPU, tmp_path / "w").read_bytes()
    assert [name.split("/")[:2] for name in names(cache())] == [[VERSION, p] for p in ("libraries", "objects", "objects")]
    on_machine("second", tmp_path, monkeypatch)
    monkeypatch.setattr(build, "run_compilers", no_compiler)
    assert build_library(SOURCES, CPU, tmp_path / "w2").read_bytes() == first
    monkeypatch.delenv("AIT_SHARED_CACHE")  # from now on it is here
    assert build_library(SOURCES, CPU, tmp_path / "w2").read_bytes() == first


@pytest.mark.usefixtures("address")
def test_objects_serve_other_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_library(SOURCES, CPU, tmp_path / "w")
    on_machine("second", tmp_path, monkeypatch)
    compiled: list[str] = []
    run = build.run_compilers
    monkeypatch.setattr(
        build, "run_compilers", lambda work: (compiled.extend(u.source.name for u in work.missing.values()), run(work))
    )
    build_library({**SOURCES, "c.cc": "int c;"}, CPU, tmp_path / "w")
    assert compiled == ["c.cc"]


@pytest.mark.parametrize("change", [b"", b"short", None], ids=["empty", "another text", "a changed byte"])
@pytest.mark.usefixtures("address")
def test_a_broken_entry_is_deleted_and_made_again(
    change: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_bytes(b"object", entry(), KEY)
    share(entry(), KEY)
    [name] = names(cache())
    whole = cache().store.read(name)
    assert whole is not None
    cache().store.write(name, whole[:-1] + b"?" if change is None else change)
    on_machine("second", tmp_path, monkeypatch)
    assert obtain([(entry(), KEY)]) == [False] and not entry().exists() and names(cache()) == []
    keep_bytes(b"object", entry(), KEY)
    share(entry(), KEY)
    assert cache().store.read(name) == whole


@pytest.mark.usefixtures("address")
def test_an_entry_of_another_key_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = "cd" * 32
    keep_bytes(b"object", entry(), KEY)
    share(entry(), KEY)
    [name] = names(cache())
    content = cache().store.read(name)
    assert content is not None
    cache().store.write(name.replace(KEY, other).replace("/ab/", "/cd/"), content)
    on_machine("second", tmp_path, monkeypatch)
    assert obtain([(entry(KEY), KEY), (entry(other), other)]) == [True, False]


@pytest.mark.usefixtures("address")
def test_entries_of_another_version_do_not_count_and_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_bytes(b"object", entry(), KEY)
    share(entry(), KEY)
    store = cache().store
    before = {e.name for e in store.entries()}
    monkeypatch.setattr(shared, "VERSION", "ait_mlir-cache-2")
    on_machine("second", tmp_path, monkeypatch)
    assert obtain([(entry(), KEY)]) == [False] and names(cache()) == []
    assert SharedCache("", store, 0, -1.0).trim() == (0, 0) and {e.name for e in store.entries()} == before


@pytest.mark.usefixtures("address")
def test_many_writers_of_one_entry() -> None:
    """Threads with caches of their own write and read one entry; no reader sees a part of it."""
    data, store = os.urandom(1 << 18), cache().store
    head = shared._head(KEY, data) + b"\n"
    name = f"{VERSION}/objects/ab/{KEY}.o"
    stop, bad = threading.Event(), list[int]()

    def read() -> None:
        while not stop.is_set():
            found = store.read(name)
            if found is not None and found != head + data:
                bad.append(len(found))

    reader = threading.Thread(target=read)
    reader.start()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: store.write(name, head + data), range(40)))
    stop.set()
    reader.join()
    assert not bad and [e.name for e in store.entries()] == [name]


def test_two_processes_fill_one_cache(tmp_path: Path) -> None:
    code = (
        "import sys; from ait_mlir.lowering.build import build_library; from ait_mlir.lowering.kernels.base import "
        f"Target; build_library({SOURCES!r}, Target('cpu', 'native'), sys.argv[1])"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / name / "w")],
            env={**os.environ, "AIT_CACHE_DIR": str(tmp_path / name), "AIT_SHARED_CACHE": str(tmp_path / "shared")},
        )
        for name in ("one", "two")
    ]
    assert [process.wait(120) for process in running] == [0, 0]
    found = SharedCache("", Folder(tmp_path / "shared"), GIB, 1e9)
    assert len(names(found)) == 3
    assert not [e.name for e in found.store.entries() if e.name.endswith(".tmp")]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_no_room_or_permission_costs_only_time(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_machine("first", tmp_path, monkeypatch)
    monkeypatch.setenv("AIT_SHARED_CACHE", str(tmp_path / "shared"))
    shared._opened.cache_clear()

    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Folder, "write", refused)
    with pytest.warns(UserWarning, match=f"cannot be written: {os.strerror(number)}; builds go on without") as told:
        library = build_library(SOURCES, CPU, tmp_path / "w")
    assert library.is_file() and len(told) == 1 and not (tmp_path / "shared").exists()


def test_a_disk_that_becomes_full_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the middle of an entry: neither the entry nor a temporary file of it is there."""
    write = os.fdopen

    class Full:
        def __init__(self, file: object) -> None:
            self.file = file

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, data: bytes) -> None:
            self.file.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fdopen", lambda *a, **k: Full(write(*a, **k)))
    with pytest.raises(OSError, match="No space left"):
        Folder(tmp_path).write("v/objects/ab/x.o", b"content")
    assert not list((tmp_path / "v" / "objects" / "ab").iterdir())


def test_a_place_that_is_no_folder_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_machine("first", tmp_path, monkeypatch)
    (tmp_path / "shared").write_text("mine")
    monkeypatch.setenv("AIT_SHARED_CACHE", str(tmp_path / "shared"))
    shared._opened.cache_clear()
    with pytest.warns(UserWarning) as told:
        assert build_library(SOURCES, CPU, tmp_path / "w").is_file()
    assert {str(w.message).split(" cannot be ")[1].split(":")[0] for w in told} == {"read", "written"}
    assert (tmp_path / "shared").read_text() == "mine"


def test_an_address_that_does_not_answer_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_machine("first", tmp_path, monkeypatch)

    class Away:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError("no credentials")  # libraries of stores have errors of their own

    found = SharedCache("s3://away", Remote(Away(), "away"), GIB, 1e9)
    with pytest.warns(UserWarning, match="s3://away cannot be read: RuntimeError: no credentials"):
        assert not found.fetch(entry(), KEY)
    keep_bytes(b"object", entry(), KEY)
    with pytest.warns(UserWarning, match="s3://away cannot be written: RuntimeError: no credentials"):
        found.push(entry(), KEY)
    assert is_kept(entry(), KEY)


@pytest.mark.parametrize(
    "text, kind, message",
    [
        ("relative/folder", InputError, "give the path of the folder in full"),
        ("/tmp/a\nb", InputError, "an address with control characters cannot be used"),
        ("://", InputError, "expected a kind of address before '://'"),
        ("no-such-protocol://x", InputError, "which fsspec cannot open: Protocol not known: no-such-protocol"),
        ("s3://bucket", ToolchainError, "s3fs"),
    ],
)
def test_addresses_that_cannot_be(
    text: str, kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIT_SHARED_CACHE", text)
    with pytest.raises(kind, match=message):
        shared_cache()


@pytest.mark.parametrize("text", ["relative/folder", "://", "/tmp/a\nb"])
def test_a_wrong_address_is_an_error_where_nothing_is_missing(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_machine("first", tmp_path, monkeypatch)
    keep_bytes(b"object", entry(), KEY)
    assert obtain([(entry(), KEY)]) == [True]
    monkeypatch.setenv("AIT_SHARED_CACHE", text)
    with pytest.raises(InputError, match="AIT_SHARED_CACHE is"):
        obtain([(entry(), KEY)])
    assert main(["doctor"]) == 1
    assert "AIT_SHARED_CACHE is" in capsys.readouterr().out


def test_a_warning_shows_the_line_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are read in threads of their own, whose frames the user does not know."""
    on_machine("first", tmp_path, monkeypatch)
    (tmp_path / "shared").write_text("mine")
    monkeypatch.setenv("AIT_SHARED_CACHE", str(tmp_path / "shared"))
    shared._opened.cache_clear()
    with pytest.warns(UserWarning, match="cannot be read") as told:
        obtain([(entry(), KEY)])
    assert [w.filename for w in told] == [__file__]


def test_an_address_needs_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ToolchainError, match=r"an address needs fsspec; pip install 'ait_mlir\[shared\]'"):
        shared._store("memory://x")


def filled(store: shared.Store, sizes: dict[str, int]) -> None:
    for key, size in sizes.items():
        store.write(f"{VERSION}/objects/{key[:2]}/{key}.o", bytes(size))


def test_the_oldest_entries_make_room(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    filled(store, {"aa1": 100, "bb2": 100, "cc3": 100, "dd4": 100})
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / VERSION / "mine.txt").write_text("mine")
    now = time.time()
    for hours, key in enumerate(("aa1", "dd4", "bb2", "cc3")):  # the newest first
        os.utime(tmp_path / VERSION / "objects" / key[:2] / f"{key}.o", (0, now - 3600 * hours))
    assert SharedCache("", store, 400, 1e5).trim() == (0, 0)
    assert SharedCache("", store, 250, 1e5).trim() == (2, 200)
    assert [name[-5:] for name in names(SharedCache("", store, 0, 0))] == ["aa1.o", "dd4.o"]
    assert SharedCache("", store, 400, 1800).trim() == (1, 100)
    assert [name[-5:] for name in names(SharedCache("", store, 0, 0))] == ["aa1.o"]
    assert (tmp_path / "mine.txt").is_file() and (tmp_path / VERSION / "mine.txt").is_file()


def test_what_is_used_is_not_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_machine("first", tmp_path, monkeypatch)
    found = SharedCache("", Folder(tmp_path / "shared"), GIB, 3600)
    keep_bytes(b"object", entry(), KEY)
    found.push(entry(), KEY)
    [name] = names(found)
    os.utime(tmp_path / "shared" / name, (0, time.time() - 7200))
    on_machine("second", tmp_path, monkeypatch)
    assert found.fetch(entry(), KEY) and found.trim() == (0, 0)
    os.utime(tmp_path / "shared" / name, (0, time.time() - 7200))
    assert found.trim()[0] == 1


def test_writers_look_at_sizes_once_in_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_machine("first", tmp_path, monkeypatch)
    looked: list[str] = []
    monkeypatch.setattr(SharedCache, "trim", lambda self: looked.append(self.address))
    caches = [SharedCache(name, Folder(tmp_path / "shared"), GIB, 1e9) for name in ("one", "two")]
    keep_bytes(b"object", entry(), KEY)
    for found in (*caches, *caches):
        found.push(entry(), KEY)
    assert looked == ["one"]
    (tmp_path / "shared" / VERSION / "trimmed").write_text(str(int(time.time() - 2 * shared.TRIM_SECONDS)))
    caches[1].looked = 0.0
    caches[1].push(entry(), KEY)
    assert looked == ["one", "two"]


def test_the_command_shows_and_trims_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_machine("first", tmp_path, monkeypatch)
    assert main(["cache", "--trim"]) == 1
    assert "AIT_SHARED_CACHE names no shared cache" in capsys.readouterr().err
    monkeypatch.setenv("AIT_SHARED_CACHE", str(tmp_path / "shared"))
    shared._opened.cache_clear()
    store = Folder(tmp_path / "shared")
    filled(store, {"aa1": 3, "bb2": 1})
    os.utime(tmp_path / "shared" / VERSION / "objects" / "aa" / "aa1.o", (0, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["cache"]) == 0
        assert f"shared cache {tmp_path / 'shared'}: 2 entries, 4 B" in capsys.readouterr().out
        assert main(["cache", "--trim"]) == 0
    assert capsys.readouterr().out == f"freed 3 B in {tmp_path / 'shared'} (1 entry)\n"
    assert [name[-5:] for name in names(cache())] == ["bb2.o"]
