"""Cumulative sums of f32 on the CPU are as precise as those of PyTorch, which keeps them in f64; extremes keep NaN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

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
