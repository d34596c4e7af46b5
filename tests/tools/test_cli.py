"""`ait`: each command, and what it says when something is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from ait_mlir.errors import AitError
from ait_mlir.passes.parse import parse_passes
from ait_mlir.tools.cli import main

MODEL = """
ait.graph @tiny(%x: !ait.tensor<batch x 8 x f32>, %m: !ait.tensor<batch x 1 x f32>)
    dims {batch = 1 to 6 hints [2, 4]} {
  %w = ait.param "w" : !ait.tensor<8 x f32>
  %0 = ait.mul %x, %w : !ait.tensor<batch x 8 x f32>
  %1 = ait.add %0, %m : !ait.tensor<batch x 8 x f32>
  %2 = ait.relu %1 : !ait.tensor<batch x 8 x f32>
  ait.output "y" %2 : !ait.tensor<batch x 8 x f32>
}
"""
W = np.linspace(-1, 1, 8, dtype=np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model as text, its weights, and an artifact that holds them."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "tiny.mlir").write_text(MODEL)
    save_file({"w": W}, folder / "w.safetensors")
    args = [str(folder / "tiny.mlir"), "-o", str(folder / "tiny.ait"), "--weights", str(folder / "w.safetensors")]
    assert main(["compile", *args]) == 0
    return folder


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.usefixtures("here")
def test_compile_to_a_phase_and_on_from_there(capsys: pytest.CaptureFixture[str]) -> None:
    for phase, word in [("simplified", "ait.graph"), ("selected", "kernel ="), ("planned", "ait_rt.program")]:
        assert main(["compile", "tiny.mlir", "--to", phase]) == 0
        text = capsys.readouterr().out
        assert word in text
        Path("phase.mlir").write_text(text)
        assert main(["compile", "phase.mlir", "--from", phase, "--to", "planned"]) == 0
        planned = capsys.readouterr().out
        assert main(["compile", "tiny.mlir", "--to", "planned"]) == 0
        assert capsys.readouterr().out == planned
    assert main(["compile", "tiny.mlir", "--to", "source"]) == 0
    assert "ait_model_get" in capsys.readouterr().out


@pytest.mark.parametrize("sink", ["pipe", "stdout"])
def test_an_artifact_goes_through_a_pipe_unchanged(sink: str, here: Path) -> None:
    """The line that says so is not among the bytes, and gives no size of a pipe."""
    pipe = Path("/dev/stdout")
    command = [sys.executable, "-m", "ait_mlir.tools.cli", "compile", "tiny.mlir", "--weights", "w.safetensors", "-o"]
    if sink == "pipe":
        pipe = here / "pipe"
        os.mkfifo(pipe)
    copied = here / f"{sink}.ait"
    with copied.open("wb") as out:
        started = subprocess.Popen([*command, str(pipe)], stdout=out, stderr=subprocess.PIPE, text=True)
        if sink == "pipe":
            (here / "through.ait").write_bytes(pipe.read_bytes())
        told = started.communicate()[1]
    assert started.returncode == 0 and told.splitlines()[-1] == f"wrote {pipe}", told
    got = here / "through.ait" if sink == "pipe" else copied
    assert got.read_bytes() == (here / "tiny.ait").read_bytes()


@pytest.mark.usefixtures("here", "built_runtime")
def test_run_compares_with_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "tiny.ait", "--input", "x=random:3x8", "--input", "m=ones:3x1", "--compare", "reference"]) == 0
    captured = capsys.readouterr()
    assert "y: float32 [3, 8]" in captured.out and " ok" in captured.out and captured.err == ""


@pytest.mark.usefixtures("here")
def test_run_reads_and_writes_files(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    np.save("x.npy", x)
    assert main(["run", "tiny.ait", "--input", "x=@x.npy", "--input", "m=zeros:5x1", "--output", "y=@y.npy"]) == 0
    np.testing.assert_allclose(np.load("y.npy"), np.maximum(x * W, 0), rtol=1e-6)
    assert main(["run", "tiny.ait", "--input", "x=@x.npy", "--input", "m=zeros:5x1", "--compare", "y.npy"]) == 0
    np.save("wrong.npy", np.load("y.npy") + np.float32(0.01))
    assert main(["run", "tiny.ait", "--input", "x=@x.npy", "--input", "m=zeros:5x1", "--compare", "y=wrong.npy"]) == 1
    assert "WRONG" in capsys.readouterr().out


NARROW = """ait.graph @narrow(%x: !ait.tensor<4 x TYPE>, %s: !ait.tensor<f8E8M0FNU>) {
  %y = ait.dequantize %x scale %s : !ait.tensor<4 x f32>
  %z = ait.cast %y : !ait.tensor<4 x TYPE>
  ait.output "z" %z : !ait.tensor<4 x TYPE>
}
"""


@pytest.mark.usefixtures("here")
def test_files_of_types_that_numpy_has_not_hold_their_bytes() -> None:
    Path("narrow.mlir").write_text(NARROW.replace("TYPE", "f8E5M2"))
    assert main(["compile", "narrow.mlir", "-o", "narrow.ait"]) == 0
    assert main(["run", "narrow.ait", "--output", "z=@z.npy", "--compare", "reference"]) == 0
    assert main(["run", "narrow.ait", "--compare", "z=z.npy"]) == 0
    assert main(["run", "narrow.ait", "--input", "x=@z.npy"]) == 0
    np.save("wrong.npy", np.ones(4, np.float32))
    assert main(["run", "narrow.ait", "--input", "x=@wrong.npy"]) == 1


@pytest.mark.usefixtures("here")
def test_run_makes_inputs_from_dims(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "tiny.ait", "--dim", "batch=6"]) == 0
    assert "y: float32 [6, 8]" in capsys.readouterr().out
    assert main(["run", "tiny.ait", "--input", "x=random:3x8"]) == 0
    assert "y: float32 [3, 8]" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_constants_without_values_are_random_and_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "tiny.mlir", "-o", "bare.ait"]) == 0
    assert main(["run", "bare.ait", "--compare", "reference"]) == 0
    captured = capsys.readouterr()
    assert "1 constants have no value, random ones are used" in captured.err and " ok" in captured.out
    args = ["bare.ait", "--input", "x=ones:1x8", "--input", "m=zeros:1x1", "--weights", "w.safetensors"]
    assert main(["run", *args, "--output", "y=@y.npy"]) == 0
    np.testing.assert_allclose(np.load("y.npy")[0], np.maximum(W, 0), rtol=1e-6)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("here")
def test_bench_prints_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "tiny.ait", "--count", "3", "--repeat", "2"]) == 0
    assert "tiny on cpu, batch = 4: " in (out := capsys.readouterr().out) and "ms a run" in out


@pytest.mark.usefixtures("here")
def test_inspect_counts_launches_and_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "tiny.ait", "--launches", "--dim", "batch=2"]) == 0
    out = capsys.readouterr().out
    assert "batch = 1 to 6 hints [2, 4]" in out and "x: float32 [batch, 8]" in out
    read, written = 2 * 8 * 4 + 2 * 4 + 8 * 4, 2 * 8 * 4
    assert f"bytes     {read + written} read and written" in out
    assert f"floor     {read + written} for weights" in out and "(1.000 times)" in out
    assert "launches  1\n" in out
    assert main(["inspect", "tiny.mlir", "--launches", "--dim", "batch=2"]) == 0
    assert f"bytes     {read + written} read and written" in capsys.readouterr().out
    assert main(["inspect", "tiny.ait", "--ir"]) == 0
    assert "ait_rt.program @tiny" in capsys.readouterr().out


def test_cache_shows_and_clears(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "cache"))
    assert main(["cache", "--clear"]) == 0
    assert "there is no cache" in capsys.readouterr().out and not (tmp_path / "cache").exists()
    assert main(["compile", str(folder / "tiny.mlir"), "-o", str(tmp_path / "t.ait")]) == 0
    assert main(["cache"]) == 0
    assert "objects" in (out := capsys.readouterr().out) and str(tmp_path / "cache") in out
    assert main(["cache", "--clear"]) == 0
    assert not list((tmp_path / "cache").rglob("*.o"))


WRONG = {
    "compile missing.mlir": "ait: error: cannot read missing.mlir: No such file or directory",
    "compile bad.mlir": "bad.mlir:1:",
    "compile silent.mlir": "silent.mlir:2:1: error: phase 'planned': graph @tiny has no output",
    "compile silent.mlir --to canonical": "silent.mlir:2:1: error: phase 'canonical': graph @tiny has no output",
    "compile tiny.mlir --to nowhere": "ait: error: --to nowhere: the phases are imported, canonical, simplified",
    "compile tiny.mlir --from built": "ait: error: --from built: a file can be at imported",
    "compile tiny.mlir --without bufferize": "ait: error: cannot leave out 'bufferize'; a model can be compiled without",
    "compile tiny.mlir --to fused --without gelu": "ait: error: cannot leave out 'gelu'",
    "compile tiny.mlir --target tpu": "ait: error: argument --target: invalid choice: 'tpu'",
    "compile tiny.mlir --arch ;rm": "architecture",
    "compile tiny.mlir --weights missing": "ait: error: missing: there is no such file of weights",
    "compile tiny.mlir --weights bad.mlir": "ait: error: bad.mlir",
    "compile tiny.mlir --weights shape.safetensors": "'w' is float32 [4], but the param is float32 [8]",
    "import missing.pt2 -o /dev/null": "/dev/null is no regular file, so weights cannot be put beside it: name theirs",
    "run missing.ait": "ait: error: missing.ait: there is no such artifact",
    "run bad.mlir": "ait: error: bad.mlir is no artifact",
    "run tiny.ait --input x": "ait: error: --input 'x': expected NAME=VALUE",
    "run tiny.ait --input z=random:1": "there is no input 'z'; the inputs are x, m",
    "run tiny.ait --input x=random:axb": "'axb' is no shape",
    "run tiny.ait --input x=@missing.npy": "missing.npy: there is no such file",
    "run tiny.ait --input x=@bad.mlir": "bad.mlir is no .npy file",
    "run tiny.ait --input x=fixed:1x8": "'fixed:1x8' is no input: expected random:8x768",
    "run tiny.ait --input x=ones:9x8 --input m=ones:9x1": "so batch = 9, expected a value from 1 to 6",
    "run tiny.ait --input x=ones:2x8 --input m=ones:3x1": "input 'm' has shape [3, 1], expected [2, 1]",
    "run tiny.ait --dim batch=9": "--dim batch=9: expected a whole number from 1 to 6",
    "run tiny.ait --dim rows=1": "there is no dim 'rows'; the dims are batch",
    "run tiny.ait --output z=@z.npy": "there is no output 'z'; the outputs are y",
    "run tiny.ait --compare z=z.npy": "there is no output 'z'",
    "bench tiny.ait --count 0": "expected at least 1 of each",
    "inspect missing.ait": "there is no such artifact",
    "inspect missing.mlir": "cannot read missing.mlir",
    "inspect --ops gemn": "there is no op 'gemn'; did you mean ait.gemm",
    "unknown": "ait: error: argument COMMAND: invalid choice: 'unknown'",
    "": "ait: error: the following arguments are required: COMMAND",
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", WRONG)
def test_errors_are_one_message_and_exit_code_1(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.mlir").write_text("ait.graph @f(%x: !ait.tensor<4 x f99>) {}\n")
    Path("silent.mlir").write_text(re.sub(" *ait.output.*", "", MODEL))
    save_file({"w": W[:4]}, "shape.safetensors")
    try:
        code = main(command.split())
    except SystemExit as stopped:
        code = stopped.code
    captured = capsys.readouterr()
    assert code == 1
    assert WRONG[command] in captured.err and "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("command", ["", "compile", "run", "bench", "inspect", "cache", "runtime"])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*command.split(), "--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert "example" in out and f"ait {command}".strip() in out


@pytest.mark.usefixtures("here")
def test_an_artifact_is_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    Path("renamed.mlir").write_bytes(Path("tiny.ait").read_bytes())
    assert main(["compile", "renamed.mlir"]) == 1
    assert "renamed.mlir:1:1: error: it is an artifact, not text; `ait inspect --ir` prints" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("simplfy", "unknown pass 'simplfy'; did you mean 'simplify'"),
        ("zzz", "unknown pass 'zzz'; known: apply-padding, "),
    ],
)
def test_a_mistyped_pass(name: str, told: str) -> None:
    with pytest.raises(AitError, match=re.escape(told)):
        parse_passes(f"simplify,{name}")
