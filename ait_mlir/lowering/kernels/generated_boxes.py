"""The kernel of `ait.loops` that turns boxes of results, on a GPU."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import Scope
from ait_mlir.lowering.kernels.base import Config, Emission, Launch
from ait_mlir.lowering.kernels.generated import Generated, estimate_of
from ait_mlir.lowering.loops.boxes import Boxes, boxes_of
from ait_mlir.lowering.loops.gpu import emit
from ait_mlir.lowering.loops.gpu_kernel import STATIC_SHARED
from ait_mlir.lowering.loops.nest import Nest, alignment, nest_of
from ait_mlir.lowering.loops.rows import fitting
from ait_mlir.lowering.target import Target

ELEMENTS = (2048, 4096, 8192, 16384)
"""The most elements of a box."""


@lru_cache(maxsize=64)
def _nest_in(op: LoopsOp, scope: Scope) -> Nest:
    return nest_of(op, shortest=1)


def nest_in_parts(op: LoopsOp) -> Nest:
    """The nest of an op with row-major tensors whose axes are split wherever reads divide them, cached."""
    return _nest_in(op, scope_of(op))


class LoopsBoxes(Generated):
    """Loops without folds whose operands and results lie in different orders of dims, on a GPU: a block turns a box of
    them in shared memory.
    """

    name = "loops_boxes"
    provider = "boxes"
    gpu_only = True
    defaults: ClassVar[Config] = {"elements": 4096, "lanes": 1}

    def matches(self, op: LoopsOp, target: Target) -> bool:
        return target.is_gpu and boxes_of(nest_in_parts(op), self.defaults["elements"], 1) is not None

    def configs(self, op: LoopsOp, target: Target) -> list[dict[str, int]]:
        nest = nest_in_parts(op)
        most = max(1, 16 // min(BY_IR[t].bytes for t in nest.elements))
        found: list[dict[str, int]] = []
        for elements in ELEMENTS:
            wide = [n for n in (most, most // 2, most // 4) if n > 1 and self.has_lanes(nest, elements, n)]
            for lanes in wide or [1]:
                boxes = boxes_of(nest, elements, lanes)
                if boxes is not None and boxes.bytes(lanes) <= STATIC_SHARED:
                    found.append({"elements": elements, "lanes": lanes})
        return found or [{"elements": ELEMENTS[0], "lanes": 1}]

    @staticmethod
    def has_lanes(nest: Nest, elements: int, lanes: int) -> bool:
        """Whether every result is stored `lanes` elements at a time."""
        boxes = boxes_of(nest, elements, lanes)
        if boxes is None:
            return False
        joined, lane = boxes.joined()
        return fitting(lane.count, lanes) == lanes and all(
            alignment(joined, offset, lane.name, lanes) is not None for offset in joined.offsets
        )

    def seconds_of(self, op: LoopsOp, nest: Nest, config: Config, target: Target) -> float:
        boxes = self.boxes(op, config)
        return estimate_of(op, boxes.nest, target).boxes_seconds(boxes, config["lanes"])

    @staticmethod
    def boxes(op: LoopsOp, config: Config) -> Boxes:
        found = boxes_of(nest_in_parts(op), config["elements"], config["lanes"])
        assert found is not None
        return found

    def check_full(self, op: LoopsOp, config: Config) -> None:
        if config["elements"] > ELEMENTS[-1]:
            raise ValueError(f"configuration 'elements' is {config['elements']}, expected at most {ELEMENTS[-1]}")
        if config["lanes"] > 1 and not self.has_lanes(nest_in_parts(op), config["elements"], config["lanes"]):
            raise ValueError(
                f"configuration 'lanes' is {config['lanes']}, which does not divide the neighbours of a result"
            )
        shared = self.boxes(op, config).bytes(config["lanes"])
        if shared > STATIC_SHARED:
            raise ValueError(f"the tiles take {shared} bytes of shared memory, there are {STATIC_SHARED}")

    def code(self, launch: Launch[LoopsOp]) -> Emission:
        return emit(launch, "boxes")


KERNELS = (LoopsBoxes(),)
