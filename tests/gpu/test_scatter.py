"""Scatters with duplicates on a card."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import ait_mlir
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
from tests.kernels.harness import Case, Library
from tests.kernels.scatter import (
    ORDERED_SIZES,
    added_along,
    check_order,
    check_ordered,
    check_places,
    ordered_cases,
    places_ordered,
    sums,
)

pytestmark = pytest.mark.gpu


def test_sums_have_the_bits_of_one_place_after_the_other(tmp_path: Path) -> None:
    cases = sums()
    library = Library([case for case, _, _ in cases], tmp_path, Target("cuda", default_arch("cuda")))
    check_order(library, cases, (1, 40, 300, 4096, 4100, 20000, 70000))


def test_sums_of_long_rows_have_the_bits_of_one_place_after_the_other(tmp_path: Path) -> None:
    """4,096 elements and the tags are the 48 KiB that a block has without asking; 131,072 are three ranges."""
    widths = (2100, 4096, 131_072)
    cases = [(added_along("f32", 64, width), np.float32, 64) for width in widths]
    library = Library([case for case, _, _ in cases], tmp_path, Target("cuda", default_arch("cuda")))
    check_order(library, cases, (5000,), (1, 300, 200_000))


def test_places_are_ordered_at_the_borders_of_blocks_and_clusters(tmp_path: Path) -> None:
    orders = {size: places_ordered(size) for size in ORDERED_SIZES}
    library = Library(list(orders.values()), tmp_path, Target("cuda", default_arch("cuda")))
    check_places(library, orders, (0, 1, 2, 4096, 4097, 8191, 8192, 8193, 12288, 40000, 65535, 65536, 65537, 70000))


def rows_sorted(t: str) -> Case:
    """Rows in ascending order, and the places of their elements."""
    return Case(
        f"""ait.graph @g(%x: !ait.tensor<b x s x {t}>) dims {{b = 0 to 20, s = 0 to 70000}} {{
          %v, %p = ait.sort %x dim 1 : !ait.tensor<b x s x {t}>, !ait.tensor<b x s x i64>
          ait.output "v" %v : !ait.tensor<b x s x {t}>
          ait.output "p" %p : !ait.tensor<b x s x i64>
        }}"""
    )


def test_rows_at_the_borders_of_blocks_and_clusters_are_sorted(tmp_path: Path) -> None:
    types = {"i8": np.int8, "f16": np.float16, "f32": np.float32, "i64": np.int64}
    cases = {t: rows_sorted(t) for t in types}
    library = Library(list(cases.values()), tmp_path, Target("cuda", default_arch("cuda")))
    rng = np.random.default_rng(9)
    for t, dtype in types.items():
        for rows, length in ((1, 4096), (1, 4097), (3, 40000), (16, 65536), (17, 4097), (1, 65537)):
            x = rng.integers(-100, 100, (rows, length)).astype(dtype)  # many are equal
            values, places = library.run(cases[t], {"b": rows, "s": length}, [x])
            want = np.argsort(x, axis=1, kind="stable")
            np.testing.assert_array_equal(places, want)
            np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))


def test_scatters_in_a_given_order_have_the_bits_of_that_order_or_of_its_pieces(tmp_path: Path) -> None:
    cases = ordered_cases()
    library = Library(list(cases.values()), tmp_path, Target("cuda", default_arch("cuda")))
    for name, case in cases.items():
        if name != "order":
            check_ordered(library, cases["order"], case, (1, 40, 300, 4096, 4100, 20000, 70000))


class Layers(nn.Module):
    """Three layers over the edges of a graph, which add scaled rows, add rows by a repeated index, and take maxima."""

    def __init__(self, edges: torch.Tensor, is_input: bool) -> None:
        super().__init__()
        self.near, self.is_input = nn.ModuleList(nn.Linear(24, 24) for _ in range(3)), is_input
        self.register_buffer("edges", edges)

    def forward(self, x: torch.Tensor, edges: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        edges = edges if self.is_input else self.edges
        y = self.near[0](x)
        x = torch.zeros_like(x).index_add(0, edges[1], y[edges[0]] * scale[:, None])
        y = self.near[1](x)[edges[0]]
        x = x + torch.zeros_like(x).scatter_add(0, edges[1][:, None].expand_as(y), y)
        y = self.near[2](x)[edges[0]]
        return x.index_reduce(0, edges[1], y, "amax")


@pytest.mark.parametrize("is_input", [True, False])
@pytest.mark.parametrize("count", [3000, 9000])
def test_layers_over_the_edges_of_a_graph(count: int, is_input: bool) -> None:
    torch.manual_seed(0)
    inputs = torch.randn(700, 24), torch.randint(700, (2, count)), torch.rand(count)
    model = Layers(inputs[1], is_input).eval()
    with torch.no_grad():
        want = model.double()(inputs[0].double(), inputs[1], inputs[2].double()).float()
    given = tuple(t.cuda() for t in inputs)
    compiled = ait_mlir.compile(model.float().cuda(), given, target="cuda")
    found = compiled(*given)
    torch.testing.assert_close(found.cpu(), want, rtol=1e-3, atol=1e-3)
    assert torch.equal(found, compiled(*given))
