"""The cache directory: nothing of others is touched, no link is followed, and code of others is not believed."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ait_mlir.errors import AitError, CompileError
from ait_mlir.host import cache
from ait_mlir.host.cache import (
    DIGEST,
    FOLDER,
    TAG,
    Scratch,
    cache_dir,
    clear,
    is_kept,
    keep,
    locked,
    private_folder,
    put,
)
from ait_mlir.lowering import build
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.lowering.toolchain import ToolchainError, compiler_environment, toolchain
from ait_mlir.selection.timings import TimingCache
from ait_mlir.tools.cli import main

CPU = Target("cpu", "native")
SOURCE = 'extern "C" int answer() { return 42; }\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that `AIT_CACHE_DIR` names."""
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("AIT_CACHE_DIR", str(path))
    return path


def snapshot(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Everything in a folder but our own: mode, inode, time of the last change, content."""
    found: dict[str, tuple[int, int, int, bytes]] = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != FOLDER]
        for path in (Path(root) / name for name in (*folders, *files)):
            state = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(state.st_mode) else b""
            found[str(path)] = state.st_mode, state.st_ino, state.st_mtime_ns, content
    return found


def test_contents_of_others_stay(home: Path) -> None:
    for part in ("tmp", "objects", "headers", "libraries", "models", "prefix", "locks", "tmp/build-mine", "ait_mlir"):
        (home / part).mkdir()
        (home / part / "file.so").write_text("mine")
    (home / "timings-1.sqlite3").write_text("mine")
    (home / "tmp" / "build-mine" / ".held").write_text("")
    before = snapshot(home)
    build_library({"a.cc": SOURCE}, CPU, home.parent / "w")
    TimingCache().keep_choice("key", "choice")
    assert main(["cache"]) == main(["cache", "--clear"]) == 0
    assert snapshot(home) == before
    assert sorted(os.listdir(home / FOLDER)) == [TAG, "locks", "timings-1.sqlite3", "tmp"]


@pytest.mark.parametrize("tag", [None, "Signature: 8a477f597d28d172789f06886806bc55\n"])
def test_a_folder_without_our_marker_is_not_ours(
    home: Path, tag: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / FOLDER / "objects").mkdir(parents=True)
    (home / FOLDER / "objects" / "mine.o").write_text("mine")
    if tag is not None:
        (home / FOLDER / TAG).write_text(tag)
    with pytest.raises(AitError, match=f"no {TAG} that ait_mlir wrote, so nothing in it is touched; move it away"):
        build_library({"a.cc": SOURCE}, CPU, home.parent / "w")
    assert main(["cache", "--clear"]) == 1
    assert "nothing in it is touched" in capsys.readouterr().err
    assert (home / FOLDER / "objects" / "mine.o").read_text() == "mine"


def test_the_marker_is_known_to_other_programs(home: Path) -> None:
    first = (cache_dir() / TAG).read_bytes().splitlines()[0]
    assert first == b"Signature: 8a477f597d28d172789f06886806bc55"
    assert os.listdir(home) == [FOLDER]


def test_it_is_made_once_by_many(home: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: cache_dir(), range(64)))
    assert set(made) == {home / FOLDER} and os.listdir(home) == [FOLDER]


def test_all_parts_are_for_their_owner_alone(home: Path) -> None:
    old = os.umask(0)
    try:
        build_library({"a.cc": SOURCE}, CPU, home.parent / "w")
        put(cache_dir() / "models" / "a.so", b"")
    finally:
        os.umask(old)
    folders = [Path(root) for root, _, _ in os.walk(home / FOLDER)]
    assert len(folders) > 6 and {stat.S_IMODE(f.stat().st_mode) for f in folders} == {0o700}


@pytest.mark.parametrize("part", ["", "tmp", "objects", "libraries", "locks"])
def test_a_link_in_the_cache_is_not_followed(home: Path, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    outside = home.parent / "outside"
    outside.mkdir()
    (outside / "file.so").write_text("mine")
    if not part:
        shutil.copytree(cache_dir(), outside, dirs_exist_ok=True)
        shutil.rmtree(home / FOLDER)
    (home / FOLDER if not part else cache_dir() / part).symlink_to(outside)
    before = snapshot(home.parent)
    with pytest.raises(AitError, match=r"is a symbolic link, and the cache follows none: remove the link"):
        build_library({"a.cc": SOURCE}, CPU, home.parent / "w")
    assert main(["cache", "--clear"]) == (part != "locks")  # which clearing leaves alone
    shutil.rmtree(home.parent / "w", ignore_errors=True)
    assert snapshot(home.parent) == before


def test_links_below_parts_are_not_followed(home: Path) -> None:
    outside = home.parent / "outside"
    outside.mkdir()
    (outside / "a.o").write_text("mine")
    path = private_folder(cache_dir() / "objects") / "ab" / "a.o"
    path.parent.symlink_to(outside)
    assert not is_kept(path, "a")
    with pytest.raises(AitError, match="is a symbolic link"):
        keep(outside / "a.o", path, "a")
    path.parent.unlink()
    path.parent.mkdir()
    path.symlink_to(outside / "a.o")
    (outside / "b.o").write_text("built")
    keep(outside / "b.o", path, "a")
    assert is_kept(path, "a") and not path.is_symlink() and (outside / "a.o").read_text() == "mine"
    path.unlink()
    path.symlink_to(outside / "b.o")
    assert not is_kept(path, "a")


def test_locks_do_not_follow_links(home: Path) -> None:
    (home / "mine").write_text("mine")
    for target in ("mine", "nothing"):
        link = private_folder(cache_dir() / "locks") / target
        link.symlink_to(home / target)
        with pytest.raises(AitError, match="is a symbolic link"), locked(target):
            pass
    assert not (home / "nothing").exists()


def test_scratch_folders_are_known_by_name_owner_and_lock(home: Path) -> None:
    folder, outside = private_folder(cache_dir() / "tmp"), home / "outside"
    for path in (folder / "build-no_lock", folder / "other", folder / "build-left", outside):
        path.mkdir()
        (path / "file").write_text("mine")
    for path in (folder / "other", folder / "build-left", outside):
        (path / ".held").write_text("")
    (folder / "build-link").symlink_to(outside)
    (folder / "build-no_lock" / ".held").symlink_to(outside / "file")
    with Scratch() as scratch:
        names = {"build-link", "build-no_lock", "other", scratch.name}
        assert set(os.listdir(folder)) == names
        assert main(["cache", "--clear"]) == 0, "a build that is under way keeps its folder"
        assert set(os.listdir(folder)) == names
    assert (outside / "file").read_text() == "mine" and (folder / "build-no_lock" / "file").exists()


def test_scratch_folders_of_killed_processes_are_removed(home: Path) -> None:
    """A process may be killed before it makes the lock file, and while it removes the folder."""
    folder = private_folder(cache_dir() / "tmp")
    (folder / "build-new").mkdir()
    half = folder / "build-half"
    (half / "deep").mkdir(parents=True)
    for name in (".held", "a.cc", "deep/b.cc"):
        (half / name).write_text("")

    def stop(event: str, args: tuple[object, ...]) -> None:
        if event == "os.remove" and str(args[0]).endswith(".held"):
            os._exit(0 if os.listdir(half) == [".held"] else 1)

    if (process := os.fork()) == 0:
        sys.addaudithook(stop)
        with Scratch():
            pass
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, "the lock file goes last"
    with Scratch() as scratch:
        assert os.listdir(folder) == [scratch.name]


def test_clearing_waits_for_a_build(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is deleted between the check that an object is kept and its use."""
    sources = {"a.cc": "int a() { return 1; }", "b.cc": "int b() { return 2; }"}
    build_library({"a.cc": sources["a.cc"]}, CPU, home / "a")
    clearing = threading.Thread(target=clear, args=("objects",))
    run_compilers = build.run_compilers

    def run_beside_clearing(*args: Any) -> None:
        clearing.start()
        clearing.join(2)
        run_compilers(*args)

    monkeypatch.setattr(build, "run_compilers", run_beside_clearing)
    assert build_library(sources, CPU, home / "b").is_file()
    clearing.join()
    assert not (cache_dir() / "objects").exists()


@pytest.mark.usefixtures("home")
def test_a_cache_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cache_dir()
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(AitError, match=r"belongs to user .*, you are user .*AIT_CACHE_DIR|belongs to user .* replace"):
        cache_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
@pytest.mark.parametrize("part", [".", FOLDER, f"{FOLDER}/objects"])
def test_root_does_not_believe_what_belongs_to_a_user(home: Path, part: str) -> None:
    private_folder(cache_dir() / "objects")
    os.chown(home / part, 65534, 65534)
    with pytest.raises(AitError, match=r"belongs to user nobody.* set AIT_CACHE_DIR to a folder of your own"):
        build_library({"a.cc": SOURCE}, CPU, home.parent / "w")


@pytest.mark.parametrize("mode", [0o777, 0o707, 0o770, 0o702])
@pytest.mark.parametrize("part", ["", FOLDER, f"{FOLDER}/objects"])
def test_a_cache_that_others_may_write_is_refused(
    home: Path, part: str, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_is_private_group", lambda gid: False)
    private_folder(cache_dir() / "objects")
    (home / part).chmod(mode)
    with pytest.raises(AitError, match=rf"others may write to .*its mode is {mode:04o}.*`chmod go-w .*{part}`"):
        build_library({"a.cc": SOURCE}, CPU, home.parent / "w")
    monkeypatch.setattr(cache, "_is_private_group", lambda gid: True)
    if not mode & 0o002:
        private_folder(cache_dir() / "objects")


def test_folders_above_count(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = home / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.setenv("AIT_CACHE_DIR", str(inner))
    home.chmod(0o1777)  # like /tmp: others cannot rename what is in it
    assert cache_dir() == inner / FOLDER
    home.chmod(0o777)
    with pytest.raises(AitError, match=f"others may write to {home} .* and could replace the cache in it"):
        cache_dir()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("~nobody/x", "'~nobody/x': only your own ~ is expanded; give the path in full"),
        ("~no such user/x", "only your own ~ is expanded"),
        ("/tmp/a\nb", "a path with control characters cannot be used"),
        ("/dev/null", "/dev/null cannot be the cache directory: File exists"),
        ("/dev/null/x", "/dev/null/x cannot be the cache directory: Not a directory"),
        ("/proc/x", "/proc/x cannot be the cache directory: No such file or directory"),
    ],
)
def test_places_that_cannot_be(text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_CACHE_DIR", text)
    with pytest.raises(AitError) as caught:
        cache_dir()
    assert message in str(caught.value)


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIT_CACHE_DIR")

    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    with pytest.raises(AitError, match="there is no home directory for the cache: set AIT_CACHE_DIR"):
        cache_dir()


def test_by_default_it_is_in_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIT_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / FOLDER


def answer(library: Path) -> int:
    return ctypes.CDLL(str(library)).answer()


@pytest.mark.parametrize("part", ["libraries", "objects"])
def test_a_library_of_another_key_with_its_record_is_refused(home: Path, part: str) -> None:
    """Swapped with the digest beside it: the record names what it was made from."""
    build_library({"a.cc": SOURCE.replace("42", "13")}, CPU, home.parent / "first")
    (other,) = [path for path in (cache_dir() / part).rglob("*") if path.suffix in (".so", ".o")]
    build_library({"a.cc": SOURCE}, CPU, home.parent / "second")
    paths = [path for path in (cache_dir() / part).rglob("*") if path.suffix in (".so", ".o") and path != other]
    for path in paths:
        shutil.copyfile(other, path)
        shutil.copyfile(f"{other}{DIGEST}", f"{path}{DIGEST}")
        assert is_kept(other, other.stem) and not is_kept(path, path.stem)
    if part == "objects":
        shutil.rmtree(cache_dir() / "libraries")
    assert answer(build_library({"a.cc": SOURCE}, CPU, home.parent / "third")) == 42


@pytest.mark.usefixtures("home")
def test_what_the_compiler_reads_from_the_environment_is_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {"a.cc": f"#include <found.h>\n{SOURCE.replace('42', 'FOUND')}"}
    for value in (1, 2):
        folder = tmp_path / f"include{value}"
        folder.mkdir()
        (folder / "found.h").write_text(f"#define FOUND {value}\n")
        monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(folder))
        assert answer(build_library(source, CPU, tmp_path / f"w{value}")) == value
    monkeypatch.delenv("CPLUS_INCLUDE_PATH")
    with pytest.raises(CompileError, match=r"found\.h"):
        build_library(source, CPU, tmp_path / "w3")


@pytest.mark.parametrize("kind", ["cpu", "cuda", "rocm"])
def test_each_such_variable_counts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [
        "CPATH",
        "C_INCLUDE_PATH",
        "CPLUS_INCLUDE_PATH",
        "LIBRARY_PATH",
        "COMPILER_PATH",
        "GCC_EXEC_PREFIX",
        "LD_RUN_PATH",
        "NVCC_PREPEND_FLAGS",
        "NVCC_APPEND_FLAGS",
        "NVCC_CCBIN",
        "HIPCC_COMPILE_FLAGS_APPEND",
        "HIPCC_LINK_FLAGS_APPEND",
        "HIP_CLANG_PATH",
        "ROCM_PATH",
        "CCACHE_PREFIX",
        "NIX_CFLAGS_COMPILE",
        "CCC_OVERRIDE_OPTIONS",
    ]
    for name in names:
        monkeypatch.delenv(name, raising=False)
    arch = {"cpu": "native", "cuda": "sm_90a", "rocm": "gfx90a"}[kind]
    try:
        seen = {toolchain(kind, arch).identity}  # type: ignore[arg-type]
    except ToolchainError as error:
        pytest.skip(str(error))
    for name in names:
        monkeypatch.setenv(name, "")
        with monkeypatch.context() as m:
            m.setenv(name, "/else")
            seen.add(toolchain(kind, arch).identity)  # type: ignore[arg-type]
        monkeypatch.delenv(name)
    assert len(seen) == len(names) + 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "3")
    assert toolchain(kind, arch).identity in seen  # type: ignore[arg-type]


@pytest.mark.usefixtures("home")
def test_compilers_write_no_file_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPENDENCIES_OUTPUT", str(tmp_path / "dependencies"))
    monkeypatch.setenv("SUNPRO_DEPENDENCIES", str(tmp_path / "dependencies"))
    assert compiler_environment(toolchain("cpu", "native")).keys() >= os.environ.keys() - {
        "DEPENDENCIES_OUTPUT",
        "SUNPRO_DEPENDENCIES",
    }
    build_library({"a.cc": SOURCE}, CPU, tmp_path / "w")
    assert not (tmp_path / "dependencies").exists()


def names_of_others(path: Path) -> None:
    path.write_text("root:x:0:0\n")


def database_of_others(path: Path) -> None:
    import sqlite3

    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (a)")


@pytest.mark.parametrize(
    ("make", "message"), [(names_of_others, "not a database"), (database_of_others, "a database of another program")]
)
def test_a_file_of_timings_that_a_user_names_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "named"
    make(path)
    before = snapshot(tmp_path)
    monkeypatch.setenv("AIT_TIMINGS", str(path))
    with pytest.raises(AitError, match=rf"{path} cannot be used: .*{message}.*AIT_TIMINGS names another file"):
        TimingCache().keep_choice("key", "choice")
    assert snapshot(tmp_path) == before


def test_timings_do_not_go_to_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_TIMINGS", "/dev/null")
    with pytest.raises(AitError, match="/dev/null cannot be used: it is no regular file"):
        TimingCache().keep_choice("key", "choice")
