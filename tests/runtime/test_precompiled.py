"""The precompiled header of the kernels of the CPU: it is made once, and whatever happens to it changes no build."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ait_mlir.lowering import precompiled
from ait_mlir.lowering.build import build_with
from ait_mlir.lowering.toolchain import Toolchain, toolchain

SOURCE = 'extern "C" int three() { return 3; }\n'


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toolchain]:
    """The compiler of the CPU with an empty cache and a header that compiles quickly."""
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(precompiled, "TEXT", "#include <stdint.h>\n")
    precompiled._include_flags.cache_clear()
    yield toolchain("cpu", "native")
    precompiled._include_flags.cache_clear()


def compiled_header(tools: Toolchain) -> Path:
    flag, header = precompiled.include_flags(tools, precompiled.WORTHWHILE)
    assert flag == "-include" and Path(header).read_text() == precompiled.TEXT
    return Path(header + ".gch")


def build(tools: Toolchain, folder: Path, name: str) -> Path:
    return build_with(tools, {f"{name}.cc": SOURCE.replace("three", name)}, folder, "compiling")


def test_it_is_made_once(tools: Toolchain, tmp_path: Path) -> None:
    made = compiled_header(tools).stat()
    assert made.st_size > 1000
    assert build(tools, tmp_path / "work", "first").is_file()
    precompiled._include_flags.cache_clear()
    assert compiled_header(tools).stat().st_mtime_ns == made.st_mtime_ns


def test_a_damaged_one_is_made_again(tools: Toolchain) -> None:
    path = compiled_header(tools)
    path.write_bytes(path.read_bytes()[:100])
    precompiled._include_flags.cache_clear()
    assert compiled_header(tools).stat().st_size > 1000


@pytest.mark.parametrize("missing", ["common.h.gch", "common.h", ""])
def test_builds_go_on_without_it(tools: Toolchain, tmp_path: Path, missing: str) -> None:
    folder = compiled_header(tools).parent
    if missing:
        (folder / missing).unlink()
    else:
        shutil.rmtree(folder)
    assert build(tools, tmp_path / "work", "second").is_file()


def test_few_sources_use_one_that_is_there(tools: Toolchain) -> None:
    assert precompiled.include_flags(tools, 1) == ()
    header = compiled_header(tools).with_suffix("")
    assert precompiled.include_flags(tools, 1) == ("-include", str(header))


def test_other_flags_have_another_one(tools: Toolchain) -> None:
    other = replace(tools, compile_flags=(*tools.compile_flags, "-DNDEBUG"))
    assert compiled_header(other) != compiled_header(tools)


def test_what_cannot_be_compiled_is_left_out(tools: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert precompiled.include_flags(replace(tools, identity="clang version 19"), precompiled.WORTHWHILE) == ()
    monkeypatch.setattr(precompiled, "TEXT", "#include <no_such_header.h>\n")
    precompiled._include_flags.cache_clear()
    assert precompiled.include_flags(tools, precompiled.WORTHWHILE) == ()
    assert build(tools, tmp_path / "work", "third").is_file()
