"""The errors for ONNX models that cannot be imported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ait_mlir.errors import printable
from ait_mlir.importers.errors import ImportFailure, NotSupported

__all__ = ["ImportFailure", "NotSupported", "Unsupported", "UnsupportedOps", "ValueNeeded", "place_of"]


@dataclass(frozen=True)
class Unsupported:
    """A node that the importer cannot translate."""

    place: str
    """The node: `node 'conv1' (Conv)`."""
    operation: str
    opset: int
    """The version of the operator's domain that the model imports."""
    reason: str

    def __str__(self) -> str:
        return f"{self.place}, opset {self.opset}: {self.reason}"


class UnsupportedOps(ImportFailure):
    """The model has nodes that cannot be imported; `found` lists all of them."""

    def __init__(self, file: str, found: Iterable[Unsupported], needed: Iterable[str] = ()) -> None:
        self.found = tuple(found)
        self.needed = tuple(needed)
        """The inputs of the model whose values some of the nodes need."""
        count = len(self.found)
        lines = [f"{file}: {count} node{'s' if count > 1 else ''} of the model cannot be imported:"]
        lines += [f"  {item}" for item in self.found]
        super().__init__("\n".join(lines))


class ValueNeeded(NotSupported):
    """A shape depends on the values of inputs of the model; `inputs` has their names."""

    def __init__(self, message: str, inputs: Iterable[str]) -> None:
        self.inputs = tuple(inputs)
        super().__init__(message)


def place_of(node: Any, number: int) -> str:
    """A node as errors name it, by its name or else by its number and first result."""
    name = f"'{printable(node.name)}'" if node.name else f"{number}, which gives {printable(', '.join(node.output))!r},"
    return f"node {name} ({operation_of(node)})"


def operation_of(node: Any) -> str:
    """The operator of a node, with its domain unless it is ONNX's own."""
    domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
    return printable(f"{domain}{node.op_type}")
