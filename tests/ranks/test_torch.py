"""PyTorch models on ranks: programs with collectives, modules that `parallelize_module` divides, and plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import nn
from torch.distributed._functional_collectives import (
    all_gather_tensor,
    all_reduce,
    all_to_all_single,
    broadcast,
    permute_tensor,
    reduce_scatter_tensor,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.testing._internal.distributed.fake_pg import FakeStore

from ait_mlir.dialects.ait.ranks import ranks_of
from ait_mlir.driver import run_to_phase
from ait_mlir.errors import AitError
from ait_mlir.importers.torch import Imported, ImportFailure, UnsupportedOps, from_torch
from ait_mlir.ir.context import context
from ait_mlir.options import CompileOptions
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.passes.partition import PartitionPass
from ait_mlir.passes.shard_params import ShardParamsPass, plan_text
from ait_mlir.reference import evaluate_graph

BATCH = torch.export.Dim("b", min=1, max=8)


@pytest.fixture
def four() -> Iterator[None]:
    """This process is rank 1 of four that exchange nothing."""
    dist.init_process_group("fake", rank=1, world_size=4, store=FakeStore())
    yield
    dist.destroy_process_group()


class FeedForward(nn.Module):
    """Two layers between an embedding and a result."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(12, 8)
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.gelu(self.up(self.words(x))))


IDS = torch.arange(12).reshape(3, 4)


def feed_forward() -> FeedForward:
    torch.manual_seed(0)
    return FeedForward().eval()


def weights_of(module: nn.Module) -> dict[str, NDArray[Any]]:
    return {name: value.detach().numpy() for name, value in module.named_parameters()}


class Exchanges(nn.Module):
    """Each collective once, over the ranks of two axes."""

    def __init__(self, tp: Any, dp: Any) -> None:
        super().__init__()
        self.tp, self.dp = tp, dp

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = all_reduce(x, "avg", self.tp)
        y = all_gather_tensor(y, 1, self.dp)
        y = reduce_scatter_tensor(y, "max", 1, self.tp)
        y = all_to_all_single(y, None, None, self.tp)
        y = all_reduce(y, "product", self.dp)
        return broadcast(y, 1, self.tp)


@pytest.mark.usefixtures("four")
def test_collectives_of_a_program() -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    module = Exchanges(mesh["tp"].get_group(), mesh["dp"].get_group()).eval()
    found = from_torch(module, (torch.zeros(4, 8),), mesh="dp=2,tp=2")
    names = [op.name for op in found.graph.block.ops if hasattr(op, "group_axes")]
    assert names == [
        f"ait.{n}" for n in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_reduce", "broadcast")
    ]
    x = np.random.default_rng(0).standard_normal((4, 8))
    given = {name: x for name, _ in found.graph.inputs()}
    (y,) = evaluate_graph(found.graph, given, {}, {}).values()
    one = x.reshape(1, 4, 8).repeat(4, 0)  # all ranks have the same x, so each step can be written for one rank
    mean = one.mean(0)
    wide = np.concatenate([mean, mean], 1)
    pieces = np.split(wide, 2, 1)  # of the two ranks of tp
    mixed = [np.concatenate([np.split(p, 2)[i] for p in pieces]) for i in range(2)]
    np.testing.assert_allclose(y, mixed[1] ** 2, rtol=1e-12)


@pytest.mark.usefixtures("four")
def test_groups_that_are_no_axes_are_refused() -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    program = torch.export.export(Exchanges(mesh["tp"].get_group(), mesh["dp"].get_group()), (torch.zeros(4, 8),))
    with pytest.raises(UnsupportedOps, match=r"torch.distributed has 4 ranks, but the mesh <\[\"tp\"=2\]> has 2"):
        from_torch(program, mesh="tp=2")
    with pytest.raises(UnsupportedOps, match=r"has the ranks 0, 1, which no axes of the mesh <\[\"tp\"=4\]> have"):
        from_torch(program, mesh="tp=4")
    with pytest.raises(ImportFailure, match="groups: 'a' has 'ep', expected axes of the mesh; the mesh is"):
        from_torch(program, mesh="tp=4", groups={"a": "ep"})
    dist.destroy_process_group()
    try:
        with pytest.raises(UnsupportedOps, match=r"is not a group of torch.distributed in this process; give the mesh"):
            from_torch(program, mesh="dp=2,tp=2")
        names = {str(n.args[-1]) for n in program.graph.nodes if "_c10d" in str(n.target) and len(n.args) > 1}
        with pytest.raises(UnsupportedOps, match=r"has 2 ranks, but the mesh <\[\"tp\"=4\]> has 4 over tp"):
            from_torch(program, mesh="tp=4", groups=dict.fromkeys(names, "tp"))
    finally:
        dist.init_process_group("fake", rank=1, world_size=4, store=FakeStore())


class Shifts(nn.Module):
    """A message from each rank to the next one; `receives`: by an operation of one message."""

    def __init__(self, group: Any, receives: bool) -> None:
        super().__init__()
        self.group, self.receives = group, receives

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.receives:
            return torch.ops._c10d_functional.irecv(x, 0, 0, self.group.group_name) + 1
        return permute_tensor(x, [1, 2, 3, 0], self.group)


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("receives", [False, True])
def test_messages_of_one_rank_are_refused(receives: bool) -> None:
    """The program of one rank does not have the messages of the others."""
    mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("pp",))
    said = "the messages of one rank, as of permute_tensor, isend and irecv, do not say what the other ranks send"
    with pytest.raises(UnsupportedOps, match=said):
        from_torch(Shifts(mesh["pp"].get_group(), receives).eval(), (torch.zeros(4, 8),), mesh="pp=4")


def divided(words: Any) -> tuple[FeedForward, Mapping[str, NDArray[Any]]]:
    """The model in pieces for four ranks, and its whole weights."""
    module = feed_forward()
    whole = weights_of(module)
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel(), **({} if words is None else {"words": words})}
    for style in plan.values():
        style.src_data_rank = None
    parallelize_module(module, init_device_mesh("cpu", (4,), mesh_dim_names=("tp",)), plan)
    return module, {name: value.copy() for name, value in whole.items()}


@pytest.mark.usefixtures("four")
def test_a_module_that_parallelize_module_divides() -> None:
    module, whole = divided(None)
    found = from_torch(module, (IDS,), dynamic_shapes=({0: BATCH},))
    assert "b = " in str(found.module)
    params = {name for part, name in ranks_of(found.graph).shardings if part == "params"}
    assert params == {"up.weight", "up.bias", "down.weight"}
    assert found.constants.keys() == {"words.weight", "down.bias"}, "a rank has no whole of a divided weight"
    ids = IDS.numpy()[:2]
    (y,) = evaluate_graph(found.graph, {found.inputs.tensors[0].name: ids}, dict(whole), {"b": 2}).values()
    with torch.no_grad():
        expected = feed_forward().double()(torch.tensor(ids))
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.usefixtures("four")
def test_a_program_with_the_number_of_its_rank_is_refused() -> None:
    module, _ = divided(RowwiseParallel(input_layouts=torch.distributed.tensor.Replicate()))
    with pytest.raises(ImportFailure, match="the program of this rank is not that of another rank"):
        from_torch(module, (IDS,))
    with pytest.raises(ImportFailure, match="takes tensors by position only"):
        from_torch(module, (), {"x": IDS})


# ** plans **


def planned(plan: Mapping[str, object], mesh: str = "tp=2") -> Imported:
    """The model, whose params have the shardings of a plan."""
    found = from_torch(feed_forward(), (IDS,), dynamic_shapes=({0: BATCH},))
    ShardParamsPass(plan_text(plan), mesh).apply(context(), found.module)
    return found


PLAN = {"words": "rowwise", "up": ColwiseParallel(), "down": "rowwise"}


def test_a_plan_divides_a_model() -> None:
    found = planned(PLAN)
    checker = SemanticsChecker(found.module)
    PartitionPass().apply(context(), found.module)
    found.module.verify()
    assert not checker.after("partition", found.module) and checker.checks
    (graph,) = (op for op in found.module.ops if op.name == "ait.graph")
    shardings = {name: str(s) for (_, name), s in ranks_of(graph).shardings.items()}
    assert shardings == {
        "words.weight": '<@mesh, [{"tp"}, {}]>',
        "up.weight": '<@mesh, [{"tp"}, {}]>',
        "up.bias": '<@mesh, [{"tp"}]>',
        "down.weight": '<@mesh, [{}, {"tp"}]>',
    }


def test_a_plan_of_a_compilation() -> None:
    found = from_torch(feed_forward(), (IDS,))
    run_to_phase(found.module, "canonical", CompileOptions(mesh="tp=4", plan="*=colwise"))
    assert 'mesh = #sdy.mesh<["tp"=4]>' in str(found.module) and "ait.all_gather" in str(found.module)


@pytest.mark.parametrize(
    ("plan", "mesh", "said"),
    [
        ({"up": "columns"}, "tp=2", "plan: 'up' has 'columns', expected the name of a module and one of colwise"),
        ({"up,": "colwise"}, "tp=2", "plan: 'up,' has 'colwise', expected the name of a module"),
        ({"ups": "colwise"}, "tp=2", "plan: unknown module or param 'ups'; did you mean 'up'"),
        ({"u*": "colwise", "up": "rowwise"}, "tp=2", "param 'up.weight' is divided by 'u\\*=colwise' and 'up=rowwise'"),
        ({"up": "colwise"}, "dp=2,ep=2", "the mesh <.*> has several axes, expected one of them to be \"tp\""),
    ],
)
def test_a_wrong_plan_is_refused(plan: Mapping[str, object], mesh: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        planned(plan, mesh)


def test_a_plan_needs_a_mesh() -> None:
    with pytest.raises(AitError, match="plan 'up=colwise' needs a mesh, such as tp=2"):
        CompileOptions(plan="up=colwise")
    with pytest.raises(AitError, match="plan: 'up', expected NAME=STYLE, as in"):
        CompileOptions(plan="up", mesh="tp=2")
