"""Softmax and norms on the CPU beside the cases of their specifications: large means, special rows, PyTorch's errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ait_mlir.lowering.kernels import Target
from tests.kernels.harness import Library, assert_close, random_inputs, reference, ulp
from tests.kernels.rows import layer_norm
from tests.specs import SPECS

NORM = SPECS["layer_norm"].drawn("dynamic", "f32")
NO_WORSE = {
    (op, t): SPECS[op].drawn(form, t)
    for op, form in (("softmax", "last"), ("layer_norm", "dynamic"), ("rms_norm", "dynamic"))
    for t in ("f16", "bf16", "f32")
}
SPECIAL = {(kind, t): SPECS["softmax"].drawn(kind, t) for kind in ("last", "first") for t in ("f16", "bf16", "f32")}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library([NORM, *NO_WORSE.values(), *SPECIAL.values()], tmp_path_factory.mktemp("row"))


def test_large_means_lose_nothing(library: Library) -> None:
    check_large_means(library)


def check_large_means(library: Library) -> None:
    case, env = NORM, {"b": 2, "s": 1000}
    x = (np.random.default_rng(0).standard_normal((2, 1000)) + 30000).astype(np.float32)
    ones, zeros = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    (got,) = library.run(case, env, [x, ones, zeros])
    (want,) = reference(case, env, [x, ones, zeros])
    assert np.abs(got - want).max() < 1e-6


def test_constant_rows_normalise_to_the_bias(library: Library) -> None:
    case, env = NORM, {"b": 2, "s": 333}
    x = np.full((2, 333), 12345.678, np.float32)
    (got,) = library.run(case, env, [x, np.ones(333), np.full(333, 0.25)])
    np.testing.assert_array_equal(got, 0.25)


@pytest.mark.parametrize("kind", ["last", "first"])
@pytest.mark.parametrize("t", ["f16", "bf16", "f32"])
def test_special_rows_of_softmax(library: Library, kind: str, t: str) -> None:
    check_special_rows(library, kind, t)


def check_special_rows(library: Library, kind: str, t: str) -> None:
    rows = np.array(
        [[-np.inf] * 4, [0, -np.inf, -np.inf, 1], [np.inf, 0, 1, 2], [np.nan, 0, 0, 0], [60000, 60000, -60000, 0]]
    )
    case = SPECIAL[kind, t]
    x = rows if kind == "last" else rows.T
    env = {"b": 5, "s": 4} if kind == "last" else {"s": 4, "b": 5}
    (got,) = library.run(case, env, [x])
    (want,) = reference(case, env, [x.astype(got.dtype)])
    assert_close(got, want, ulps=4)


TORCH = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def errors(got: np.ndarray, want: np.ndarray) -> tuple[float, float]:
    error = np.abs(got.astype(np.float64) - want)
    return float(error.max()), float(np.sqrt(np.mean(error**2)))


@pytest.mark.parametrize("t", TORCH)
@pytest.mark.parametrize("op", ["softmax", "layer_norm", "rms_norm"])
def test_no_worse_than_torch(library: Library, op: str, t: str) -> None:
    """Maximum error within 2 times, RMSE within 1.5 times torch's, with a floor of one ulp."""
    case = NO_WORSE[op, t]
    env = {"b": 32, "s": 768}
    inputs = random_inputs(case, env, seed=3)
    (got,) = library.run(case, env, inputs)
    (want,) = reference(case, env, inputs)
    tensors = [torch.from_numpy(a.astype(np.float32)).to(TORCH[t]) for a in inputs]
    if op == "softmax":
        eager = torch.softmax(tensors[0], 1)
    elif op == "rms_norm":
        eager = torch.nn.functional.rms_norm(tensors[0], (768,), tensors[1], 1e-5)
    else:
        eager = torch.nn.functional.layer_norm(tensors[0], (768,), tensors[1], tensors[2], 1e-5)
    ours, theirs = errors(got, want), errors(eager.to(torch.float32).numpy(), want)
    one_ulp = float(ulp(np.abs(want).max(keepdims=True), got.dtype).max())
    assert ours[0] <= max(2 * theirs[0], one_ulp)
    assert ours[1] <= max(1.5 * theirs[1], one_ulp)


@pytest.mark.parametrize(("constants", "told"), [((1, 2), "true"), ((1,), "false"), ((), "false")])
def test_gpu_kernels_know_which_factors_nothing_writes(constants: tuple[int, ...], told: str) -> None:
    case = layer_norm("b x 24", "24", "f16", 1, constants=constants)
    _, code = case.code(0, Target("cuda", "sm_90a"))
    assert f", 24, 24, 8, {told}>(ctx" in code
