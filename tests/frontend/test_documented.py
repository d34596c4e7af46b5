"""Every documented operator: built as documented, exact in the reference, right when compiled for the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.frontend import Tensor, build_module
from ait_mlir.frontend.ops import identity
from tests import tiers
from tests.e2e.support import compile_graph
from tests.frontend.documented import ROWS
from tests.frontend.documented.row import Row
from tests.frontend.support import evaluate

PARTS = 4


@pytest.mark.parametrize("name", ROWS)
def test_the_reference_is_pytorch(name: str) -> None:
    row = ROWS[name]
    inputs, arrays = row.tensors(), row.arrays()
    exact = {t.name: a.astype(np.float64) if a.dtype.kind == "f" else a for t, a in zip(inputs, arrays, strict=True)}
    for got, want in zip(evaluate(row.outputs(inputs), exact, **row.dims), row.wanted(arrays), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("part", tiers.params(range(PARTS), [0]))
def test_the_compiled_operator_is_pytorch(part: int, tmp_path: Path) -> None:
    """Many in one program, whose kernels are one file."""
    rows = list(ROWS.values())[part::PARTS]
    inputs = {row.name: row.tensors(f"{row.name}_") for row in rows}
    outputs = {f"{row.name}_{i}": t for row in rows for i, t in enumerate(row.outputs(inputs[row.name]))}
    text = str(build_module([named(t, name) for name, t in outputs.items()]))
    compiled = compile_graph(text, tmp_path)
    arrays = {row.name: row.arrays() for row in rows}
    found = compiled.model.run_with_tensors(
        {str(t.name): a for row in rows for t, a in zip(inputs[row.name], arrays[row.name], strict=True)}
    )
    problems = [problem for row in rows for problem in wrong(row, arrays[row.name], found)]
    assert not problems, "\n".join(problems)


def named(tensor: Tensor, name: str) -> Tensor:
    """The value of a tensor as an output of this name."""
    output = identity()(tensor)
    output._attrs["name"], output._attrs["is_output"] = name, True
    return output


def wrong(row: Row, arrays: list[np.ndarray], found: dict[str, np.ndarray]) -> Iterator[str]:
    """The results of a row that are further from float64 than float32 allows."""
    for i, want in enumerate(row.wanted(arrays)):
        got = np.asarray(found[f"{row.name}_{i}"])
        if got.shape != want.shape:
            yield f"{row.name}: result {i} is {got.shape}, PyTorch's {want.shape}"
        elif np.abs(got.astype(np.float64) - want).max(initial=0) > 1e-5 * max(1.0, np.abs(want).max(initial=0)):
            yield f"{row.name}: result {i} is {got}, PyTorch's {want}"
