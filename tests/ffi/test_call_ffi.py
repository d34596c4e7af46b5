"""`ait.call_ffi`: functions of a kernel library, and of the process, in a model on the CPU."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch
import tvm_ffi

from ait_mlir.dialects.ait.foreign import CallFfiOp
from ait_mlir.driver import compile_module, read_module
from ait_mlir.errors import ArtifactError, InputError, RunError
from ait_mlir.frontend import BuildError, IntVar, Tensor, compile_model, ops
from ait_mlir.host import kernel_libraries
from ait_mlir.host.files import write_atomic
from ait_mlir.host.kernel_libraries import KernelLibrary, add_kernel_library, find_kernel_library
from ait_mlir.ir.source import SourceError
from ait_mlir.options import CompileOptions
from ait_mlir.reference.core import EvaluationError
from ait_mlir.reference.foreign import foreign_function
from ait_mlir.runtime.model import Model
from tests.e2e.support import Compiled, compile_graph

SEVERAL = """
ait.graph @several(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<8 x f32>, %h: !ait.tensor<b x 8 x bf16>) dims {b = 0 to 6} {
  %a = ait.add %x, %w : !ait.tensor<b x 8 x f32>
  %y = ait.call_ffi @kernels "scale"(%a, none, 0.5) : !ait.tensor<b x 8 x f32>
  %z = ait.call_ffi @kernels "scale"(%y, %w, -3) : !ait.tensor<b x 8 x f32>
  %r = ait.relu %z : !ait.tensor<b x 8 x f32>
  %s, %n = ait.call_ffi @kernels "row_sums"(result, %r, workspace, result, 1.5, (b), true, "sum") workspace (4*b)
    : !ait.tensor<b x f32>, !ait.tensor<i32>
  %t = ait.permute %r [1, 0] : !ait.tensor<8 x b x f32>
  %p = ait.call_ffi @kernels "scale"(%t, none, 1) strided : !ait.tensor<8 x b x f32>
  %c = ait.call_ffi @kernels "through_temporary"(%p) : !ait.tensor<8 x b x f32>
  %m = ait.call_ffi @kernels "absolute_bf16"(%h) : !ait.tensor<b x 8 x bf16>
  ait.output "r" %r : !ait.tensor<b x 8 x f32>
  ait.output "s" %s : !ait.tensor<b x f32>
  ait.output "n" %n : !ait.tensor<i32>
  ait.output "c" %c : !ait.tensor<8 x b x f32>
  ait.output "m" %m : !ait.tensor<b x 8 x bf16>
}
"""


@pytest.fixture(scope="module")
def several(kernels: KernelLibrary, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_graph(SEVERAL, tmp_path_factory.mktemp("several"))


@pytest.mark.parametrize("batch", [0, 1, 6])
@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_calls_in_a_graph(several: Compiled, batch: int, framework: str) -> None:
    """Optional tensors, all kinds of scalars, several results in any place, a workspace, strided operands, bf16, and a
    function that allocates, with and without a framework that has an allocator."""
    generator = np.random.default_rng(batch)
    x, w = generator.standard_normal((batch, 8), np.float32), generator.standard_normal(8, np.float32)
    h = generator.standard_normal((batch, 8), np.float32).astype(ml_dtypes.bfloat16)
    half = h if framework == "numpy" else torch.from_numpy(h.view(np.int16)).view(torch.bfloat16)
    taken = [x, w] if framework == "numpy" else [torch.from_numpy(x), torch.from_numpy(w)]
    found = several.model.run_with_tensors([*taken, half])
    r = np.maximum((x + w) * np.float32(0.5) * np.float32(-3) + w, 0)
    sums = r.sum(1)
    np.testing.assert_allclose(np.asarray(found["r"]), r, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.asarray(found["s"]), -sums, rtol=1e-6)
    assert int(found["n"]) == (sums >= 1.5).sum()
    np.testing.assert_array_equal(np.asarray(found["c"]), np.asarray(found["r"]).T)
    bits = found["m"].view(torch.int16).numpy() if framework == "torch" else found["m"].view(np.int16)
    np.testing.assert_array_equal(bits, np.abs(h).view(np.int16))


def test_passes_keep_its_meaning(kernels: KernelLibrary, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ait_mlir.tools import ait_opt

    (tmp_path / "several.mlir").write_text(SEVERAL)
    passes = 'simplify,fuse-elementwise,resolve-libraries,select{target="cpu"},bufferize,remove-copies,lower-copies'
    passes += ",plan-memory,verify-plan"
    assert ait_opt.main([str(tmp_path / "several.mlir"), "-p", passes, "--check-semantics"]) == 0
    found = capsys.readouterr()
    told = re.search(r"semantics: (\d+) evaluations compared, no difference", found.out + found.err)
    assert told is not None and int(told[1]) > 20
    assert f'sha256 "{kernels.sha256}"' in found.out


def test_the_reference_says_what_it_cannot_call(
    kernels: KernelLibrary, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library with code for a GPU is not called on the CPU."""
    from ait_mlir.tools import ait_opt

    gpu = tmp_path / "gpu_kernels.so"
    gpu.write_bytes(kernels.path.read_bytes() + b".nv_fatbin\0")
    monkeypatch.setenv("AIT_KERNEL_PATH", str(tmp_path))
    (tmp_path / "f.mlir").write_text(graph("@gpu_kernels", "scale"))
    ait_opt.main([str(tmp_path / "f.mlir"), "-p", 'resolve-libraries,select{target="cuda"}', "--check-semantics"])
    found = capsys.readouterr()
    assert "kernel library 'gpu_kernels' holds code for a GPU" in found.out + found.err


def graph(library: str, function: str, arguments: str = "%x", result: str = "b x 4 x f32") -> str:
    return f"""
ait.graph @f(%x: !ait.tensor<b x 4 x f32>) dims {{b = 1 to 4}} {{
  %y = ait.call_ffi {library} "{function}"({arguments}) : !ait.tensor<{result}>
  ait.output "y" %y : !ait.tensor<{result}>
}}
"""


@pytest.mark.parametrize(
    "call, told",
    [
        (
            ("@kernels", "square_root"),
            "function 'square_root' of kernel library 'kernels' raised ValueError: element 1 is -1",
        ),
        (("@kernels", "returns_status"), "returned status 7"),
        (("@kernels", "returns_tensor"), "returned a ffi.Tensor, expected nothing"),
        (("@kernels", "throws_other"), "not an error of tvm-ffi"),
        (("@kernels", "too_few"), "Expected 1 but got 2 arguments"),
        (("@kernels", "absolute_bf16"), "x is float32, expected bfloat16; it was"),
        (("@kernels", "scale", "%x, none, true, 7"), "Expected 4 but got 5 arguments"),
        (("@kernels", "scale", "%x, 3, 0.5"), "argument #1"),
    ],
    ids=["throws", "status", "tensor", "other", "few", "dtype", "many", "kind"],
)
def test_a_function_that_fails(kernels: KernelLibrary, tmp_path: Path, call: tuple[str, ...], told: str) -> None:
    """The error names function and library, says why, and what it was given; the model can be used after it."""
    model = compile_graph(graph(*call), tmp_path).model
    x = np.array([[4, -1, 0, 1]], np.float32) * np.array([[-1 if call[1] == "returns_status" else 1]], np.float32)
    out = np.zeros((1, 4), np.float32)
    for _ in range(2):
        with pytest.raises(RunError) as error:
            model.run([x], [out])
        text = str(error.value)
        assert text.startswith("model f failed: function ") and told in text
        assert "it was given (float32[1, 4], " in text and text.endswith(" on cpu")
    if call[1] in ("square_root", "returns_status"):
        model.run([np.abs(x)], [out])
        np.testing.assert_array_equal(out, np.sqrt(abs(x)) if call[1] == "square_root" else abs(x))


def test_a_function_that_asks_for_another_rank(kernels: KernelLibrary, tmp_path: Path) -> None:
    text = graph("@kernels", "scale", "%v, none, 0.5", "(4*b) x f32").replace(
        "  %y", "  %v = ait.reshape %x : !ait.tensor<(4*b) x f32>\n  %y"
    )
    model = compile_graph(text, tmp_path).model
    with pytest.raises(
        RunError, match=r"x has rank 1, expected 2; it was given \(float32\[8\], none, 0.5, float32\[8\]\) on cpu"
    ):
        model.run([np.zeros((2, 4), np.float32)], [np.zeros(8, np.float32)])


def test_functions_of_the_process(tmp_path: Path) -> None:
    """A Python function as a kernel, from text and from the builder; a model whose function is missing is refused."""
    calls: list[tuple[int, ...]] = []

    @tvm_ffi.register_global_func("tests.double", override=True)
    def double(x: tvm_ffi.Tensor, rows: int, y: tvm_ffi.Tensor) -> None:
        calls.append((rows, *x.shape))
        np.from_dlpack(y)[...] = 2 * np.from_dlpack(x)

    model = compile_graph(graph("", "tests.double", "%x, (b)"), tmp_path / "a").model
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(model.run_with_tensors([x])["y"], 2 * x)
    assert calls == [(2, 2, 4)]

    @tvm_ffi.register_global_func("tests.raises", override=True)
    def raises(x: tvm_ffi.Tensor, y: tvm_ffi.Tensor) -> None:
        raise ValueError("I do not like it")

    model = compile_graph(graph("", "tests.raises"), tmp_path / "b").model
    with pytest.raises(RunError, match=r"function 'tests.raises' raised ValueError: I do not like it; it was given"):
        model.run_with_tensors([x])
    with pytest.raises(ArtifactError, match=r"model f cannot be loaded: no function 'tests.missing' is registered"):
        compile_graph(graph("", "tests.missing"), tmp_path / "c")


def test_from_the_builder(kernels: KernelLibrary, tmp_path: Path) -> None:
    batch = IntVar([1, 4], name="batch")
    x = Tensor(shape=[batch, 4], dtype="float32", name="x", is_input=True)
    bias = Tensor(shape=[4], dtype="float32", name="bias")
    y = ops.call_ffi("kernels", "scale")(x, bias, 2.0, outputs=[(x.shape(), "float32")])
    call_ffi = ops.call_ffi
    sums, count = call_ffi("kernels", "row_sums", workspace=batch * 4)(
        call_ffi.RESULT, y, call_ffi.WORKSPACE, call_ffi.RESULT, 0.0, batch, False, "sum",
        outputs=[([batch], "float32"), ([], "int32")],
    )  # fmt: skip
    for name, tensor in {"y": y, "sums": sums, "count": count}.items():
        tensor._attrs["name"], tensor._attrs["is_output"] = name, True
    b = np.float32([1, 2, 3, 4])
    model = compile_model([y, sums, count], "cpu", str(tmp_path), "called", constants={"bias": b})
    a = np.ones((3, 4), np.float32)
    found = model.run_with_tensors([a])
    np.testing.assert_array_equal(found["y"], 2 * a + b)
    np.testing.assert_array_equal(found["sums"], (2 * a + b).sum(1))
    assert int(found["count"]) == 3


def test_wrong_calls_of_the_builder() -> None:
    x = Tensor(shape=[4], dtype="float32", name="x", is_input=True)
    with pytest.raises(BuildError, match=r"call_ffi.*outputs are \[\], expected a list of pairs"):
        ops.call_ffi("kernels", "scale")(x, outputs=[])
    with pytest.raises(BuildError, match="'result' stands 1 times"):
        ops.call_ffi(None, "f")(x, ops.call_ffi.RESULT, outputs=[([4], "float32")] * 2)
    with pytest.raises(BuildError, match="beyond 64 bits"):
        ops.call_ffi(None, "f")(x, 1 << 70, outputs=[([4], "float32")])
    with pytest.raises(BuildError, match="arguments must be"):
        ops.call_ffi(None, "f")(x, [1], outputs=[([4], "float32")])  # type: ignore[arg-type]


# ** libraries **


def compiled(folder: Path, text: str, **options: bool) -> Path:
    (folder / "f.mlir").write_text(text)
    module, source = read_module(folder / "f.mlir")
    return compile_module(module, CompileOptions(**options), output=folder / "f.ait", source=source)


def run(path: Path) -> None:
    with Model(path) as model:
        found = model.run_with_tensors([np.full((2, 4), 4, np.float32)])["y"]
    np.testing.assert_array_equal(found, np.full((2, 4), 2, np.float32))


@pytest.fixture
def mine(kernels: KernelLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the library, in a folder of `AIT_KERNEL_PATH`, as @mine."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    copy = folder / "libmine.so"
    copy.write_bytes(kernels.path.read_bytes() + tmp_path.name.encode())  # a hash of its own
    monkeypatch.setenv("AIT_KERNEL_PATH", f"{tmp_path / 'nothing'}:{folder}")
    return copy


def test_an_artifact_stores_its_libraries(mine: Path, tmp_path: Path) -> None:
    path = compiled(tmp_path, graph("@mine", "square_root"))
    mine.unlink()
    run(path)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(
        ArtifactError, match=r"part 'kernel_library.[0-9a-f]{64}' does not have the hash in the manifest"
    ):
        Model(path)


def test_an_artifact_refers_to_libraries(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compiled(tmp_path, graph("@mine", "square_root"), store_kernel_libraries=False)
    assert path.stat().st_size < mine.stat().st_size
    run(path)
    moved = tmp_path / "elsewhere.so"
    shutil.move(mine, moved)
    with pytest.raises(
        ArtifactError, match=r"calls kernel library 'mine', which is not in the artifact and not at .*libmine.so"
    ):
        Model(path)
    monkeypatch.setattr(kernel_libraries, "_named", {})
    add_kernel_library("mine", moved)
    run(path)
    write_atomic(moved, moved.read_bytes() + b"changed")  # a new file: the old one is loaded
    with pytest.raises(
        ArtifactError, match=r"'mine' with SHA-256 [0-9a-f]{64}, but .*elsewhere.so has [0-9a-f]{64}: use the"
    ):
        Model(path)


def test_a_library_or_function_that_is_not_there(mine: Path, tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match=r"f.mlir:3:\d+: error: .*there is no kernel library 'other'.*\n.*other.so"
    ) as error:
        compiled(tmp_path, graph("@other", "f"))
    assert "libother.so" in str(error.value)
    with pytest.raises(
        SourceError, match=r"f.mlir:3:\d+: error: .*has no function 'cube_root'; it has absolute_bf16, attributes"
    ):
        compiled(tmp_path, graph("@mine", "cube_root"))
    pinned = graph("@mine", "square_root").replace(
        " : !ait.tensor<b x 4 x f32>\n  ait", f' sha256 "{"0" * 64}" : !ait.tensor<b x 4 x f32>\n  ait'
    )
    with pytest.raises(SourceError, match=rf"has SHA-256 [0-9a-f]{{64}}, expected {'0' * 64}"):
        compiled(tmp_path, pinned)
    assert not (tmp_path / "f.ait").exists()


def test_files_that_are_no_kernel_libraries(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    for path, told in ((tmp_path / "text.so", "is no shared library"), (tmp_path / "none.so", "there is no file")):
        with pytest.raises(InputError, match=f"kernel library 'bad': .*{told}"):
            add_kernel_library("bad", path)
    with pytest.raises(InputError, match="exports no function through tvm-ffi"):
        add_kernel_library("bad", Path(shutil.which("true") or "/bin/true"))
    with pytest.raises(InputError, match="cannot be the name of a kernel library"):
        add_kernel_library("a:b", tmp_path / "text.so")
    with pytest.raises(InputError, match="there is no kernel library 'bad'"):
        find_kernel_library("bad")


@pytest.mark.parametrize("name", ["ffi.ModuleLoadFromFile", "testing.echo", "runtime.GetDevice"])
def test_functions_of_tvm_ffi_itself_are_not_callable(tmp_path: Path, name: str) -> None:
    """They are registered in the process as functions of the user are; some of them load files."""
    with pytest.raises(SourceError, match=rf"function '{name}' is one of tvm-ffi's own, which programs may not call"):
        compile_graph(graph("", name), tmp_path)
    op = CallFfiOp.make(None, name, [1], [])
    with pytest.raises(EvaluationError, match=r"is one of tvm-ffi's own"):
        foreign_function(op)
