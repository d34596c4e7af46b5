"""The `xdsl.universe` entry point for `xdsl-opt`: our dialects and passes, loaded on first use."""

from __future__ import annotations

from xdsl.universe import Universe

from ait_mlir.ir.context import DIALECTS
from ait_mlir.passes.pipelines import PASSES

AIT_UNIVERSE = Universe(
    all_dialects=DIALECTS, all_passes={name: row.load for name, row in PASSES.items()}, all_targets={}
)
