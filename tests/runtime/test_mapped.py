"""Processes that run one model map one file with its constants."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ait_mlir.driver import compile_module
from ait_mlir.errors import InputError
from ait_mlir.host.cache import cache_dir
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model, artifact, mapped
from ait_mlir.runtime.manifest import Manifest
from tests.runtime.conftest import B, W, tiny_inputs, tiny_reference

SHOWS = """
import sys
from ait_mlir.runtime import Model, artifact, mapped
from ait_mlir.runtime.manifest import Manifest
mapped.FOLDER = sys.argv[2]
model = Model(sys.argv[1], map_constants=True)
print(next(line.split()[4] for line in open("/proc/self/maps") if line.endswith(".bin\\n") and "_cache/" in line))
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in the cache for the files of one test."""
    monkeypatch.setattr(mapped, "FOLDER", f"weights-test-{os.getpid()}")
    yield (folder := cache_dir() / mapped.FOLDER)
    shutil.rmtree(folder, ignore_errors=True)


def answer(model: Model) -> np.ndarray:
    return model.run_with_tensors(list(tiny_inputs(4, 5)))["y"]


def expected(scale: float = 1.0) -> np.ndarray:
    return tiny_reference(*tiny_inputs(4, 5))[0] * scale


def scaled(scale: float) -> Mapping[str, Any]:
    return {"w": scale * W, "b": scale * B}


def mapped_files() -> list[str]:
    """The modes and inodes of files of constants that this process maps."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    return [f"{line[1]} {line[4]}" for line in lines if f"/{mapped.FOLDER}/" in line[-1]]


def test_two_processes_map_one_file(tiny_artifact: Path, cache: Path) -> None:
    with Model(tiny_artifact, map_constants=True) as model:
        (file,) = cache.iterdir()
        state = file.stat()
        assert mapped_files() == [f"r--s {state.st_ino}"] and state.st_mode & 0o777 == 0o600
        np.testing.assert_allclose(answer(model), expected(), rtol=1e-6)
        command = [sys.executable, "-c", SHOWS, str(tiny_artifact), mapped.FOLDER]
        assert int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) == state.st_ino
        with Model(tiny_artifact, map_constants=True) as second:
            assert len(mapped_files()) == 1, "models of one process share the set"
            np.testing.assert_allclose(answer(second), expected(), rtol=1e-6)
        with Model(tiny_artifact, map_constants=True, share_constants=False):
            assert len(mapped_files()) == 1
    del model, second
    assert not mapped_files()
    with Model(tiny_artifact):
        assert not mapped_files()


def test_stored_in_the_order_of_kernels_the_results_are_the_same_bits(tmp_path: Path) -> None:
    """Weights of products are packed."""
    text = """
ait.graph @packed(%x: !ait.tensor<b x 96 x f32>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<130 x 96 x f32>
  %c = ait.param "c" : !ait.tensor<130 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 130 x f32>
  %2 = ait.add %0, %c : !ait.tensor<b x 130 x f32>
  ait.output "y" %2 : !ait.tensor<b x 130 x f32>
}"""
    rng = np.random.default_rng(0)
    data = {"w": rng.standard_normal((130, 96), np.float32), "c": rng.standard_normal(130, np.float32)}
    compile_module(parse_text(context(), text), CompileOptions(), output=tmp_path / "packed.ait", constants=data)
    x = rng.standard_normal((5, 96), np.float32)
    with Model(tmp_path / "packed.ait", share_constants=False) as plain:
        want = np.array(plain.run_with_tensors({"x": x})["y"])
    for _ in range(2):  # the first one writes the file
        with Model(tmp_path / "packed.ait", map_constants=True) as model:
            assert len(mapped_files()) == 1
            assert np.array(model.run_with_tensors({"x": x})["y"]).tobytes() == want.tobytes()


def test_setting_a_constant_copies_what_is_mapped(tiny_artifact: Path) -> None:
    with Model(tiny_artifact, map_constants=True) as first, Model(tiny_artifact, map_constants=True) as second:
        first.set_constant("w", 2 * W)
        first.set_constant("b", 2 * B)
        np.testing.assert_allclose(answer(first), expected(2), rtol=1e-6)
        np.testing.assert_allclose(answer(second), expected(), rtol=1e-6)
        second.set_many_double_buffer_constants(scaled(3))
        second.swap_constants()
        second.set_many_double_buffer_constants(scaled(4))  # the set that was mapped is not written
        np.testing.assert_allclose(answer(second), expected(3), rtol=1e-6)
        second.swap_constants()
        np.testing.assert_allclose(answer(second), expected(4), rtol=1e-6)
    with Model(tiny_artifact, map_constants=True) as third:
        third.set_constants({"w": 5 * W})  # of a model that has its mapped set alone
        third.set_constants({"b": 5 * B})
        np.testing.assert_allclose(answer(third), expected(5), rtol=1e-6)


def unused() -> Mapping[str, Any]:
    raise AssertionError("the values are there already")


def test_changed_weights_are_mapped_too(tiny_artifact: Path, cache: Path) -> None:
    with Model(tiny_artifact, map_constants=True) as first, Model(tiny_artifact, map_constants=True) as second:
        first.map_double_buffer_constants("twice", lambda: scaled(2))
        np.testing.assert_allclose(answer(first), expected(), rtol=1e-6)
        first.swap_constants()
        second.map_double_buffer_constants("twice", unused)
        second.swap_constants()
        for model in (first, second):
            np.testing.assert_allclose(answer(model), expected(2), rtol=1e-6)
        assert len({line.split()[1] for line in mapped_files()}) == 2
        first.map_double_buffer_constants("thrice", lambda: {"w": 3 * W, "b": 3 * B})
        first.set_double_buffer_constant("b", 9 * B)  # what is prepared is copied, not what runs read
        first.set_double_buffer_constant("b", 3 * B)
        first.swap_constants()
        np.testing.assert_allclose(answer(first), expected(3), rtol=1e-6)
        np.testing.assert_allclose(answer(second), expected(2), rtol=1e-6)
        with pytest.raises(InputError, match="constant 'w' has shape"):
            first.map_double_buffer_constants("wrong", lambda: {"w": np.ones((2, 2), np.float32)})
        np.testing.assert_allclose(answer(first), expected(3), rtol=1e-6)
    assert len(list(cache.iterdir())) == 2, "of those of the artifact, twice and thrice, nobody maps the last one"
    with Model(tiny_artifact, map_constants=True) as model:
        model.map_double_buffer_constants("other", lambda: scaled(2))
        assert len(list(cache.iterdir())) == 2, "files that nobody maps are removed"
        model.swap_constants()
        np.testing.assert_allclose(answer(model), expected(2), rtol=1e-6)


def test_constants_without_values(tiny_artifact: Path, library: Path, manifest: Manifest, tmp_path: Path) -> None:
    path = artifact.write(tmp_path / "unbound.ait", manifest, "// IR\n", library, {"w": W})
    with Model(path, map_constants=True) as model:
        assert model.get_constant_names(unset_only=True) == ["b"]
        with pytest.raises(InputError, match="1 constant has no value, first 'b'"):
            answer(model)
        with pytest.raises(InputError, match="constants have no value: b"):
            model.map_double_buffer_constants("half", lambda: {"w": 2 * W})
        model.map_double_buffer_constants("whole", lambda: scaled(2))
        model.swap_constants()
        np.testing.assert_allclose(answer(model), expected(2), rtol=1e-6)
    with Model(path, map_constants=True) as model:
        model.set_constant("b", B)
        np.testing.assert_allclose(answer(model), expected(), rtol=1e-6)


@pytest.mark.parametrize("damage", ["value", "trailer", "shorter", "empty"])
def test_a_damaged_file_is_written_again(damage: str, tiny_artifact: Path, cache: Path) -> None:
    with Model(tiny_artifact, map_constants=True):
        (file,) = cache.iterdir()
    content = bytearray(file.read_bytes())
    if damage in ("value", "trailer"):
        content[0 if damage == "value" else -1] ^= 1
    file.write_bytes(content[: {"shorter": -1, "empty": 0}.get(damage)])
    with Model(tiny_artifact, map_constants=True) as model:
        np.testing.assert_allclose(answer(model), expected(), rtol=1e-6)
        (file,) = cache.iterdir()
        assert mapped_files() == [f"r--s {file.stat().st_ino}"]


def test_a_file_of_another_key_is_not_taken(tiny_artifact: Path, cache: Path) -> None:
    with Model(tiny_artifact, map_constants=True) as model:
        model.map_double_buffer_constants("twice", lambda: scaled(2))
        old, new = sorted(cache.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        shutil.copyfile(new, old.with_suffix(".tmp"))
        os.replace(old.with_suffix(".tmp"), old)
    del model
    with Model(tiny_artifact, map_constants=True) as model:
        np.testing.assert_allclose(answer(model), expected(), rtol=1e-6)


@pytest.mark.parametrize("fault", ["disk", "cache"])
def test_without_a_file_the_values_are_copied(
    fault: str, tiny_artifact: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "disk":

        def full(handle: int, data: bytes, at: int) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("ait_mlir.runtime.mapped.os.pwrite", full)
        said = "No space left on device"
    else:
        cache.symlink_to(cache.parent)
        said = "is a symbolic link"
    with pytest.warns(UserWarning, match=f"the weights of model tiny are in memory of this process alone: .*{said}"):
        model = Model(tiny_artifact, map_constants=True)
    with model:
        np.testing.assert_allclose(answer(model), expected(), rtol=1e-6)
        assert not mapped_files()
    if fault == "cache":
        cache.unlink()
    else:
        assert not list(cache.iterdir())


def test_a_constant_of_the_callers_memory_is_not_written(tmp_path: Path) -> None:
    text = """
ait.graph @added(%x: !ait.tensor<4 x f32>) {
  %c = ait.param "c" : !ait.tensor<4 x f32>
  %d = ait.param "d" : !ait.tensor<4 x f32>
  %0 = ait.add %x, %c : !ait.tensor<4 x f32>
  %1 = ait.mul %0, %d : !ait.tensor<4 x f32>
  ait.output "y" %1 : !ait.tensor<4 x f32>
}"""
    x, data = np.ones(4, np.float32), {"c": np.full(4, 2, np.float32), "d": np.full(4, 3, np.float32)}
    compile_module(parse_text(context(), text), CompileOptions(), output=tmp_path / "added.ait", constants=data)
    with Model(tmp_path / "added.ait", map_constants=True) as model:
        held = np.full(4, 4, np.float32)
        model.set_constant("c", held, copy=False)
        with pytest.warns(UserWarning, match=r"this process alone: .*read from memory of the caller's"):
            model.map_double_buffer_constants("d", lambda: {"d": data["d"] + 1})
        model.swap_constants()
        np.testing.assert_array_equal(model.run_with_tensors({"x": x})["y"], x * 20)
        held[:] = 0
        np.testing.assert_array_equal(model.run_with_tensors({"x": x})["y"], x * 4)
