"""How tensors lie in memory: inputs whose elements overlap, outputs with gaps, the strides of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from tests.graph.bad_input import Graph, NotSupported, new, raises

OVERLAPPING = {
    "windows": ((8, 3), (1, 1)),
    "rows that overlap": ((4, 6), (4, 1)),
    "no multiples": ((3, 4), (7, 2)),
    "two dims": ((2, 3, 4), (5, 5, 1)),
    "a dim that repeats": ((2, 4, 3), (0, 1, 1)),
}


def run(g: Any, pack: dict[Any, Any]) -> None:
    g.build([cudnn.heur_mode.A])
    g.execute(pack, torch.empty(g.get_workspace_size(), dtype=torch.uint8))


def test_inputs_may_overlap():
    """Such a tensor is only read."""
    g, pack, expected = new(), dict[Any, Any](), list[tuple[torch.Tensor, torch.Tensor]]()
    for name, (dims, strides) in OVERLAPPING.items():
        data = torch.randn(64).as_strided(dims, strides)
        made = torch.empty(dims)
        x = g.tensor(dims, strides, name=name)
        y = g.exp(x).set_output(True)
        assert y.get_stride() == list(made.stride())
        pack |= {x: data, y: made}
        expected.append((made, data.exp()))
    run(g, pack)
    for made, wanted in expected:
        torch.testing.assert_close(made, wanted)


@pytest.mark.parametrize(("strides", "kind", "words"), [
    ((2, 1), Graph, ("strides [2, 1]", "dims [4, 3]", "overlap")),
    ((7, 2), NotSupported, ("stride 7", "no multiple of stride 2")),
])  # fmt: skip
def test_outputs_may_not_overlap(strides: Sequence[int], kind: Any, words: tuple[str, ...]):
    g = new()
    g.relu(g.tensor([4, 3]), name="act").set_output(True).set_stride(strides)
    with raises(kind, "node 'act'", "tensor 'act::OUT_0'", *words):
        g.validate()


def test_outputs_with_gaps():
    """Gaps keep what they have: along one dim, along several, and between neighbours."""
    g, x = new(), torch.randn(2, 3, 4)
    tx = g.tensor_like(x, name="x")
    pack, made = {tx: x}, list[tuple[torch.Tensor, torch.Tensor]]()
    for strides in ((12, 4, 1), (24, 8, 1), (48, 12, 2), (30, 5, 1), (1, 2, 12), (2, 4, 24)):
        memory = torch.full((120,), 7.0)
        y = g.neg(tx).set_output(True).set_stride(strides)
        pack[y] = memory.as_strided((2, 3, 4), strides)
        made.append((memory, pack[y]))
    run(g, pack)
    for memory, y in made:
        torch.testing.assert_close(y, -x)
        assert (memory == 7).sum() == 120 - 24


def test_results_take_the_strides_of_the_first_input_of_their_dims():
    g = new()
    row, x = g.tensor([1, 8], name="row"), g.tensor([4, 8], [20, 1], name="x")
    y = g.add(row, x).set_output(True)
    assert y.get_stride() == [20, 1]
    other = new()
    assert other.add(other.tensor([4, 8], [1, 4]), other.tensor([4, 8])).get_stride() == [1, 4]
    assert other.exp(other.tensor([4, 8], [0, 1])).get_stride() == [8, 1]
    one, data, memory = torch.randn(1, 8), torch.randn(4, 20), torch.full((4, 20), 7.0)
    run(g, {row: one, x: data[:, :8], y: memory[:, :8]})
    torch.testing.assert_close(memory[:, :8], one + data[:, :8])
    assert (memory[:, 8:] == 7).all()


def test_a_slice_has_the_type_of_its_input():
    g = new()
    part = g.slice(g.tensor([4, 8], data_type=cudnn.data_type.HALF), [slice(0, 4), slice(2, 6)])
    g.exp(part).set_output(True)
    g.validate()
    assert part.get_data_type() is cudnn.data_type.HALF
