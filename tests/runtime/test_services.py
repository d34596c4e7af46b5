"""Services: what a model library needs is looked up by name and version when it is loaded."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ait_mlir.errors import ArtifactError
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.runtime import Model
from ait_mlir.runtime.loading import runtime_library
from tests.runtime.conftest import SOURCE, B, W, tiny_inputs, tiny_reference

CPU = Target("cpu", "native")
NEWER_GEMM = """
struct newer_gemm {
  static constexpr const char* kName = "gemm";
  static constexpr int32_t kVersion = 9;
  int32_t (*run)(const ait_host_v1* host, const void* args, void* stream);
};
"""


def model_that_calls(include: str, table: str, call: str, definitions: str = "") -> str:
    """The tiny model, which reads a service before it computes."""
    text = SOURCE.read_text().replace("shapes, arena_bytes, run}", "shapes, arena_bytes, run, ait::needed_services}")
    text = text.replace("\nnamespace {\n", f'\n#include "{include}"\n{definitions}\nnamespace {{\n', 1)
    test = f"  if (ait::find_service<{table}>() == nullptr || ait::find_service<{table}>()->{call} == nullptr) "
    return text.replace(
        "  float w, again, b;", test + 'return ctx.fail("the service was not looked up");\n  float w, again, b;'
    )


def test_the_services_of_the_cpu() -> None:
    assert list(runtime_library("cpu").services()) == ["gemm 2", "amx 1", "threads 1", "ffi 1", "ranks 1", "permute 1"]


def test_services_are_there_when_the_model_runs(tmp_path: Path) -> None:
    text = model_that_calls("ait/gemm_service.h", "ait_gemm_service_v2", "run")
    library = build_library({"model.cc": text}, CPU, tmp_path)
    with Model.from_library(library, "cpu", constants={"w": W, "b": B}) as model:
        x, m = tiny_inputs(2, 2)
        assert (model.run_with_tensors([x, m])["y"] == tiny_reference(x, m)[0]).all()


@pytest.mark.parametrize(
    ("include", "table", "definitions", "found"),
    [
        ("ait/conv_service.h", "ait_conv_service_v1", "", '"conv" version 1'),
        ("ait/service.h", "newer_gemm", NEWER_GEMM, '"gemm" version 9'),
    ],
)
def test_a_missing_service_is_named_when_the_model_is_loaded(
    tmp_path: Path, include: str, table: str, definitions: str, found: str
) -> None:
    library = build_library({"model.cc": model_that_calls(include, table, "run", definitions)}, CPU, tmp_path)
    with pytest.raises(ArtifactError) as caught:
        Model.from_library(library, "cpu", constants={"w": W, "b": B})
    assert f"needs the service {found}, which is not in the cpu runtime library (it has gemm 2, amx 1, threads 1, ffi 1, ranks 1, permute 1)" in str(
        caught.value
    )
    assert str(caught.value).endswith("update ait_mlir, or compile the model again")


GEMM = """
#include "ait/gemm_service.h"
#include "gemm.h"
#include <cstdio>
int main() {
  const float scale = 2, numbers[4] = {};
  float out[4];
  ait_gemm_v2 args = {};
  args.batch = 1, args.m = args.n = args.k = 2;
  args.a = {numbers, AIT_F32, 0, 2, 0, nullptr, 0, 0}, args.b = args.a, args.d = {out, AIT_F32, 2, 0, nullptr};
  const auto check = [](const ait_gemm_v2& gemm) {
    ait::runtime::Gemm read;
    std::string error = "accepted";
    (void)ait::runtime::read_gemm(gemm, &read, &error);
    std::puts(error.c_str());
  };
  check(args);
  ait_gemm_v2 mixed = args;
  mixed.b.dtype = AIT_F16;
  check(mixed);
  ait_gemm_v2 scaled = args;
  scaled.a.scale = &scale;
  check(scaled);
  ait_gemm_v2 biased = args;
  biased.epilogue = AIT_EPILOGUE_BIAS;
  check(biased);
}
"""


def test_gemms_that_no_library_computes_are_refused_with_the_reason(tmp_path: Path) -> None:
    root = Path(__file__).parents[2] / "runtime"
    (tmp_path / "main.cc").write_text(GEMM)
    command = ["g++", "-std=c++17", f"-I{root}/include", f"-I{root}/src", "main.cc", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True).stdout.splitlines() == [
        "accepted",
        "the gemm service takes operands and results of one dtype, found a 2, b 0, d 2",
        "the gemm service takes no scales for dtype 2",
        "the gemm service was asked to add a bias, but the bias is null",
    ]
