"""What is wrong with a step, a call or serialized data: an exception of a documented class, before anything is launched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import ait_mlir.graph as cudnn
from tests.graph.bad_input import HALF, Damaged, Graph, Input, NotSupported, Step, new, raises

# ** steps **


def test_steps_out_of_order():
    g = new()
    y = g.relu(g.tensor([4], name="x"), name="act").set_output(True)
    for call, first in (
        (lambda: g.create_execution_plans([cudnn.heur_mode.A]), "build_operation_graph()"),
        (lambda: g.check_support(), "create_execution_plans()"),
        (lambda: g.build_plans(), "create_execution_plans()"),
        (lambda: g.build_plan_at_index(0), "create_execution_plans()"),
        (lambda: g.get_workspace_size(), "build_plans()"),
        (lambda: g.execute({}), "build_plans()"),
        (lambda: g.serialize(), "build_plans()"),
    ):
        with raises(Step, "graph 'g'", f"needs {first} first"):
            call()
    g.validate()
    g.build_operation_graph()
    for change in (
        lambda: y.set_data_type(HALF),
        lambda: y.set_dim([4]),
        lambda: y.set_uid(3),
        lambda: g.tensor([1]),
        lambda: g.neg(y),
        lambda: g.build_operation_graph(),
        lambda: g.validate(),
    ):
        with raises(Step, "graph 'g'"):
            change()
    g.create_execution_plans([cudnn.heur_mode.A])
    with raises(Step, "is not built", "build_plan_at_index(0)"):
        g.execute_plan_at_index({}, index=0)
    with raises(Step, "is not built"):
        g.get_workspace_size_plan_at_index(0)
    with raises(Input, "no plan 99"):
        g.get_plan_name_at_index(99)


def test_the_graph_is_validated_again_after_a_change():
    g = new()
    y = g.relu(g.tensor([4], name="x"), name="act").set_output(True)
    g.validate()
    y.set_dim([5])
    with raises(Graph, "node 'act'", "has dims [5], but the node computes [4]"):
        g.build_operation_graph()


def test_all_plans_deselected():
    g = new()
    g.relu(g.tensor([4])).set_output(True)
    g.validate()
    g.build_operation_graph()
    g.create_execution_plans([cudnn.heur_mode.A])
    g.deselect_engines(["native"])
    with raises(NotSupported, "no plan left", "native"):
        g.check_support()


FILTERS: dict[str, Callable[[Any], Any]] = {
    "engine_names are 'native'": lambda g: g.deselect_engines("native"),
    "notes are ['TENSOR_CORE']": lambda g: g.select_numeric_notes(["TENSOR_CORE"]),
    "notes are [3]": lambda g: g.deselect_behavior_notes([3]),
    "the limit of the workspace is 'x'": lambda g: g.deselect_workspace_greater_than("x"),
}


@pytest.mark.parametrize("words", FILTERS)
def test_filters(words: str):
    with raises(Input, words):
        FILTERS[words](new())


def test_unknown_heuristic():
    g = new()
    g.relu(g.tensor([4])).set_output(True)
    g.validate()
    g.build_operation_graph()
    with raises(NotSupported, "'A' is no heuristic"):
        g.create_execution_plans(["A"])


def test_handle():
    handle = cudnn.create_handle(device="cpu")
    cudnn.destroy_handle(handle)
    with raises(RuntimeError, "destroyed"):
        cudnn.pygraph(handle=handle)
    with raises(Input, "expected a handle", "int"):
        cudnn.set_stream(3, 0)
    with raises(Input, "'tpu' is no device"):
        cudnn.create_handle(device="tpu")
    with raises(Input, "'x' is no stream"):
        cudnn.create_handle(device="cpu", stream="x")


# ** execution **


@pytest.fixture(scope="module")
def built() -> tuple[Any, dict[str, torch.Tensor], Any]:
    """y = the sums of the rows of a product of exp(x): exp(x) is in the workspace."""
    g = new()
    x = g.tensor([8, 32], name="x").set_uid(1)
    e = g.exp(x, name="e")
    product = g.matmul(e, g.reshape(e, name="turned").set_dim([32, 8]).set_stride([8, 1]), name="product")
    y = g.reduction(product, mode=cudnn.reduction_mode.ADD, name="sum").set_dim([8, 1])
    y.set_output(True).set_name("y").set_uid(2)
    g.build([cudnn.heur_mode.A])
    tensors = {"x": torch.randn(8, 32), "y": torch.empty(8, 1)}
    workspace = torch.empty(g.get_workspace_size(), dtype=torch.uint8)
    assert workspace.numel() > 0
    g.execute({x: tensors["x"], y: tensors["y"]}, workspace)
    e = tensors["x"].exp()
    torch.testing.assert_close(tensors["y"], (e @ e.reshape(32, 8)).sum(1, keepdim=True))
    return g, tensors, workspace


def read_only(y: torch.Tensor) -> np.ndarray[Any, Any]:
    array = y.numpy().view()
    array.flags.writeable = False
    return array


PACKS: dict[str, tuple[tuple[str, ...], Callable[[torch.Tensor, torch.Tensor, Any], dict[Any, Any]]]] = {
    "missing": (("tensor 'y' (UID 2)", "missing"), lambda x, y, g: {1: x}),
    "extra name": (("has no 'z'", "'x' (UID 1)"), lambda x, y, g: {1: x, 2: y, "z": x}),
    "of another graph": (
        ("has no tensor 'x' of graph 'g' (made at ", "bad_input.py", "'x' (UID 1)"),
        lambda x, y, g: {1: x, 2: y, new().tensor([4], name="x"): x},
    ),
    "twice": (("tensor 'x' (UID 1) is twice",), lambda x, y, g: {1: x, "x": x, 2: y}),
    "virtual": (
        ("tensor 'e::OUT_0'", "is virtual"),
        lambda x, y, g: {1: x, 2: y, g.find_tensor("e::OUT_0"): x},
    ),
    "dtype": (("tensor 'x' (UID 1) is float16, expected float32",), lambda x, y, g: {1: x.half(), 2: y}),
    "dims": (("tensor 'x' (UID 1) has dims [8, 16]", "expected [8, 32]"), lambda x, y, g: {1: x[:, :16], 2: y}),
    "strides": (("tensor 'x' (UID 1)", "strides [1, 8]"), lambda x, y, g: {1: x.T.contiguous().T, 2: y}),
    "device": (("tensor 'x' (UID 1)", "meta"), lambda x, y, g: {1: x.to("meta"), 2: y}),
    "null": (("tensor 'x' (UID 1) is a null pointer",), lambda x, y, g: {1: 0, 2: y}),
    "address": (("tensor 'x' (UID 1)", "multiple of 4"), lambda x, y, g: {1: x.data_ptr() + 1, 2: y}),
    "negative address": (("tensor 'x' (UID 1) is at -16",), lambda x, y, g: {1: -16, 2: y}),
    "long address": (("tensor 'x' (UID 1) is at",), lambda x, y, g: {1: 1 << 70, 2: y}),
    "order of bytes": (("tensor 'x' (UID 1) has dtype >f4",), lambda x, y, g: {1: x.numpy().astype(">f4"), 2: y}),
    "read-only": (("tensor 'y' (UID 2)", "read-only"), lambda x, y, g: {1: x, 2: read_only(y)}),
    "none": (("tensor 'x' (UID 1) is None",), lambda x, y, g: {1: None, 2: y}),
    "text": (("tensor 'x' (UID 1) is a str",), lambda x, y, g: {1: "x", 2: y}),
    "overlap": (
        (
            "tensor 'y' (UID 2)",
            "overlaps the memory of tensor 'x'",
        ),
        lambda x, y, g: {1: x, 2: x.view(-1)[8:16]},
    ),
    "numpy dtype": (("tensor 'x' (UID 1) is float64",), lambda x, y, g: {1: np.zeros((8, 32)), 2: y}),
}


@pytest.mark.parametrize("name", PACKS)
def test_variant_pack(built: tuple[Any, dict[str, torch.Tensor], Any], name: str):
    g, tensors, workspace = built
    words, make = PACKS[name]
    tensors["y"].fill_(7)
    with raises(Input, *words):
        g.execute(make(tensors["x"], tensors["y"], g), workspace)
    assert (tensors["y"] == 7).all(), "something was launched"


def test_variant_pack_that_is_no_dict(built: tuple[Any, dict[str, torch.Tensor], Any]):
    g, tensors, workspace = built
    with raises(Input, "a list, expected a dict"):
        g.execute([tensors["x"], tensors["y"]], workspace)


def test_a_workspace_is_checked_again_when_it_is_another_one(built: tuple[Any, dict[str, torch.Tensor], Any]):
    g, tensors, workspace = built
    pack, changed, small = {1: tensors["x"], 2: tensors["y"]}, workspace.clone(), torch.empty(8, dtype=torch.uint8)
    g.execute(pack, changed)
    with raises(Input, "the workspace has 8 bytes"):
        g.execute(pack, small)
    changed.set_(small)
    with raises(Input, "the workspace has 8 bytes"):
        g.execute(pack, changed)


@pytest.mark.parametrize(
    ("workspace", "words"),
    [
        (None, ("needs a workspace of", "None")),
        (0, ("needs a workspace of", "0")),
        (torch.empty(8, dtype=torch.uint8), ("the workspace has 8 bytes", "needs")),
        (torch.empty(100000, dtype=torch.uint8, device="meta"), ("the workspace", "meta")),
        ("x", ("the workspace is a str",)),
    ],
)
def test_workspace(built: tuple[Any, dict[str, torch.Tensor], Any], workspace: Any, words: tuple[str, ...]):
    g, tensors, _ = built
    tensors["y"].fill_(7)
    with raises(Input, *words):
        g.execute({1: tensors["x"], 2: tensors["y"]}, workspace)
    assert (tensors["y"] == 7).all(), "something was launched"


def test_scalar_by_value():
    g = new()
    x, alpha = g.tensor([4], name="x"), g.tensor([1], is_pass_by_value=True, name="alpha")
    y = g.mul(x, alpha).set_output(True)
    g.build()
    pack = {x: torch.ones(4), y: torch.empty(4)}
    with raises(Input, "tensor 'alpha'", "missing"):
        g.execute(pack)
    for value in ("x", torch.ones(2), torch.ones(1, device="meta")):
        with raises(Input, "tensor 'alpha'", "passed by value"):
            g.execute({**pack, alpha: value})
    g.execute({**pack, alpha: 3.0})
    assert pack[y].tolist() == [3.0] * 4


def test_scalar_by_value_that_its_data_type_does_not_have():
    g = new(io_data_type=cudnn.data_type.UINT8, compute_data_type=cudnn.data_type.UINT8)
    x, alpha = g.tensor([4], name="x"), g.tensor([1], is_pass_by_value=True, name="alpha")
    y = g.max(x, alpha).set_output(True)
    g.build()
    pack = {x: torch.ones(4, dtype=torch.uint8), y: torch.zeros(4, dtype=torch.uint8)}
    for number in (256, -1, 2.5, float("inf")):
        with raises(Input, "tensor 'alpha'", repr(number), "0 to 255"):
            g.execute({**pack, alpha: number})
    assert pack[y].tolist() == [0] * 4, "something was launched"
    g.execute({**pack, alpha: 255})
    assert pack[y].tolist() == [255] * 4


def test_scalar_by_value_with_several_elements():
    g = new()
    g.mul(g.tensor([4]), g.tensor([4], is_pass_by_value=True, name="alpha")).set_output(True)
    with raises(Graph, "tensor 'alpha'", "passed by value", "[4]"):
        g.validate()


# ** serialized data **


@pytest.fixture(scope="module")
def data(built: tuple[Any, dict[str, torch.Tensor], Any]) -> bytes:
    return built[0].serialize(as_bytes=True)


@pytest.mark.parametrize("place", [0, 9, 13, 20, 60, 400, -1])
def test_damaged_byte(data: bytes, place: int):
    wrong = bytearray(data)
    wrong[place] ^= 0x10
    with raises(Damaged, ""):
        cudnn.pygraph().deserialize(bytes(wrong))


@pytest.mark.parametrize("size", [0, 5, 40, 200])
def test_truncated(data: bytes, size: int):
    with raises(Damaged, ""):
        cudnn.pygraph().deserialize(data[:size])


@pytest.mark.parametrize("wrong", ["text", None, 3, [1, 2, 300], [1.5]])
def test_data_that_are_no_bytes(wrong: Any):
    with raises(Input, ""):
        cudnn.pygraph().deserialize(wrong)


def test_deserialize_into_a_graph_with_nodes(data: bytes):
    g = new()
    g.relu(g.tensor([4]))
    with raises(Step, "not empty"):
        g.deserialize(data)


def test_deserialize_for_another_device(data: bytes):
    with raises(Damaged, "serialized for cpu", "cuda:0"):
        cudnn.pygraph().deserialize(cudnn.create_handle(device="cuda:0"), data)


def test_cuda_graph_on_the_cpu(built: tuple[Any, dict[str, torch.Tensor], Any]):
    g, tensors, workspace = built
    with raises(NotSupported, "runs on the CPU"):
        g.populate_cuda_graph(None, {1: tensors["x"], 2: tensors["y"]}, workspace, 1)


def test_handle_that_is_none(built: tuple[Any, dict[str, torch.Tensor], Any]):
    g, tensors, workspace = built
    with raises(Input, "expected a handle", "int"):
        g.execute({1: tensors["x"], 2: tensors["y"]}, workspace, handle=3)


def test_plan_that_is_no_number(built: tuple[Any, dict[str, torch.Tensor], Any]):
    with raises(Input, "no plan 'a'"):
        built[0].execute_plan_at_index({}, None, "a")


@pytest.mark.parametrize(
    ("override", "kind", "words"),
    [
        (([9], [[4]], [[1]]), Input, ("override of UID 9",)),
        (([1], [[4, 4]], [[4, 1]]), Input, ("tensor 'x' (UID 1)", "[4, 4]", "1 dims")),
        (([1], [[-4]], [[1]]), Graph, ("override_shape of UID 1", "[-4]")),
        ((1, [[4]], [[1]]), Input, ("override_uids", "lists")),
        (([1, 2], [[4], [5]], [[1], [1]]), Graph, ("tensor 'y'", "[5]", "[4]")),
    ],
)
def test_override(override: Any, kind: type[Exception], words: tuple[str, ...]):
    g = new(is_override_shape_enabled=True)
    g.relu(g.tensor([8], name="x").set_uid(1)).set_output(True).set_name("y").set_uid(2)
    g.build()
    uids, shapes, strides = override
    with raises(kind, *words):
        g.execute({}, None, override_uids=uids, override_shapes=shapes, override_strides=strides)


def test_override_of_a_fixed_graph(built: tuple[Any, dict[str, torch.Tensor], Any]):
    with raises(Step, "fixed shapes"):
        built[0].execute({}, None, override_uids=[1], override_shapes=[[4, 32]], override_strides=[[32, 1]])


# ** setters and heuristics **


def test_values_of_other_kinds():
    g = new()
    y = g.relu(g.tensor([4], name="x"), name="act")
    for wrong in ("yes", [], torch.zeros(2)):
        for setter in ("set_output", "set_is_virtual"):
            with raises(Graph, f"{setter}() of tensor 'act::OUT_0' takes True or False"):
                getattr(y, setter)(wrong)
    assert y.set_output(1).is_marked and not y.set_output(None).is_marked
    with raises(Graph, "the dims of tensor 'act::OUT_0'", "expected whole numbers"):
        y.set_dim(torch.tensor([2.5, 1.0]))
    y.set_output(True)
    for wrong in (3, "A", [cudnn.heur_mode.A, 3]):
        with raises(NotSupported, "is no heuristic, expected one of cudnn.heur_mode"):
            g.build(wrong)
        g = new()
        g.relu(g.tensor([4], name="x"), name="act").set_output(True)
