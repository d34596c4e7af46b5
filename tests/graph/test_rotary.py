"""Rotary position embeddings."""

from __future__ import annotations

import pytest
import torch

from tests.graph.cases import Cases

CASES = {
    "whole rows": ((2, 3, 5, 16), (1, 1, 5, 16), {}),
    "the last elements": ((2, 3, 5, 16), (1, 1, 5, 6), {"rope_dim": 6}),
    "scaled": ((2, 3, 5, 16), (2, 1, 5, 8), {"rope_dim": 8, "output_scale": 0.5}),
}


def rotated(x: torch.Tensor, angles: torch.Tensor, scale: float) -> torch.Tensor:
    count = angles.shape[-1]
    before, behind = x[..., :-count], x[..., x.shape[-1] - count :]
    turned = torch.cat([-behind[..., count // 2 :], behind[..., : count // 2]], -1)
    return scale * torch.cat([before, behind * angles.cos() + turned * angles.sin()], -1)


@pytest.fixture(scope="module")
def cases(place: str) -> Cases:
    torch.manual_seed(5)
    c = Cases(place)
    for name, (dims, of_angles, options) in CASES.items():
        x, angles = torch.randn(dims).half(), torch.rand(of_angles) * 6
        expected = rotated(x.double(), angles.double(), options.get("output_scale", 1.0))
        y = c.graph.rope(input=c.input(x), freqs=c.input(angles), **options)
        c.output(name, y, expected, torch.empty(dims, dtype=torch.half))
    return c.run()


@pytest.mark.parametrize("name", CASES)
def test_rotation(cases: Cases, name: str):
    cases.check(name)
