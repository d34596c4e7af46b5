"""What the passes make of the examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import passes_between
from benchmarks.rewrites import bert_stack
from tests.rewrites.support import names, parse

EXAMPLES = Path(__file__).parents[2] / "examples"

LAYER = [
    "ait.gemm",  # query, key and value, with biases
    "ait.attention",
    "ait.gemm",  # projection, bias, residual
    "ait.layer_norm",
    "ait.gemm",  # up, bias, gelu
    "ait.gemm",  # down, bias, residual
    "ait.layer_norm",
]


def run(text: str, passes: str) -> ModuleOp:
    module = parse(text)
    run_passes(context(), module, parse_passes(passes))
    check(module)
    return module


def launches(module: ModuleOp) -> list[str]:
    """The operations of the graph that compute something; params that are laid end to end are packed, not computed."""
    graph = module.body.block.first_op
    assert graph is not None
    return [
        op.name
        for op in graph.regions[0].block.ops
        if op.name not in ("ait.param", "ait.constant", "ait.output") and not isinstance(op, ViewLike)
    ]


def test_ffn_is_two_gemms() -> None:
    module = run((EXAMPLES / "ffn.mlir").read_text(), "simplify,fuse-epilogue")
    assert launches(module) == ["ait.gemm", "ait.gemm"]
    assert not {"ait.add", "ait.gelu"} & set(names(module))
    assert str(parse(str(module))) == str(module)


def test_bert_layer_is_seven_launches() -> None:
    module = run((EXAMPLES / "bert_layer.mlir").read_text(), passes_between("imported", "fused", without=["form-loops"]))
    assert launches(module) == LAYER


def test_llama_layer_is_eight_ops() -> None:
    module = run((EXAMPLES / "llama_layer.mlir").read_text(), passes_between("imported", "fused", without=["form-loops"]))
    assert launches(module) == [
        "ait.rms_norm",
        "ait.gemm",  # query, key and value
        "ait.fused_elementwise",  # query and key, rotated
        "ait.attention",
        "ait.gemm",  # projection, residual
        "ait.rms_norm",
        "ait.gated_gemm",  # silu(gate) * up
        "ait.gemm",  # down, residual
    ]


@pytest.mark.parametrize("layers", [1, 3])
def test_every_layer_of_a_stack_is_the_same(layers: int) -> None:
    module = run(bert_stack(40 * layers), passes_between("imported", "fused", without=["form-loops"]))
    assert launches(module) == LAYER * layers
