"""The writer of an imported graph: its errors name the line of the model, and it keeps the data of its own params."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.types import TensorType, as_shape
from ait_mlir.importers.torch.errors import ImportFailure, NotSupported


class ImportWriter(Writer):
    """Writes into a graph that is imported."""

    def __init__(self, graph: GraphOp) -> None:
        super().__init__(graph.block)
        self.graph = graph
        self.place: Callable[[], str] = lambda: "the inputs"
        self.constants: dict[str, NDArray[Any]] = {}
        """The data of params that the importer creates, by name."""

    def invalid(self, message: str) -> Exception:
        return ImportFailure(f"{self.place()}: {message}")

    def unsupported(self, message: str) -> Exception:
        return NotSupported(message)

    def store(self, name: str, data: NDArray[Any], element: Attribute) -> SSAValue:
        self.constants.setdefault(name, data)
        return self.param(name, TensorType.get(as_shape(data.shape), element))
