"""Exported libraries of models that call kernel libraries: they hold these, too."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tvm_ffi
import tvm_ffi.cpp

from ait_mlir.driver import read_module
from ait_mlir.export import export_kernels
from ait_mlir.host.kernel_libraries import KernelLibrary, add_kernel_library
from tests.ffi.test_export import exported

CALLED = """
ait.graph @called(%x: !ait.tensor<b x 8 x f32>) dims {b = 0 to 6} {
  %w = ait.param "w" : !ait.tensor<8 x f32>
  %a = ait.add %x, %w : !ait.tensor<b x 8 x f32>
  %y = ait.call_ffi @kernels "scale"(%a, %w, 0.5) : !ait.tensor<b x 8 x f32>
  %c = ait.call_ffi @kernels "through_temporary"(%y) : !ait.tensor<b x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 8 x f32>
  ait.output "c" %c : !ait.tensor<b x 8 x f32>
}
"""
W = np.arange(8, dtype=np.float32)


@pytest.fixture(scope="module")
def path(kernels: KernelLibrary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(tmp_path_factory.mktemp("called"), CALLED, w=W)


@pytest.mark.parametrize("batch", [0, 1, 6])
def test_calls_of_every_framework(path: Path, batch: int) -> None:
    """Params, a dynamic dim of 0, two outputs, and a function that allocates."""
    import jax.numpy as jnp

    called = tvm_ffi.load_module(str(path)).called
    x = np.random.default_rng(batch).standard_normal((batch, 8), np.float32)
    expected = (x + W) * np.float32(0.5) + W
    y, c = np.empty_like(x), np.empty_like(x)
    called(x, y, c)
    results: list[Any] = [(y, c), called(x), called(torch.from_numpy(x)), called(jnp.asarray(x))]
    for result in results:
        for found in result:
            np.testing.assert_allclose(np.from_dlpack(found), expected, rtol=1e-6, atol=1e-6)


def test_the_file_alone_is_enough(path: Path, tmp_path: Path) -> None:
    """Another folder, and a process that knows neither the package nor where the kernel library is."""
    shutil.copy(path, tmp_path / "copy.so")
    program = (
        "import sys, numpy as np, tvm_ffi\n"
        "y, c = np.empty((2, 8), np.float32), np.empty((2, 8), np.float32)\n"
        "tvm_ffi.load_module(sys.argv[1]).called(np.ones((2, 8), np.float32), y, c)\n"
        "files = {line.split(maxsplit=5)[-1].strip() for line in open('/proc/self/maps')}\n"
        "assert not [file for file in files if file.endswith('kernels.so')]\n"
        "print(y[1], (y == c).all())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "copy.so")]
    ran = subprocess.run(command, capture_output=True, text=True, cwd="/", env={}, check=True)
    assert ran.stdout == "[ 0.5  2.   3.5  5.   6.5  8.   9.5 11. ] True\n"


def test_a_damaged_kernel_library_is_refused(path: Path, kernels: KernelLibrary, tmp_path: Path) -> None:
    content = bytearray(path.read_bytes())
    begin = content.find(kernels.path.read_bytes())
    assert begin > 0
    content[begin + 100] ^= 1
    (tmp_path / "damaged.so").write_bytes(content)
    damaged = tvm_ffi.load_module(str(tmp_path / "damaged.so"))
    with pytest.raises(RuntimeError, match="is damaged"):
        damaged.called(np.ones((1, 8), np.float32))


def test_two_exported_libraries_keep_their_own(path: Path, tmp_path: Path) -> None:
    """A second library with a function of the same name is not taken for the first one."""
    source = tmp_path / "other.cc"
    source.write_text(
        "#include <tvm/ffi/container/tensor.h>\n#include <tvm/ffi/function.h>\n"
        "void scale(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {\n"
        "  for (int64_t i = 0; i < x.numel(); ++i)\n"
        "    static_cast<float*>(y.data_ptr())[i] = static_cast<float*>(x.data_ptr())[i] + 100;\n}\n"
        "TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, scale);\n"
    )
    built = tvm_ffi.cpp.build("other", cpp_files=[str(source)], build_directory=str(tmp_path), extra_cflags=["-O0"])
    add_kernel_library("other", built)
    text = """ait.graph @second(%x: !ait.tensor<4 x f32>) {
      %y = ait.call_ffi @other "scale"(%x) : !ait.tensor<4 x f32>
      ait.output "y" %y : !ait.tensor<4 x f32>
    }"""
    first, second = (tvm_ffi.load_module(str(p)) for p in (path, exported(tmp_path, text)))
    x = np.ones((1, 8), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(np.from_dlpack(second.second(x[0, :4])), np.full(4, 101, np.float32))
        np.testing.assert_allclose(np.from_dlpack(first.called(x)[0])[0], (1 + W) * 0.5 + W)


def test_kernels_that_call_libraries(kernels: KernelLibrary, tmp_path: Path) -> None:
    (tmp_path / "called.mlir").write_text(CALLED)
    module, source = read_module(tmp_path / "called.mlir")
    path, _ = export_kernels(module, output=tmp_path / "kernels.so", source=source)
    functions = tvm_ffi.load_module(str(path))
    name = next(n for n in ("call_ffi_1", "call_ffi_scale_1") if hasattr(functions, n))
    x, y = np.ones((2, 8), np.float32), np.empty((2, 8), np.float32)
    getattr(functions, name)(x, W, y)
    np.testing.assert_allclose(y, x * 0.5 + W)
