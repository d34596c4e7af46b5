"""The times that the package brings along can be read and choose for BERT, on a machine without a card."""

from __future__ import annotations

from pathlib import Path

import ait_mlir
from ait_mlir.lowering.kernels import Target
from ait_mlir.passes.measure import selector, static_digest
from ait_mlir.passes.timings import METHOD, read_shipped, shipped_for
from tests.selection.cards import tasks_of

FOLDER = Path(ait_mlir.__file__).parent / "timings"
TEXT = """
ait.graph @g(%x: !ait.tensor<n x s x 3072 x f16>, %r: !ait.tensor<n x s x 768 x f16>) dims {n = 1 to 64, s = 1 to 512} {
  %w = ait.param "w" : !ait.tensor<768 x 3072 x f16>
  %b = ait.param "b" : !ait.tensor<768 x f16>
  %0 = ait.gemm rcr %x, %w epilogue(%b, %r) {
  ^bb0(%acc: f32, %1: f32, %2: f32):
    %3 = ait.add %acc, %1 : f32
    %4 = ait.add %3, %2 : f32
    ait.yield %4 : f32
  } : !ait.tensor<n x s x 768 x f16>
  ait.output "y" %0 : !ait.tensor<n x s x 768 x f16>
}
"""


def test_every_file_is_whole():
    for path in FOLDER.glob("*.json"):
        shipped = read_shipped(path)
        assert shipped.records and shipped.setting.card and shipped.arch.startswith("sm_")
        assert f'"method": {METHOD}' in path.read_text()
        for record in shipped.records[:4]:
            assert record.static == static_digest(record.op, record.point)
            assert all(0 < t.seconds < 1 for t, _ in record.times.values())


def test_bert_is_known_on_the_h200():
    assert shipped_for("sm_90a") is not None and shipped_for("sm_80") is None
    (choice,) = selector(Target("cuda", "sm_90a"), measure=False).choose(tasks_of(TEXT))
    assert choice is not None
