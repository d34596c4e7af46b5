"""The writer of an imported graph: its ops have the node of the model as their location, and it keeps the data of
params."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr, UnknownLoc, i1
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.building.formulas import Affine
from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.dtypes import i4, ui4, ui8
from ait_mlir.dialects.ait.quantize import UnpackOp
from ait_mlir.dialects.ait.types import DimsAttr, Shape, TensorType, as_shape
from ait_mlir.dims import Dim, Expr, Scope, sym
from ait_mlir.dtypes import BEYOND_NUMPY, BY_NAME
from ait_mlir.importers.errors import ImportFailure, NotSupported
from ait_mlir.importers.onnx.dims import Narrower, conditions_for
from ait_mlir.importers.onnx.known import Known

LARGEST_LITERAL = 64
"""The most elements of a constant that is written into the module as text."""


class OnnxWriter(Writer):
    """Writes into a graph that is imported."""

    def __init__(self, graph: GraphOp, file: str) -> None:
        super().__init__(graph.block)
        self.graph = graph
        self.file = file
        self.place = "the inputs"
        """The node that is being written, as errors name it."""
        self.location: LocationAttr = UnknownLoc()
        self.constants: dict[str, NDArray[Any]] = {}
        """The data of params by name."""
        self.columns: dict[SSAValue, tuple[Affine, ...]] = {}
        """The formulas of which a tensor of indices is joined along its last dim."""
        self._stored: dict[int, str] = {}
        self._turned: dict[int, Known] = {}
        self._alive: list[Known] = []

    def at(self, place: str, number: int) -> None:
        """Set the node that is being written, and its number in the file."""
        self.place = place
        self.location = FileLineColLoc(StringAttr(f"{self.file}, {place}"), IntAttr(number), IntAttr(1))

    def invalid(self, message: str) -> Exception:
        return ImportFailure(f"{self.place}: {message}")

    def insert(self, op: AitOp) -> Operation:
        """Insert an op at the end of the block, with the node that is being written as its location."""
        op.location = self.location
        return super().insert(op)

    def unsupported(self, message: str) -> Exception:
        return NotSupported(message)

    def check(self, op: AitOp, infer: bool = False) -> None:
        """Verify an op; one that fails only for some sizes of the inputs restricts these sizes."""
        try:
            super().check(op, infer)
        except ImportFailure:
            names = dict.fromkeys(s for v in op.operands for d in _dims(v.type) for s in sorted(d.symbols))
            self.restrict(names, lambda scope: self._verifies(scope, op, infer))
            raise

    def _verifies(self, scope: Scope, op: AitOp, infer: bool) -> bool:
        before = self.graph.properties["dims"]
        self.graph.properties["dims"] = DimsAttr(scope)
        try:
            super().check(op, infer)
        except ImportFailure:
            return False
        finally:
            self.graph.properties["dims"] = before
        return True

    def restrict(self, names: Iterable[str], holds: Callable[[Scope], bool]) -> None:
        """Start the import again with conditions on the dims `names` under which something holds, if there are any."""
        if (names := list(names)) and (found := conditions_for(self.scope, names, holds)) is not None:
            raise Narrower(found)

    def store(self, name: str, data: NDArray[Any], element: Attribute) -> SSAValue:
        self.constants.setdefault(name, data)
        return self.param(name, TensorType.get(as_shape(data.shape), element))

    def written(self, tensor: Known) -> SSAValue:
        """A known tensor as a value: a literal, a param, or the values of dims."""
        if tensor.has_dims:
            return self._of_dims(tensor)
        array, dims = tensor.array, tensor.dims
        if array.size == 0:
            return self.filled(0, dims, tensor.element)
        if not tensor.is_weight and array.size <= LARGEST_LITERAL:
            numbers: list[Any] = array.reshape(-1).astype(_plain(array.dtype)).tolist()
            numbers = [int(n) for n in numbers] if tensor.element == i1 else numbers
            if array.ndim == 0:
                return self.scalar(numbers[0], tensor.element)
            key = ("literal", tensor.element, array.shape, tuple(map(repr, numbers)))
            return self.once(key, lambda: self.constant(numbers, dims, tensor.element))
        if (name := self._stored.get(id(tensor))) is None:
            name = tensor.name or f"constant.{len(self.constants)}"
            while name in self.constants:
                name += "_"
            self._stored[id(tensor)] = name
            self._alive.append(tensor)  # its id stays its own
        if tensor.element in (i4, ui4) and array.ndim:
            packed = self.store(name, _packed(array), ui8)
            return self.op(UnpackOp, packed, results=[TensorType.get(dims, tensor.element)])
        return self.store(name, array, tensor.element)

    def turned(self, weight: Known) -> Known:
        """A matrix of weights with its columns as rows, under the name `NAME.T`."""
        if (found := self._turned.get(id(weight))) is None:
            found = Known(weight.array.T, weight.element, f"{weight.name}.T" if weight.name else "", is_weight=True)
            self._turned[id(weight)] = found
            self._alive.append(weight)
        return found

    def _of_dims(self, tensor: Known) -> SSAValue:
        parts = [self.reshape(self.natural(Affine.filled((), n, tensor.element)), [1]) for n in tensor.exprs()]
        return self.reshape(self.concat(parts, 0), tensor.array.shape)

    def bind(self, name: str, upper: Expr) -> Expr:
        """A new dim that an op binds in the run, at most `upper`."""
        scope = self.graph.scope
        taken = {dim.name for dim in scope}
        unique = next(n for n in (name, *(f"{name}_{i}" for i in range(1, 1 << 20))) if n not in taken)
        dim = Dim(unique, 0, scope.bounds(upper)[1], upper=upper)
        self.graph.properties["dims"] = DimsAttr(Scope([*scope, dim]))
        return sym(unique)


def _dims(type_: Attribute) -> Shape:
    return type_.dims if isinstance(type_, TensorType) else ()


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A type of NumPy's own that holds the numbers of a dtype."""
    if dtype.name not in BEYOND_NUMPY:
        return dtype
    return np.dtype(np.float64 if BY_NAME[dtype.name].is_float else np.int8)


def _packed(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers of 4 bits as bytes with two along the last dim, the first one in the lower bits."""
    halves = array.astype(np.int8).view(np.uint8) & 15
    halves = np.pad(halves, [*((0, 0) for _ in array.shape[:-1]), (0, array.shape[-1] % 2)])
    return halves[..., ::2] | halves[..., 1::2] << 4
