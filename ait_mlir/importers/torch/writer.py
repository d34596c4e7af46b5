"""Writes the ops of a graph, verifies each in the scope of its dims, and creates values for known tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, ParamOp
from ait_mlir.dialects.ait.dtypes import LARGEST, integer_range, is_float
from ait_mlir.dialects.ait.elementwise import AddOp, CastOp, CompareOp, MulOp, WhereOp
from ait_mlir.dialects.ait.syntax import properties_of
from ait_mlir.dialects.ait.types import Shape, TensorType, as_shape, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ExpandOp, PermuteOp, ReshapeOp, SliceOp
from ait_mlir.dims import Expr, const
from ait_mlir.importers.torch.errors import ImportFailure
from ait_mlir.importers.torch.known import Affine, Mask, Spread, Value

LONGEST_LITERAL = 1 << 12
"""The most numbers of a formula that is written into the module as a constant."""
LONGEST_RANGE = 1 << 16
"""The most numbers of an `arange` that is written into the module as a constant."""


class Writer:
    """The graph under construction. Constants, params and the values of known tensors are written once."""

    def __init__(self, graph: GraphOp) -> None:
        self.graph = graph
        self.scope = graph.scope
        self.place: Callable[[], str] = lambda: "the inputs"
        self.block = graph.block
        """Where ops are written: the graph's block, or that of a loop's step."""
        self._memo: dict[Hashable, SSAValue] = {}
        self.constants: dict[str, NDArray[Any]] = {}
        """The data of params that the importer creates, by name."""

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Write into the block of a loop's step, which sees nothing of what is written outside."""
        outside, self.block, self._memo = (self.block, self._memo), block, {}
        try:
            yield
        finally:
            self.block, self._memo = outside

    def check(self, op: AitOp) -> None:
        """Verify an op that is written; raises `ImportFailure` at the operation that is being imported."""
        self._check(op, infer=False)

    def op(
        self,
        op_class: type[AitOp],
        *operands: SSAValue,
        properties: Mapping[str, Any] | None = None,
        results: Sequence[Attribute] | None = None,
        regions: int = 0,
        count: int = 1,
    ) -> SSAValue:
        """Write an op of `count` results; returns the first, of the inferred type unless `results` says which.

        The same op on the same operands is written once: models repeat their masks in each layer, and patterns
        recognise `x * norm(x)` by its operands being one value.
        """

        found = properties_of(op_class, op_class.SYNTAX, properties or {})

        def make() -> SSAValue:
            op = op_class.create(
                operands=operands,
                result_types=results or [operands[0].type] * count,
                properties=found,
                regions=[Region() for _ in range(regions)],
            )
            self.block.add_op(op)
            self._check(op, infer=results is None)
            return op.results[0]

        if regions:
            return make()
        return self.once((op_class, operands, tuple(found.items()), tuple(results or ())), make)

    def add(self, op: AitOp) -> SSAValue:
        """Write an op that is made already; returns its first result, of the inferred type."""
        self.block.add_op(op)
        self._check(op, infer=True)
        return op.results[0]

    def _check(self, op: AitOp, infer: bool) -> None:
        try:
            if infer:
                op.infer()
            else:
                op.verify_()
        except VerifyException as error:
            raise ImportFailure(f"{self.place()}: {error}") from error

    def once(self, key: Hashable, make: Callable[[], SSAValue]) -> SSAValue:
        """What `make` wrote for this key, written the first time."""
        if (found := self._memo.get(key)) is None:
            found = self._memo[key] = make()
        return found

    # ** constants and params **

    def scalar(self, number: float, element: Attribute) -> SSAValue:
        """A constant of rank 0."""
        if not is_float(element):
            number = wrapped(int(number), element)
        key = ("scalar", repr(number), element)
        return self.once(key, lambda: self.constant([number], (), element, splat=True))

    def constant(self, numbers: Sequence[float], dims: Shape, element: Attribute, splat: bool = False) -> SSAValue:
        """A constant of these numbers in row-major order."""
        numbers = [wrapped(n, element) for n in numbers]
        value = numbers[0] if splat else numbers
        op = ConstantOp(value, TensorType.get(dims, element))
        self.block.add_op(op)
        return op.output

    def param(self, name: str, type_: TensorType) -> SSAValue:
        """A weight by name."""

        def make() -> SSAValue:
            op = ParamOp(name, type_)
            self.block.add_op(op)
            return op.output

        return self.once(("param", name), make)

    def stored(self, name: str, data: NDArray[Any], element: Attribute) -> SSAValue:
        """A new param with these data."""
        self.constants.setdefault(name, data)
        return self.param(name, TensorType.get(as_shape(data.shape), element))

    # ** views **

    def reshape(self, value: SSAValue, dims: Sequence[Expr | int]) -> SSAValue:
        """Row-major elements in another shape; nothing is written where it has that shape."""
        return self._view(ReshapeOp, value, as_shape(dims))

    def expand(self, value: SSAValue, dims: Sequence[Expr | int]) -> SSAValue:
        """Broadcast to a shape; new dims of 1 in front are a reshape."""
        shape, own = as_shape(dims), tensor_type(value).dims
        new = len(shape) - len(own)
        only_ones = shape[new:] == own and all(d.as_int() == 1 for d in shape[:new])
        return self._view(ReshapeOp if only_ones else ExpandOp, value, shape)

    def _view(self, op: type[AitOp], value: SSAValue, dims: Shape) -> SSAValue:
        t = tensor_type(value)
        if t.dims == dims:
            return value
        return self.op(op, value, results=[TensorType.get(dims, t.element_type)])

    def permute(self, value: SSAValue, order: Sequence[int]) -> SSAValue:
        """Dim i of the result is dim `order[i]` of the value."""
        if list(order) == list(range(len(order))):
            return value
        return self.op(PermuteOp, value, properties={"permutation": order})

    def slice(self, value: SSAValue, axis: int, start: Expr, size: Expr) -> SSAValue:
        """`size` elements along one axis from `start` on."""
        t = tensor_type(value)
        if t.dims[axis] is size:
            return value
        offsets = tuple(start if a == axis else const(0) for a in range(t.rank))
        dims = (*t.dims[:axis], size, *t.dims[axis + 1 :])
        return self.op(
            SliceOp,
            value,
            properties={"offsets": offsets},
            results=[TensorType.get(dims, t.element_type)],
        )

    def concat(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        """Values end to end along an axis."""
        return self.op(ConcatOp, *values, properties={"dim": axis})

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """Another element type; nothing is written where it has that one."""
        t = tensor_type(value)
        if t.element_type == element:
            return value
        return self.op(CastOp, value, results=[TensorType.get(t.dims, element)])

    # ** known values **

    def natural(self, value: Value) -> SSAValue:
        """The value in a shape that broadcasts to its dims, as small as it is known."""
        if isinstance(value, SSAValue):
            return value
        if isinstance(value, Spread):
            return value.value
        if isinstance(value, Mask):
            return self.once(("mask", value), lambda: self._mask(value))
        return self.once(("affine", value), lambda: self._affine(value))

    def full(self, value: Value) -> SSAValue:
        """The value in all its dims."""
        return value if isinstance(value, SSAValue) else self.expand(self.natural(value), value.dims)

    def additive(self, mask: Mask, element: Attribute) -> SSAValue:
        """0 where a mask is true and the least number where it is not, in its natural shape.

        The least number is used instead of -inf, because a row without visible columns must not become NaN: NaN would
        spread to other rows through the keys and values of the next layer. In PyTorch such a row is 0; here it is the
        mean of the values.
        """

        def make() -> SSAValue:
            zero, low = self.scalar(0.0, element), self.scalar(-LARGEST[element], element)
            return self.op(WhereOp, self.natural(mask), zero, low, results=None)

        return self.once(("additive", mask, element), make)

    def _mask(self, mask: Mask) -> SSAValue:
        if not mask.values and not mask.formulas:
            return self.scalar(1, i1)
        values = [*mask.values, *map(self._condition, mask.formulas)]
        result = values[0]
        for value in values[1:]:
            result = self.op(WhereOp, result, value, self.scalar(0, i1))
        return result

    def _condition(self, formula: Affine) -> SSAValue:
        """Whether a formula is at least 0: what grows with the index on one side, what falls on the other."""
        grows = [self.scope.le(0, step) for step in formula.steps]
        zero = const(0)
        up = replace(formula, steps=tuple(s if g else zero for s, g in zip(formula.steps, grows, strict=True)))
        down = replace(
            formula, steps=tuple(zero if g else -s for s, g in zip(formula.steps, grows, strict=True)), offset=zero
        )
        return self.op(CompareOp, self.natural(up), self.natural(down), properties={"predicate": "ge"}, results=None)

    def _affine(self, value: Affine) -> SSAValue:
        axes = value.moving_axes()
        if not axes:
            return self._number(value.offset, value.element)
        rank = len(value.dims)
        if (written := self._literal(value, axes)) is not None:
            return written
        first = next((a for a in axes if value.steps[a].as_int() == 1 and self.scope.le(0, value.offset)), None)
        start = value.offset if first is not None else const(0)
        result: SSAValue | None = None
        for axis in axes:
            part = self._range(start if axis == first else const(0), value.dims[axis], value.element)
            part = self.reshape(part, [value.dims[axis] if a == axis else 1 for a in range(axis, rank)])
            if value.steps[axis].as_int() != 1:
                part = self.op(MulOp, part, self._number(value.steps[axis], value.element))
            result = part if result is None else self.op(AddOp, result, part)
        assert result is not None
        if first is None and value.offset.as_int() != 0:
            result = self.op(AddOp, result, self._number(value.offset, value.element))
        return result

    def _literal(self, value: Affine, axes: Sequence[int]) -> SSAValue | None:
        """The numbers of a formula without dims, if it is short and not merely a part of 0, 1, 2, ..."""
        offset, rank = value.offset.as_int(), len(value.dims)
        loops = [(a, value.dims[a].as_int(), value.steps[a].as_int()) for a in axes]
        known = [(a, size, step) for a, size, step in loops if size is not None and step is not None]
        if offset is None or len(known) < len(loops) or (offset >= 0 and [step for *_, step in known] == [1]):
            return None
        if not 0 < math.prod(size for _, size, _ in known) <= LONGEST_LITERAL:
            return None
        numbers = np.array(offset, np.int64)
        for axis, size, step in known:
            numbers = numbers + (np.arange(size) * step).reshape((size, *(1 for _ in range(rank - axis - 1))))
        found: list[int] = [int(n) for n in numbers.flat]
        return self.constant(found, as_shape(numbers.shape), value.element)

    def _range(self, start: Expr, size: Expr, element: Attribute) -> SSAValue:
        """start, start + 1, ...: a slice of a constant that is long enough for every run."""
        low, high = self.scope.bounds(start)[0], self.scope.bounds(start + size)[1]
        length = high - low
        if length > LONGEST_RANGE:
            raise ImportFailure(
                f"{self.place()}: numbers from {start} to {start + size} are needed, up to {length} of them; "
                f"give the dims a maximum that keeps them at {LONGEST_RANGE}"
            )
        key = ("range", low, high, element)
        numbers = self.once(key, lambda: self.constant(range(low, high), as_shape([length]), element))
        return self.slice(numbers, 0, start - low, size)

    def _number(self, value: Expr, element: Attribute) -> SSAValue:
        """A number that may depend on the dims, in rank 0."""
        if (number := value.as_int()) is not None:
            return self.scalar(number, element)
        return self.reshape(self._range(value, const(1), element), ())


def wrapped(number: float, element: Attribute) -> float:
    """A number as an element type holds it: an integer modulo 2^n, as PyTorch converts it."""
    if not isinstance(number, int) or (ends := integer_range(element)) is None:
        return number
    low, high = ends
    return (number - low) % (high - low + 1) + low
