"""Grouped products of a mixture of experts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from tests.graph.bad_input import Graph, new, raises
from tests.graph.cases import Cases

MODE = cudnn.moe_grouped_matmul_mode
EXPERTS, TOKENS, SIZE, RESULTS, TOP_K = 3, 10, 16, 8, 2
STARTS = torch.tensor([0, 4, 4], dtype=torch.int32)
"""The second expert has no tokens."""


def grouped(token: torch.Tensor, weight: torch.Tensor, ends: list[int]) -> torch.Tensor:
    result, start = torch.zeros(len(token), weight.shape[2], dtype=torch.float64), 0
    for expert, end in enumerate(ends):
        result[start:end] = token[start:end].double() @ weight[expert].double()
        start = end
    return result


@pytest.fixture(scope="module")
def cases(place: str) -> Cases:
    torch.manual_seed(3)
    c = Cases(place)
    token, weight = torch.randn(1, TOKENS, SIZE).half(), torch.randn(EXPERTS, RESULTS, SIZE).half().mT
    t, w, starts = c.input(token), c.input(weight), c.input(STARTS.reshape(-1, 1, 1))
    plain = grouped(token[0], weight, [4, 4, TOKENS])

    def out(name: str, y: Any, expected: torch.Tensor) -> None:
        c.output(name, y, expected[None], torch.empty(1, *expected.shape, dtype=torch.half), 2e-2)

    def index(values: list[int]) -> tuple[torch.Tensor, Any]:
        data = torch.tensor(values, dtype=torch.int32)
        return data.long(), c.input(data.reshape(1, -1, 1))

    out("NONE", c.graph.moe_grouped_matmul(t, w, starts), plain)
    bounds = c.input(torch.tensor([0, 4, 4, 9], dtype=torch.int32).reshape(-1, 1, 1))
    out("an end of the last group", c.graph.moe_grouped_matmul(t, w, bounds), grouped(token[0], weight, [4, 4, 9]))
    routed, at = index([3, 0, 9, 9, 1, 2, 7])
    y = c.graph.moe_grouped_matmul(t, w, starts, at, mode=MODE.GATHER)
    out("GATHER", y, grouped(token[0, routed], weight, [4, 4, 7]))

    # rows in the order of experts: the token of each, and which of its choices the expert is
    of_token, ti = index([0, 1, 2, 3, 4, 0, 1, 2, 3, 4])
    slot, ks = index([0, 0, 1, 0, 1, 1, 1, 0, 1, 0])
    y = c.graph.moe_grouped_matmul(t, w, starts, ti, ks, mode=MODE.SCATTER, top_k=TOP_K)
    scattered = torch.zeros_like(plain)
    scattered[of_token * TOP_K + slot] = plain
    out("SCATTER", y, scattered)
    scores = torch.rand(1, TOKENS // TOP_K, TOP_K)
    y = c.graph.moe_grouped_matmul(t, w, starts, ti, ks, top_k_scores=c.input(scores), mode=MODE.COMBINE, top_k=TOP_K)
    shares = scores.double().reshape(-1, 1) * scattered
    out("COMBINE", y, shares.reshape(TOKENS // TOP_K, TOP_K, RESULTS).sum(1))
    partly, rest = index([0, 1, 2, 3, 4, 0, 1, 2, 3, -1])
    y = c.graph.moe_grouped_matmul(t, w, bounds, rest, ks, mode=MODE.SCATTER, top_k=TOP_K)
    scattered = torch.zeros_like(plain)
    scattered[partly[:9] * TOP_K + slot[:9]] = grouped(token[0], weight, [4, 4, 9])[:9]
    out("SCATTER without a place", y, scattered)
    return c.run()


@pytest.mark.parametrize(
    "name", ["NONE", "an end of the last group", "GATHER", "SCATTER", "COMBINE", "SCATTER without a place"]
)
def test_modes(cases: Cases, name: str):
    cases.check(name)


def test_groups_on_a_device(device: str):
    torch.manual_seed(4)
    c = Cases(device)
    token, weight = torch.randn(1, TOKENS, SIZE), torch.randn(EXPERTS, RESULTS, SIZE).mT
    y = c.graph.moe_grouped_matmul(c.input(token), c.input(weight), c.input(STARTS.reshape(-1, 1, 1)))
    expected = grouped(token[0], weight, [4, 4, TOKENS])[None]
    c.output("y", y, expected, torch.empty(1, TOKENS, RESULTS), 1e-4)
    c.run().check("y")


def inputs(g: Any) -> dict[str, Any]:
    int32 = cudnn.data_type.INT32
    return {
        "token": g.tensor([1, 8, 4], name="token"),
        "weight": g.tensor([2, 4, 6], name="weight"),
        "first_token_offset": g.tensor([2, 1, 1], data_type=int32, name="starts"),
        "token_index": g.tensor([1, 8, 1], data_type=int32, name="index"),
        "token_ks": g.tensor([1, 8, 1], data_type=int32, name="slots"),
    }


BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "mode NONE takes no token_index": ("moe", {}),
    "mode GATHER takes no token_ks": ("moe", {"mode": MODE.GATHER}),
    "mode COMBINE needs top_k_scores": ("moe", {"mode": MODE.COMBINE, "top_k": 2}),
    "top_k is 0, expected a whole number": ("moe", {"mode": MODE.SCATTER}),
    "mode is 'GATHER', expected one of cudnn.moe_grouped_matmul_mode": ("moe", {"mode": "GATHER"}),
}


@pytest.mark.parametrize("words", BAD)
def test_what_a_mode_needs(words: str):
    g = new()
    name, options = BAD[words]
    g.moe_grouped_matmul(**inputs(g), **options, name=name).set_output(True)
    with raises(Graph, "node 'moe' (moe_grouped_matmul)", words):
        g.validate()


@pytest.mark.parametrize(
    ("name", "dims", "words"),
    [
        ("token", [1, 8, 5], "token is [1, tokens, size] and weight [experts, size, results]"),
        ("first_token_offset", [4, 1, 1], "tensor 'first_token_offset' has dims [4, 1, 1], expected [2, 1, 1]"),
        ("token_index", [1, 7, 1], "tensor 'token_index' has dims [1, 7, 1], expected [1, 8, 1]"),
    ],
)
def test_dims_that_do_not_fit(name: str, dims: list[int], words: str):
    g = new()
    of_type = cudnn.data_type.FLOAT if name == "token" else cudnn.data_type.INT32
    given = {**inputs(g), name: g.tensor(dims, data_type=of_type, name=name)}
    g.moe_grouped_matmul(**given, mode=MODE.SCATTER, top_k=2, name="moe").set_output(True)
    with raises(Graph, "node 'moe'", words):
        g.validate()
