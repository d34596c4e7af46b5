"""Kernel libraries on a card: tvm-ffi's guide, foreign kernels in a graph, exported models, beside PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tvm_ffi

from ait_mlir.driver import compile_module, read_module
from ait_mlir.errors import RunError
from ait_mlir.export import export_kernels, export_module
from ait_mlir.host.cache import cache_dir
from ait_mlir.host.kernel_libraries import KernelLibrary, add_kernel_library
from ait_mlir.options import CompileOptions
from ait_mlir.runtime.model import Model

pytestmark = pytest.mark.gpu


def build(name: str, source: str, **options: Any) -> str:
    import tvm_ffi.cpp

    folder = cache_dir() / name
    folder.mkdir(exist_ok=True)
    files = {"cuda_files" if source.endswith(".cu") else "cpp_files": [str(Path(__file__).with_name(source))]}
    return tvm_ffi.cpp.build(name, build_directory=str(folder), **files, **options)


@pytest.fixture(scope="module")
def kernels() -> KernelLibrary:
    """`tests/gpu/kernel_library.cu`, as @gpu_kernels."""
    return add_kernel_library("gpu_kernels", build("gpu_kernels", "kernel_library.cu"))


@pytest.fixture(scope="module")
def library(kernels: KernelLibrary) -> Any:
    return tvm_ffi.load_module(str(kernels.path))


# ** the guide **


def test_from_nd_alloc(library: Any) -> None:
    x = torch.randn(100, 7, device="cuda")
    before = torch.cuda.memory_allocated()
    y = library.nd_alloc(x)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before  # not PyTorch's memory
    torch.testing.assert_close(y if isinstance(y, torch.Tensor) else torch.from_dlpack(y), x)


def test_from_env_alloc_uses_the_caching_allocator(library: Any) -> None:
    x = torch.randn(1 << 20, device="cuda")
    before = torch.cuda.memory_allocated()
    y = library.env_alloc(x)
    assert isinstance(y, torch.Tensor) and torch.cuda.memory_allocated() - before >= 4 << 20
    assert torch.equal(x, y)


def test_the_stream_is_that_of_the_framework(library: Any) -> None:
    x = torch.zeros(1, device="cuda")
    assert library.stream(x) == torch.cuda.current_stream().cuda_stream
    with torch.cuda.stream(torch.cuda.Stream()) as stream:
        del stream
        assert library.stream(x) == torch.cuda.current_stream().cuda_stream != 0


def test_the_environment_is_that_of_aten() -> None:
    """`FromEnvAlloc` beside `at::empty`, `TVMFFIEnvGetStream` beside `at::cuda::getCurrentCUDAStream`."""
    from torch.utils.cpp_extension import include_paths, library_paths

    from ait_mlir.lowering.toolchain import cuda_home

    folders = library_paths()
    library = tvm_ffi.load_module(
        build(
            "guide_aten",
            "guide_aten.cc",
            extra_cflags=["-std=c++20"],
            extra_include_paths=[*include_paths(), str(cuda_home() / "include")],
            extra_ldflags=[
                *(f"-L{f}" for f in folders),
                *(f"-Wl,-rpath,{f}" for f in folders),
                "-lc10",
                "-lc10_cuda",
                "-ltorch_cpu",
            ],
        )
    )
    x = torch.zeros(3, 4, device="cuda")
    assert library.func(x) and library.streams(x)
    with torch.cuda.stream(torch.cuda.Stream()):
        assert library.streams(x)


# ** in a graph **

CALLS = """
ait.graph @f(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<8 x f32>) dims {b = 1 to 64} {
  %a = ait.add %x, %w : !ait.tensor<b x 8 x f32>
  %y = ait.call_ffi @gpu_kernels "scale"(%a, none, 0.5) : !ait.tensor<b x 8 x f32>
  %z = ait.call_ffi @gpu_kernels "scale"(%y, %w, 3) : !ait.tensor<b x 8 x f32>
  %r = ait.relu %z : !ait.tensor<b x 8 x f32>
  ait.output "r" %r : !ait.tensor<b x 8 x f32>
}
"""


def compiled(folder: Path, text: str) -> Model:
    (folder / "f.mlir").write_text(text)
    module, source = read_module(folder / "f.mlir")
    return Model(compile_module(module, CompileOptions("cuda"), output=folder / "f.ait", source=source))


def expected(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu((x + w) * 0.5 * 3 + w)


def test_foreign_kernels_in_a_graph(kernels: KernelLibrary, tmp_path: Path) -> None:
    """Plain and recorded, on the default stream and on another one: foreign kernels are part of the recorded graph."""
    with compiled(tmp_path, CALLS) as model:
        x, w, r = torch.empty(6, 8, device="cuda"), torch.empty(8, device="cuda"), torch.empty(6, 8, device="cuda")
        for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
            with torch.cuda.stream(stream):
                for graph_mode in (False, True, True, True, True):
                    x.normal_()
                    w.normal_()
                    model.run_with_tensors([x, w], [r], graph_mode=graph_mode)
                    torch.testing.assert_close(r, expected(x, w), rtol=1e-5, atol=1e-5)
        assert model.graph_stats()["hits"] >= 2 and model.graph_stats()["fallbacks"] == 0


def test_a_function_that_allocates_is_not_recorded(kernels: KernelLibrary, tmp_path: Path) -> None:
    """A graph would use the memory after it was freed, so the runs are launched anew."""
    text = CALLS.replace('"scale"(%a, none, 0.5)', '"through_temporary"(%a)')
    with compiled(tmp_path, text) as model:
        x, w, r = torch.randn(6, 8, device="cuda"), torch.randn(8, device="cuda"), torch.empty(6, 8, device="cuda")
        for _ in range(5):
            x.normal_()
            model.run([x, w], [r], torch.cuda.current_stream().cuda_stream, graph_mode=True)
            torch.testing.assert_close(r, torch.relu((x + w) * 4 * 3 + w), rtol=1e-5, atol=1e-5)
        stats = model.graph_stats()
        assert stats["fallbacks"] >= 3 and stats["hits"] == 0


def test_a_function_that_asks_for_another_device(kernels: KernelLibrary, tmp_path: Path) -> None:
    text = CALLS.replace('"scale"(%a, none, 0.5)', '"wants_cpu"(%a)')
    with compiled(tmp_path, text) as model:
        x, w, r = torch.randn(2, 8, device="cuda"), torch.randn(8, device="cuda"), torch.empty(2, 8, device="cuda")
        for _ in range(2):
            with pytest.raises(RunError, match=r"x is on device type 2, expected the CPU; it was given .* on cuda:0"):
                model.run([x, w], [r])
    torch.cuda.synchronize()


# ** exported **

TINY = """
ait.graph @tiny(%x: !ait.tensor<b x 64 x f16>) dims {b = 1 to 64} {
  %w = ait.param "w" : !ait.tensor<128 x 64 x f16>
  %g = ait.gemm rcr %x, %w : !ait.tensor<b x 128 x f16>
  %r = ait.relu %g : !ait.tensor<b x 128 x f16>
  %s = ait.softmax %r dim 1 : !ait.tensor<b x 128 x f16>
  ait.output "y" %s : !ait.tensor<b x 128 x f16>
}
"""


def test_an_exported_model(tmp_path: Path) -> None:
    """On PyTorch's current stream, into tensors of the caller or of the caching allocator, in a graph of PyTorch's."""
    (tmp_path / "tiny.mlir").write_text(TINY)
    module, source = read_module(tmp_path / "tiny.mlir")
    w = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float16)
    path = export_module(module, CompileOptions("cuda"), output=tmp_path / "tiny.so", constants={"w": w}, source=source)
    tiny = tvm_ffi.load_module(str(path)).tiny
    weight = torch.from_numpy(w).cuda()

    def want(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.relu(x @ weight.T), 1)

    x, y = (
        torch.randn(5, 64, device="cuda", dtype=torch.float16),
        torch.empty(5, 128, device="cuda", dtype=torch.float16),
    )
    tiny(x, y)
    torch.testing.assert_close(y, want(x), rtol=1e-2, atol=1e-3)
    assert isinstance(tiny(x), torch.Tensor)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x.normal_()
        torch.testing.assert_close(tiny(x), want(x), rtol=1e-2, atol=1e-3)
        tiny(x, y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tiny(x, y)
    x.normal_()
    graph.replay()
    torch.testing.assert_close(y, want(x), rtol=1e-2, atol=1e-3)
    with pytest.raises(ValueError, match="input 'x'"):
        tiny(x.cpu(), y)


def test_exported_kernels(tmp_path: Path) -> None:
    (tmp_path / "tiny.mlir").write_text(TINY)
    module, source = read_module(tmp_path / "tiny.mlir")
    path, left_out = export_kernels(module, CompileOptions("cuda"), output=tmp_path / "kernels.so", source=source)
    assert left_out == {}
    kernels = tvm_ffi.load_module(str(path))
    x, w = (torch.randn(n, 64, device="cuda", dtype=torch.float16) for n in (5, 128))
    h = kernels.gemm_rcr_relu_0(x, w)
    torch.testing.assert_close(h, torch.relu(x @ w.T), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(kernels.softmax_1(h), torch.softmax(h, 1), rtol=1e-2, atol=1e-3)
