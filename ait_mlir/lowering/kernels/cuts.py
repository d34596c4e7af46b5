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
    """The cut is as common in models as the whole op, so selection tries as many configurations for it."""

    @abstractmethod
    def places(self, op: OpT, target: Target) -> Iterable[int]:
        """The places at which selection may cut the op."""

    @abstractmethod
    def parts(self, op: OpT, place: int) -> tuple[Operation, ...] | None:
        """New ops in order that together compute `op`; the last has its result, and views need no launch. None if the
        op cannot be cut at this place."""
