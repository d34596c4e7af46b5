"""Cuts of an op into several ops, each with its own kernel. A family offers the cuts of its ops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Generic

from xdsl.ir import Operation

from ait_mlir.lowering.kernels.base import OpT, Target


class Cut(ABC, Generic[OpT]):
    """Cuts an op of the classes `ops` into several ops, at one of several places: `epilogue 2`."""

    ops: ClassVar[tuple[type[Operation], ...]]
    name: ClassVar[str]
    """Its name in the text: `cut = "epilogue 2"`."""
    usual: ClassVar[bool] = False
    """As good a way to run the op as the whole, by how models are written: as many configurations are tried."""

    @abstractmethod
    def places(self, op: OpT, target: Target) -> Iterable[int]:
        """The places at which selection may cut the op."""

    @abstractmethod
    def parts(self, op: OpT, place: int) -> tuple[Operation, ...] | None:
        """New ops that compute what `op` does, from its operands, in order, the last with its result; views among them
        are no launches. None where it cannot be cut there."""
