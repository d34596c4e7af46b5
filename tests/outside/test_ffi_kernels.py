"""Operators whose kernel is a function on tvm-ffi: of a library, and of the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi.cpp

from ait_mlir.errors import AitError
from ait_mlir.frontend import IntVar, Tensor, compile_model
from ait_mlir.operators import (
    Ffi,
    FloatAttr,
    Op,
    TensorType,
    operand_def,
    operator,
    opt_operand_def,
    prop_def,
    result_def,
)
from ait_mlir.runtime import Model

SOURCE = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

namespace ffi = tvm::ffi;

void scale(ffi::TensorView x, ffi::Optional<ffi::Tensor> bias, double factor, ffi::TensorView y) {
  TVM_FFI_CHECK(x.size(0) < 10, ValueError) << "too many rows";
  const float* b = bias.has_value() ? static_cast<const float*>(bias.value().data_ptr()) : nullptr;
  for (int64_t i = 0; i < x.numel(); ++i) {
    static_cast<float*>(y.data_ptr())[i] = static_cast<const float*>(x.data_ptr())[i] * float(factor) + (b ? b[i % x.size(-1)] : 0);
  }
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, scale);
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "outside_kernels.cc").write_text(SOURCE)
    tvm_ffi.cpp.build("outside_kernels", cpp_files=[str(folder / "outside_kernels.cc")], build_directory=str(folder))
    return folder / "outside_kernels.so"


def scaled(kernel: Ffi) -> Any:
    @operator
    class Scaled(Op):
        """x times a factor, plus a bias if there is one."""

        name = "foreign.scaled"

        x = operand_def(TensorType)
        bias = opt_operand_def(TensorType)
        factor = prop_def(FloatAttr)
        y = result_def(TensorType)

        def infer_result_types(self):
            return [self.x.type]

        @staticmethod
        def reference(x, bias, *, factor):
            return x * factor + (0 if bias is None else bias)

        kernels: ClassVar = {"cpu": kernel}

    return Scaled


def model(op: Any, folder: Path) -> Model:
    x = Tensor([IntVar([0, 64], name="n"), 4], dtype="float32", name="x", is_input=True)
    bias = Tensor([4], dtype="float32", name="bias", is_input=True)
    return compile_model(op.on(op.on(x, bias, factor=3), factor=0.5).mark_as_output("y"), "cpu", folder, "scaled")


def check(loaded: Model) -> None:
    x, bias = np.arange(12, dtype=np.float32).reshape(3, 4), np.ones(4, np.float32)
    np.testing.assert_array_equal(loaded.run({"x": x, "bias": bias}, {"y": np.empty_like(x)})["y"], (3 * x + 1) / 2)


@pytest.mark.full
def test_a_function_of_a_library(library: Path, tmp_path: Path):
    loaded = model(scaled(Ffi("scale", path=library)), tmp_path)
    check(loaded)
    many = np.zeros((11, 4), np.float32)
    with pytest.raises(RuntimeError, match=r"raised ValueError: .*too many rows"):
        loaded.run({"x": many, "bias": many[0]}, {"y": np.empty_like(many)})
    check(loaded)
    check(Model(tmp_path / "scaled.ait"))  # which stores the library


def test_a_function_of_the_process(tmp_path: Path):
    @tvm_ffi.register_global_func("tests.outside.scale", override=True)
    def scale(x, bias, factor, y):
        result = np.from_dlpack(x) * np.float32(factor)
        np.from_dlpack(y)[...] = result if bias is None else result + np.from_dlpack(bias)

    check(model(scaled(Ffi("tests.outside.scale")), tmp_path))


def test_a_library_that_is_missing(tmp_path: Path):
    with pytest.raises(AitError, match=r"the kernel of foreign.scaled for cpu: .*nothing.so"):
        model(scaled(Ffi("scale", path=tmp_path / "nothing.so")), tmp_path)


@pytest.mark.full
def test_a_function_that_is_missing(library: Path, tmp_path: Path):
    with pytest.raises(AitError, match=r"outside_kernels.so has no function 'lost'; it has scale"):
        model(scaled(Ffi("lost", path=library)), tmp_path)
