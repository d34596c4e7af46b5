"""Convolutions of few channels, filled for tensor cores: the same values where all is finite, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.driver import run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.options import CompileOptions
from ait_mlir.reference.graph import evaluate_graph
from ait_mlir.rewrites.apply import rewrite
from ait_mlir.rewrites.families import pattern_set

STEM = """builtin.module {{
  ait.graph @stem(%x: !ait.tensor<{x} x f16>) dims {{n = 1 to 3}} {{
    %w = ait.param "w" : !ait.tensor<{w} x f16>
    %0 = ait.conv %x, %w {clauses} : !ait.tensor<{y} x f16>
    ait.output "y" %0 : !ait.tensor<{y} x f16>
  }}
}}
"""
WINDOWS = {
    "resnet": ("n x 16 x 24 x 3", "8 x 7 x 7 x 3", "stride [2, 2] pad [3, 3]", "n x 8 x 12 x 8"),
    "mobile": ("n x 16 x 24 x 3", "8 x 3 x 3 x 3", "stride [2, 2] pad [1, 1]", "n x 8 x 12 x 8"),
    "uneven": ("n x 6 x 10 x 2", "5 x 2 x 5 x 2", "stride [2, 2] pad [1, 0, 3, 3]", "n x 5 x 5 x 5"),
    "gray": ("n x 6 x 8 x 1", "4 x 4 x 3 x 1", "stride [2, 2] pad [2, 1]", "n x 4 x 4 x 4"),
}


def module_of(name: str) -> ModuleOp:
    x, w, clauses, y = WINDOWS[name]
    return parse_text(context(), STEM.format(x=x, w=w, clauses=clauses, y=y))


def values(module: ModuleOp) -> np.ndarray:
    graph = next(op for op in module.ops if isinstance(op, GraphOp))
    rng = np.random.default_rng(0)
    (x,), (param,) = graph.block.args, graph.params()
    image = rng.standard_normal([d.evaluate({"n": 2}) for d in tensor_type(x).dims])
    weight = rng.standard_normal([d.as_int() or 0 for d in tensor_type(param.output).dims])
    assert BY_IR[tensor_type(x).element_type].name == "float16"
    return evaluate_graph(graph, {"x": image}, {"w": weight}, {"n": 2})["y"]


@pytest.mark.parametrize("name", WINDOWS)
def test_blocks_compute_the_same(name: str) -> None:
    before, after = module_of(name), module_of(name)
    rewrite(after, pattern_set("conv:BLOCKS"))
    assert "x 16 x f16>" in str(after) and "stride" not in str(after)
    np.testing.assert_allclose(values(after), values(before), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("target", "arch", "known", "assumed", "channels"),
    [
        ("cuda", "sm_90a", ["w"], True, "x 16 x f16>"),
        ("cuda", "sm_90a", ["w"], False, "x 24 x 8 x f16>"),
        ("cuda", "sm_90a", [], True, "x 24 x 3 x f16>"),
        ("rocm", "gfx90a", ["w"], True, "x 24 x 3 x f16>"),
        ("cpu", "", ["w"], True, "x 24 x 3 x f16>"),
    ],
)
def test_where_channels_are_filled(target: str, arch: str, known: list[str], assumed: bool, channels: str) -> None:
    text = str(module_of("resnet"))
    if assumed:
        text = text.replace("builtin.module {", 'builtin.module attributes {ait.assumes = ["finite_images"]} {')
    module = parse_text(context(), text)
    run_to_phase(module, "fused", CompileOptions(target, arch), known=known)
    conv = next(line for line in str(module).splitlines() if "ait.conv" in line)
    source = conv.split("ait.conv ")[1].split(",")[0]
    made = [line for line in str(module).splitlines() if f"{source} = " in line or f"{source}: " in line]
    assert any(channels in line for line in made), made
