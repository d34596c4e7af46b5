"""One op as several: a family says into which ops an op of its own can be cut, so that each runs on a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Generic

from xdsl.ir import Operation

from ait_mlir.lowering.kernels.base import OpT, Target


class Cut(ABC, Generic[OpT]):
    """A way to make several ops of one of the classes `ops`, at one or several places: `epilogue 2`."""

    ops: ClassVar[tuple[type[Operation], ...]]
    name: ClassVar[str]
    """How the text calls it: `cut = "epilogue 2"`."""
    usual: ClassVar[bool] = False
    """As good a way to run the op as the whole, by how models are written: as many configurations are tried."""

    @abstractmethod
    def places(self, op: OpT, target: Target) -> Iterable[int]:
        """The places at which selection may cut the op."""

    @abstractmethod
    def parts(self, op: OpT, place: int) -> tuple[Operation, ...] | None:
        """New ops that compute what `op` does, from its operands, in order, the last with its result; views among them
        are no launches. None where it cannot be cut there."""
