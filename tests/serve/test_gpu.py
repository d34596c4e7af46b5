"""Requests to a model on a card, without Ray."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from ait_mlir.serve.server import Server
from tests.serve.test_joining import TEXT, T, W, answers, compiled, expected, inputs

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(tmp_path_factory.mktemp("net"), TEXT, "cuda", w=W, t=T)


@pytest.mark.parametrize("num_runtimes", [1, 2])
def test_requests_share_runs_on_a_card(net: str, tmp_path: Path, num_runtimes: int) -> None:
    seen: list[int] = []
    server = Server(net, "n", num_runtimes=num_runtimes, on_run=lambda rows, seconds: seen.append(rows))
    given = [inputs(1, 1), inputs(2, 2), inputs(1, 3), inputs(4, 4), inputs(1, 5, at=2)]
    for _ in range(3):  # the last rounds have short runs, on the event loop
        for i, found in zip(given, answers(server, *given), strict=True):
            np.testing.assert_allclose(found["z"], expected(i), rtol=1e-4)
    assert sorted(seen) == [1] * 3 + [4] * 6
    save_file({"w": 2 * W}, tmp_path / "w")
    asyncio.run(server.set_weights(str(tmp_path / "w")))
    np.testing.assert_allclose(answers(server, given[0])[0]["z"], expected(given[0], 2 * W), rtol=1e-4)
    asyncio.run(server.set_weights(None))
    np.testing.assert_allclose(answers(server, given[0])[0]["z"], expected(given[0]), rtol=1e-4)
    asyncio.run(server.check_health())
