"""Plans: their list, names and notes, which is selected, their IR, and graphs as bytes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from ait_mlir.graph import plans
from ait_mlir.graph.building import GraphBuilder
from ait_mlir.graph.compilation import Compilation
from ait_mlir.graph.plans import Planner
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from tests.graph.dense import FALLBACK, A, B, check, data, dense, new, workspace


@pytest.fixture(scope="module")
def planned() -> Any:
    g, _ = dense()
    g.validate()
    g.build_operation_graph()
    g.create_execution_plans([A, FALLBACK])
    g.check_support()
    g.build_plans(cudnn.build_plan_policy.ALL)
    return g


def test_every_plan_computes_the_same(planned: Any):
    count = planned.get_execution_plan_count()
    names = [planned.get_plan_name_at_index(i) for i in range(count)]
    assert len(set(names)) == count > 1
    assert names[0].startswith("A:gemm:")
    assert any(name.startswith("FALLBACK:gemm:native") or name == "A:gemm:native" for name in names)
    pack = data()
    for i in range(count):
        size = planned.get_workspace_size_plan_at_index(i)
        planned.execute_plan_at_index(pack, workspace(size), index=i)
        check(pack)


def test_autotune_selects_the_fastest(planned: Any):
    count = planned.get_execution_plan_count()
    largest = max(planned.get_workspace_size_plan_at_index(i) for i in range(count))
    seconds = planned.autotune(data(), workspace(largest), repeat=3)
    assert len(seconds) == count
    assert planned.get_plan_name() == planned.get_plan_name_at_index(seconds.index(min(seconds)))
    planned.build_plan_at_index(0)


def test_plan_by_index_is_selected(planned: Any):
    last = planned.get_execution_plan_count() - 1
    planned.build_plan_at_index(last)
    assert planned.get_plan_name() == planned.get_plan_name_at_index(last)
    pack = data()
    planned.execute(pack, workspace(planned.get_workspace_size()))
    check(pack)
    planned.build_plan_at_index(0)


@pytest.mark.parametrize(
    ("call", "left"),
    [
        (lambda g: g.deselect_engines(["openblas"]), lambda name: "openblas" not in name),
        (lambda g: g.select_numeric_notes([cudnn.numerical_note.TENSOR_CORE]), lambda name: False),
        (lambda g: g.deselect_numeric_notes([cudnn.numerical_note.TENSOR_CORE]), lambda name: True),
        (lambda g: g.select_behavior_notes([cudnn.behavior_note.RUNTIME_COMPILATION]), lambda name: True),
        (lambda g: g.deselect_behavior_notes([cudnn.behavior_note.CUBLASLT_DEPENDENCY]), lambda name: True),
    ],
)
def test_plans_are_deselected(call: Any, left: Any):
    g, _ = dense()
    g.validate()
    g.build_operation_graph()
    g.create_execution_plans([A])
    call(g)
    allowed = [g.get_plan_name_at_index(i) for i in g.compilation._allowed()]
    assert allowed == [n for n in (g.get_plan_name_at_index(i) for i in range(len(g.plans))) if left(n)]
    if not allowed:
        with pytest.raises(cudnn.cudnnGraphNotSupportedError, match="no plan left"):
            g.check_support()


def test_plans_with_too_much_workspace_are_excluded(planned: Any):
    g, _ = dense()
    g.validate()
    g.build_operation_graph()
    g.create_execution_plans([A])
    g.deselect_workspace_greater_than(0)
    try:
        g.build_plans()
    except cudnn.cudnnGraphNotSupportedError as error:
        assert "bytes of workspace" in str(error)
    else:
        assert g.get_workspace_size() == 0


def test_measured_plan():
    g, _ = dense()
    g.build([B])
    assert g.get_plan_name() == "B:gemm:measured"
    pack = data()
    g.execute(pack, workspace(g.get_workspace_size()))
    check(pack)


def test_deserialized_graph_compiles_nothing(monkeypatch: pytest.MonkeyPatch):
    from ait_mlir.graph import plans
    from ait_mlir.lowering import build

    g, _ = dense()
    g.build([A])
    raw = g.serialize(as_bytes=True)
    listed = g.serialize()
    assert isinstance(raw, bytes)
    assert list(raw) == listed

    def refuse(*_: Any) -> None:
        raise AssertionError("something was compiled")

    monkeypatch.setattr(plans, "_kept_libraries", plans.Kept(8))  # as in a new process
    monkeypatch.setattr(plans, "build_with", refuse)
    monkeypatch.setattr(build, "run_compilers", refuse)
    for given in (raw, listed, bytearray(raw)):
        other = cudnn.pygraph()
        other.deserialize(g.handle, given)
        pack = data()
        other.execute(pack, workspace(other.get_workspace_size()), handle=g.handle)
        check(pack)
        assert other.serialize(as_bytes=True) == raw
    assert "ait_rt.program" in other.ir()


def test_ir_of_a_phase():
    g, _ = dense()
    assert "ait.gemm rrr" in g.ir()
    assert 'ait.output "y"' in g.ir("imported")
    assert "ait.relu" in g.ir("fused").split("epilogue")[1]
    g.build([A])
    assert "#ait.kernel<" in g.ir("selected")
    assert "ait_rt.launch" in g.ir("planned")
    assert "node 'bias' (bias)" in g.print()


def test_equal_graphs_share_their_library():
    first, second = dense()[0], dense()[0]
    for g in (first, second):
        g.build([A])
    assert first.runner.compiled.library is second.runner.compiled.library


def test_plan_by_engine_and_knobs(planned: Any):
    provider, config = planned.get_engine_and_knobs_at_index(planned.get_execution_plan_count() - 1)
    g, _ = dense()
    g.validate()
    g.build_operation_graph()
    g.create_execution_plan(provider, config)
    g.build_plans()
    assert g.get_engine_and_knobs_at_index(0) == (provider, config)
    pack = data()
    g.execute(list(pack.values()), workspace(g.get_workspace_size()), tensor_uids=list(pack))
    check(pack)
    with pytest.raises(cudnn.cudnnGraphNotSupportedError, match="no kernel 'none'"):
        g.create_execution_plan("none")


def test_serialized_graph_keeps_its_epsilon():
    """In training it is a constant of the code."""
    g = new()
    x, scale = g.tensor([4, 16]), g.tensor([1, 16])
    eps = g.tensor([1, 1], is_pass_by_value=True, name="eps").set_uid(9)
    phase = cudnn.norm_forward_phase.TRAINING
    y, _ = g.rmsnorm(norm_forward_phase=phase, input=x, scale=scale, epsilon=eps, name="n")
    y.set_output(True)
    g.build()
    values, gain, out = torch.randn(4, 16) * 0.01, torch.rand(1, 16), torch.empty(4, 16)
    uids = [t.get_uid() for t in (x, scale, y)]
    pack = {**dict(zip(uids, (values, gain, out), strict=True)), 9: 1e-2}
    g.execute(pack)
    other = cudnn.pygraph()
    other.deserialize(g.serialize())
    out.fill_(0)
    other.execute(pack)
    torch.testing.assert_close(out, torch.nn.functional.rms_norm(values, (16,), gain[0], 1e-2), atol=1e-4, rtol=1e-3)
    with pytest.raises(cudnn.InputError, match=r"compiled for 0\.01"):
        other.execute({**pack, 9: 1e-5})


def test_the_plan_of_a_graph_without_kernels():
    g = new()
    g.transpose(g.tensor([3, 4], name="x"), permutation=[1, 0]).set_output(True).set_name("y")
    g.build([A])
    assert g.get_plan_name() == "A:copy:native"
    x, y = torch.randn(3, 4), torch.empty(4, 3)
    g.execute({"x": x, "y": y}, workspace(g.get_workspace_size()))
    assert torch.equal(y, x.T)


@pytest.mark.parametrize(("dims", "axes"), [((64, 256, 1, 1), (1, 256, 1, 1)), ((4, 16, 256), (1, 1, 256))])
def test_an_activation_is_part_of_the_norm_before_it(dims: tuple[int, ...], axes: tuple[int, ...]) -> None:
    g = cudnn.pygraph(
        io_data_type=cudnn.data_type.HALF,
        intermediate_data_type=cudnn.data_type.FLOAT,
        compute_data_type=cudnn.data_type.FLOAT,
    )
    x, scale = g.tensor_like(torch.empty(dims).half()), g.tensor_like(torch.empty(axes).half())
    phase = cudnn.norm_forward_phase.INFERENCE
    y, _ = g.rmsnorm(norm_forward_phase=phase, input=x, scale=scale, epsilon=1e-5)
    g.swish(y).set_output(True)
    g.build([cudnn.heur_mode.A])
    assert g.ir("planned").count("ait_rt.launch") == 1


PRODUCT = """
ait.graph @product(%x: !ait.tensor<m x 512 x f16>, %w: !ait.tensor<n x 512 x f16>)
    dims {m = 1 to 8192 hints [4096], n = 1 to 8192 hints [4096]} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x n x f16>
  ait.output "y" %0 : !ait.tensor<m x n x f16>
}
"""


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> Planner:
    """For an H200, which need not be here: nothing is compiled."""
    monkeypatch.setattr(plans, "_kept_libraries", plans.Kept(8))
    monkeypatch.setattr(plans, "default_arch", lambda kind: "sm_90a")
    return Planner(parse_text(context(), PRODUCT), "cuda")


def test_the_first_plan_is_the_best_for_the_dims(planner: Planner):
    large, small = (planner.plans(A, dims)[0] for dims in ((4096, 4096), (1, 512)))
    assert large.key == planner.plans(A)[0].key != small.key
    assert small.seconds < large.seconds and small.dims == (1, 512)
    assert small.key in {plan.key for plan in planner.plans(A, (1, 512))}


def test_a_compiled_plan_goes_first_unless_it_is_much_slower(planner: Planner):
    best, second, *others = planner.plans(A, (1, 512))
    slow = max(others, key=lambda plan: plan.seconds)
    assert best.seconds <= second.seconds <= plans.SLOWER * best.seconds < slow.seconds
    for ready, first in ((slow, best), (second, second)):
        plans._kept_libraries.keep(planner._library_key(ready), object())
        found = planner.plans(A, (1, 512))
        assert found[0].key == first.key
        assert {plan.key for plan in found} == {plan.key for plan in (best, second, *others)}
        plans._kept_libraries = plans.Kept(8)


def test_a_graph_has_its_compilation():
    """Steps and plans are an object that a graph has; its methods keep their arguments and documentation."""
    assert cudnn.pygraph.__bases__ == (GraphBuilder,) and GraphBuilder.__bases__ == (object,)
    for name in ("validate", "build", "select_plan", "deselect_engines", "autotune", "get_workspace_size"):
        method = getattr(Compilation, "build_plan_at_index" if name == "select_plan" else name)
        assert inspect.signature(getattr(cudnn.pygraph, name)) == inspect.signature(method)
        assert inspect.getdoc(getattr(cudnn.pygraph, name)) == inspect.getdoc(method)


CARD = '{"device": "cuda:0", "arch": "sm_90a"}'


@pytest.mark.parametrize(("override", "rounds"), [(None, True), ("1", True), ("0", False)])
def test_convolutions_of_floats_may_be_rounded(override: str | None, rounds: bool, monkeypatch: pytest.MonkeyPatch):
    """As in cuDNN, factors are rounded to TF32 unless NVIDIA_TF32_OVERRIDE is 0; the plans for a card say so."""
    if override is None:
        monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    else:
        monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", override)
    g = cudnn.pygraph(io_data_type=cudnn.data_type.FLOAT, device_property=cudnn.create_device_properties(CARD))
    x, w = g.tensor(dim=[2, 8, 16, 16], stride=[2048, 1, 128, 8]), g.tensor(dim=[16, 8, 3, 3], stride=[72, 1, 24, 8])
    g.conv_fprop(x, w, padding=[1, 1]).set_output(True)
    g.build_operation_graph()
    g.create_execution_plans([A])
    assert {cudnn.numerical_note.DOWN_CONVERT_INPUTS in plan.numerical_notes for plan in g.plans} == {rounds}
