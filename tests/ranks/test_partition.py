"""Random graphs with random shardings compute on ranks as on one process; what `--mesh` says, and wrong meshes."""

from __future__ import annotations

import random

import pytest
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp

from ait_mlir.dialects.ait.collective import CollectiveOp
from ait_mlir.dialects.ait.data import GraphOp, OutputOp
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dialects.sdy import SHARDING, Sharding, ShardingAttr, parse_axes
from ait_mlir.driver import run_to_phase
from ait_mlir.errors import AitError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.kernels import Target
from ait_mlir.options import CompileOptions
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.passes.launch_cost import slow_launches
from ait_mlir.passes.partition import PartitionPass, declare_mesh
from tests.generator import random_graph

MESHES = ("tp=2", "dp=2,tp=2", "tp=3")


def sharding(rng: random.Random, graph: GraphOp, t: TensorType, axes: dict[str, int]) -> ShardingAttr:
    """A random sharding of a tensor that the axes divide."""
    left = [name for name in axes if rng.random() < 0.7]
    dims: list[tuple[str, ...]] = []
    for dim in t.dims:
        own = [name for name in left if rng.random() < 0.7]
        size = 1
        for name in own:
            size *= axes[name]
        own = own if own and graph.scope.divisible(dim, size) else []
        left = [name for name in left if name not in own]
        dims.append(tuple(own))
    return ShardingAttr(Sharding("mesh", tuple(dims), tuple(rng.random() < 0.3 for _ in dims)))


def shard(module: ModuleOp, seed: int) -> None:
    """Give inputs, params, outputs and values of a random graph random shardings."""
    rng = random.Random(seed)
    mesh = parse_axes(MESHES[seed % len(MESHES)])
    declare_mesh(module, mesh)
    graph = next(op for op in module.ops if isinstance(op, GraphOp))
    axes, strided = dict(mesh.axes), graph.strides()
    inputs = {
        name: sharding(rng, graph, value.type, axes)
        for name, value in graph.inputs()
        if name not in strided and isinstance(value.type, TensorType)
    }
    if inputs:
        graph.input_shardings = DictionaryAttr(inputs)
    for op in graph.block.ops:
        value = op.operands[0] if isinstance(op, OutputOp) else op.results[0]
        if len(op.results) > 1 or rng.random() < 0.5 or not isinstance(value.type, TensorType):
            continue
        if not (isinstance(op, OutputOp) and op.strides is not None):
            op.attributes[SHARDING] = sharding(rng, graph, value.type, axes)


@pytest.mark.parametrize("seed", range(24))
def test_a_random_graph_in_pieces_computes_the_same(seed: int) -> None:
    module = parse_text(context(), random_graph(seed))
    shard(module, seed)
    checker = SemanticsChecker(module)
    PartitionPass().apply(context(), module)
    module.verify()
    assert not checker.after("partition", module) and checker.checks


FEED_FORWARD = """
sdy.mesh @mesh = <["tp"=8]>
ait.graph @ffn(%x: !ait.tensor<batch x 16 x f32>) dims {batch = 1 to 4} {
  %up = ait.param "up" {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>} : !ait.tensor<32 x 16 x f32>
  %0 = ait.gemm rcr %x, %up : !ait.tensor<batch x 32 x f32>
  %1 = ait.gelu %0 : !ait.tensor<batch x 32 x f32>
  %down = ait.param "down" : !ait.tensor<16 x 32 x f32>
  %2 = ait.gemm rcr %1, %down : !ait.tensor<batch x 16 x f32>
  ait.output "y" %2 : !ait.tensor<batch x 16 x f32>
}"""


def test_the_mesh_of_a_compilation_replaces_that_of_the_text() -> None:
    module = parse_text(context(), FEED_FORWARD)
    run_to_phase(module, "fused", CompileOptions(mesh="tp=2"))
    assert 'ranks {mesh = #sdy.mesh<["tp"=2]>' in str(module)
    assert [op.name for op in module.walk() if isinstance(op, CollectiveOp)] == ["ait.all_reduce"]


@pytest.mark.parametrize(
    ("mesh", "said"),
    [
        ("tp", "mesh 'tp': expected axes with their numbers of ranks, as in tp=2 or dp=2,tp=4"),
        ("tp=0", "mesh 'tp=0': expected axes of different names, and 1 to 65536 ranks"),
        ("tp=2,tp=2", "mesh 'tp=2,tp=2': expected axes of different names"),
        ("tp=2,", "mesh 'tp=2,': expected axes with their numbers"),
    ],
)
def test_a_wrong_mesh_is_refused(mesh: str, said: str) -> None:
    with pytest.raises(AitError, match=said):
        CompileOptions(mesh=mesh)


def test_a_mesh_that_does_not_divide_is_refused() -> None:
    with pytest.raises(AitError, match="dim 0 of param 'up', 32, is not proved to be a multiple of 3"):
        run_to_phase(parse_text(context(), FEED_FORWARD), "fused", CompileOptions(mesh="tp=3"))


def test_no_collective_is_called_slow() -> None:
    module, options = parse_text(context(), FEED_FORWARD), CompileOptions("cuda", "sm_90a", mesh="tp=2")
    run_to_phase(module, "planned", options)
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    assert any(isinstance(op, CollectiveOp) for op in module.walk())
    assert not list(slow_launches(module, program, Target("cuda", "sm_90a")))


def test_a_mesh_for_a_text_without_shardings_is_refused() -> None:
    plain = FEED_FORWARD.replace('{sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>} ', "")
    with pytest.raises(AitError, match="mesh 'tp=2' divides nothing: no param, input, output or op of the module has"):
        run_to_phase(parse_text(context(), plain), "fused", CompileOptions(mesh="tp=2"))
