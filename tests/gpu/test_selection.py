"""Selection by time on the card: what it chooses runs and is right, and nothing is measured twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ait_mlir.driver import compile_module
from ait_mlir.runtime import Model
from tests.selection.cards import parse
from tests.selection.test_choices import pinned

pytestmark = pytest.mark.gpu

RANGES = (
    '#ait.kernel<"ranges", {axis = "b", upto = [8 : i64, 100 : i64], ways = ['
    '{kernels = [#ait.kernel<"native", {tile_m = 64 : i64, tile_n = 64 : i64}>]}, '
    '{kernels = [#ait.kernel<"cublaslt", {algo = 0 : i64}>, #ait.kernel<"native", {}>], cut = 0 : i64}, '
    '{kernels = [#ait.kernel<"hopper", {}>]}]}>'
)


def run_and_compare(path: Path, weight: np.ndarray, bias: np.ndarray) -> None:
    import torch

    rng = np.random.default_rng(1)
    with Model(path) as model:
        for b in (1, 8, 9, 100, 101, 300):
            x = rng.standard_normal((b, 64)).astype(np.float16)
            y = torch.full((b, 128), float("nan"), dtype=torch.float16, device="cuda")
            for _ in range(3):  # plain, recorded, replayed
                model.run_with_tensors({"x": torch.from_numpy(x).cuda()}, {"y": y}, graph_mode=True)
            product = x.astype(np.float64) @ weight.astype(np.float64).T
            exact = np.maximum(product + bias, 0)
            # where the epilogue is a launch of its own, the product is rounded before it, and the result after it
            roundings = (np.spacing(np.abs(a).astype(np.float16)).astype(np.float64) for a in (product, exact))
            assert (np.abs(y.cpu().numpy() - exact) <= 0.51 * sum(roundings) + 1e-4).all()


def weights() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((128, 64)).astype(np.float16), rng.standard_normal(128).astype(np.float16)


def test_ranges_run(tmp_path: Path) -> None:
    w, v = weights()
    path = compile_module(parse(pinned(RANGES, "f16")), "cuda", output=tmp_path / "g.ait", constants={"w": w, "v": v})
    run_and_compare(path, w, v)


def test_measured_kernels_are_right_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_TIMINGS", str(tmp_path / "timings.sqlite3"))
    w, v = weights()
    text = pinned("X", "f16").replace(" {kernel = X}", "")
    chosen: list[str] = []
    for i in range(2):
        module = parse(text)
        path = compile_module(
            module, "cuda", output=tmp_path / f"{i}.ait", constants={"w": w, "v": v}, measure=True, points="min+max"
        )
        chosen.append(str(module))
        run_and_compare(path, w, v)
        monkeypatch.setattr("ait_mlir.passes.meter.DeviceMeter.race", lambda *_: pytest.fail("measured again"))
    assert chosen[0] == chosen[1]
