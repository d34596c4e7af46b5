"""What variables of the environment that hold nonsense end in, and which ones there are."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ait_mlir.errors import AitError, InputError
from ait_mlir.host.settings import named_library, whole_number
from ait_mlir.lowering import build
from ait_mlir.lowering.target import Target
from ait_mlir.lowering.toolchain import toolchain
from ait_mlir.tools.cli import main
from tests.tools.test_cli import MODEL

ROOT = Path(__file__).parents[2]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that nothing is built of yet."""
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "tiny.mlir"
    path.write_text(MODEL)
    return path


@pytest.mark.parametrize("text", ["abc", "0", "-3", "4097", "2.0", "٣"])
def test_numbers(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_BUILD_JOBS", text)
    with pytest.raises(InputError, match=f"AIT_BUILD_JOBS is '{text}', expected a whole number from 1 to 4096"):
        whole_number("AIT_BUILD_JOBS", 4096)


def test_a_number_and_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_BUILD_JOBS", "12")
    assert whole_number("AIT_BUILD_JOBS", 12) == 12
    monkeypatch.setenv("AIT_BUILD_JOBS", "")
    assert whole_number("AIT_BUILD_JOBS", 12) is None


def test_how_far_code_is_optimized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def levels() -> list[str]:
        kernels, runtime = toolchain("cpu", "native"), build._runtime_toolchain("cpu", [])
        return [flag for tools in (kernels, runtime) for flag in tools.compile_flags if flag.startswith("-O")]

    monkeypatch.setenv("AIT_OPTIMIZE", "1")
    assert levels() == ["-O1", "-O1"]
    monkeypatch.delenv("AIT_OPTIMIZE")
    assert levels() == ["-O3", "-O2"]
    monkeypatch.setenv("AIT_OPTIMIZE", "0")
    assert levels() == ["-O0", "-O1"]
    monkeypatch.setenv("AIT_OPTIMIZE", "4")
    with pytest.raises(InputError, match="AIT_OPTIMIZE is '4', expected a whole number from 0 to 3"):
        build.build_library({"a.cc": "int a;"}, Target("cpu", "native"), tmp_path)


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_OPENBLAS", "/nowhere/libopenblas.so")
    with pytest.raises(InputError, match=r"AIT_OPENBLAS is '/nowhere/libopenblas\.so', but there is no such file"):
        named_library("AIT_OPENBLAS")
    monkeypatch.setenv("AIT_OPENBLAS", "libopenblas.so")
    assert named_library("AIT_OPENBLAS") == ["libopenblas.so"]
    monkeypatch.delenv("AIT_OPENBLAS")
    assert named_library("AIT_OPENBLAS") == []


def test_jobs_that_are_no_number(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIT_BUILD_JOBS", "many")
    assert main(["compile", str(model), "-o", str(model.with_suffix(".ait"))]) == 1
    assert "ait: error: AIT_BUILD_JOBS is 'many', expected a whole number" in capsys.readouterr().err


def test_a_cache_that_is_a_file(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIT_CACHE_DIR", str(model))
    assert main(["compile", str(model), "-o", str(model.with_suffix(".ait"))]) == 1
    found = capsys.readouterr().err
    assert f"{model} cannot be the cache directory: File exists; set AIT_CACHE_DIR" in found


def test_a_cache_that_is_read_only(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    access, cache = os.access, model.parent / "cache"
    monkeypatch.setattr(
        os, "access", lambda path, mode: path != cache and access(path, mode)
    )  # root may write anywhere
    assert main(["compile", str(model), "-o", str(model.with_suffix(".ait"))]) == 1
    assert "cannot be the cache directory: nothing can be written there; set" in capsys.readouterr().err


def test_a_traceback_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_TRACEBACK", "1")
    with pytest.raises(AitError, match="cannot read missing"):
        main(["compile", "missing.mlir", "--to", "planned"])


def test_every_variable_is_documented() -> None:
    """In the table of docs/internals/environment.md, and nothing stands there that no code reads."""
    sources = [*(ROOT / "ait_mlir").rglob("*.py"), *(ROOT / "runtime/src").rglob("*.cc")]
    reads = re.compile(
        r"""(?:environ(?:\.get)?[\[(]|getenv\(|whole_number\(|\bsetting\(|named_library\()\s*"(AIT_[A-Z_]+)\""""
    )
    read = {name for path in sources for name in reads.findall(path.read_text())}
    table = (ROOT / "docs/internals/environment.md").read_text()
    assert read == set(re.findall(r"`(AIT_[A-Z_]+)`", table))
