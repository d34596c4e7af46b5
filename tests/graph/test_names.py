"""The names that scripts of cuDNN use beside the operations: versions, engines and knobs, errors, keywords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from packaging.version import Version

import ait_mlir.graph as cudnn
from tests.graph.bad_input import Graph, Input, NotSupported, Step, new, product, raises

KERNEL_CFG = cudnn.knob_type.KERNEL_CFG


def lowered() -> Any:
    """x @ w, before it has plans."""
    g = new()
    product(g).set_output(True)
    g.build_operation_graph()
    return g


def test_guards_for_versions_mean_those_of_cudnn():
    assert cudnn.backend_version() >= 91800
    numbers = [int(n) for n in cudnn.backend_version_string().split(".")]
    assert cudnn.backend_version() == numbers[0] * 10000 + numbers[1] * 100 + numbers[2]
    assert Version(cudnn.__version__) >= Version("1.23.0")


def test_plans_by_engine_and_knobs():
    g = lowered()
    assert g.get_engine_count() > 0
    for engine in range(g.get_engine_count()):
        (one,) = g.get_knobs_for_engine(engine)
        assert (one.type, one.min_value, one.stride) == (KERNEL_CFG, 0, 1)
        for number in range(one.min_value, one.max_value + 1, one.stride):
            g.create_execution_plan(engine, {KERNEL_CFG: number})
    assert g.get_execution_plan_count() >= g.get_engine_count()
    g.build_plans(policy=cudnn.build_plan_policy.HEURISTICS_CHOICE)
    a, b = g.get_inputs()
    x, w, y = torch.randn(4, 8), torch.randn(8, 2), torch.empty(4, 2)
    g.execute({a: x, b: w, g.get_outputs()[0]: y}, torch.empty(g.get_workspace_size(), dtype=torch.uint8))
    torch.testing.assert_close(y, x @ w, atol=1e-5, rtol=1e-5)


def test_bad_engines_and_knobs():
    g = lowered()
    count = g.get_engine_count()
    with raises(Input, f"has no engine {count}; it has {count}, from 0 on"):
        g.get_knobs_for_engine(count)
    with raises(NotSupported, "the knobs of engine", "KERNEL_CFG from 0 to"):
        g.create_execution_plan(0, {KERNEL_CFG: 99})
    with raises(NotSupported, "the knobs of engine"):
        g.create_execution_plan(0, {cudnn.knob_type.TILE_SIZE: 0})
    g.create_execution_plan(0)
    with raises(Input, "policy is 'ALL'"):
        g.build_plans(policy="ALL")


def test_the_last_error():
    with raises(Graph, "tensor 'x' is virtual"):
        new().tensor([4], name="x", is_virtual=True)
    assert "tensor 'x' is virtual" in cudnn.get_last_error_string()


def test_keywords():
    g = new()
    data = torch.randn(4)
    assert g.tensor_like(pyobj=data).get_dim() == [4]
    first = g.tensor_like(input=g.tensor([3], name="a", uid=7), name="b")
    assert (first.get_name(), first.get_dim()) == ("b", [3])
    assert g.query_tensor_attributes_of_uid(uid=7).get_name() == "a"
    with raises(Input, "no tensor with UID 8"):
        g.query_tensor_attributes_of_uid(8)
    with pytest.raises(TypeError, match="takes one tensor, got 2"):
        g.tensor_like(data, input=data)


def test_kinds_of_nodes():
    g = new()
    g.relu(product(g))
    assert [n.node_type for n in g.nodes] == [cudnn.NodeType.MATMUL, cudnn.NodeType.POINTWISE]


def test_attention_under_its_old_name():
    g = new()
    q, k, v = (g.tensor([1, 2, 4, 8], name=n) for n in "qkv")
    o, stats = g.scaled_dot_product_flash_attention(q=q, k=k, v=v, is_inference=True, name="attention")
    assert (o.get_dim(), stats) == ([1, 2, 4, 8], None)
    assert cudnn.sdpa_capabilities() == frozenset()


# ** device properties **


def test_device_properties_survive_serialisation():
    found = cudnn.create_device_properties(0)
    again = cudnn.create_device_properties(found.serialize())
    assert again == found
    assert again.serialize() == found.serialize()
    assert cudnn.create_device_properties('{"device": "cuda:0", "arch": "sm_80"}').kind == "cuda"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{", "not from serialize()"),
        ('{"device": "cuda:0"}', "not from serialize()"),
        ('{"device": "tpu", "arch": "x"}', "'tpu' is no device"),
        (99, "no CUDA device 99"),
        (True, "True is no device"),
    ],
)
def test_bad_device_properties(given: Any, words: str):
    with raises(Input, words):
        cudnn.create_device_properties(given)


@pytest.mark.full
def test_a_graph_is_built_for_a_card_that_is_not_here():
    """Where the card is, the serialized graph runs without a compiler."""
    properties = cudnn.create_device_properties('{"device": "cuda:0", "arch": "sm_87"}')
    assert not properties.is_here
    g = cudnn.pygraph(name="g", io_data_type=cudnn.data_type.FLOAT, device_property=properties)
    x = g.tensor([8], name="x")
    y = g.exp(x).set_output(True)
    g.build([cudnn.heur_mode.A])
    data = g.serialize(as_bytes=True)
    assert b'"target": "cuda"' in data
    assert len(data) > 10_000
    for call in (lambda: g.execute({x: torch.zeros(8), y: torch.zeros(8)}), lambda: g.get_workspace_size()):
        with raises(Step, "compiled for sm_87", "this machine does not have", "serialize()"):
            call()
    with raises(Input, "the handle is of cpu, but device_property of cuda:0"):
        cudnn.pygraph(handle=cudnn.create_handle(device="cpu"), device_property=properties)
    with raises(Input, "device_property is a int"):
        cudnn.pygraph(device_property=3)


# ** kernel caches **


def test_a_kernel_cache_takes_libraries_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def built(cache: Any) -> Any:
        g = new(kernel_cache=cache)
        g.exp(g.tensor([8, 3], name="x")).set_output(True)
        g.build([cudnn.heur_mode.FALLBACK])
        return g

    cache = cudnn.create_kernel_cache()
    built(cache)
    text = cache.serialize()
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path))
    other = cudnn.create_kernel_cache()
    other.deserialize(text)
    (library,) = Path(other.path).glob("libraries/*/*.so")
    assert library.stem in text
    with raises(Input, "has libraries already"):
        other.deserialize(text)
    assert other.serialize() == text


@pytest.mark.parametrize("text", ["", "{}", 3, '{"format": "x", "libraries": {}}', '{"format": 1}'])
def test_damaged_kernel_caches(text: Any):
    with raises(Input, "not from serialize() of a kernel cache"):
        cudnn.create_kernel_cache().deserialize(text)
    with raises(Input, "kernel_cache is a str"):
        cudnn.pygraph(kernel_cache="x")
