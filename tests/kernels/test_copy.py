"""Copies on the CPU beside the cases of their specifications: bits of NaN, and the strides that a copy takes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.copies import copies_cases
from tests.kernels.harness import Library
from tests.specs import SPECS
from tests.specs.tolerance import BITS

MANY = copies_cases()
TRANSPOSE = SPECS["permute"].drawn("transpose", "f32")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library([TRANSPOSE], tmp_path_factory.mktemp("copy"))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(list(MANY.values()), tmp_path_factory.mktemp("copies"))


@pytest.mark.parametrize("name", MANY)
def test_many_pieces(many: Library, name: str) -> None:
    BITS.check(many, MANY[name], name.rpartition("-")[2])


def test_nan_payloads_survive(library: Library) -> None:
    bits = np.arange(0x7FC00001, 0x7FC00001 + 10, dtype=np.uint32).reshape(2, 5)
    (got,) = library.run(TRANSPOSE, {"b": 2, "s": 5}, [bits.view(np.float32)])
    np.testing.assert_array_equal(got.view(np.uint32), bits.T)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_channels_become_the_last_dim(library: Library, channels: int) -> None:
    """Of few channels each row is written out."""
    image = np.arange(channels * 37, dtype=np.float32).reshape(channels, 37)
    (got,) = library.run(TRANSPOSE, {"b": channels, "s": 37}, [image])
    np.testing.assert_array_equal(got, image.T)


def test_reshape_refuses_results_that_are_cut_within_a_dim() -> None:
    from ait_mlir.dialects.ait.types import scope_of
    from ait_mlir.dims import parse
    from ait_mlir.lowering.kernels.view import CopyKernel

    kernel, op = CopyKernel(), SPECS["reshape"].drawn("flatten", "f32").op
    assert kernel.accepts(op, 1, (parse("16"), parse("1")), scope_of(op))
    merged = SPECS["reshape"].drawn("split-heads", "f32").op
    assert kernel.accepts(merged, 1, (parse("s*48"), parse("48"), parse("16"), parse("1")), scope_of(merged))
    assert not kernel.accepts(merged, 1, (parse("s*48"), parse("16"), parse("16*s"), parse("1")), scope_of(merged))
    assert kernel.accepts(merged, 0, (parse("s*48"), parse("1"), parse("s")), scope_of(merged))
