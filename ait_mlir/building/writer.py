"""`Writer`: inserts `ait` ops, verifies each in the scope of its dims, and creates values for known tensors.

Front ends and rewrites share it. A subclass defines where ops are inserted and how errors name the place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ait_mlir.building.formulas import Affine, Mask, Spread, Value
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.data import ConstantOp, ParamOp
from ait_mlir.dialects.ait.dtypes import integer_range, is_float, overflows
from ait_mlir.dialects.ait.elementwise import (
    ELEMENTWISE,
    AddOp,
    CastOp,
    CompareOp,
    DivOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    RemOp,
    SubOp,
    WhereOp,
)
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.scan import ScanOp
from ait_mlir.dialects.ait.syntax import properties_of
from ait_mlir.dialects.ait.types import Shape, TensorType, as_shape, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ExpandOp, PermuteOp, ReshapeOp, SliceOp
from ait_mlir.dims import DimError, Expr, Scope, ceildiv, const, floordiv, mod

if TYPE_CHECKING:
    from numpy.typing import NDArray

Operand = SSAValue | float | Expr
"""An operand of an elementwise op: a value, a number, or a dim as a number."""

LONGEST_LITERAL = 1 << 12
"""The most numbers of a formula that is written into the module as a constant."""
LONGEST_RANGE = 1 << 16
"""The most numbers of a range that is written into the module as a constant; longer ones are computed in the run."""
BY_NAME: dict[str, type[AitOp]] = {op.name.removeprefix("ait."): op for op in ELEMENTWISE}
"""The elementwise ops by their names."""


class Writer:
    """Writes ops at the end of a block. Constants, params and the values of known tensors are written once.

    The same op on the same operands is also written once: models repeat their masks in each layer, and patterns
    recognise `x * norm(x)` because both x are one value. Operands of arithmetic may be numbers or dims; they get the
    element type of the first operand that is a value.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        """The block to which ops are added: the graph's, or the block of a loop's step."""
        self._memo: dict[Hashable, SSAValue] = {}

    # ** the place **

    @property
    def scope(self) -> Scope:
        """The scope of dims around the block."""
        return scope_of(self.block.parent_op())

    def insert(self, op: AitOp) -> Operation:
        """Insert an op at the end of the block."""
        self.block.add_op(op)
        return op

    def invalid(self, message: str) -> Exception:
        """An error, with its place, for an op that does not verify."""
        return VerifyException(message)

    def unsupported(self, message: str) -> Exception:
        """An error, with its place, for arguments that a composition does not accept."""
        return self.invalid(message)

    def store(self, name: str, data: NDArray[Any], element: Attribute) -> SSAValue:
        """Data that may be too large for the text of a module: a constant, or a weight if the front end has weights."""
        return self.constant(data.reshape(-1).tolist(), data.shape, element)

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """A context: ops are written into the block of a loop's step. The step uses no values from outside, and the
        loop's op is made after the context ends.
        """
        region, outside = Region(block), (self.block, self._memo)
        place = ScanOp.create(regions=[region])  # in which the step finds its dims
        self.block.add_op(place)
        self.block, self._memo = block, {}
        try:
            yield
        finally:
            self.block, self._memo = outside
            place.detach()
            region.detach_block(block)

    # ** ops **

    def op(
        self,
        op_class: type[AitOp],
        *operands: SSAValue,
        properties: Mapping[str, Any] | None = None,
        results: Sequence[Attribute] | None = None,
        regions: int | Sequence[Region] = 0,
    ) -> SSAValue:
        """Write an op; returns its first result. The arguments are as for `ops`."""
        return self.ops(op_class, *operands, properties=properties, results=results, regions=regions)[0]

    def ops(
        self,
        op_class: type[AitOp],
        *operands: SSAValue,
        properties: Mapping[str, Any] | None = None,
        results: Sequence[Attribute] | None = None,
        regions: int | Sequence[Region] = 0,
        count: int = 1,
    ) -> Sequence[SSAValue]:
        """Write an op; returns its results: `count` results of inferred types, or results of the types `results`.

        Properties are attributes or the Python values that the op's clauses convert; `regions` are regions or the
        number of empty regions.
        """
        found = properties_of(op_class, op_class.SYNTAX, properties or {})

        def make() -> SSAValue:
            op = op_class.create(
                operands=operands,
                result_types=results or [operands[0].type] * count,
                properties=found,
                regions=[Region() for _ in range(regions)] if isinstance(regions, int) else regions,
            )
            self.insert(op)
            self.check(op, infer=results is None)
            return op.results[0]

        key = (op_class, operands, tuple(found.items()), tuple(results or ()))
        first = make() if regions else self.once(key, make)
        assert isinstance(first, OpResult)
        return first.op.results

    def put(self, op: AitOp, infer: bool = True) -> SSAValue:
        """Insert an existing op; returns its first result, of the inferred type unless `infer` is False."""
        self.insert(op)
        self.check(op, infer)
        return op.results[0]

    def put_all(self, op: AitOp) -> Sequence[SSAValue]:
        """Insert an existing op; returns its results, of the inferred types."""
        self.put(op)
        return op.results

    def check(self, op: AitOp, infer: bool = False) -> None:
        """Verify an inserted op, or infer its result types; a failure raises `self.invalid(message)`."""
        try:
            if infer:
                op.infer()
            else:
                op.verify_()
        except (VerifyException, DimError) as error:
            raise self.invalid(str(error)) from None

    def once(self, key: Hashable, make: Callable[[], SSAValue]) -> SSAValue:
        """The value that `make` returned at the first call with this key."""
        if (found := self._memo.get(key)) is None:
            found = self._memo[key] = make()
        return found

    def scan(
        self,
        init: Sequence[SSAValue],
        scanned: Sequence[SSAValue],
        captured: Sequence[SSAValue],
        step: Callable[[Sequence[SSAValue], Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]],
        reverse: bool = False,
    ) -> list[SSAValue]:
        """A loop along dim 0 of the scanned values: the carried values after it, then the stacked results.

        `step` writes one step, given the carried values, the slices and the captured values; it returns the carried
        values of the next step, then the slices of the results.
        """
        if not scanned:
            raise self.unsupported("a scan over nothing has no length")
        slices = [TensorType.get(t.dims[1:], t.element_type) for t in map(tensor_type, scanned)]
        block = Block(arg_types=[*slices, *(v.type for v in (*init, *captured))])
        first, second = len(scanned), len(scanned) + len(init)
        with self.inside(block):
            block.add_op(YieldOp(*step(block.args[first:second], block.args[:first], block.args[second:])))
        return list(self.put_all(ScanOp(scanned, init, captured, Region(block), reverse=reverse)))

    # ** constants and params **

    def scalar(self, number: float, element: Attribute) -> SSAValue:
        """A constant of rank 0."""
        number = float(number) if is_float(element) else wrapped(int(number), element)
        key = ("scalar", repr(number), element)
        return self.once(key, lambda: self.constant([number], (), element, splat=True))

    def scalar_like(self, number: float, value: SSAValue) -> SSAValue:
        """A constant of rank 0 in the element type of a value."""
        return self.scalar(number, tensor_type(value).element_type)

    def number(self, value: float | Expr, element: Attribute) -> SSAValue:
        """A number or a dim as a value of rank 0."""
        if isinstance(value, Expr):
            return self.cast(self.natural(Affine.filled((), value)), element)
        return self.scalar(value, element)

    def constant(
        self, numbers: Sequence[float], dims: Sequence[Any], element: Attribute, splat: bool = False
    ) -> SSAValue:
        """A constant of these numbers in row-major order."""
        numbers = [wrapped(n, element) for n in numbers]
        value = numbers[0] if splat else numbers
        op = ConstantOp(value, TensorType.get(self.shape(dims), element))
        self.insert(op)
        return op.output

    def filled(self, number: float, dims: Sequence[Any], element: Attribute) -> SSAValue:
        """A tensor of shape `dims` filled with one number."""
        return self.expand(self.scalar(number, element), dims)

    def places(self, count: Expr) -> SSAValue:
        """The i64 tensor 0, 1, ..., `count` - 1."""
        return self.full(Affine((count,), (const(1),), const(0)))

    def param(self, name: str, type_: TensorType) -> SSAValue:
        """A weight by name."""

        def make() -> SSAValue:
            op = ParamOp(name, type_)
            self.insert(op)
            return op.output

        return self.once(("param", name), make)

    # ** views **

    def shape(self, dims: Sequence[Any]) -> Shape:
        """The dims of a tensor type, from sizes in the form that users of this writer pass."""
        return as_shape(dims)

    def reshape(self, value: SSAValue, dims: Sequence[Any]) -> SSAValue:
        """The value in another shape, in row-major order; no op is written if it has that shape already."""
        return self._view(ReshapeOp, value, self.shape(dims))

    def expand(self, value: SSAValue, dims: Sequence[Any]) -> SSAValue:
        """The value broadcast to a shape; if only leading dims of 1 are new, a reshape."""
        shape, own = self.shape(dims), tensor_type(value).dims
        new = len(shape) - len(own)
        only_ones = shape[new:] == own and all(d.as_int() == 1 for d in shape[:new])
        return self._view(ReshapeOp if only_ones else ExpandOp, value, shape)

    def _view(self, op: type[AitOp], value: SSAValue, dims: Shape) -> SSAValue:
        t = tensor_type(value)
        if t.dims == dims:
            return value
        return self.op(op, value, results=[TensorType.get(dims, t.element_type)])

    def permute(self, value: SSAValue, order: Sequence[int]) -> SSAValue:
        """The value with permuted dims: dim i of the result is dim `order[i]` of the value."""
        if list(order) == list(range(len(order))):
            return value
        return self.op(PermuteOp, value, properties={"permutation": order})

    def slice(self, value: SSAValue, axis: int, start: Expr | int, size: Expr | int) -> SSAValue:
        """`size` elements along one axis from `start` on."""
        t = tensor_type(value)
        first, length = self.shape([start, size])
        if t.dims[axis] is length:
            return value
        offsets = tuple(first if a == axis else const(0) for a in range(t.rank))
        dims = (*t.dims[:axis], length, *t.dims[axis + 1 :])
        return self.op(SliceOp, value, properties={"offsets": offsets}, results=[TensorType.get(dims, t.element_type)])

    def concat(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        """The concatenation of values along an axis."""
        return values[0] if len(values) == 1 else self.op(ConcatOp, *values, properties={"dim": axis})

    # ** elementwise ops and reductions **

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The value cast to an element type; no op is written if it has that type already."""
        t = tensor_type(value)
        if t.element_type == element:
            return value
        return self.op(CastOp, value, results=[TensorType.get(t.dims, element)])

    def pointwise(self, op: str | type[AitOp], *operands: Operand) -> SSAValue:
        """An elementwise op, by its name or class, with broadcasting."""
        element = next(tensor_type(v).element_type for v in operands if isinstance(v, SSAValue))
        values = [v if isinstance(v, SSAValue) else self.number(v, element) for v in operands]
        return self.op(BY_NAME[op] if isinstance(op, str) else op, *values)

    def add(self, a: Operand, b: Operand) -> SSAValue:
        return self.pointwise(AddOp, a, b)

    def sub(self, a: Operand, b: Operand) -> SSAValue:
        return self.pointwise(SubOp, a, b)

    def mul(self, a: Operand, b: Operand) -> SSAValue:
        return self.pointwise(MulOp, a, b)

    def div(self, a: Operand, b: Operand) -> SSAValue:
        """a / b; integers are rounded towards zero."""
        return self.pointwise(DivOp, a, b)

    def rem(self, a: Operand, b: Operand) -> SSAValue:
        """The remainder of `div`, with the sign of a."""
        return self.pointwise(RemOp, a, b)

    def minimum(self, a: Operand, b: Operand) -> SSAValue:
        return self.pointwise(MinOp, a, b)

    def maximum(self, a: Operand, b: Operand) -> SSAValue:
        return self.pointwise(MaxOp, a, b)

    def neg(self, a: SSAValue) -> SSAValue:
        return self.op(NegOp, a)

    def compare(self, predicate: str, a: SSAValue, b: Operand) -> SSAValue:
        """Whether the relation holds: eq, ne, lt, le, gt or ge."""
        other = b if isinstance(b, SSAValue) else self.number(b, tensor_type(a).element_type)
        return self.op(CompareOp, a, other, properties={"predicate": predicate})

    def where(self, condition: SSAValue, a: Operand, b: Operand) -> SSAValue:
        """a where the condition holds, else b; at least one of a and b is a value."""
        element = next(tensor_type(v).element_type for v in (a, b) if isinstance(v, SSAValue))
        first, second = (v if isinstance(v, SSAValue) else self.number(v, element) for v in (a, b))
        return self.op(WhereOp, condition, first, second)

    def both(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Whether both conditions hold."""
        return self.where(a, b, 0)

    def either(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Whether at least one of two conditions holds."""
        return self.where(a, 1, b)

    def reduce(self, kind: str, value: SSAValue, axes: Sequence[int], keep: bool = False) -> SSAValue:
        """A reduction; the axes stay as dims of 1 if `keep`."""
        t = tensor_type(value)
        reduced = self.op(ReduceOp, value, properties={"kind": kind, "dims": sorted(axes)})
        return self.reshape(reduced, [1 if a in axes else n for a, n in enumerate(t.dims)]) if keep else reduced

    # ** known values **

    def natural(self, value: Value) -> SSAValue:
        """The value in the smallest known shape that broadcasts to its dims."""
        if isinstance(value, SSAValue):
            return value
        if isinstance(value, Spread):
            return value.value
        if isinstance(value, Mask):
            return self.once(("mask", value), lambda: self._mask(value))
        return self.once(("affine", value), lambda: self._affine(value))

    def full(self, value: Value) -> SSAValue:
        """The value expanded to all its dims."""
        return value if isinstance(value, SSAValue) else self.expand(self.natural(value), value.dims)

    def _mask(self, mask: Mask) -> SSAValue:
        if not mask.values and not mask.formulas:
            return self.scalar(1, i1)
        first, *rest = [*mask.values, *map(self._condition, mask.formulas)]
        for value in rest:
            first = self.both(first, value)
        return first

    def _condition(self, formula: Affine) -> SSAValue:
        """Whether a formula is at least 0, as a comparison of its increasing terms with its decreasing terms."""
        grows = [self.scope.le(0, step) for step in formula.steps]
        zero = const(0)
        up = replace(formula, steps=tuple(s if g else zero for s, g in zip(formula.steps, grows, strict=True)))
        down = replace(
            formula, steps=tuple(zero if g else -s for s, g in zip(formula.steps, grows, strict=True)), offset=zero
        )
        return self.compare("ge", self.natural(up), self.natural(down))

    def _affine(self, value: Affine) -> SSAValue:
        axes = value.moving_axes()
        if not axes:
            return self._dim_value(value.offset, value.element)
        rank = len(value.dims)
        if (written := self._literal(value, axes)) is not None:
            return written
        first = next((a for a in axes if value.steps[a].as_int() == 1 and self.scope.le(0, value.offset)), None)
        start = value.offset if first is not None else const(0)
        result: SSAValue | None = None
        for axis in axes:
            part = self._range(start if axis == first else const(0), value.dims[axis], value.element)
            part = self.reshape(part, [value.dims[axis] if a == axis else const(1) for a in range(axis, rank)])
            if value.steps[axis].as_int() != 1:
                part = self.mul(part, self._dim_value(value.steps[axis], value.element))
            result = part if result is None else self.add(result, part)
        assert result is not None
        if first is None and value.offset.as_int() != 0:
            result = self.add(result, self._dim_value(value.offset, value.element))
        return result

    def _literal(self, value: Affine, axes: Sequence[int]) -> SSAValue | None:
        """A constant with the numbers of a formula without dims; None if it is long, or a part of 0, 1, 2, ..."""
        offset, rank = value.offset.as_int(), len(value.dims)
        loops = [(a, value.dims[a].as_int(), value.steps[a].as_int()) for a in axes]
        known = [(a, size, step) for a, size, step in loops if size is not None and step is not None]
        if offset is None or len(known) < len(loops) or (offset >= 0 and [step for *_, step in known] == [1]):
            return None
        if not 0 < math.prod(size for _, size, _ in known) <= LONGEST_LITERAL:
            return None
        sizes = {axis: size for axis, size, _ in known}
        terms = [[index * step for index in range(size)] for _, size, step in known]
        numbers = [offset + sum(parts) for parts in itertools.product(*terms)]
        return self.constant(numbers, [const(sizes.get(a, 1)) for a in range(axes[0], rank)], value.element)

    def _range(self, start: Expr, size: Expr, element: Attribute) -> SSAValue:
        """`size` numbers start, start + 1, ...: a slice of a constant that is long enough for every run, or sums."""
        low, high = self.scope.bounds(start)[0], self.scope.bounds(start + size)[1]
        length = high - low
        if length > LONGEST_RANGE:
            return self._long_range(start, size, element)
        key = ("range", low, high, element)
        numbers = self.once(key, lambda: self.constant(range(low, high), [const(length)], element))
        return self.slice(numbers, 0, start - low, size)

    def _long_range(self, start: Expr, size: Expr, element: Attribute) -> SSAValue:
        """As `_range`, for numbers beyond `LONGEST_RANGE`: each is a multiple of `LONGEST_RANGE` plus a number below
        it.
        """
        wide = i64 if is_float(element) else element
        if size.as_int() == 1:
            whole, rest = (f(start, const(LONGEST_RANGE)) for f in (floordiv, mod))
            high = self.mul(self._range(whole, size, wide), self.scalar(LONGEST_RANGE, wide))
            return self.cast(self.add(high, self._range(rest, size, wide)), element)
        rows = ceildiv(size, const(LONGEST_RANGE))

        def numbers() -> SSAValue:
            low = self._range(const(0), const(LONGEST_RANGE), wide)
            high = self.mul(self._range(const(0), rows, wide), self.scalar(LONGEST_RANGE, wide))
            table = self.add(self.reshape(high, (rows, 1)), self.reshape(low, (1, LONGEST_RANGE)))
            return self.reshape(table, (rows * LONGEST_RANGE,))

        found = self.slice(self.once(("long range", rows, wide), numbers), 0, const(0), size)
        return self.cast(found if start.as_int() == 0 else self.add(found, self._dim_value(start, wide)), element)

    def _dim_value(self, value: Expr, element: Attribute) -> SSAValue:
        """A value of rank 0 for a number that may depend on the dims."""
        if (number := value.as_int()) is not None:
            return self.scalar(number, element)
        return self.reshape(self._range(value, const(1), element), ())


def wrapped(number: float, element: Attribute) -> float:
    """A number converted to an element type, as in PyTorch: integers wrap modulo 2^n, large floats become infinite."""
    if overflows(number, element):
        return math.copysign(math.inf, number)
    if not isinstance(number, int) or (ends := integer_range(element)) is None:
        return number
    low, high = ends
    return (number - low) % (high - low + 1) + low
