"""Params computed once from other params or constants: as graphs and as text, evaluated by the reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from ait_mlir.dialects.ait.data import GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import decode
from ait_mlir.outside import row_of
from ait_mlir.reference.graph import evaluate_graph

LARGEST_COPY = 1 << 20
"""Most bytes of a param that always counts as small."""
GROWTH = 9 / 8
"""The largest ratio of a large value to its largest source; padding rows with zeros stays below it."""


@dataclass(frozen=True)
class Fold:
    """A param computed from other params: a graph without inputs, with the output `value`."""

    name: str
    graph: GraphOp

    def source_types(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shape and dtype of the source params, by name."""
        found = {p.param_name.data: tensor_type(p.output) for p in self.graph.params()}
        return {name: (t.static_shape() or (), BY_IR[t.element_type].name) for name, t in found.items()}

    @property
    def is_constant(self) -> bool:
        """Whether the value depends only on constants, so that it is never computed again."""
        return not self.graph.params()

    def value(self, data: Mapping[str, Any]) -> NDArray[Any]:
        """The value of the new param, computed in float64 and rounded once, from the data of its sources.

        If the graph only reorders the elements of one param, they are not converted, and copied only to be contiguous.
        """
        if (moved := self._moved(data)) is not None:
            return moved
        (output,) = self.graph.outputs()
        dtype = numpy_dtype(BY_IR[tensor_type(output.operands[0]).element_type].name)
        with np.errstate(over="ignore"):
            return np.asarray(evaluate_graph(self.graph, {}, data, {})["value"].astype(dtype), order="C")

    def _moved(self, data: Mapping[str, Any]) -> NDArray[Any] | None:
        """The value in the param's dtype, if the graph only reorders the elements of one param; else None."""
        array: NDArray[Any] | None = None
        for op in self.graph.block.ops:
            if isinstance(op, ParamOp) and array is None:
                array = np.asarray(data[op.param_name.data])
            elif isinstance(op, PermuteOp) and array is not None:
                array = array.transpose(op.order())
            elif isinstance(op, ReshapeOp) and array is not None:
                array = array.reshape(tensor_type(op.results[0]).static_shape() or ())
            elif not isinstance(op, OutputOp):
                return None
        return None if array is None else np.ascontiguousarray(array).reshape(array.shape)

    @property
    def is_from_outside(self) -> bool:
        """Whether operators from outside compute the value: an artifact cannot compute it again."""
        return any(row_of(type(op)) is not None for op in self.graph.block.ops)

    @property
    def only_moves(self) -> bool:
        """Whether the value only reorders the elements of a param."""
        return all(isinstance(op, ParamOp | PermuteOp | ReshapeOp | OutputOp) for op in self.graph.block.ops)


def write_folds(folds: Sequence[Fold]) -> str:
    """The folds that depend on params, and may be computed again, as a module in text; empty if there are none."""
    kept = [fold for fold in folds if not fold.is_constant and not fold.is_from_outside]
    return all_folds_text(kept) if kept else ""


def all_folds_text(folds: Sequence[Fold]) -> str:
    """Folds of any kind as a module in text."""
    names = [StringAttr(fold.name) for fold in folds]
    return str(ModuleOp([fold.graph.clone() for fold in folds], {"ait.folds": ArrayAttr(names)})) + "\n"


def read_folds(text: str) -> list[Fold]:
    """The folds that `write_folds` or `all_folds_text` wrote."""
    module = parse_source(context(), decode(text.encode(), "folds"))
    names = cast(ArrayAttr[StringAttr], module.attributes["ait.folds"])
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    return [Fold(n.data, g) for n, g in zip(names.data, graphs, strict=True)]


def is_worth_storing(t: TensorType, sources: Iterable[TensorType]) -> bool:
    """Whether a value is of known size, and small or not much larger than the largest of its source params."""
    if t.static_shape() is None:
        return False
    size = t.byte_size().evaluate({})
    return size <= LARGEST_COPY or size <= GROWTH * max(source.byte_size().evaluate({}) for source in sources)
