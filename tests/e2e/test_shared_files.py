"""Kernel functions that call one instance of a template are compiled together."""

from __future__ import annotations

import re

import numpy as np

from ait_mlir.driver import compile_module, emit, run_to_phase
from ait_mlir.ir.parser import parse_text
from ait_mlir.runtime import Model
from ait_mlir.universe import context

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
        if name != "program.cc"
    ]
    assert sorted(len(found) for found in functions) == [1, 2]  # without and with a relu
    assert set().union(*functions) == {name.removesuffix(".cc") for name in code.files if name != "program.cc"}
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal(s, np.float32) for n, s in (("w0", (24, 16)), ("w1", (8, 24)), ("w2", (16, 8)))}
    x = rng.standard_normal((3, 16), np.float32)
    path = compile_module(module, "cpu", constants=weights, output=tmp_path / "m.ait")
    with Model(path) as model:
        found = model.run_with_tensors({"x": x})["y"]
    hidden = np.maximum(np.maximum(x @ weights["w0"].T, 0) @ weights["w1"].T, 0)
    np.testing.assert_allclose(found, hidden @ weights["w2"].T, rtol=1e-4, atol=1e-4)
