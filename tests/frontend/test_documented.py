"""Every documented operator: built with its documented signature, exact in the reference, right when compiled for the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.documented import ROWS
from tests.frontend.support import evaluate


@pytest.mark.parametrize("name", ROWS)
def test_the_reference_is_pytorch(name: str) -> None:
    row = ROWS[name]
    inputs, arrays = row.tensors(), row.arrays()
    exact = {t.name: a.astype(np.float64) if a.dtype.kind == "f" else a for t, a in zip(inputs, arrays, strict=True)}
    for got, want in zip(evaluate(row.outputs(inputs), exact), row.wanted(arrays), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)
