"""8-bit floats on the card: every stored number, and every rounding, as on a CPU."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.reference.core import to_storage
from tests.gpu.libraries import library_of
from tests.kernels.harness import Case, Library
from tests.kernels.test_float8 import NAMES, numbers, same

pytestmark = pytest.mark.gpu


def cast(source: str, target: str) -> Case:
    types = [f"!ait.tensor<n x {t}>" for t in (source, target)]
    text = f"ait.graph @g(%x: {types[0]}) dims {{n = 1 to 100000}} {{\n  %y = ait.cast %x : {types[1]}\n"
    return Case(text + f'  ait.output "y" %y : {types[1]}\n}}', [{"n": 256}])


CASES = {f"round-{name}": cast("f32", str(BY_NAME[name].ir)) for name in NAMES}
CASES |= {f"read-{name}": cast(str(BY_NAME[name].ir), "f32") for name in NAMES}


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return library_of(request, CASES)


@pytest.mark.parametrize("case", [f"round-{name}" for name in NAMES])
def test_numbers_round_once(library: Library, case: str) -> None:
    name = case.removeprefix("round-")
    with np.errstate(over="ignore"):
        x = numbers(name).astype(np.float32)
    (found,) = library.run(CASES[case], {"n": x.size}, [x])
    want = to_storage(x.astype(np.float64), BY_NAME[name].ir)
    np.testing.assert_array_equal(found.astype(np.float32), want.astype(np.float32))
    same(found.view(np.uint8), want.view(np.uint8), getattr(ml_dtypes, name))  # with their signs


@pytest.mark.parametrize("case", [f"read-{name}" for name in NAMES])
def test_every_stored_number_is_read(library: Library, case: str) -> None:
    stored = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, case.removeprefix("read-")))
    (found,) = library.run(CASES[case], {"n": 256}, [stored])
    np.testing.assert_array_equal(found, stored.astype(np.float32))
