"""Many long rows, over and over: with memory busy, loads, copies and stores wait behind each other, and what goes on too early is found."""

from __future__ import annotations

import pytest
import torch

from benchmarks.kernel_cases import LARGE, Measured, norm, residual_norm, softmax
from benchmarks.kernels import buffer
from tests.gpu.libraries import library_of
from tests.kernels.harness import Library

pytestmark = pytest.mark.gpu

RUNS = 20
CASES = {
    "bulk-sum": residual_norm("layer_norm", "f16", 50257, LARGE // 50257),
    "bulk-sum-rms": residual_norm("rms_norm", "bf16", 50257, LARGE // 50257),
    "bulk-kept": norm("layer_norm", "f16", 50257, LARGE // 50257),
    "bulk-aligned-sum": residual_norm("layer_norm", "f16", 32768, LARGE // 32768),
    "bulk-softmax": softmax("f16", 120001, LARGE // 120001),
    "split-softmax": softmax("f16", 131072, LARGE // 131072),
    "ring-warp": norm("layer_norm", "f16", 4097, LARGE // 4097),
    "ring-four-sum": residual_norm("layer_norm", "f16", 131072, LARGE // 131072),
}


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return library_of(request, {key: measured.case for key, measured in CASES.items()})


def exact(measured: Measured, inputs: list[torch.Tensor]) -> torch.Tensor:
    first = measured.torch(*(x.float() for x in inputs))
    assert isinstance(first, torch.Tensor)
    return first


@pytest.mark.parametrize("key", CASES)
@torch.inference_mode()
def test_every_run_is_right(library: Library, key: str) -> None:
    measured = CASES[key]
    inputs = len(measured.case.op.operands)
    buffers = [buffer(measured, i) for i in range(inputs + len(measured.case.op.results))]
    want = exact(measured, buffers[:inputs])
    allowed = want.abs().mul_(0.01).add_(0.01 * want.abs().mean())
    for run in range(RUNS):
        for result in buffers[inputs:]:
            result.fill_(float("nan"))
        stream = torch.cuda.current_stream().cuda_stream
        library.call(measured.case, measured.env, [b.data_ptr() for b in buffers], stream)
        wrong = ~((buffers[inputs] - want).abs_() <= allowed)
        assert not wrong.any(), f"run {run}: {int(wrong.sum())} elements, the first at {wrong.nonzero()[0].tolist()}"
