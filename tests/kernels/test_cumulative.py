"""Cumulative sums of f32 on the CPU are as precise as those of PyTorch, which keeps them in f64; extremes keep NaN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from ait_mlir.lowering.kernels.cumulative import chained_bytes
from tests.kernels.harness import Library, random_inputs, reference
from tests.specs.cumulative import CUMULATIVE

FORMS = {"last": 1, "wide": 0, "vector": 0}


def test_no_worse_than_torch(tmp_path: Path) -> None:
    cases = {name: CUMULATIVE.case(CUMULATIVE.find(name), "f32") for name in FORMS}
    library = Library(list(cases.values()), tmp_path)
    for name, case in cases.items():
        env = {"b": 3, "s": 90001 if name == "vector" else 3000}
        (x,) = random_inputs(case, env, seed=3)
        (got,), (want,) = library.run(case, env, [x]), reference(case, env, [x])
        theirs = torch.from_numpy(x).cumsum(FORMS[name]).numpy()
        ours, peer = np.abs(got - want), np.abs(theirs - want)
        assert ours.max() <= 2 * peer.max(), name
        assert np.sqrt((ours**2).mean()) <= 1.5 * np.sqrt((peer**2).mean()), name


def test_extremes_keep_nan(tmp_path: Path) -> None:
    cases = {kind: CUMULATIVE.case(CUMULATIVE.find(f"{kind}-last"), "f32") for kind in ("max", "min")}
    library = Library(list(cases.values()), tmp_path)
    x = np.array([[1, np.inf, 2], [3, np.nan, 9], [np.nan, 1, 2], [-np.inf, -0.0, 0.0]], np.float32)
    for kind, case in cases.items():
        (got,) = library.run(case, {"b": 4, "s": 3}, [x])
        want = (torch.cummax if kind == "max" else torch.cummin)(torch.from_numpy(x), 1)[0].numpy()
        np.testing.assert_array_equal(got, want)


def test_logarithms_of_sums_keep_small_terms_and_infinities(tmp_path: Path) -> None:
    case = CUMULATIVE.case(CUMULATIVE.find("logsumexp-last"), "f32")
    inf = np.inf
    x = np.array([[-200, -100, 0], [0, -200, 0], [-inf, -inf, 3], [inf, inf, 1], [-inf, inf, np.nan]], np.float32)
    (got,) = Library([case], tmp_path).run(case, {"b": 5, "s": 3}, [x])
    want = np.array([[-200, -100, 0], [0, 0, np.log(2)], [-inf, -inf, 3], [inf, inf, inf], [-inf, inf, np.nan]])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_blocks_pass_two_numbers_on_for_logarithms_of_sums() -> None:
    forms = (CUMULATIVE.case(CUMULATIVE.find(name), "f32").op for name in ("last", "logsumexp-last"))
    plain, pairs = ((chained_bytes(op) - 32).evaluate({"b": 3, "s": 9000}) for op in forms)
    assert pairs == 2 * plain > 0
