"""`kill -9` while a model is compiled, an artifact is saved, or the cache is written: nothing that is read later is broken.

A process is killed before one of its calls that write, rename, remove or start a program; the moments are spread over all
of these calls.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.driver import compile_module
from ait_mlir.host import cache
from ait_mlir.host.files import copy_atomic
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import artifact
from tests import tiers
from tests.tools.test_cli import MODEL

MOMENTS = 100 if tiers.FULL else 6
WRITING = frozenset(
    [
        "write",
        "writelines",
        "pwrite",
        "flush",
        "fsync",
        "close",
        "truncate",
        "ftruncate",
        "open",
        "mkdir",
        "rename",
        "replace",
        "link",
        "symlink",
        "unlink",
        "remove",
        "rmdir",
        "chmod",
        "fchmod",
        "flock",
        "fork_exec",
        "sendfile",
    ]
)
"""Names of functions of C before whose calls a process may be killed."""


def run(action: Callable[[], None], kill_at: int = 0) -> int:
    """Run in a fork that kills itself at the call of this number; how many calls were made, or -9 if it was killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        made = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal made
            if event == "c_call" and getattr(argument, "__name__", "") in WRITING:
                made += 1
                if made == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.setprofile(count)
            action()
            sys.setprofile(None)
            os.write(writer, str(made).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        count_told = told.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return -signal.SIGKILL
    assert count_told, "the action failed"
    return int(count_told)


def moments(calls: int) -> Sequence[int]:
    """Numbers of calls, spread over all of them, the first and the last among them."""
    return sorted({1 + round(i * (calls - 1) / (MOMENTS - 1)) for i in range(MOMENTS)})


W = np.arange(8, dtype=np.float32)


def compiled(output: Path) -> None:
    compile_module(parse_text(context(), MODEL), CompileOptions("cpu"), output=output, constants={"w": W})


def check(path: Path) -> None:
    found = artifact.read(path)
    assert np.array_equal(found.constants["w"], W) and found.manifest.name == "tiny"


def test_a_compile_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no artifact or a whole one; the next compile uses the same cache and succeeds."""

    def fresh(name: str) -> Path:
        monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / name))
        (tmp_path / name).mkdir(0o700)
        return tmp_path / name / "tiny.ait"

    counted = fresh("counted")
    run(lambda: compiled(counted))  # what is loaded on first use is loaded in the parent for the counts to agree
    compiled(fresh("warm"))
    output = fresh("again")
    calls = run(lambda: compiled(output))
    assert calls > 20
    for moment in moments(calls):
        output = fresh(str(moment))
        killed = run(lambda output=output: compiled(output), moment)
        assert killed == -signal.SIGKILL or moment == calls
        if output.exists():
            check(output)
        assert run(lambda output=output: compiled(output)) > 0
        check(output)
        scratch = [p for p in (tmp_path / str(moment)).rglob("build-*") if p.is_dir()]
        assert not scratch, f"moment {moment} leaves {scratch}"


def test_a_save_that_is_killed(tmp_path: Path) -> None:
    """The file is the old one or the new one."""
    compiled(tmp_path / "new.ait")
    new = (tmp_path / "new.ait").read_bytes()
    target = tmp_path / "folder" / "saved.ait"
    target.parent.mkdir()

    def save() -> None:
        copy_atomic(tmp_path / "new.ait", target)

    for old in (None, b"another file"):
        target.unlink(missing_ok=True) if old is None else target.write_bytes(old)
        calls = run(save)
        seen: set[bytes | None] = set()
        for moment in moments(calls):
            target.unlink(missing_ok=True) if old is None else target.write_bytes(old)
            assert run(save, moment) == -signal.SIGKILL
            seen.add(target.read_bytes() if target.exists() else None)
        assert seen == {old, new}
        run(save)
        assert target.read_bytes() == new


def test_a_cache_write_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that counts as kept is whole; the next write succeeds."""
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path))
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 20_000)

    def write() -> None:
        with cache.locked("writer"):
            cache.keep(source, place, "key")
            cache.put(other, b"x" * 100_000)

    place, other = (cache.cache_dir() / "libraries" / name for name in ("kept", "put"))
    calls = run(write)
    seen: set[bool] = set()
    for moment in moments(calls):
        for file in place.parent.iterdir():
            file.unlink()
        assert run(write, moment) == -signal.SIGKILL
        seen.add(is_kept := cache.is_kept(place, "key"))
        assert not is_kept or place.read_bytes() == source.read_bytes()
        assert not other.exists() or other.read_bytes() == b"x" * 100_000
        run(write)
        assert cache.is_kept(place, "key") and other.read_bytes() == b"x" * 100_000
    assert seen == {False, True}
