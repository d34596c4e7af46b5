"""The memory-bound kernels behind the whole pipeline: from text to a loaded model, against the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.driver import compile_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.options import CompileOptions
from ait_mlir.reference.graph import evaluate_graph
from ait_mlir.runtime import Model
from tests.kernels.harness import parse_graph

TORCH = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-20}
DIMS = ({"b": 1, "s": 1}, {"b": 3, "s": 7}, {"b": 8, "s": 64})


def text(t: str) -> str:
    """Embeddings, a norm of their sum, an activation, a softmax over the middle dim, heads, a part of a concat."""
    row = f"!ait.tensor<b x s x 96 x {t}>"
    return f"""
ait.graph @small(%ids: !ait.tensor<b x s x i64>, %r: {row}) dims {{b = 1 to 8, s = 1 to 64}} {{
  %table = ait.param "table" : !ait.tensor<50 x 96 x {t}>
  %g = ait.param "g" : !ait.tensor<96 x {t}>
  %h = ait.param "h" : !ait.tensor<96 x {t}>
  %e = ait.embedding %table, %ids : {row}
  %x = ait.add %e, %r : {row}
  %n = ait.layer_norm %x scale %g bias %h axes 1 eps 1e-05 : {row}
  %a = ait.gelu %n : {row}
  %m = ait.mul %a, %g : {row}
  %p = ait.softmax %m dim 1 : {row}
  %k = ait.reshape %p : !ait.tensor<b x s x 3 x 32 x {t}>
  %y = ait.permute %k [0, 2, 1, 3] : !ait.tensor<b x 3 x s x 32 x {t}>
  %z = ait.concat %n, %x dim 2 : !ait.tensor<b x s x 192 x {t}>
  ait.output "y" %y : !ait.tensor<b x 3 x s x 32 x {t}>
  ait.output "z" %z : !ait.tensor<b x s x 192 x {t}>
}}
"""


def check_pipeline(target: str, t: str, folder: Path) -> None:
    rng = np.random.default_rng(5)
    params = {
        "table": torch.from_numpy(rng.standard_normal((50, 96))).to(TORCH[t]),
        "g": torch.from_numpy(rng.standard_normal(96)).to(TORCH[t]),
        "h": torch.from_numpy(rng.standard_normal(96)).to(TORCH[t]),
    }
    path = compile_module(parse_text(context(), text(t)), CompileOptions(target), output=folder / "small.ait")
    graph = parse_graph(text(t))
    device = "cuda" if target == "cuda" else "cpu"
    with Model(path) as model:
        model.set_constants({name: value.to(device) for name, value in params.items()})
        for dims in DIMS:
            ids = torch.from_numpy(rng.integers(0, 50, (dims["b"], dims["s"])))
            r = torch.from_numpy(rng.standard_normal((dims["b"], dims["s"], 96))).to(TORCH[t])
            outputs = {
                "y": torch.empty((dims["b"], 3, dims["s"], 32), dtype=TORCH[t], device=device),
                "z": torch.empty((dims["b"], dims["s"], 192), dtype=TORCH[t], device=device),
            }
            model.run_with_tensors({"ids": ids.to(device), "r": r.to(device)}, outputs)
            if device == "cuda":
                torch.cuda.synchronize()
            values = {name: value.double().numpy() for name, value in {**params, "r": r}.items()}
            want = evaluate_graph(graph, {"ids": ids.numpy(), "r": values["r"]}, values, dims)
            for name, output in outputs.items():
                error = np.abs(output.double().cpu().numpy() - want[name]).max()
                assert error <= 4 * EPSILON[t] * max(1.0, np.abs(want[name]).max()), name


@pytest.mark.parametrize("t", TORCH)
def test_small_graph(t: str, tmp_path: Path) -> None:
    check_pipeline("cpu", t, tmp_path)
