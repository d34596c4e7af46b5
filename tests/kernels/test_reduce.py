"""Reductions on the CPU beside the cases of their specifications: NaN, large means, PyTorch's errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.kernels.harness import Library, random_inputs, reference, ulp
from tests.specs import SPECS
from tests.specs.reduce import KINDS

REDUCE = {
    f"{name}-{kind}": SPECS["reduce"].drawn(f"{name}-{kind}", "f32")
    for kind in KINDS
    for name in ("last", "middle", "turned")
}
ARGMAX = SPECS["argmax"].drawn("last", "f32")
TOPK = SPECS["topk"].drawn("three", "f32")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library([*REDUCE.values(), ARGMAX, TOPK], tmp_path_factory.mktemp("reduce"))


def test_nan_is_found(library: Library) -> None:
    x = np.array([[1, np.nan, 3, np.nan, 2], [np.inf, 1, -np.inf, 2, 3]], np.float32)
    env = {"b": 2, "s": 5}
    assert library.run(ARGMAX, env, [x])[0].tolist() == [1, 0]
    values, places = library.run(TOPK, env, [x])
    assert places.tolist() == [[1, 3, 2], [0, 4, 3]]
    np.testing.assert_array_equal(values, [[np.nan, np.nan, 3], [np.inf, 3, 2]])
    for kind in ("max", "min"):
        for name, data in (("last", x), ("turned", x)):
            (got,) = library.run(REDUCE[f"{name}-{kind}"], env, [data])
            assert np.isnan(got[0]) and not np.isnan(got[1])


def test_variance_of_large_means(library: Library) -> None:
    x = (np.random.default_rng(0).standard_normal((2, 1000)) + 30000).astype(np.float32)
    for name in ("last", "turned"):
        case, env = REDUCE[f"{name}-var"], {"b": 2, "s": 1000}
        (got,), (want,) = library.run(case, env, [x]), reference(case, env, [x])
        assert np.abs(got / want - 1).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["last", "middle"])
def test_no_worse_than_torch(library: Library, name: str, kind: str) -> None:
    case, env = REDUCE[f"{name}-{kind}"], {"b": 32, "s": 1500}
    (x,) = random_inputs(case, env, seed=3)
    (got,), (want,) = library.run(case, env, [x]), reference(case, env, [x])
    function = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}.get(
        kind, lambda x, dim: torch.var(x, dim, correction=0)
    )
    theirs = function(torch.from_numpy(x), 1).numpy()
    one_ulp = float(ulp(np.abs(want).max(keepdims=True), got.dtype).max())
    # PyTorch's variance is summed in double and rounded once
    floor = 2 * one_ulp if kind == "var" else one_ulp
    assert np.abs(got - want).max() <= max(2 * np.abs(theirs - want).max(), floor)
