"""Reductions of many elements to few results on the card: right, and the same in every run."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.libraries import library_of
from tests.kernels.harness import Library, random_inputs
from tests.kernels.reduce_split import check_split, reduction, split_cases

pytestmark = pytest.mark.gpu

LONG, WIDE = {"b": 3, "s": 5000001}, {"b": 1, "s": 1 << 17}
FORMS = {"all": ("b x s", (0, 1)), "rows": ("b x s", (1,)), "columns": ("s x b x 3", (0,)), "words": ("s x 128", (0,))}
LARGE = {
    f"large-{name}-{kind}-{t}": reduction(kind, shape, axes, t, envs=[WIDE if name == "words" else LONG])
    for name, (shape, axes) in FORMS.items()
    for kind, t in (("sum", "f32"), ("var", "f16"), ("max", "i32"))
    if kind != "max" or name == "all"
}
CASES = {**split_cases(), **LARGE}


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return library_of(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_split(library: Library, name: str) -> None:
    check_split(library, CASES[name], name)


@pytest.mark.parametrize("name", ["large-all-sum-f32", "large-words-sum-f32"])
def test_the_same_in_every_run(library: Library, name: str) -> None:
    case = CASES[name]
    (x,) = random_inputs(case, case.envs[0])
    runs = [library.run(case, case.envs[0], [x])[0] for _ in range(3)]
    assert all(np.array_equal(runs[0], run) for run in runs[1:])
