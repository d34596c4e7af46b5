"""Variant packs as scripts of cuDNN write them: keys without a tensor, uint8 for BOOLEAN, results in place."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from ait_mlir.graph.staging import are_apart
from tests.graph.bad_input import Graph, Input, new, raises

BOOLEAN = cudnn.data_type.BOOLEAN


def run(g: Any, pack: dict[Any, Any]) -> None:
    if g.get_execution_plan_count() == 0:
        g.build([cudnn.heur_mode.A])
    g.execute(pack, torch.empty(g.get_workspace_size(), dtype=torch.uint8))


def test_keys_that_the_graph_does_not_read_are_ignored():
    g = new()
    x, unread = g.tensor([8], name="x"), g.tensor([8], name="unread")
    y = g.exp(x).set_output(True)
    data, out = torch.randn(8), torch.empty(8)
    pack = {x: data, y: out, unread: data, None: None, 99: data, "unread": data}
    for _ in range(2):
        out.zero_()
        run(g, pack)
        torch.testing.assert_close(out, data.exp())
    with raises(Input, "has no 'z' for the variant pack"):
        run(g, {x: data, y: out, "z": data})


def test_another_graph_is_named_with_its_place():
    g, other = new(), new()
    x = other.tensor([8], name="x")
    with raises(Graph, "tensor 'x' of graph 'g' (made at ", "not of graph 'g' (made at "):
        g.exp(x)
    with raises(
        Graph, "ragged offset of tensor 'q' is tensor 'x' of graph 'g' (made at ", "not of graph 'g' (made at "
    ):
        g.tensor([8], name="q").set_ragged_offset(x)


def test_tensors_of_the_original_are_keys_of_a_deserialized_graph():
    g = new()
    x = g.tensor([8], name="x")
    y = g.exp(x).set_output(True)
    g.build([cudnn.heur_mode.A])
    loaded = new()
    loaded.deserialize(handle_=cudnn.create_handle(device="cpu"), pyobj=g.serialize())
    data, out = torch.randn(8), torch.empty(8)
    loaded.execute({x: data, y: out}, torch.empty(g.get_workspace_size(), dtype=torch.uint8))
    torch.testing.assert_close(out, data.exp())


@pytest.fixture(scope="module")
def masks() -> tuple[Any, ...]:
    g = new()
    x, m = g.tensor([4, 16], name="x"), g.tensor([4, 16], name="m", data_type=BOOLEAN)
    positive = g.cmp_gt(x, g.tensor_scalar(0.0), name="positive").set_output(True).set_data_type(BOOLEAN)
    kept = g.binary_select(x, g.tensor_scalar(0.0), m, name="kept").set_output(True)
    g.build([cudnn.heur_mode.A])
    return g, x, m, positive, kept


def bits(mask: torch.Tensor) -> torch.Tensor:
    return (mask.view(-1, 8) * torch.tensor([1 << i for i in range(8)])).sum(1).to(torch.uint8)


@pytest.mark.parametrize("kind", ["bool", "bytes", "bits"])
def test_a_boolean_is_bool_or_bytes_or_packed_bits(masks: tuple[Any, ...], kind: str):
    g, x, m, positive, kept = masks
    torch.manual_seed(1)
    data, mask = torch.randn(4, 16), torch.randint(0, 2, (4, 16)).bool()
    given = {"bool": mask, "bytes": mask.to(torch.uint8) * 6, "bits": bits(mask)}[kind]
    out = {"bool": torch.empty(4, 16, dtype=torch.bool), "bytes": torch.empty(4, 16, dtype=torch.uint8)}.get(
        kind, torch.empty(4, 2, dtype=torch.uint8)
    )
    values = torch.empty(4, 16)
    run(g, {x: data, m: given, positive: out, kept: values})
    torch.testing.assert_close(values, torch.where(mask, data, 0))
    assert torch.equal(out.view(-1), bits(data > 0) if kind == "bits" else (data > 0).to(out.dtype).view(-1))


def test_uint8_of_another_size_is_refused(masks: tuple[Any, ...]):
    g, x, m, positive, kept = masks
    pack = {x: torch.zeros(4, 16), m: torch.zeros(3, dtype=torch.uint8), positive: torch.zeros(8, dtype=torch.uint8)}
    with raises(Input, "tensor 'm' has dims [3]"):
        run(g, {**pack, kept: torch.zeros(4, 16)})


def test_an_output_may_take_the_place_of_an_input():
    g = new()
    x, w = g.tensor([8, 8], name="x"), g.tensor([8, 8], name="w")
    y = g.matmul(x, w, name="y").set_output(True)
    data, weight = torch.randn(8, 8), torch.randn(8, 8)
    expected = data @ weight
    run(g, {x: data, w: weight, y: data})
    torch.testing.assert_close(data, expected, atol=1e-5, rtol=1e-5)


def test_an_output_may_be_larger():
    g = new()
    x = g.tensor([4, 8], name="x")
    y = g.exp(x).set_output(True)
    data, out = torch.randn(4, 8), torch.full((5, 9), 7.0)
    run(g, {x: data, y: out})
    torch.testing.assert_close(out.view(-1)[:32].view(4, 8), data.exp())
    assert (out.view(-1)[32:] == 7).all()
    with raises(Input, "has dims [8, 4]"):
        run(g, {x: data, y: torch.empty(8, 4)})
    with raises(Input, "has dims [5, 9]"):
        run(g, {x: torch.randn(5, 9), y: out})


def test_halves_of_rows_are_updated_in_place():
    """The rotation of cuDNN's test of rope: both results lie where the operands lie."""
    rows = torch.randn(6, 32)
    a, b = rows[:, :8], rows[:, 8:16]
    g = new()
    ta, tb = g.tensor_like(a, name="a"), g.tensor_like(b, name="b")
    difference = g.sub(ta, tb, name="difference").set_output(True)
    total = g.add(ta, tb, name="total").set_output(True)
    expected = rows.clone()
    expected[:, :8], expected[:, 8:16] = a - b, a + b
    run(g, {ta: a, tb: b, difference: a, total: b})
    torch.testing.assert_close(rows, expected)


def test_which_tensors_are_known_to_be_apart():
    assert are_apart((0, (6, 8), (32, 1)), (8, (6, 8), (32, 1)))
    assert not are_apart((0, (6, 9), (32, 1)), (8, (6, 8), (32, 1)))
    assert are_apart((0, (4,), (1,)), (4, (4,), (1,)))
    assert not are_apart((0, (5,), (1,)), (4, (4,), (1,)))
    assert not are_apart((24, (6, 8), (32, 1)), (28, (6, 8), (32, 1)))
    assert not are_apart((28, (6, 8), (32, 1)), (0, (6, 8), (32, 1)))  # a row that goes on in the next


def test_the_bytes_of_the_other_16_bit_float_are_taken_with_a_warning():
    g = cudnn.pygraph(io_data_type=cudnn.data_type.HALF, handle=cudnn.create_handle(device="cpu"))
    x = g.tensor([4], name="x")
    y = g.relu(x, name="y").set_output(True)
    g.build()
    given, out = torch.tensor([1.0, -2.0, 0.5, 3.0]).half(), torch.empty(4, dtype=torch.bfloat16)
    with pytest.warns(RuntimeWarning, match="its bytes are read as float16") as told:
        g.execute({x: given.view(torch.bfloat16), y: out}, None)
    assert [str(w.message).partition(" is ")[0] for w in told] == ["tensor 'x'", "tensor 'y::OUT_0'"]
    assert torch.equal(out.view(torch.float16), given.relu())
