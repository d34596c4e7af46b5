"""Convolutions on cuDNN on the card, against float64."""

from __future__ import annotations

import os

import pytest

from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.runtime.loading import cudnn_candidates
from tests.kernels.harness import Library
from tests.kernels.library_gemm import GemmLibrary, on_kernel
from tests.specs.conv import CONV
from tests.specs.draw import draw
from tests.specs.tolerance import PRODUCTS

pytestmark = pytest.mark.gpu

CASES = {
    name: on_kernel(found.case, "cudnn")
    for name, found in draw("gpu", ["conv"]).items()
    if not found.form.strides
    and any(kernel.provider == "cudnn" for kernel in kernels_for(found.case.op, Target("cuda", "sm_90a")))
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    os.environ.setdefault("AIT_CUDNN", cudnn_candidates()[0])
    return GemmLibrary(list(CASES.values()), tmp_path_factory.mktemp("conv"), Target("cuda", default_arch("cuda")))


def test_some_forms_are_for_cudnn() -> None:
    assert {name.rpartition("-")[0] for name in CASES} >= {
        "conv-same",
        "conv-wide",
        "conv-groups",
        "conv-wide_groups",
        "conv-deep",
    }, CONV.op


@pytest.mark.parametrize("name", CASES)
def test_conv(library: Library, name: str) -> None:
    PRODUCTS.on_gpu().check(library, CASES[name], name.rpartition("-")[2])
