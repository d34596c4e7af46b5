"""Models in C and C++ programs: the installed library, its C interface, the example, and what it refuses."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from blake3 import blake3

from ait_mlir.dialects.ait.dtypes import BY_MLIR, BY_NAME
from ait_mlir.driver import compile_module
from ait_mlir.errors import ArtifactError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source, parse_text
from ait_mlir.ir.source import decode
from ait_mlir.lowering.build import build_with
from ait_mlir.lowering.deploy import install_runtime
from ait_mlir.lowering.toolchain import cpp_root, toolchain
from ait_mlir.runtime import Model, artifact
from ait_mlir.runtime.manifest import KernelLibraryInfo, Manifest
from ait_mlir.tools.cli import main
from tests.runtime.conftest import B, W, tiny_inputs, tiny_reference

ROOT = Path(__file__).parents[2]
OK, INPUT, ARTIFACT, MEMORY, RUN = range(5)


class Tensor(ctypes.Structure):
    """`ait_tensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("on_host", ctypes.c_int32),
    ]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_runtime("cpu", tmp_path_factory.mktemp("prefix"))


@pytest.fixture(scope="module")
def api(prefix: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(prefix / "lib" / "libait_cpu.so"))
    library.ait_last_error.restype = ctypes.c_char_p
    library.ait_target.restype = ctypes.c_char_p
    library.ait_model_free.argtypes = [ctypes.c_void_p]
    return library


class Loaded:
    """A model of the C interface."""

    def __init__(self, api: ctypes.CDLL, path: Path) -> None:
        self.api, self.model = api, ctypes.c_void_p()
        self.status = api.ait_model_load(os.fsencode(path), None, ctypes.byref(self.model))

    def run(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> tuple[int, list[int]]:
        shapes = (ctypes.c_int64 * sum(out.ndim for out in outputs))()
        given = [_tensors(inputs), _tensors(outputs)]
        sizes = ctypes.c_int32(len(inputs)), ctypes.c_int32(len(outputs))
        status = self.api.ait_model_run(self.model, given[0], sizes[0], given[1], sizes[1], None, shapes)
        return status, list(shapes)

    def __del__(self) -> None:
        self.api.ait_model_free(self.model)


def _tensors(arrays: list[np.ndarray]) -> ctypes.Array[Tensor]:
    def tensor(a: np.ndarray) -> Tensor:
        extents = ctypes.c_int64 * a.ndim
        strides = None if a.flags.c_contiguous else extents(*(s // a.itemsize for s in a.strides))
        return Tensor(a.ctypes.data, BY_NAME[a.dtype.name].abi, a.ndim, extents(*a.shape), strides, 0)

    return (Tensor * len(arrays))(*map(tensor, arrays))


def _message(api: ctypes.CDLL) -> str:
    return api.ait_last_error().decode()


def test_a_model_runs(api: ctypes.CDLL, tiny_artifact: Path) -> None:
    model = Loaded(api, tiny_artifact)
    assert model.status == OK, _message(api)
    assert (api.ait_api_version(), api.ait_target()) == (2, b"cpu")
    x, m = tiny_inputs(2, 4)
    y, s = np.zeros((2, 8), np.float32), np.zeros(2, np.float32)
    assert model.run([x, m], [y, s]) == (OK, [2, 8, 2])
    expected = tiny_reference(x, m)
    np.testing.assert_allclose(y, expected[0], rtol=1e-6)
    np.testing.assert_allclose(s, expected[1], rtol=1e-5)


def test_constants_are_set_and_swapped(api: ctypes.CDLL, tiny_artifact: Path) -> None:
    model = Loaded(api, tiny_artifact)
    x, m = tiny_inputs(2, 4)
    y, s = np.zeros((2, 8), np.float32), np.zeros(2, np.float32)
    zero = np.float32([0])
    assert api.ait_model_swap_constants(model.model) == INPUT
    assert "nothing to swap" in _message(api)
    assert api.ait_model_set_constant(model.model, b"b", _tensors([zero]), 0) == OK
    assert api.ait_model_set_constant(model.model, b"w", _tensors([zero]), 1) == OK
    assert model.run([x, m], [y, s])[0] == OK
    np.testing.assert_allclose(y, x * W[0], rtol=1e-6)
    assert api.ait_model_swap_constants(model.model) == OK
    assert model.run([x, m], [y, s])[0] == OK
    assert not y.any()
    assert api.ait_model_set_constant(model.model, b"v", _tensors([zero]), 0) == INPUT
    assert "has no constant 'v'" in _message(api)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "ui8"])
def test_tensors_of_each_dtype_at_strides(api: ctypes.CDLL, tmp_path: Path, dtype: str) -> None:
    text = f"""
    ait.graph @f(%x: !ait.tensor<n x 4 x {dtype}> strides [8, 1]) dims {{n = 1 to 4}} {{
      ait.output "y" %x strides [1, n] : !ait.tensor<n x 4 x {dtype}>
    }}
    """
    model = Loaded(api, compile_module(parse_text(context(), text), output=tmp_path / "f.ait"))
    kind = BY_MLIR[dtype].name
    x = np.random.default_rng(0).integers(0, 2, (3, 8)).astype(kind)[:, :4]
    for given, y in ((x, np.zeros((4, 3), kind).T), (np.ascontiguousarray(x), np.zeros((3, 4), kind))):
        assert model.run([given], [y]) == (OK, [3, 4]), _message(api)
        np.testing.assert_array_equal(y, x)


def test_wrong_calls_have_a_status_and_a_message(api: ctypes.CDLL, tiny_artifact: Path, tmp_path: Path) -> None:
    model = Loaded(api, tiny_artifact)
    x, m = tiny_inputs(2, 4)
    y, s = np.zeros((2, 8), np.float32), np.zeros(2, np.float32)
    assert model.run([x], [y, s])[0] == INPUT
    assert _message(api) == "the model has 2 inputs, but 1 was given"
    assert model.run([x, m[:1]], [y, s])[0] == INPUT
    assert "input 'm' has shape [1, 4], expected [2, 4]" in _message(api)
    wrong = _tensors([x, m])
    wrong[1].dtype = 99
    assert api.ait_model_infer(model.model, wrong, 2, None) == INPUT
    assert _message(api) == "input 1 has the dtype 99, which there is not"
    assert api.ait_model_infer(model.model, None, 2, None) == INPUT
    assert api.ait_model_run(None, None, 0, None, 0, None, None) == INPUT
    assert _message(api) == "the model is null"
    three = tiny_inputs(3, 4)
    y3, s3 = np.zeros((3, 8), np.float32), np.zeros(3, np.float32)
    assert model.run(list(three), [y3, s3])[0] == RUN
    assert "a batch of 3 is refused" in _message(api)
    seven = tiny_inputs(7, 4)
    y7, s7 = np.zeros((7, 8), np.float32), np.zeros(7, np.float32)
    assert model.run(list(seven), [y7, s7])[0] == MEMORY
    assert model.run([x, m], [y, s])[0] == OK, "usable after errors"
    assert Loaded(api, tmp_path / "none.ait").status == ARTIFACT
    assert "there is no such artifact" in _message(api)
    assert Loaded(api, tmp_path).status == ARTIFACT
    assert api.ait_model_load(None, None, ctypes.byref(ctypes.c_void_p())) == INPUT


def test_another_machine_is_refused(api: ctypes.CDLL, tmp_path: Path, library: Path) -> None:
    for change, told in (
        ({"target": "cuda", "arch": "sm_90a"}, "it is for target cuda, this runtime runs target cpu"),
        (
            {"target": "cpu", "arch": "native", "instruction_sets": ("avx9000",)},
            "for a CPU with features that this one lacks (native needs avx9000)",
        ),
        (
            {"target": "cpu", "arch": "native", "kernel_libraries": (KernelLibraryInfo("k", "0" * 64, "/k.so"),)},
            "it calls functions of kernel libraries",
        ),
    ):
        path = artifact.write(tmp_path / "other.ait", Manifest("tiny", **change), "", library, {})  # type: ignore[arg-type]
        assert Loaded(api, path).status == ARTIFACT
        assert told in _message(api)


def refuse(api: ctypes.CDLL, path: Path, bad: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(bad)
    assert Loaded(api, path).status == ARTIFACT
    assert path.name in _message(api)


@pytest.mark.parametrize("flips", [60, pytest.param(1000, marks=pytest.mark.full)])
def test_flipped_bits_and_truncations_are_refused(
    api: ctypes.CDLL, tiny_artifact: Path, tmp_path: Path, flips: int
) -> None:
    good, random = tiny_artifact.read_bytes(), np.random.default_rng(2)
    size = int.from_bytes(good[16:24], "little")
    bits = [*random.integers(0, 8 * len(good), flips), *random.integers(0, 8 * (64 + size), flips)]
    for bit in map(int, bits):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << (bit % 8)
        refuse(api, tmp_path / "flipped.ait", bytes(bad))
    for end in [0, 1, 63, 64, 4096, len(good) - 1, *map(int, random.integers(0, len(good), flips))]:
        refuse(api, tmp_path / "cut.ait", good[:end])
    refuse(api, tmp_path / "long.ait", good + b"\0")


def test_a_manifest_that_lies_is_refused(api: ctypes.CDLL, tiny_artifact: Path, tmp_path: Path) -> None:
    """The hash of the manifest is right, but not what the manifest says."""
    good = tiny_artifact.read_bytes()
    size = int.from_bytes(good[16:24], "little")
    text = good[64 : 64 + size].decode()
    changes = [
        (r'"offset": \d+', '"offset": -4096'),
        (r'"offset": \d+', f'"offset": {1 << 62}'),
        (r'"size": \d+', f'"size": {(1 << 63) - 1}'),
        (r'"size": \d+', '"size": 1e300'),
        (r'"size": \d+', '"size": "1"'),
        (r'"parts"', '"ports"'),
        (r"\A", "[" * 100_000),
        (r'"name": "x"', '"name": "x\\u12"'),
        (r"\}\s*\Z", ""),
    ]
    for pattern, new in changes:
        bad_text = re.sub(pattern, lambda _, new=new: new, text, count=1).encode()
        assert bad_text != text.encode()
        head = good[:16] + len(bad_text).to_bytes(8, "little") + len(good).to_bytes(8, "little")
        whole = (head + blake3(bad_text).digest() + bad_text).ljust(len(good), b"\0")[: len(good)]
        if len(bad_text) < 4000:
            whole = head + blake3(bad_text).digest() + bad_text
            whole = whole.ljust(4096, b"\0") + good[4096:]
        refuse(api, tmp_path / "lies.ait", whole)


def _hash_without_threads(library: Path) -> None:
    """The caller hashes alone where no thread can be started. The size of the stack of a thread is fixed when a process starts."""
    code = """
import ctypes, resource, sys
import numpy as np
from blake3 import blake3
library = ctypes.CDLL(sys.argv[1])
data, found = np.arange(100 << 18, dtype=np.uint32), np.zeros(32, np.uint8)
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, -1))
library.hash(data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes), 4, found.ctypes.data_as(ctypes.c_void_p))
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
assert found.tobytes() == blake3(data.tobytes()).digest()
"""
    command = ["bash", "-c", f"ulimit -s {64 << 20} && exec {sys.executable} -c '{code}' {library}"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


def test_the_hash_is_blake3(tmp_path: Path) -> None:
    source = """
#include "deploy/blake3.cc"
#include "threads.cc"
extern "C" __attribute__((visibility("default"))) void hash(const void* data, size_t size, int threads, void* out) {
  const ait::runtime::Blake3 found = ait::runtime::blake3(data, size, threads);
  std::memcpy(out, found.data(), found.size());
}
"""
    tools = toolchain("cpu", "native")
    flags = ("-O2", "-std=c++17", "-fPIC", "-Wno-psabi", "-I", str(cpp_root() / "src"))
    text = (cpp_root() / "src" / "deploy" / "blake3.cc").read_text()
    path = build_with(
        type(tools)(
            tools.compiler, flags, ("-shared", "-lpthread"), tools.identity + blake3(text.encode()).hexdigest(), ()
        ),
        {"hash.cc": source},
        tmp_path,
        "hash",
    )
    _hash_without_threads(path)
    function = ctypes.CDLL(str(path)).hash
    data = np.random.default_rng(0).integers(0, 256, (1 << 25) + (1 << 24) + 1500, np.uint8)
    subtree = 1 << 24
    edges = [0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 2049, 3073, 5000, 16 * 1024, 16 * 1024 + 1, 17 * 1024, 33 * 1024]
    large = [31 * 1024 + 7, 100_000, 1 << 20, subtree - 1, subtree, subtree + 1, subtree + 1024, 2 * subtree, data.size]
    for size in edges + large:
        for threads in (1, 3) if size > subtree else (1,):
            found = np.zeros(32, np.uint8)
            function(
                ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(size), threads, ctypes.c_void_p(found.ctypes.data)
            )
            assert found.tobytes() == blake3(data[:size].data).digest(), size


GRAPH = """
ait.graph @ffn(%x: !ait.tensor<batch x 24 x f32>) dims {batch = 1 to 8} {
  %w = ait.param "up.weight" : !ait.tensor<48 x 24 x f32>
  %b = ait.param "up.bias" : !ait.tensor<48 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<batch x 48 x f32>
  %1 = ait.add %0, %b : !ait.tensor<batch x 48 x f32>
  %2 = ait.relu %1 : !ait.tensor<batch x 48 x f32>
  ait.output "y" %2 : !ait.tensor<batch x 48 x f32>
}
"""


@pytest.fixture(scope="module")
def ffn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(0)
    weights = {"up.weight": random.random((48, 24), np.float32), "up.bias": random.random(48, np.float32) - 1}
    module = parse_source(context(), decode(GRAPH.encode(), "ffn.mlir"))
    return compile_module(module, constants=weights, output=tmp_path_factory.mktemp("ffn") / "ffn.ait")


def _clean() -> dict[str, str]:
    """An environment without Python's and our settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("AIT_", "PYTHON", "LD_"))}


def test_the_example_runs_without_python(prefix: Path, ffn: Path, tmp_path: Path) -> None:
    """With CMake as a user would; the prefix is moved first."""
    moved = tmp_path / "moved"
    shutil.copytree(prefix, moved)
    cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
    assert cmake is not None, "make setup installs cmake"
    build = tmp_path / "build"
    commands = [
        [cmake, "-S", str(ROOT / "examples" / "cpp"), "-B", str(build), f"-DCMAKE_PREFIX_PATH={moved}"],
        [cmake, "--build", str(build)],
    ]
    for command in commands:
        done = subprocess.run(command, env=_clean(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    program = str(build / "run_model")
    done = subprocess.run([program, str(ffn), "batch=3"], env=_clean(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    x = (np.arange(3 * 24) % 10).astype(np.float32).reshape(3, 24) / np.float32(10)
    with Model(ffn) as model:
        expected = model.run_with_tensors([x])["y"]
    assert done.stdout.startswith("y [3, 48] ")
    np.testing.assert_allclose(np.array(done.stdout.split("]")[1].split(), float), expected.ravel()[:4], rtol=1e-5)
    refused = subprocess.run([program, str(ffn), "batch=9"], env=_clean(), capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "dim batch = 9, expected a value from 1 to 8" in refused.stderr
    cached = compile_module(parse_text(context(), CACHE), output=tmp_path / "cache.ait")
    done = subprocess.run([program, str(cached), "n=1"], env=_clean(), capture_output=True, text=True, check=False)
    assert done.stdout == "total [1, 4] 0 0.2 0.4 0.6\n", done.stderr
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libait_cpu.so" in loaded and "python" not in loaded and "tvm_ffi" not in loaded


def test_a_c_program_builds_with_pkg_config(prefix: Path, tiny_artifact: Path, tmp_path: Path) -> None:
    lines = (prefix / "lib" / "pkgconfig" / "ait-cpu.pc").read_text().splitlines()
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    place = str(prefix / "lib" / "pkgconfig" / ".." / "..")
    flags = [flag.replace("${prefix}", place) for name in ("Cflags", "Libs") for flag in fields[name].split()]
    source = tmp_path / "main.c"
    source.write_text("""
#include <ait/model.h>
#include <stdio.h>
int main(int argc, char** argv) {
  ait_model* model;
  if (argc != 2 || ait_model_load(argv[1], NULL, &model) != AIT_OK) return fprintf(stderr, "%s\\n", ait_last_error()), 1;
  int64_t shapes[3];
  ait_model_maximum_shapes(model, shapes);
  printf("%s %s %d %d %d\\n", ait_model_table(model)->name, ait_target(), (int)shapes[0], (int)shapes[1], (int)shapes[2]);
  ait_model_free(model);
  return 0;
}
""")
    compiler = os.environ.get("CC", "gcc")
    subprocess.run(
        [compiler, "-std=c11", "-Wall", "-Werror", str(source), "-o", str(tmp_path / "main"), *flags], check=True
    )
    command = [str(tmp_path / "main"), str(tiny_artifact)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "tiny cpu 8 32 8\n"


def test_loading_leaves_no_file(
    api: ctypes.CDLL, tiny_artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    x, m = tiny_inputs(1, 1)
    models = [Loaded(api, tiny_artifact) for _ in range(3)]
    for model in models:
        y, s = np.zeros((1, 2), np.float32), np.zeros(1, np.float32)
        assert model.run([x, m], [y, s])[0] == OK
        np.testing.assert_allclose(y, x * W[0] + B[0] * np.repeat(m, 2, axis=1), rtol=1e-6)
    assert list(folder.iterdir()) == []


CACHE = """
ait.graph @sum(%total: !ait.tensor<n x 4 x f32> donated, %x: !ait.tensor<n x 4 x f32>) dims {n = 1 to 2} {
  %0 = ait.add %total, %x : !ait.tensor<n x 4 x f32>
  ait.output "total" %0 in place of %total : !ait.tensor<n x 4 x f32>
}
"""
PROGRAM_GRAPH = """
ait.graph @f(%x: !ait.tensor<n x 4 x f16>, %i: !ait.tensor<n x i64>) dims {n = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<4 x f16>
  %v = ait.param "v" : !ait.tensor<4 x f16>
  %0 = ait.add %x, %w : !ait.tensor<n x 4 x f16>
  %1 = ait.mul %0, %v : !ait.tensor<n x 4 x f16>
  %2 = ait.add %i, %i : !ait.tensor<n x i64>
  ait.output "y" %1 : !ait.tensor<n x 4 x f16>
  ait.output "j" %2 : !ait.tensor<n x i64>
}
"""
BIG_GRAPH = """
ait.graph @big(%x: !ait.tensor<b x 4096 x f32>) dims {b = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<4096 x 4096 x f32>
  %y = ait.gemm rcr %x, %w : !ait.tensor<b x 4096 x f32>
  ait.output "y" %y : !ait.tensor<b x 4096 x f32>
}
"""


def test_what_a_program_can_do(prefix: Path, tmp_path: Path) -> None:
    """`cpp_interface.cc`: each of its checks names itself when it fails."""
    weights = {"w": np.arange(4).astype(np.float16)}
    path = compile_module(parse_text(context(), PROGRAM_GRAPH), constants=weights, output=tmp_path / "f.ait")
    big = compile_module(
        parse_text(context(), BIG_GRAPH),
        constants={"w": np.ones((4096, 4096), np.float32)},
        output=tmp_path / "big.ait",
    )
    source = Path(__file__).with_name("cpp_interface.cc")
    command = [os.environ.get("CXX", "g++"), "-std=c++17", "-Wall", "-Wextra", "-Werror", str(source)]
    command += ["-o", str(tmp_path / "main"), "-I", str(prefix / "include"), "-L", str(prefix / "lib")]
    subprocess.run([*command, f"-Wl,-rpath,{prefix / 'lib'}", "-lait_cpu"], check=True)
    run = [str(tmp_path / "main"), str(path), str(big), str((prefix / "lib" / "libait_cpu.so").resolve())]
    done = subprocess.run(run, env=_clean(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all right\n"), done.stderr


def test_a_program_with_the_static_library(tmp_path: Path, ffn: Path) -> None:
    """It needs no file beside it; by the flags of pkg-config's file, and with CMake's target."""
    prefix = install_runtime("cpu", tmp_path / "prefix", static=True)
    lines = (prefix / "lib" / "pkgconfig" / "ait-cpu-static.pc").read_text().splitlines()
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    flags = [flag.replace("${prefix}", str(prefix)) for name in ("Cflags", "Libs") for flag in fields[name].split()]
    source = ROOT / "examples" / "cpp" / "run_model.cc"
    compiler = os.environ.get("CXX", "g++")
    subprocess.run([compiler, "-std=c++17", str(source), "-o", str(tmp_path / "main"), *flags], check=True)
    shutil.rmtree(prefix)
    command = [str(tmp_path / "main"), str(ffn), "batch=2"]
    done = subprocess.run(command, env=_clean(), capture_output=True, text=True, check=False)
    assert done.stdout.startswith("y [2, 48] "), done.stderr
    assert "libait" not in subprocess.run(["ldd", command[0]], capture_output=True, text=True, check=True).stdout


def test_code_for_several_cpus(
    api: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A load takes the library that uses most of the CPU, and refuses a file without one for it."""
    (tmp_path / "ffn.mlir").write_text(GRAPH)
    path = tmp_path / "ffn.ait"
    cpus = ["--cpu", "x86-64-v2", "--cpu", "x86-64-v3", "--cpu", "sapphirerapids"]
    assert main(["compile", str(tmp_path / "ffn.mlir"), *cpus, "-o", str(path), "--weights", "random"]) == 0
    loaded = artifact.read(path)
    names = ["library", "library.x86-64-v3", "library.sapphirerapids"]
    assert list(loaded.parts) == ["ir", *names, "constants"]
    assert len({loaded.parts[name].blake3 for name in names}) == 3
    x = np.ones((2, 24), np.float32)
    found = [np.zeros((2, 48), np.float32) for _ in range(2)]
    model = Loaded(api, path)
    assert model.status == OK and model.run([x], [found[0]])[0] == OK, _message(api)
    with Model(path) as own:
        own.run([x], [found[1]])
    np.testing.assert_array_equal(*found)
    flags = {variant: set(needed) for variant, needed, _ in loaded.manifest.libraries()}
    for cpu, part in zip(flags, names, strict=True):
        monkeypatch.setattr(artifact, "instruction_sets", lambda cpu=cpu: frozenset(flags[cpu]))
        assert artifact.choose_library(loaded.manifest) == part
    monkeypatch.setattr(artifact, "instruction_sets", lambda: frozenset(flags["x86-64-v2"] - {"sse4_2"}))
    with pytest.raises(
        ArtifactError, match=r"\(x86-64-v2 needs sse4_2; x86-64-v3 needs .*avx2.*\): compile it here, or"
    ):
        Model(path)
    assert main(["inspect", str(path)]) == 0
    assert "also for  cpu x86-64-v3" in capsys.readouterr().out
    assert main(["compile", str(tmp_path / "ffn.mlir"), "--cpu", "z80", "-o", str(path)]) == 1
    assert "cannot compile for CPU 'z80'" in capsys.readouterr().err
    assert main(["compile", str(tmp_path / "ffn.mlir"), "--cpu", "native", "--target", "cuda"]) == 1
    assert "--cpu names the CPUs of target cpu" in capsys.readouterr().err
    for other in (["--to", "planned"], ["--to", "source"], ["--emit", "module"], ["--emit", "kernels"]):
        assert main(["compile", str(tmp_path / "ffn.mlir"), *cpus, *other]) == 1
        refused = f"only an artifact has code for several CPUs: with {' '.join(other)}, give --cpu once"
        assert refused in capsys.readouterr().err
