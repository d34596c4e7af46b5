"""Virtual tensors keep their data type: a narrow one is rounded by a cast that stays in the IR, a FLOAT one is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, bf16, f16
from xdsl.ir import Operation

import ait_mlir.graph as cudnn
from ait_mlir.dialects.ait.elementwise import CastOp
from ait_mlir.driver import run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import SourceText
from ait_mlir.reference import evaluate_graph
from tests.graph.cases import first_graph

HALF, BFLOAT16, FLOAT = cudnn.data_type.HALF, cudnn.data_type.BFLOAT16, cudnn.data_type.FLOAT
NARROW = {HALF: f16, BFLOAT16: bf16}
DIM = 8


def produced(g: Any, how: str) -> Any:
    """A virtual tensor in the way that a graph of the documentation makes one; all of its values need rounding."""
    x, w = g.tensor([2, 4, DIM], name="x"), g.tensor([1, DIM, DIM], name="w")
    if how == "matmul":
        return g.matmul(x, w, name="mm")
    if how == "pointwise":
        return g.exp(x, name="e")
    if how == "norm":
        scale = g.tensor([1, 1, DIM], name="scale")
        return g.rmsnorm(norm_forward_phase=cudnn.norm_forward_phase.INFERENCE, input=x, scale=scale, epsilon=1e-5)[0]
    if how == "conv":
        image, taps = g.tensor([2, 4, 5, 5], name="image"), g.tensor([6, 4, 3, 3], name="taps")
        return g.conv_fprop(image=image, weight=taps, name="conv")
    if how == "reduction":
        return g.reduction(x, mode=cudnn.reduction_mode.ADD, name="sum").set_dim([2, 4, 1])
    q, k, v = (g.tensor([2, 2, 4, DIM], name=n) for n in "qkv")
    return g.sdpa(q, k, v, attn_scale=0.5)[0]


def graph(how: str, dtype: Any) -> Any:
    """1024 * (t - 1): the rounding of t remains in the output, which is FLOAT."""
    g = cudnn.pygraph(
        handle=cudnn.create_handle(device="cpu"),
        io_data_type=HALF,
        intermediate_data_type=FLOAT,
        compute_data_type=FLOAT,
    )
    t = produced(g, how).set_data_type(dtype)
    g.mul(g.sub(t, 1.0, name="less"), 1024.0, name="more").set_output(True).set_data_type(FLOAT)
    return g


def dims_of(module: ModuleOp) -> dict[str, int]:
    """The dims that the graph was made with."""
    return {dim.name: dim.hints[0] for dim in first_graph(module).scope.dims}


def arrays(module: ModuleOp) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name, value in first_graph(module).inputs():
        shape = [n.evaluate(dims_of(module)) for n in value.type.dims]
        found[name] = (rng.standard_normal(shape) * 0.5).astype(np.float16)
    return found


def evaluate(module: ModuleOp) -> np.ndarray[Any, Any]:
    return next(iter(evaluate_graph(first_graph(module), arrays(module), {}, dims_of(module)).values()))


def parsed(text: str) -> ModuleOp:
    return parse_source(context(), SourceText("graph.mlir", text))


def narrowing(module: ModuleOp, dtype: Any) -> list[CastOp]:
    """The casts to a narrow type."""
    return [op for op in walk(module) if isinstance(op, CastOp) and NARROW[dtype] in (op.output.type, element(op))]


def element(op: CastOp) -> Any:
    return getattr(op.output.type, "element_type", None)


def walk(module: ModuleOp) -> Iterator[Operation]:
    yield from module.walk()


HOWS = ("matmul", "pointwise", "norm", "conv", "reduction", "sdpa")


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("how", HOWS)
def test_a_narrow_intermediate_is_rounded_in_every_phase(how: str, dtype: Any):
    g = graph(how, dtype)
    imported = parsed(g.ir())
    assert len(narrowing(imported, dtype)) == 1
    expected = evaluate(imported)
    for phase in ("canonical", "simplified", "fused"):
        module = parsed(g.ir(phase))
        assert len(narrowing(module, dtype)) == 1, f"the cast is gone in phase {phase}:\n{module}"
        np.testing.assert_allclose(evaluate(module), expected, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("how", HOWS)
def test_without_its_cast_the_output_differs(how: str, dtype: Any):
    """The mutation: the tests above would see a pattern that takes the cast away."""
    module = parsed(graph(how, dtype).ir())
    expected = evaluate(module)
    (cast,) = narrowing(module, dtype)
    (widened,) = [use.operation for use in cast.output.uses]
    widened.results[0].replace_all_uses_with(cast.input)
    assert cast.input.type == widened.results[0].type
    for op in (widened, cast):
        op.detach()
        op.erase()
    found = evaluate(run_to_phase(module, "fused"))
    assert np.abs(found - expected).max() > 1e-2


@pytest.mark.parametrize("how", HOWS)
def test_a_float_intermediate_is_not_rounded(how: str):
    """There is no narrow value between the inputs and the output, so storing one cannot round."""
    g = graph(how, FLOAT)
    for phase in ("imported", "fused"):
        module = parsed(g.ir(phase))
        inputs = {v for _, v in first_graph(module).inputs()}
        for op in first_graph(module).block.ops:
            views = ("ait.reshape", "ait.permute", "ait.expand", "ait.slice")
            if op.name in views and all(v in inputs or v.owner.name in views for v in op.operands):
                continue
            for result in op.results:
                assert result.type.element_type not in (f16, bf16), f"{op.name} rounds in phase {phase}:\n{module}"


@pytest.mark.parametrize("how", ["matmul", "pointwise"])
def test_the_kernels_round_where_the_graph_says_so(how: str):
    """The compiled graph is the reference with its rounding, and differs from the one without."""
    outputs = {}
    for dtype in (HALF, FLOAT):
        g = graph(how, dtype)
        g.build()
        module = parsed(g.ir())
        pack: dict[Any, Any] = dict(arrays(module))
        out = np.empty(g.outputs()[0].get_dim(), np.float32)
        pack[g.outputs()[0]] = out
        g.execute(pack, np.empty(g.get_workspace_size(), np.uint8))
        np.testing.assert_allclose(
            out, evaluate(module).reshape(out.shape), rtol=1e-4, atol=0.6 if dtype is HALF else 1e-3
        )
        outputs[dtype] = out
    assert np.abs(outputs[HALF] - outputs[FLOAT]).max() > 1e-2
