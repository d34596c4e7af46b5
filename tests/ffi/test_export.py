"""Exported libraries: a model, and each kernel of one, as functions of tvm-ffi."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
import torch
import tvm_ffi
from tvm_ffi import libinfo

from ait_mlir.driver import read_module
from ait_mlir.export import export_kernels, export_module, function_name
from ait_mlir.ir.source import SourceError
from ait_mlir.tools import cli
from tests.runtime.test_forks import in_child

TINY = """
ait.graph @tiny(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 64} {
  %w = ait.param "w" : !ait.tensor<16 x 8 x f32>
  %bias = ait.param "bias" : !ait.tensor<16 x f32>
  %g = ait.gemm rcr %x, %w : !ait.tensor<b x 16 x f32>
  %h = ait.add %g, %bias : !ait.tensor<b x 16 x f32>
  %r = ait.relu %h : !ait.tensor<b x 16 x f32>
  %s = ait.softmax %r dim 1 : !ait.tensor<b x 16 x f32>
  ait.output "y" %s : !ait.tensor<b x 16 x f32>
}
"""
W = np.random.default_rng(0).standard_normal((16, 8), np.float32)
BIAS = np.random.default_rng(1).standard_normal(16, np.float32)


def expected(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return torch.softmax(torch.relu(torch.from_numpy(x) @ torch.from_numpy(W).T + torch.from_numpy(BIAS)), 1).numpy()


def exported(folder: Path, text: str, **constants: np.ndarray[Any, Any]) -> Path:
    (folder / "model.mlir").write_text(text)
    module, source = read_module(folder / "model.mlir")
    return export_module(module, output=folder / "model.so", constants=constants, source=source)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(tmp_path_factory.mktemp("tiny"), TINY, w=W, bias=BIAS)


@pytest.fixture(scope="module")
def library(path: Path) -> Any:
    return tvm_ffi.load_module(str(path))


@pytest.mark.parametrize("batch", [1, 5, 64])
def test_outputs_of_the_caller(library: Any, batch: int) -> None:
    x = np.random.default_rng(batch).standard_normal((batch, 8), np.float32)
    y = np.empty((batch, 16), np.float32)
    assert library.tiny(x, y) is None
    np.testing.assert_allclose(y, expected(x), rtol=1e-5)
    out = torch.empty(batch, 16)
    library.tiny(torch.from_numpy(x), out)
    np.testing.assert_array_equal(out.numpy(), y)


def test_outputs_in_the_framework_of_the_inputs(library: Any) -> None:
    import jax.numpy as jnp

    x = np.random.default_rng(2).standard_normal((3, 8), np.float32)
    made = library.tiny(torch.from_numpy(x))
    assert isinstance(made, torch.Tensor)
    for result in (made.numpy(), np.from_dlpack(library.tiny(x)), jnp.from_dlpack(library.tiny(jnp.asarray(x)))):
        np.testing.assert_allclose(np.asarray(result), expected(x), rtol=1e-5)


def test_wrong_calls_are_errors_of_python(library: Any) -> None:
    x, y = np.zeros((2, 8), np.float32), np.zeros((2, 16), np.float32)
    for arguments, told in (
        ((x, y, y), r"tiny was given 3 arguments, expected 1 inputs, tiny\(x\), or also .*, tiny\(x, y\)"),
        ((x, 3), "tiny: argument 1 is a int, expected a tensor"),
        ((x.astype(np.float64), y), "input 'x' has dtype float64, expected float32"),
        ((x[:0], y), "b = 0, expected a value from 1 to 64"),
        ((x, y[:1]), "output 'y'"),
    ):
        with pytest.raises(ValueError, match=told):
            library.tiny(*arguments)
    library.tiny(x, y)
    about = json.loads(library.tiny_describe())
    assert [t["name"] for t in about["inputs"] + about["outputs"]] == ["x", "y"]


def test_threads_share_a_library(library: Any) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal((1 + seed, 8), np.float32)
        y, want = np.empty((1 + seed, 16), np.float32), expected(x)
        for _ in range(200):
            library.tiny(x, y)
            if not np.allclose(y, want, rtol=1e-5):
                wrong.append(seed)

    threads = [Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_it_needs_nothing_of_ait_mlir(path: Path) -> None:
    """A process that has neither the package nor its cache."""
    program = (
        "import sys, numpy as np, tvm_ffi\n"
        "y = np.empty((1, 16), np.float32)\n"
        "tvm_ffi.load_module(sys.argv[1]).tiny(np.ones((1, 8), np.float32), y)\n"
        "assert 'ait_mlir' not in sys.modules\n"
        "print(y.sum().round(3))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, cwd="/", env={}, check=True
    )
    assert ran.stdout == "1.0\n"


def test_from_cpp(path: Path, tmp_path: Path) -> None:
    include, ffi = libinfo.include_paths()[0], Path(libinfo.find_libtvm_ffi())
    source = Path(__file__).with_name("call_exported.cc")
    command = ["g++", "-std=c++17", "-O0", f"-I{include}", str(source), "-o", str(tmp_path / "call")]
    subprocess.run([*command, f"-L{ffi.parent}", "-ltvm_ffi", f"-Wl,-rpath,{ffi.parent}"], check=True)
    told = subprocess.run(
        [str(tmp_path / "call"), str(path), "tiny"], capture_output=True, text=True, check=True
    ).stdout
    *numbers, error = told.splitlines()
    x = np.arange(16, dtype=np.float32).reshape(2, 8) / 8
    np.testing.assert_allclose(np.float32(numbers).reshape(2, 16), expected(x), atol=1e-5)
    assert error.startswith("ValueError: tiny was given 3 arguments")


def test_constants_that_the_caller_sets(tmp_path: Path) -> None:
    library = tvm_ffi.load_module(str(exported(tmp_path, TINY, w=W)))
    x = np.ones((2, 8), np.float32)
    with pytest.raises(ValueError, match="1 constant has no value, first 'bias'"):
        library.tiny(x)
    with pytest.raises(ValueError, match="has no constant 'other'"):
        library.tiny_set_constant("other", BIAS)
    library.tiny_set_constant("bias", BIAS)
    np.testing.assert_allclose(np.from_dlpack(library.tiny(x)), expected(x), rtol=1e-5)


@pytest.mark.parametrize("cut", [1, 64, 100])
def test_weights_that_are_cut_off_are_an_error(path: Path, tmp_path: Path, cut: int) -> None:
    (tmp_path / "cut.so").write_bytes(path.read_bytes()[:-cut])
    library = tvm_ffi.load_module(str(tmp_path / "cut.so"))
    with pytest.raises(RuntimeError, match=r"cut.so does not end with the weights of the model"):
        library.tiny(np.ones((1, 8), np.float32))


def test_damaged_weights_are_an_error(path: Path, tmp_path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-100] ^= 4
    (tmp_path / "bad.so").write_bytes(data)
    with pytest.raises(RuntimeError, match=r"bad.so is damaged: its weights do not have their hash"):
        tvm_ffi.load_module(str(tmp_path / "bad.so")).tiny(np.ones((1, 8), np.float32))


ROWS = 1500
SUMS = f"""
ait.graph @sums(%x: !ait.tensor<b x {ROWS} x f32>) dims {{b = 1 to 4}} {{
  %w = ait.param "w" : !ait.tensor<{ROWS} x {ROWS} x f32>
  %y = ait.gemm rcr %x, %w : !ait.tensor<b x {ROWS} x f32>
  ait.output "y" %y : !ait.tensor<b x {ROWS} x f32>
}}
"""


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(tmp_path_factory.mktemp("sums"), SUMS, w=np.ones((ROWS, ROWS), np.float32))


def test_weights_that_are_rewritten_during_the_first_call(sums: Path, tmp_path: Path) -> None:
    """All of them are those that were hashed, or the call is an error. The code of the file stays as it is."""
    data, x = sums.read_bytes(), np.ones((1, ROWS), np.float32)
    start = data.rindex(np.ones(ROWS * ROWS, np.float32).tobytes())
    twos = np.full(ROWS * ROWS, 2, np.float32).tobytes()
    ended, copies = Event(), [tmp_path / f"{i}.so" for i in range(30)]
    for copy in copies:
        copy.write_bytes(data)

    def write() -> None:
        files = [copy.open("r+b", buffering=0) for copy in copies]
        while not ended.is_set():
            for values in (twos, data[start : start + len(twos)]):
                for file in files:
                    os.pwrite(file.fileno(), values, start)

    writer, refused = Thread(target=write), 0
    writer.start()
    try:
        for copy in copies:
            try:
                assert (np.from_dlpack(tvm_ffi.load_module(str(copy)).sums(x)) == ROWS).all()
            except RuntimeError as error:
                assert "its weights do not have their hash" in str(error)
                refused += 1
    finally:
        ended.set()
        writer.join()
    assert refused > 0, "no call met the writer"


def test_a_fork_during_the_first_call(sums: Path, tmp_path: Path) -> None:
    x = np.ones((1, ROWS), np.float32)
    for i in range(12):
        copy = tmp_path / f"{i}.so"
        copy.write_bytes(sums.read_bytes())
        library = tvm_ffi.load_module(str(copy))
        caller = Thread(target=library.sums, args=(x,))
        caller.start()
        time.sleep(0.002 * i)
        told = in_child(lambda library=library: str((np.from_dlpack(library.sums(x)) == ROWS).all()))
        caller.join()
        assert told == "True" or "was in use by another thread when this process was forked" in told


def kernels_of(folder: Path, text: str) -> Any:
    (folder / "model.mlir").write_text(text)
    module, source = read_module(folder / "model.mlir")
    path, left_out = export_kernels(module, output=folder / "kernels.so", source=source)
    assert left_out == {}
    return tvm_ffi.load_module(str(path))


def test_kernels_of_a_model(tmp_path: Path) -> None:
    """Each kernel is a function; a literal of the model is a part of the library."""
    text = """
ait.graph @f(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 64} {
  %c = ait.constant [1, 2, 3, 4] : !ait.tensor<4 x f32>
  %y = ait.mul %x, %c : !ait.tensor<b x 4 x f32>
  %s = ait.reduce sum %y dims [1] : !ait.tensor<b x f32>
  %t = ait.permute %x [1, 0] : !ait.tensor<4 x b x f32>
  ait.output "s" %s : !ait.tensor<b x f32>
  ait.output "t" %t : !ait.tensor<4 x b x f32>
}
"""
    library = kernels_of(tmp_path, text)
    x, out = torch.randn(3, 4), torch.empty(3)
    library.loops_0(x, torch.tensor([1.0, 2, 3, 4]), out)
    torch.testing.assert_close(out, x @ torch.tensor([1.0, 2, 3, 4]))
    with pytest.raises(ValueError, match="input 'a0' has rank 1"):
        library.loops_0(out, torch.tensor([1.0, 2, 3, 4]), out)
    assert not hasattr(library, "f_copy_0")


@pytest.mark.full
def test_kernels_of_products(tmp_path: Path) -> None:
    """A product with packed weights is one on plain tensors."""
    library = kernels_of(tmp_path, TINY)
    x = torch.randn(5, 8)
    h = library.gemm_rcr_bias_relu_0(x, torch.from_numpy(W), torch.from_numpy(BIAS))
    y = torch.empty(5, 16)
    library.loops_1(h, y)  # a softmax
    np.testing.assert_allclose(y.numpy(), expected(x.numpy()), rtol=1e-5)


STATE = """
ait.graph @step(%c: !ait.tensor<4 x 2 x f32> donated, %row: !ait.tensor<1 x 2 x f32>, %at: !ait.tensor<i64>) {
  %n = ait.update_slice %c, %row at %at dim 0 : !ait.tensor<4 x 2 x f32>
  %s = ait.reduce sum %n dims [0] : !ait.tensor<2 x f32>
  ait.output "c" %n in place of %c : !ait.tensor<4 x 2 x f32>
  ait.output "s" %s : !ait.tensor<2 x f32>
}
"""


def test_state_and_registered_functions(tmp_path: Path) -> None:
    """An output in place of an input is that input; a function that the process registers is called."""

    @tvm_ffi.register_global_func("tests.negate", override=True)
    def negate(x: tvm_ffi.Tensor, y: tvm_ffi.Tensor) -> None:
        np.from_dlpack(y)[...] = -np.from_dlpack(x)

    text = STATE.replace(
        'ait.output "s" %s', '%m = ait.call_ffi "tests.negate"(%s) : !ait.tensor<2 x f32>\n  ait.output "s" %m'
    )
    library = tvm_ffi.load_module(str(exported(tmp_path, text)))
    cache = np.zeros((4, 2), np.float32)
    for i in range(3):
        s = library.step(cache, np.float32([[1, 2]]), np.array(i))
        np.testing.assert_array_equal(np.from_dlpack(s), [-i - 1, -2 * i - 2])
    np.testing.assert_array_equal(cache, [[1, 2]] * 3 + [[0, 0]])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.mlir").write_text(TINY)
    assert cli.main(["compile", "tiny.mlir", "--emit", "module", "--weights", "random", "--name", "my-model"]) == 0
    assert "wrote tiny.so" in capsys.readouterr().out
    assert np.from_dlpack(tvm_ffi.load_module("./tiny.so").my_model(np.ones((1, 8), np.float32))).shape == (1, 16)
    assert cli.main(["compile", "tiny.mlir", "--emit", "kernels", "--to", "planned"]) != 0
    assert "leave out --to planned" in capsys.readouterr().err
    calls = '%y = ait.call_ffi @lib "f"(%x) sha256 "' + "0" * 64 + '" : !ait.tensor<4 x f32>\n'
    (tmp_path / "f.mlir").write_text(
        f'ait.graph @f(%x: !ait.tensor<4 x f32>) {{\n  {calls}  ait.output "y" %y : !ait.tensor<4 x f32>\n}}'
    )
    module, source = read_module(tmp_path / "f.mlir")
    with pytest.raises(SourceError, match=r"(?s)f\.mlir:2.*kernel library 'lib'"):
        export_module(module, output=tmp_path / "f.so", source=source)
    assert not (tmp_path / "f.so").exists()


def test_names() -> None:
    assert function_name("bert-base.v2") == "bert_base_v2" and function_name("2d") == "model_2d"


@pytest.mark.parametrize(("emit", "streams"), [("module", 4), ("module", 1), ("kernels", 4)])
def test_streams_of_exported_libraries(
    emit: str, streams: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model keeps its streams, as many as are asked for; the function of a kernel launches on the caller's."""
    built: dict[str, str] = {}

    def build_exported(sources: dict[str, str], exports: str, target: Any, folder: Path) -> Path:
        built.update(sources)
        (folder / "library.so").write_bytes(b"")
        return folder / "library.so"

    monkeypatch.setattr("ait_mlir.lowering.build.build_exported", build_exported)
    t = "!ait.tensor<64 x 64 x f16>"
    lines = [f"%a0 = ait.cumulative sum %x dim 0 : {t}", f"%b0 = ait.cumulative sum %x dim 1 : {t}"]
    for i in range(5):
        lines += [f"%{c}{i + 1} = ait.cumulative sum %{c}{i} dim {d} : {t}" for d, c in enumerate("ab")]
    lines += [f'ait.output "a" %a5 : {t}', f'ait.output "b" %b5 : {t}']
    (tmp_path / "net.mlir").write_text(f"ait.graph @net(%x: {t}) {{\n" + "\n".join(lines) + "\n}\n")
    command = ["compile", str(tmp_path / "net.mlir"), "--target", "cuda", "--arch", "sm_90a", "--no-measure"]
    assert cli.main([*command, "--emit", emit, "--streams", str(streams), "-o", str(tmp_path / "net.so")]) == 0
    programs = [text for name, text in built.items() if name.startswith("program_")]
    assert len(programs) == (1 if emit == "module" else 2)
    for text in programs:
        assert ("ait::use_streams(r, true, &several)" in text) == (emit == "module" and streams > 1)
