"""Selection by time on the card: what it chooses runs and is right, and nothing is measured twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ait_mlir.driver import compile_module
from ait_mlir.host.settings import MEASURE_DEVICES
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import Point
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from ait_mlir.selection.meter import DeviceMeter
from ait_mlir.selection.tasks import Task
from tests.selection.cards import parse, tasks_of
from tests.selection.test_choices import pinned

pytestmark = pytest.mark.gpu

RANGES = (
    '#ait.kernel<"ranges", {axis = "b", upto = [8 : i64, 100 : i64], candidates = ['
    '{kernels = [#ait.kernel<"native", {tile_m = 64 : i64, tile_n = 64 : i64}>]}, '
    '{kernels = [#ait.kernel<"cublaslt", {id = 66 : i64, tile = 20 : i64}>, #ait.kernel<"native", {}>], cut = "epilogue"}, '
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
    path = compile_module(
        parse(pinned(RANGES, "f16")), CompileOptions("cuda"), output=tmp_path / "g.ait", constants={"w": w, "v": v}
    )
    run_and_compare(path, w, v)


def test_measured_kernels_are_right_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_TIMINGS", str(tmp_path / "timings.sqlite3"))
    w, v = weights()
    text = pinned("X", "f16").replace(" {kernel = X}", "")
    chosen: list[str] = []
    for i in range(2):
        module = parse(text)
        path = compile_module(
            module,
            CompileOptions("cuda", measure=True, points="min+max"),
            output=tmp_path / f"{i}.ait",
            constants={"w": w, "v": v},
        )
        chosen.append(str(module))
        run_and_compare(path, w, v)
        monkeypatch.setattr("ait_mlir.selection.meter.DeviceMeter.race", lambda *_: pytest.fail("measured again"))
    assert chosen[0] == chosen[1]


TWO = """
ait.graph @two(%x: !ait.tensor<b x 64 x f16>) dims {b = 1 to 300} {
  %w = ait.param "w" : !ait.tensor<128 x 64 x f16>
  %u = ait.param "u" : !ait.tensor<256 x 128 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 128 x f16>
  %1 = ait.gemm rcr %0, %u : !ait.tensor<b x 256 x f16>
  ait.output "y" %1 : !ait.tensor<b x 256 x f16>
}
"""


def test_two_cards_time_kernels_of_one_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("needs two cards in this machine")
    monkeypatch.setenv("AIT_TIMINGS", str(tmp_path / "timings.sqlite3"))
    used: list[int] = []
    timing = DeviceMeter._timing

    def noted(self: DeviceMeter, task: Task, point: Point, estimate: float, card: int) -> tuple[Any, int]:
        used.append(card)
        return timing(self, task, point, estimate, card)

    monkeypatch.setattr(DeviceMeter, "_timing", noted)
    rng = np.random.default_rng(0)
    w, u = ((rng.standard_normal(shape) / 8).astype(np.float16) for shape in ((128, 64), (256, 128)))
    cards = MEASURE_DEVICES.set((0, 1))
    try:
        path = compile_module(
            parse(TWO), CompileOptions("cuda", measure=True), output=tmp_path / "g.ait", constants={"w": w, "u": u}
        )
    finally:
        MEASURE_DEVICES.reset(cards)
    assert set(used) == {0, 1}
    x = rng.standard_normal((100, 64)).astype(np.float16)
    with Model(path) as model:
        for card in (0, 1):
            y = model.run_with_tensors([torch.from_numpy(x).to(f"cuda:{card}")])["y"]
            want = (x.astype(np.float64) @ w.T).astype(np.float16).astype(np.float64) @ u.T
            np.testing.assert_allclose(y.cpu().numpy(), want, atol=2e-2, rtol=2e-2)


def kernel_text(algorithm: tuple[int, ...]) -> str:
    (kernel,) = Candidate.of(None, [("cublaslt", {})]).naming(algorithm).attrs()
    return str(kernel)


def test_named_algorithms_run_at_other_sizes(tmp_path: Path) -> None:
    """Each that the library lists for one size, at sizes for which it may have to take another."""
    w, v = weights()
    (task,) = tasks_of(pinned("X", "f16").replace(" {kernel = X}", ""))
    plain = Candidate.of(None, [("cublaslt", {})])
    with DeviceMeter(Target("cuda", "sm_90a")) as meter:
        meter.build([(task, plain)])
        listed = {b: meter.algorithms(task, (b,), plain) for b in (1, 300)}
        times = meter.race(task, (300,), [plain, *(plain.naming(a) for a in listed[300])], 1e-5)
    assert all(listed.values()) and len(times) == 1 + len(listed[300])
    assert all(len(set(found)) == len(found) for found in listed.values())
    for i, algorithm in enumerate([listed[1][0], listed[300][0], listed[300][-1]]):
        module = parse(pinned(kernel_text(algorithm), "f16"))
        path = compile_module(module, CompileOptions("cuda"), output=tmp_path / f"{i}.ait", constants={"w": w, "v": v})
        run_and_compare(path, w, v)


@pytest.mark.parametrize("algorithm", [(66, 9999, 1, 0, 0, 0, 36, 0, 2), (123456, *(0,) * 8), (66, *(0,) * 8)])
def test_an_algorithm_that_the_library_does_not_have(tmp_path: Path, algorithm: tuple[int, ...]) -> None:
    w, v = weights()
    module = parse(pinned(kernel_text(algorithm), "f16"))
    path = compile_module(module, CompileOptions("cuda"), output=tmp_path / "g.ait", constants={"w": w, "v": v})
    run_and_compare(path, w, v)


def test_a_named_algorithm_is_not_taken_for_rows_that_begin_anywhere(tmp_path: Path) -> None:
    """Rows of 65 elements from the second on: the kernels of most algorithms want 16 bytes."""
    import torch

    text = """
ait.graph @g(%x: !ait.tensor<b x 65 x f16>) dims {b = 1 to 300} {
  %w = ait.param "w" : !ait.tensor<128 x 64 x f16>
  %0 = ait.slice %x offsets [0, 1] : !ait.tensor<b x 64 x f16>
  %1 = ait.gemm rcr %0, %w {kernel = KERNEL} : !ait.tensor<b x 128 x f16>
  ait.output "y" %1 : !ait.tensor<b x 128 x f16>
}
"""
    w, _ = weights()
    (task,) = tasks_of(pinned("X", "f16").replace(" {kernel = X}", ""))
    plain = Candidate.of(None, [("cublaslt", {})])
    with DeviceMeter(Target("cuda", "sm_90a")) as meter:
        meter.build([(task, plain)])
        first = meter.algorithms(task, (300,), plain)[0]
        (odd,) = tasks_of(text.replace(" {kernel = KERNEL}", ""))
        meter.build([(odd, plain)])
        assert meter.algorithms(odd, (300,), plain) == []
    module = parse(text.replace("KERNEL", kernel_text(first)))
    path = compile_module(module, CompileOptions("cuda"), output=tmp_path / "g.ait", constants={"w": w})
    rng = np.random.default_rng(1)
    with Model(path) as model:
        for b in (1, 7, 300):
            x = rng.standard_normal((b, 65)).astype(np.float16)
            y = torch.full((b, 128), float("nan"), dtype=torch.float16, device="cuda")
            model.run_with_tensors({"x": torch.from_numpy(x).cuda()}, {"y": y})
            exact = x[:, 1:].astype(np.float64) @ w.astype(np.float64).T
            assert (np.abs(y.cpu().numpy() - exact) <= 0.51 * np.spacing(np.abs(exact).astype(np.float16)) + 1e-4).all()


@pytest.mark.parametrize("m", [16, 128, 300])
def test_a_bias_and_a_residual_are_added_before_the_one_rounding(tmp_path: Path, m: int) -> None:
    """At 128 rows all that cuBLASLt names first split k. Product, residual and bias cancel, so that a rounding of the
    product, or of its sum with the residual, would show."""
    import torch

    n, k = 768, 3072
    text = f"""
ait.graph @g(%x: !ait.tensor<{m} x {k} x f16>, %r: !ait.tensor<{m} x {n} x f16>) {{
  %w = ait.param "w" : !ait.tensor<{n} x {k} x f16>
  %v = ait.param "v" : !ait.tensor<{n} x f16>
  %0 = ait.gemm rcr %x, %w epilogue(%v, %r) {{
  ^bb0(%acc: f32, %1: f32, %2: f32):
    %3 = ait.add %acc, %1 : f32
    %4 = ait.add %3, %2 : f32
    ait.yield %4 : f32
  }} {{kernel = #ait.kernel<"cublaslt", {{}}>}} : !ait.tensor<{m} x {n} x f16>
  ait.output "y" %0 : !ait.tensor<{m} x {n} x f16>
}}
"""
    rng = np.random.default_rng(2)
    w, x = (rng.standard_normal(shape).astype(np.float16) for shape in ((n, k), (m, k)))
    v = (64 + rng.standard_normal(n)).astype(np.float16)
    product = x.astype(np.float64) @ w.astype(np.float64).T
    r = (rng.standard_normal((m, n)) - product - v).astype(np.float16)
    exact = product + v + r

    def is_close(y: np.ndarray) -> bool:  # sums of float are some 1e-3 off
        return bool((np.abs(y - exact) <= 0.51 * np.spacing(np.abs(exact).astype(np.float16)) + 4e-3).all())

    assert is_close(exact.astype(np.float16))
    assert not is_close((product.astype(np.float16) + v.astype(np.float64) + r).astype(np.float16))
    assert not is_close(((product + r).astype(np.float16) + v.astype(np.float64)).astype(np.float16))
    path = compile_module(parse(text), CompileOptions("cuda"), output=tmp_path / "g.ait", constants={"w": w, "v": v})
    y = torch.full((m, n), float("nan"), dtype=torch.float16, device="cuda")
    with Model(path) as model:
        model.run_with_tensors({"x": torch.from_numpy(x).cuda(), "r": torch.from_numpy(r).cuda()}, {"y": y})
    assert is_close(y.cpu().numpy())
