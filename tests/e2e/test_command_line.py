"""`ait` on artifacts and machines that are not as they should be: one message, exit code 1, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.errors import ArtifactError, InputError, OutOfMemoryError
from ait_mlir.host.cache import cache_dir
from ait_mlir.runtime import Model, artifact
from ait_mlir.runtime.manifest import Manifest
from ait_mlir.tools.cli import main

ROOT = Path(__file__).parents[2]
MODEL = """
ait.graph @tiny(%x: !ait.tensor<b x s x f32>, %m: !ait.tensor<b x 1 x f32>, %c: !ait.tensor<f32>)
    dims {b = 1 to 6, s = 1 to 1048576 hints [8]} {
  %k = ait.param "k" : !ait.tensor<f32>
  %0 = ait.mul %x, %k : !ait.tensor<b x s x f32>
  %1 = ait.add %0, %m : !ait.tensor<b x s x f32>
  %2 = ait.add %1, %c : !ait.tensor<b x s x f32>
  %3 = ait.bmm crr %2, %2 : !ait.tensor<s x s x f32>
  %4 = ait.softmax %3 dim 1 : !ait.tensor<s x s x f32>
  %5 = ait.bmm rcr %2, %4 : !ait.tensor<b x s x f32>
  ait.output "y" %5 : !ait.tensor<b x s x f32>
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model as text and as artifacts: whole, without its param, for CUDA, and damaged in some way."""
    folder = tmp_path_factory.mktemp("ait")
    (folder / "tiny.mlir").write_text(MODEL)
    assert main(["compile", str(folder / "tiny.mlir"), "-o", str(folder / "tiny.ait"), "--weights", "random"]) == 0
    data = (folder / "tiny.ait").read_bytes()
    library = data.index(b"\x7fELF")
    (folder / "half.ait").write_bytes(data[: len(data) // 2])
    (folder / "long.ait").write_bytes(data + b"\0")
    (folder / "bit.ait").write_bytes(data[:library] + bytes([data[library] ^ 1]) + data[library + 1 :])
    (folder / "version.ait").write_bytes(data[:8] + b"\x09" + data[9:])
    (folder / "empty.ait").write_bytes(b"")
    np.save(folder / "f64.npy", np.ones((2, 8)))
    np.save(folder / "rank.npy", np.ones(16, np.float32))
    return folder


WRONG = {
    "run half.ait": "ait: error: half.ait is truncated or damaged",
    "bench half.ait": "ait: error: half.ait is truncated or damaged",
    "inspect half.ait": "ait: error: half.ait is truncated or damaged",
    "run long.ait": "ait: error: long.ait is truncated or damaged",
    "run bit.ait": "ait: error: bit.ait is damaged: part 'library' does not have the hash in the manifest",
    "inspect bit.ait": "ait: error: bit.ait is damaged: part 'library' does not have the hash",
    "run version.ait": "ait: error: version.ait has artifact format 9, expected 2: compile the model again",
    "bench version.ait": "ait: error: version.ait has artifact format 9",
    "run empty.ait": "ait: error: empty.ait is no artifact or is truncated: it has 0 bytes",
    "run tiny.mlir": "ait: error: tiny.mlir is no artifact",
    "run .": "ait: error: . cannot be read: Is a directory",
    "compile .": "ait: error: cannot read .: Is a directory",
    "run tiny.ait --input x=@f64.npy": "ait: error: f64.npy has dtype float64, expected float32",
    "run tiny.ait --input x=@rank.npy": "input 'x' has rank 1 (shape [16]), expected rank 2",
    "run tiny.ait --input x=@.": ". is no .npy file",
    "run tiny.ait --input x=ones:7x8": "input 'x' has extent 7 on axis 0, so b = 7, expected a value from 1 to 6",
    "run tiny.ait --input x=ones:2x8 --input m=ones:3x1": "input 'm' has shape [3, 1], expected [2, 1]: axis 0 is 3, not 2",
    "run tiny.ait --input x=ones:2x8x1": "input 'x' has rank 3 (shape [2, 8, 1]), expected rank 2",
    "run tiny.ait --input x=ones:999999999999x999999999999": "is too large a shape",
    "run tiny.ait --input x=ones:2x8 --dim b=3": "--dim b=3: input 'x' has extent 2 on axis 0, so b = 2",
    "run tiny.ait --compare nothing": "--compare nothing: there is no such file; expected reference, onnxruntime or",
    "run tiny.ait --seed -1": "--seed: '-1' is no whole number",
    "run tiny.ait --dim s=1048576 --dim b=1": "out of memory: the arena of a run needs",
    "bench tiny.ait --dim s=1048576 --dim b=1": "out of memory: the arena of a run needs",
    "compile tiny.mlir --target cuda --measure": "kernels for cuda cannot be measured here: the CUDA driver ",
    "compile tiny.mlir --target rocm --measure": "kernels for rocm cannot be measured: ait_mlir measures on the CPU and on "
    "CUDA cards only",
    "compile tiny.mlir --target rocm --arch gfx1100": "architecture gfx1100 of target rocm is not supported: its waves "
    "have 32 lanes, the kernels need 64; expected one of gfx906, gfx908, gfx90a, gfx942",
    "compile tiny.mlir --target cuda --arch hopper": "architecture 'hopper' of target cuda is not supported; expected one",
    "compile tiny.mlir --target cuda --arch sm_9": "architecture 'sm_9' of target cuda is not supported; expected one",
    "compile tiny.mlir --points middle": "points is 'middle', expected hints, min, max or several with a plus between",
    "compile tiny.mlir --precision tf32": 'precision is \'tf32\', expected "highest" (exact f32), "high" (TF32) or',
    "compile tiny.mlir --points min,max": "points is 'min,max', expected hints, min, max or several with a plus between",
}


@pytest.mark.parametrize("command", WRONG)
def test_one_message_and_exit_code_1(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("ait_mlir.selection.measure.detect_cuda_arch", lambda: None)
    try:
        code = main(command.split())
    except SystemExit as stopped:
        code = stopped.code
    captured = capsys.readouterr()
    assert code == 1
    assert WRONG[command] in captured.err, captured.err
    assert "Traceback" not in captured.err and "internal error" not in captured.err


def test_scalars_are_made_and_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Inputs and params of rank 0, random and given."""
    args = ["run", str(folder / "tiny.ait"), "--dim", "s=8", "--dim", "b=2", "--compare", "reference"]
    assert main(args) == 0
    assert main([*args, "--input", "c=ones:scalar"]) == 0
    assert capsys.readouterr().out.count(" ok") == 2


def test_a_model_that_ran_out_of_memory_runs_again(folder: Path) -> None:
    with Model(folder / "tiny.ait") as model:
        small = {"x": np.ones((1, 8), np.float32), "m": np.zeros((1, 1), np.float32), "c": np.float32(0)}
        expected = model.run_with_tensors(small)["y"]
        with pytest.raises(OutOfMemoryError, match=r"needs \d+ bytes on cpu, \d+ bytes are free"):
            model.run_with_tensors(small | {"x": np.ones((1, 1 << 20), np.float32)})
        with pytest.raises(InputError, match=r"input 'x' has extent 1048577 on axis 1, so s = 1048577"):
            model.run_with_tensors(small | {"x": np.ones((1, (1 << 20) + 1), np.float32)})
        np.testing.assert_array_equal(model.run_with_tensors(small)["y"], expected)


def ait(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the tool in a process of its own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), **environment}
    command = [sys.executable, "-m", "ait_mlir.tools.cli", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("target", ["cpu", "cuda", "rocm"])
def test_no_compiler(target: str, folder: Path, tmp_path: Path) -> None:
    done = ait(
        *("compile", "tiny.mlir", "--target", target, "-o", str(tmp_path / "n.ait")),
        cwd=folder,
        PATH=str(tmp_path),
        AIT_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert done.returncode == 1
    assert "was not found: install" in done.stderr, done.stderr
    assert done.stderr.startswith("ait: error: ") and "Traceback" not in done.stderr
    assert not (tmp_path / "n.ait").exists()


def test_no_compiler_for_the_runtime_library(folder: Path, tmp_path: Path) -> None:
    done = ait("run", "tiny.ait", cwd=folder, PATH=str(tmp_path), AIT_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert "a C++17 compiler (g++) was not found: install g++" in done.stderr and "Traceback" not in done.stderr


def test_a_library_in_the_cache_is_checked(folder: Path) -> None:
    """Someone wrote over the copy that would be loaded."""
    with Model(folder / "tiny.ait"):
        pass
    copy = artifact.read(folder / "tiny.ait").extract_library()
    assert copy.is_relative_to(cache_dir())
    code = copy.read_bytes()
    copy.unlink()  # the loaded one stays mapped
    copy.write_bytes(code[:-1] + bytes([code[-1] ^ 1]))
    with Model(folder / "tiny.ait"):
        assert copy.read_bytes() == code


def test_an_artifact_for_other_hardware(folder: Path) -> None:
    read = artifact.read(folder / "tiny.ait")
    body = {**read.manifest.__dict__, "instruction_sets": (*read.manifest.instruction_sets, "avx1024")}
    library = read.extract_library()
    path = artifact.write(folder / "other.ait", Manifest(**body), read.ir_text, library, read.constants)
    with pytest.raises(
        ArtifactError, match=r"was compiled for a CPU with features that this one lacks .native needs avx1024."
    ):
        Model(path)
