"""The writer of an imported graph: its ops and errors have the line of the model, and it keeps the data of its own
params."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.types import TensorType, as_shape
from ait_mlir.importers.torch.errors import ImportFailure, NotSupported, location_of, place_of
from ait_mlir.importers.torch.groups import Groups


class ImportWriter(Writer):
    """Writes into a graph that is imported."""

    def __init__(self, graph: GraphOp) -> None:
        super().__init__(graph.block)
        self.graph = graph
        self.node: Any = None
        """The node of the exported graph that is being written; None for the inputs."""
        self._location: tuple[Any, LocationAttr] = None, UnknownLoc()
        self.constants: dict[str, NDArray[Any]] = {}
        """The data of params that the importer creates, by name."""
        self.groups = Groups()
        """The groups of the ranks that run the program."""

    def invalid(self, message: str) -> Exception:
        place = "the inputs" if self.node is None else place_of(self.node)
        return ImportFailure(f"{place}: {message}")

    def insert(self, op: AitOp) -> Operation:
        """Insert an op at the end of the block, with the line of the node that is being written."""
        if self._location[0] is not self.node:
            self._location = self.node, location_of(self.node)
        op.location = self._location[1]
        return super().insert(op)

    def unsupported(self, message: str) -> Exception:
        return NotSupported(message)

    def store(self, name: str, data: NDArray[Any], element: Attribute) -> SSAValue:
        self.constants.setdefault(name, data)
        return self.param(name, TensorType.get(as_shape(data.shape), element))
