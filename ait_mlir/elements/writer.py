"""Writes the region of `ait.loops`: scalars at an index, each once, in the outermost block that has its operands.

The function of an op in the table asks for elements of the op's operands. If a member of the group computes an operand,
the member's function is called in turn; otherwise `ait.at` reads the element. This is all that fusion needs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from ait_mlir.dialects.ait.bits import known_number
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import compute_type, is_float
from ait_mlir.dialects.ait.elementwise import (
    AddOp,
    BitAndOp,
    BitcastOp,
    CastOp,
    CompareOp,
    MulOp,
    SubOp,
    WhereOp,
    cast_steps,
)
from ait_mlir.dialects.ait.index import neutral
from ait_mlir.dialects.ait.loops import PLACES, AtOp, FoldOp, IndexOp, expressions_of
from ait_mlir.dialects.ait.numbers import Number
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.types import Induction, ShapeAttr, in_nest, tensor_type
from ait_mlir.dims import Expr, Scope, const, sym
from ait_mlir.elements.affine import position_of
from ait_mlir.rewrites.engine.numbers import splat

Index: TypeAlias = Expr | SSAValue
"""An index along a dim: an expression of dims and iteration dims, or an integer scalar."""
Row: TypeAlias = "Callable[[Operation, ElementWriter, int, Sequence[Index]], SSAValue]"


OF_EXPRESSIONS: dict[type[Operation], Callable[[Expr, Expr], Expr]] = {
    AddOp: Expr.__add__,
    SubOp: Expr.__sub__,
    MulOp: Expr.__mul__,
}
"""Scalar ops that stay expressions where their operands are."""
MAX_EXPRESSION = 1 << 62
"""Expressions of integers stay below, where no sum or product wraps."""


class NoElements(Exception):
    """An op, or an index of it, cannot be written as scalars; the message gives the reason."""


@dataclass
class Level:
    """A block under construction: the region of the loops, or of a fold inside it."""

    block: Block
    loops: tuple[Induction, ...]
    """The iteration dims of this level alone."""
    scope: Scope
    known: dict[object, Operation] = field(default_factory=dict[object, Operation])
    """The ops in the block by what they compute."""


class ElementWriter:
    """Writes scalars that compute elements of a group of ops, the `members`."""

    def __init__(
        self,
        scope: Scope,
        members: Container[Operation],
        rows: Mapping[str, Row],
        loops: Sequence[Induction],
        has_errors: bool = True,
    ) -> None:
        self.members = members
        self.rows = rows
        self.operands: dict[SSAValue, BlockArgument] = {}
        """The tensors that are read, and the block arguments that stand for them."""
        self.levels = [Level(Block(), tuple(loops), in_nest(scope, tuple(loops)))]
        self.says: dict[SSAValue, str] = {}
        """The errors of values as indices (`AtOp.says`)."""
        self._has_errors = has_errors
        self._scope = scope
        self._level: dict[SSAValue, Level] = {}
        self._elements: dict[object, SSAValue] = {}
        self._guarded = False
        self._folds = 0

    @property
    def scope(self) -> Scope:
        """The dims and iteration dims at the place where ops are written."""
        return self.levels[-1].scope

    # ** elements **

    def element(self, tensor: SSAValue, index: Sequence[Index]) -> SSAValue:
        """The element of a tensor at an index within the tensor, in its compute type."""
        index = [self.simplified(i) if isinstance(i, Expr) else i for i in index]
        key = tensor, tuple(index), self._guarded
        found = self._elements.get(key)
        if found is not None and self._is_open(found):
            return found
        owner, dims = tensor.owner, tensor_type(tensor).dims
        by_value = [size for i, size in zip(index, dims, strict=True) if isinstance(i, SSAValue)]
        inside = isinstance(owner, Operation) and owner in self.members
        if by_value and self._guarded:
            raise NoElements("an index that is a value and outside of its dim would not fail under a condition")
        if by_value and inside and any(size.as_int() == 1 for size in by_value):
            raise NoElements("an index that is a value is checked against the dim that it indexes")
        exact = [i for i in index if isinstance(i, Expr)]
        if not by_value and (number := splat(tensor)) is not None:
            found = self.constant(number, compute_type(tensor_type(tensor).element_type))
        elif not by_value and isinstance(owner, ConstantOp) and (e := position_of(owner, exact)) is not None:
            found = self.index(e)
        elif isinstance(owner, Operation) and inside:
            assert isinstance(tensor, OpResult)
            found = self.rows[owner.name](owner, self, tensor.index, index)
        else:
            found = self._read(tensor, index, 0 if self._guarded else None)
        self._elements[key] = found
        return found

    def element_or(self, tensor: SSAValue, index: Sequence[Index], number: Number) -> SSAValue:
        """The element of a tensor, or `number` if the index is outside of the tensor."""
        owner = tensor.owner
        if not (isinstance(owner, Operation) and owner in self.members) and not isinstance(owner, ConstantOp):
            return self._read(tensor, [self.simplified(i) if isinstance(i, Expr) else i for i in index], number)
        dims = tensor_type(tensor).dims
        with self._guard():
            value = self.element(tensor, index)
        if (read := self._same_outside(value, index, dims)) is not None:
            return self._read(*read, number)
        other = self.constant(number, compute_type(tensor_type(tensor).element_type))
        return self.guarded(self.within(index, dims), lambda: value, other)

    def _same_outside(
        self, value: SSAValue, index: Sequence[Index], dims: Sequence[Expr]
    ) -> tuple[SSAValue, Sequence[Index]] | None:
        """If `value` is a read that is out of range wherever `index` is outside of `dims`: its tensor and index. Else
        None.
        """
        if not isinstance(value.owner, AtOp):
            return None
        read = value.owner
        tensor = next(v for v, argument in self.operands.items() if argument is read.tensor)
        places = list(zip(read.index(), tensor_type(tensor).dims, strict=True))
        for i, size in zip(index, dims, strict=True):
            i = self.simplified(i) if isinstance(i, Expr) else i
            inside = isinstance(i, Expr) and self.scope.le(0, i) and self.scope.lt(i, size)
            if not inside and not any(i is e and self.scope.equal(size, n) for e, n in places):
                return None
        return tensor, read.index()

    def guarded(self, condition: SSAValue | None, inside: Callable[[], SSAValue], other: SSAValue) -> SSAValue:
        """The value that `inside` writes if a condition holds, else `other`. The condition None always holds.

        `inside` may read outside of tensors where the condition does not hold.
        """
        if condition is None:
            return inside()
        with self._guard():
            value = inside()
        return self.op(WhereOp, condition, value, other)

    def choose(self, condition: SSAValue, first: Callable[[], SSAValue], second: Callable[[], SSAValue]) -> SSAValue:
        """The first value if a condition holds, else the second. Where it is not used, each may read out of range."""
        with self._guard():
            values = first(), second()
        return self.op(WhereOp, condition, *values)

    @contextmanager
    def _guard(self) -> Generator[None]:
        before, self._guarded = self._guarded, True
        try:
            yield
        finally:
            self._guarded = before

    def _read(self, tensor: SSAValue, index: Sequence[Index], number: Number | None) -> SSAValue:
        dims = tensor_type(tensor).dims
        needed = self._needed([i for i in index if isinstance(i, SSAValue)], [i for i in index if isinstance(i, Expr)])
        for level in self.levels[needed:]:
            proved = all(
                level.scope.le(0, i) and level.scope.lt(i, size)
                for i, size in zip(index, dims, strict=True)
                if isinstance(i, Expr)
            )
            by_value = any(isinstance(i, SSAValue) for i in index)
            if proved and (not by_value or self._always_runs(level)):
                return self._add(self._at(tensor, index, number if by_value else None), level)
        if number is None:
            at = ", ".join(str(i) if isinstance(i, Expr) else "a value" for i in index)
            raise NoElements(f"[{at}] is not proved to be within {tensor.type}")
        return self._add(self._at(tensor, index, number), self.levels[needed])

    def _always_runs(self, level: Level) -> bool:
        """Whether the innermost level runs whenever this level does. Then a read at a data-dependent index may move to
        this level.
        """
        inner = self.levels[self.levels.index(level) + 1 :]
        return all(level.scope.positive(loop.count) for each in inner for loop in each.loops)

    def _at(self, tensor: SSAValue, index: Sequence[Index], number: Number | None) -> AtOp:
        argument = self.operands.get(tensor)
        if argument is None:
            block = self.levels[0].block
            argument = self.operands[tensor] = block.insert_arg(tensor.type, len(block.args))
            argument.name_hint = tensor.name_hint
        if number is not None and is_float(tensor_type(tensor).element_type):
            number = float(number)
        says = [self.says.get(i, "") for i in index if isinstance(i, SSAValue)]
        says = says if number is None and self._has_errors else []
        op = AtOp(argument, index, number, says)
        op.output.name_hint = tensor.name_hint
        return op

    # ** indices **

    def simplified(self, e: Expr) -> Expr:
        """An equal expression that may be shorter, by the ranges of dims in scope."""
        return self.scope.simplified(e)

    def index(self, e: Expr) -> SSAValue:
        """The value of an expression, as i64."""
        e = self.simplified(e)
        needed = self._needed([], [e])
        for level in self.levels[needed:]:
            if all(level.scope.positive(d) for d in e.divisors()):
                break
        else:
            raise NoElements(f"{e} divides by what may be 0")
        return self._add(IndexOp(e), level)

    def expression(self, value: SSAValue) -> Expr | None:
        """The expression whose value an i64 scalar is; None if there is none."""
        if value.type != i64:
            return None
        if isinstance(value.owner, IndexOp):
            return value.owner.value
        return const(int(number)) if isinstance(number := splat(value), int) else None

    def _computed(self, op: Operation) -> SSAValue | None:
        """The sum, difference or product of two expressions as one expression; None for other ops."""
        of = OF_EXPRESSIONS.get(type(op))
        if of is None or op.results[0].type != i64 or not any(isinstance(v.owner, IndexOp) for v in op.operands):
            return None
        a, b = map(self.expression, op.operands)
        if a is None or b is None or self.scope.magnitude(e := of(a, b)) >= MAX_EXPRESSION:
            return None
        return self.index(e)

    def number(self, e: Expr, element: Attribute) -> SSAValue:
        """The value of an expression in an element type."""
        if (known := self.simplified(e).as_int()) is not None:
            return self.constant(float(known) if is_float(element) else known, element)
        return self.cast(self.index(e), i64, element)

    def within(self, index: Sequence[Index], dims: Sequence[Expr]) -> SSAValue | None:
        """The condition that an index lies within a tensor of these dims; None if it is proved."""
        conditions: list[SSAValue] = []
        for i, size in zip(index, dims, strict=True):
            if not isinstance(i, Expr):
                raise NoElements("an index that is a value may lie outside of a tensor")
            if not self.scope.le(0, i):
                conditions.append(self.compare("ge", i, const(0)))
            if not self.scope.lt(i, size):
                conditions.append(self.compare("lt", i, size))
        return self.all_of(conditions)

    def compare(self, predicate: str, a: Expr, b: Expr) -> SSAValue:
        """The comparison of two expressions."""
        return self._add(CompareOp(predicate, self.index(a), self.index(b)))

    def all_of(self, conditions: Sequence[SSAValue]) -> SSAValue | None:
        """The conjunction of conditions; None without any."""
        if not conditions:
            return None
        found = conditions[0]
        for other in conditions[1:]:
            found = self.op(BitAndOp, found, other)
        return found

    # ** scalars **

    def op(self, op_class: type[Any], *operands: SSAValue) -> SSAValue:
        """An elementwise op on scalars."""
        return self.add(op_class(*operands))

    def add(self, op: Operation) -> SSAValue:
        """The result of an op on scalars, or of an equal op that is there already. The op has no region."""
        return self._add(op)

    def scalar(self, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
        """An elementwise op of tensors, applied to scalars in compute types."""
        element = _element(op.results[0])
        if isinstance(op, CastOp):
            return self.cast(operands[0], _element(op.input), element)
        made = type(op).create(operands=operands, result_types=[compute_type(element)], properties=dict(op.properties))
        made.results[0].name_hint = op.results[0].name_hint
        return self._add(made)

    def cast(self, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
        """The conversion of a scalar between two element types; its result is in the compute type."""
        for step in cast_steps(value.type, source, target):
            value = self._add(CastOp(value, step))
        return value

    def constant(self, number: Number, element: Attribute) -> SSAValue:
        """A number in a scalar type."""
        value = float(number) if is_float(element) else int(number)
        return self._add(ConstantOp(value, element))

    def property(self, attribute: Attribute, element: Attribute) -> SSAValue:
        """A property as a scalar; it may be given as the bits of an f32."""
        if (number := known_number(attribute)) is not None:
            return self.constant(number, element)
        assert isinstance(attribute, ShapeAttr)
        bits = self.cast(self.index(attribute.data[0]), i64, i32)
        return self.cast(self._add(BitcastOp(bits)), f32, element)

    def copy(self, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
        """A copy of an op on scalars, with other operands."""
        return self._add(op.clone(dict(zip(op.operands, operands, strict=True))))

    def inline(self, block: Block, arguments: Sequence[Callable[[], SSAValue]], position: int) -> SSAValue:
        """Copy a region of scalar ops; returns the value that it yields at a position. Only arguments that this value
        needs are written.
        """
        known: dict[SSAValue, SSAValue] = {}

        def value_of(value: SSAValue) -> SSAValue:
            if value not in known:
                owner = value.owner
                if isinstance(owner, Block):
                    assert isinstance(value, BlockArgument)
                    known[value] = arguments[value.index]()
                else:
                    known[value] = self.copy(owner, [value_of(v) for v in owner.operands])
            return known[value]

        last = block.last_op
        assert last is not None
        return value_of(last.operands[position])

    # ** folds **

    def fold(self, kind: str, sizes: Sequence[Expr], body: Callable[[Sequence[Expr]], SSAValue]) -> SSAValue:
        """The sum, product, maximum or minimum over further iteration dims of the values that `body` writes."""
        return self.folds(kind, sizes, body)[0]

    def place(self, kind: str, sizes: Sequence[Expr], body: Callable[[Sequence[Expr]], SSAValue]) -> SSAValue:
        """The row-major position of the largest (`argmax`) or smallest value, as i64."""
        return self.folds(kind, sizes, body)[1]

    def folds(self, kind: str, sizes: Sequence[Expr], body: Callable[[Sequence[Expr]], SSAValue]) -> Sequence[SSAValue]:
        """All results of a fold."""
        loops: list[Induction] = []
        index: list[Expr] = []
        for size in sizes:
            if size.as_int() == 1:
                index.append(const(0))
                continue
            loops.append(Induction(self._fresh_name(), size))
            index.append(sym(loops[-1].name))
        if not loops:
            return [body(index), *([self.index(const(0))] if kind in PLACES else [])]
        around = tuple(loop for level in self.levels for loop in level.loops)
        self.levels.append(Level(Block(), tuple(loops), in_nest(self._scope, (*around, *loops))))
        try:
            value = body(index)
        finally:
            level = self.levels.pop()
        level.block.add_op(YieldOp(value))
        op = FoldOp(kind, loops, Region(level.block))
        needed = max((self._needed([v], []) for v in _captured(op)), default=0)
        names = {n for inner in op.walk() for e in expressions_of(inner) for n in e.symbols}
        outer = [i for i, level in enumerate(self.levels) if any(loop.name in names for loop in level.loops)]
        needed = max([needed, *outer])
        return self._placed(op, self.levels[needed], fold_key(op)).results

    def _fresh_name(self) -> str:
        while True:
            self._folds += 1
            if (name := f"t{self._folds}") not in self._scope:
                return name

    # ** places **

    def _is_open(self, value: SSAValue) -> bool:
        return any(self._level.get(value) is level for level in self.levels)

    def _needed(self, values: Sequence[SSAValue], expressions: Sequence[Expr]) -> int:
        """The number of the outermost level that has these values and the iteration dims of these expressions."""
        names = {n for e in expressions for n in e.symbols}
        needed = 0
        for number, level in enumerate(self.levels):
            if any(loop.name in names for loop in level.loops) or any(self._level.get(v) is level for v in values):
                needed = number
        return needed

    def _add(self, op: Operation, level: Level | None = None) -> SSAValue:
        """Write an op at the outermost level that has its operands, or return the result of an equal op there."""
        if level is None:
            if (computed := self._computed(op)) is not None:
                op.erase()
                return computed
            level = self.levels[self._needed(list(op.operands), [])]
        properties = tuple(sorted(op.properties.items(), key=lambda item: item[0]))
        key = op.name, properties, tuple(op.operands), tuple(op.result_types)
        return self._placed(op, level, key).results[0]

    def _placed(self, op: Operation, level: Level, key: object) -> Operation:
        for outer in self.levels[: self.levels.index(level) + 1]:
            if (found := outer.known.get(key)) is not None:
                op.erase()  # else its operands would seem to be used
                return found
        level.known[key] = op
        level.block.add_op(op)
        for result in op.results:
            self._level[result] = level
        return op


def _element(value: SSAValue) -> Attribute:
    return tensor_type(value).element_type


def lowest(element: Attribute) -> Number:
    """The initial value of a maximum: minus infinity, or the smallest integer."""
    return neutral("max", element)


def _captured(op: FoldOp) -> list[SSAValue]:
    """The outer values that the region of a fold uses."""
    own = {r for inner in op.walk() for r in inner.results}
    return [v for inner in op.walk() for v in inner.operands if v not in own]


def fold_key(
    op: FoldOp, names: Mapping[str, Expr] | None = None, numbers: Mapping[SSAValue, object] | None = None
) -> object:
    """A key that is equal for folds that compute the same from the same outer values. Names of iteration dims do not
    matter.
    """
    names = dict(names or {})
    numbers = dict(numbers or {})
    for loop in op.iterations.data:
        names[loop.name] = sym(f"_{len(names)}")
    out: list[object] = [op.kind.data, op.sizes]
    for inner in op.block.ops:
        operands = tuple(numbers.get(v, v) for v in inner.operands)
        if isinstance(inner, FoldOp):
            what: object = fold_key(inner, names, numbers)
        elif isinstance(inner, AtOp):
            index = tuple(None if e is None else e.substitute(names) for e in inner.indices.data)
            what = index, inner.otherwise
        elif isinstance(inner, IndexOp):
            what = inner.value.substitute(names)
        else:
            what = tuple(sorted(inner.properties.items(), key=lambda item: item[0]))
        out.append((inner.name, what, operands, tuple(inner.result_types)))
        for r in inner.results:
            numbers[r] = len(numbers)
    return tuple(out)
