"""Rewrites by cost leave the graph as it was where the estimates say that they do not pay, or no kernel runs them."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation

from ait_mlir.dialects.ait.gemm import BmmOp, GemmOp
from ait_mlir.ir.pipeline import parse_passes, run_passes
from ait_mlir.ir.source import SourceError
from ait_mlir.lowering.kernels import Target
from ait_mlir.passes import by_cost
from ait_mlir.universe import context
from tests.rewrites.support import parse

PARTS = """
ait.graph @parts(%x: !ait.tensor<b x 16 x f16>) dims {b = 1 to 64} {
  %w0 = ait.param "w0" : !ait.tensor<16 x 8 x f16>
  %w1 = ait.param "w1" : !ait.tensor<16 x 8 x f16>
  %0, %1 = ait.split %x dim 1 : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
  %2 = ait.gemm rcr %0, %w0 : !ait.tensor<b x 16 x f16>
  %3 = ait.gemm rcr %1, %w1 : !ait.tensor<b x 16 x f16>
  %4 = ait.concat %2, %3 dim 1 : !ait.tensor<b x 32 x f16>
  ait.output "y" %4 : !ait.tensor<b x 32 x f16>
}
"""


@pytest.mark.parametrize(("seconds", "pays"), [(1.9e-6, True), (2e-6, False), (None, False)])
def test_a_product_is_made_only_if_it_pays(seconds: float | None, pays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def estimate(op: Operation, target: Target) -> float | None:
        if isinstance(op, BmmOp):
            return seconds
        return 1e-6 if isinstance(op, GemmOp) else 0.0

    monkeypatch.setattr(by_cost, "seconds_of", estimate)
    module = parse(PARTS)
    before = str(module)
    run_passes(context(), module, parse_passes("batch-products"))
    assert (str(module) != before) == pays


def test_an_unknown_target_is_an_error() -> None:
    with pytest.raises(SourceError, match="unknown target 'tpu'; expected one of cpu, cuda, rocm"):
        run_passes(context(), parse(PARTS), parse_passes('batch-products{target="tpu"}'))
