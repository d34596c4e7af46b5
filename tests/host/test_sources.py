"""The digest of the package's sources, under which code that the package derives from itself is kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ait_mlir.host import sources


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two sources, older than this process."""
    for name in ("a.py", "b/c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (1, 1))
    monkeypatch.setattr(sources, "PACKAGE", tmp_path)
    return tmp_path


def digest() -> str | None:
    return sources.package_digest.__wrapped__()


def test_it_follows_names_and_texts(package: Path) -> None:
    first = digest()
    assert first is not None and digest() == first
    (package / "beside.txt").write_text("no source")
    assert digest() == first
    (package / "a.py").rename(package / "d.py")
    renamed = digest()
    (package / "d.py").write_text("other")
    os.utime(package / "d.py", (1, 1))
    assert len({first, renamed, digest(), None}) == 4


@pytest.mark.parametrize(
    "change",
    [
        lambda package, patch: (package / "a.py").write_text("newer than the code that runs"),
        lambda package, patch: patch.setattr(sys, "platform", "emscripten"),
        lambda package, patch: [path.unlink() for path in package.rglob("*.py")],
    ],
    ids=["changed", "browser", "bytecode"],
)
def test_there_is_none_where_nothing_can_be_kept(
    package: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, pytest.MonkeyPatch], object]
) -> None:
    change(package, monkeypatch)
    assert digest() is None
