"""Which code of a file runs, and when: nothing of a file that is inspected or refused."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.errors import AitError, ArtifactError
from ait_mlir.lowering.build import build_deploy_library
from ait_mlir.runtime import Model, artifact
from ait_mlir.runtime.manifest import Manifest
from ait_mlir.tools.cli import main

ARTIFACT_ERROR = 2
SOURCE = """
#include <cstdio>
#include <cstdlib>
__attribute__((constructor)) static void mark() {
  if (const char* path = std::getenv("MARK_OF_CODE")) std::fclose(std::fopen(path, "w"));
}
extern "C" void* NAME() { return nullptr; }
"""


def shared_library(folder: Path, name: str) -> Path:
    """A library with a constructor, and one function of this name."""
    source, path = folder / f"{name}.cc", folder / f"{name}.so"
    source.write_text(SOURCE.replace("NAME", name))
    compiler = os.environ.get("CXX") or "g++"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
    return path


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_library(tmp_path_factory.mktemp("foreign"), "something_else")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that looks like a model."""
    return shared_library(tmp_path_factory.mktemp("hostile"), "ait_model_get")


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is there when a constructor has run."""
    path = tmp_path / "mark"
    monkeypatch.setenv("MARK_OF_CODE", str(path))
    return path


IR = 'ait.graph @tiny(%x: !ait.tensor<2 x f32>) {\n  ait.output "y" %x : !ait.tensor<2 x f32>\n}\n'


def test_inspecting_runs_no_code_and_running_does(
    tmp_path: Path, manifest: Manifest, hostile: Path, mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(artifact.write(tmp_path / "hostile.ait", manifest, IR, hostile, {"w": np.zeros(2, np.float32)}))
    assert main(["inspect", path]) == 0
    assert main(["inspect", path, "--ir"]) == 0
    main(["inspect", path, "--launches"])  # its IR is not planned, which is an error
    assert "model     tiny" in capsys.readouterr().out and not mark.exists()
    assert main(["run", path, "--input", "no=such:input"]) == 1
    assert "has model ABI version 0" in capsys.readouterr().err
    assert mark.exists(), "--help says that the code runs before options are checked"


def test_constructors_of_files_that_are_refused_do_not_run(
    tmp_path: Path, manifest: Manifest, foreign: Path, mark: Path
) -> None:
    path = artifact.write(tmp_path / "foreign.ait", manifest, IR, foreign, {})
    with pytest.raises(
        ArtifactError, match=r"is not a model library: it does not export ait_model_get; it was not loaded"
    ):
        Model(path)
    with pytest.raises(ArtifactError, match=r"is not a model library"):
        Model.from_library(foreign, "cpu")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((0, b"MZ"), "is no shared library of 64 bits"),
        ((4, b"\1"), "is no shared library of 64 bits"),
        ((16, b"\2"), "is no shared library of 64 bits"),
        ((18, b"\x28"), "is for another kind of CPU than"),
    ],
)
def test_libraries_of_another_kind_are_not_loaded(
    tmp_path: Path, hostile: Path, mark: Path, change: tuple[int, bytes], message: str
) -> None:
    data = bytearray(hostile.read_bytes())
    data[change[0] : change[0] + len(change[1])] = change[1]
    (tmp_path / "other.so").write_bytes(data)
    with pytest.raises(ArtifactError, match=message):
        Model.from_library(tmp_path / "other.so", "cpu")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((0, b"MZ"), "its library is no shared library of 64 bits"),
        ((16, b"\2"), "its library is no shared library of 64 bits"),
        ((18, b"\x28"), "its library is for another kind of CPU than this one"),
        (None, "its library is not a model library: it does not export ait_model_get"),
    ],
)
def test_the_library_for_c_programs_loads_no_other_libraries(
    tmp_path: Path,
    manifest: Manifest,
    hostile: Path,
    foreign: Path,
    mark: Path,
    change: tuple[int, bytes] | None,
    message: str,
) -> None:
    data = bytearray((foreign if change is None else hostile).read_bytes())
    if change is not None:
        data[change[0] : change[0] + len(change[1])] = change[1]
    path = artifact.write(tmp_path / "other.ait", manifest, IR, bytes(data), {})
    api, model = ctypes.CDLL(str(build_deploy_library("cpu"))), ctypes.c_void_p()
    api.ait_last_error.restype = ctypes.c_char_p
    assert api.ait_model_load(os.fsencode(path), None, ctypes.byref(model)) == ARTIFACT_ERROR
    assert api.ait_last_error().decode() == f"{path}: {message}; it was not loaded"
    assert not mark.exists()


def test_damage_is_found_before_code_is_loaded(tmp_path: Path, manifest: Manifest, hostile: Path, mark: Path) -> None:
    path = artifact.write(tmp_path / "hostile.ait", manifest, IR, hostile, {"w": np.zeros(2, np.float32)})
    good = path.read_bytes()
    for place in (9, 40, 100, good.index(IR.encode()), len(good) - 1):
        bad = bytearray(good)
        bad[place] ^= 1
        path.unlink()
        path.write_bytes(bad)
        with pytest.raises(AitError):
            Model(path)
    assert not mark.exists()
