"""An instance of a template is compiled once: functions that call it share a file, or read sizes from a struct."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ait_mlir.driver import compile_module, emit, run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.kernels.gemm_hopper import HopperTile
from ait_mlir.lowering.kernels.gemm_tiles import GemmTile
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from ait_mlir.selection.meter import plan

MODULE = """
ait.graph @layers(%x: !ait.tensor<batch x 16 x f32>) dims {batch = 1 to 8} {
  %w0 = ait.param "w0" : !ait.tensor<24 x 16 x f32>
  %w1 = ait.param "w1" : !ait.tensor<8 x 24 x f32>
  %w2 = ait.param "w2" : !ait.tensor<16 x 8 x f32>
  %a = ait.gemm rcr %x, %w0 : !ait.tensor<batch x 24 x f32>
  %b = ait.relu %a : !ait.tensor<batch x 24 x f32>
  %c = ait.gemm rcr %b, %w1 : !ait.tensor<batch x 8 x f32>
  %d = ait.relu %c : !ait.tensor<batch x 8 x f32>
  %e = ait.gemm rcr %d, %w2 : !ait.tensor<batch x 16 x f32>
  ait.output "y" %e : !ait.tensor<batch x 16 x f32>
}
"""


def test_products_that_differ_in_sizes_alone_share_a_file(tmp_path):
    module = parse_text(context(), MODULE)
    code = emit(run_to_phase(module.clone(), "planned"))
    functions = [
        set(re.findall(r'extern "C" int32_t (\w+)\(', text))
        for name, text in code.joined().items()
        if name.startswith("k")
    ]
    assert sorted(len(found) for found in functions) == [1, 2]  # without and with a relu
    assert set().union(*functions) == {name.removesuffix(".cc") for name in code.files if name.startswith("k_")}
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal(s, np.float32) for n, s in (("w0", (24, 16)), ("w1", (8, 24)), ("w2", (16, 8)))}
    x = rng.standard_normal((3, 16), np.float32)
    path = compile_module(module, constants=weights, output=tmp_path / "m.ait")
    with Model(path) as model:
        found = model.run_with_tensors({"x": x})["y"]
    hidden = np.maximum(np.maximum(x @ weights["w0"].T, 0) @ weights["w1"].T, 0)
    np.testing.assert_allclose(found, hidden @ weights["w2"].T, rtol=1e-4, atol=1e-4)


SIZES = """
ait.graph @layers(%x: !ait.tensor<{m} x {k} x f16>) {{
  %w = ait.param "w" : !ait.tensor<{n} x {k} x f16>
  %a = ait.gemm rcr %x, %w : !ait.tensor<{m} x {n} x f16>
  %b = ait.reduce sum %a dims [1] : !ait.tensor<{m} x f16>
  ait.output "y" %b : !ait.tensor<{m} x f16>
}}
"""


@pytest.mark.parametrize("provider", ["hopper", "native"])
def test_sizes_are_arguments_of_gpu_kernels(provider):
    """The files of a GPU's products are the same for all sizes, so that an object in the cache serves any network."""
    files: list[dict[str, str]] = []
    for m, n, k in ((64, 128, 256), (1, 40, 64), (300, 4096, 1024)):
        module = run_to_phase(parse_text(context(), SIZES.format(m=m, n=n, k=k)), "selected", CompileOptions("cuda"))
        for op in module.walk():
            if op.name == "ait.gemm":
                config = HopperTile(64, 64, 8, 1, 1, 1) if provider == "hopper" else GemmTile(64, 64, 64, 2, 2, 4, 3)
                op.attributes["kernel"] = Candidate.of(None, [(provider, config.config())]).attrs()[0]
            elif op.name == "ait.reduce":
                op.attributes["kernel"] = Candidate.of(None, [("split", {})]).attrs()[0]
        plan(module)
        files.append(emit(module).files)
    programs = [found.pop("program.cc") for found in files]
    assert (
        files[0] == files[1] == files[2] and sum(name.endswith(".cu") for name in files[0]) == 4
    )  # a product, both launches of the reduction, and copies of the tensors
    for text, (m, n, k) in zip(programs, ((64, 128, 256), (1, 40, 64), (300, 4096, 1024)), strict=True):
        assert f"  sizes.m = {m};\n  sizes.n = {n};\n  sizes.k = {k};\n  sizes.outer = 1;\n" in text


def test_a_function_is_called_with_the_sizes_of_each_launch():
    text = """
    ait.graph @g(%x: !ait.tensor<m x 64 x f16>) dims {m = 1 to 64} {
      %w = ait.param "w" : !ait.tensor<64 x 64 x f16>
      %v = ait.param "v" : !ait.tensor<32 x 64 x f16>
      %a = ait.gemm rcr %x, %w : !ait.tensor<m x 64 x f16>
      %b = ait.gemm rcr %a, %w : !ait.tensor<m x 64 x f16>
      %c = ait.gemm rcr %b, %v : !ait.tensor<m x 32 x f16>
      ait.output "y" %c : !ait.tensor<m x 32 x f16>
    }
    """
    module = run_to_phase(parse_text(context(), text), "selected", CompileOptions("cuda"))
    tile = HopperTile(64, 64, 8, 1, 1, 1)
    for op in module.walk():
        if op.name == "ait.gemm":
            op.attributes["kernel"] = Candidate.of(None, [("hopper", tile.config())]).attrs()[0]
    plan(module)
    files = emit(module).files
    assert len(files) == 4  # the program, one kernel, its sizes, and copies of the tensors
    (name,) = [n.removesuffix(".cu") for n in files if n.startswith("k_")]
    assert re.findall(rf"int32_t ({name}_\d)\(", files["program.cc"]) == [f"{name}_0", f"{name}_1"]
    assert re.findall(rf"status = {name}_(\d)\(", files["program.cc"]) == ["0", "0", "1"]
    for n in (64, 32):
        assert f"  sizes.m = dim_0;\n  sizes.n = {n};\n  sizes.k = 64;\n" in files["program.cc"]


def test_no_variable_of_a_dim_hides_a_type_of_cuda():
    sizes = " x ".join("abcde")
    text = f"""
    ait.graph @g(%x: !ait.tensor<{sizes} x f16>) dims {{{", ".join(f"{d} = 1 to 8" for d in "abcde")}}} {{
      %y = ait.loops(%x) for (i = a, j = b, k = c, l = d, m = e) {{
      ^bb0(%t: !ait.tensor<{sizes} x f16>):
        %v = ait.at %t[i, j, k, l, (e - m) - 1] : f32
        ait.yield %v : f32
      }} : !ait.tensor<{sizes} x f16>
      ait.output "y" %y : !ait.tensor<{sizes} x f16>
    }}
    """
    files = emit(run_to_phase(parse_text(context(), text), "planned", CompileOptions("cuda"))).files
    (code,) = [text for name, text in files.items() if name.startswith("k_")]
    assert "config.grid = dim3(" in code
    names = re.findall(r"int64_t (\w+)[,)]", code)
    assert len(names) == 5 and "dim3" not in names
