"""Tensors that the importer keeps as formulas of their index.

Models build their masks and positions from `arange`, comparisons and broadcasts; these tensors depend only on their
index. With the formulas, the importer removes a mask that is true everywhere, turns the lower triangle into `causal`,
and reads the rows of a position table as a slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.dims import DimError, Expr, Scope, const

INTEGERS = (i32, i64)
"""The element types of formulas."""


@dataclass(frozen=True)
class Affine:
    """An integer tensor whose element at `index` is `offset + sum(steps[a] * index[a])`."""

    dims: Shape
    steps: tuple[Expr, ...]
    offset: Expr
    element: Attribute = i64

    @staticmethod
    def filled(dims: Sequence[Expr], value: Expr | int, element: Attribute = i64) -> Affine:
        """A tensor filled with one number."""
        offset = const(value) if isinstance(value, int) else value
        return Affine(tuple(dims), (const(0),) * len(dims), offset, element)

    def moving_axes(self) -> list[int]:
        """The axes along which the value changes."""
        return [
            a for a, (s, d) in enumerate(zip(self.steps, self.dims, strict=True)) if not _is(s, 0) and not _is(d, 1)
        ]

    def plus(self, other: Affine, factor: int | Expr, dims: Shape) -> Affine:
        """self + factor * other, both broadcast to `dims`."""
        a, b = self.broadcast(dims), other.broadcast(dims)
        steps = tuple(x + y * factor for x, y in zip(a.steps, b.steps, strict=True))
        return Affine(dims, steps, a.offset + b.offset * factor, self.element)

    def times(self, factor: Expr) -> Affine:
        """self * factor."""
        return replace(self, steps=tuple(s * factor for s in self.steps), offset=self.offset * factor)

    def broadcast(self, dims: Shape) -> Affine:
        """The tensor broadcast to a larger shape; expanded dims of 1 get step 0."""
        missing = len(dims) - len(self.dims)
        steps = [const(0)] * missing
        for step, old, new in zip(self.steps, self.dims, dims[missing:], strict=True):
            steps.append(const(0) if _is(old, 1) and not _is(new, 1) else step)
        return replace(self, dims=dims, steps=tuple(steps))

    def permuted(self, order: Sequence[int]) -> Affine:
        return replace(self, dims=tuple(self.dims[a] for a in order), steps=tuple(self.steps[a] for a in order))

    def sliced(self, axis: int, start: Expr, step: int, size: Expr) -> Affine:
        """Every `step`-th element along an axis from `start` on."""
        dims, steps = list(self.dims), list(self.steps)
        offset = self.offset + steps[axis] * start
        dims[axis], steps[axis] = size, steps[axis] * step
        return replace(self, dims=tuple(dims), steps=tuple(steps), offset=offset)

    def without(self, axis: int) -> Affine:
        """The tensor at index 0 of an axis, without this axis."""
        return replace(
            self, dims=self.dims[:axis] + self.dims[axis + 1 :], steps=self.steps[:axis] + self.steps[axis + 1 :]
        )

    def reshaped(self, dims: Shape) -> Affine | None:
        """The tensor in a shape that differs only in dims of 1; None for any other shape."""
        kept = [(d, s) for d, s in zip(self.dims, self.steps, strict=True) if not _is(d, 1)]
        if [d for d in dims if not _is(d, 1)] != [d for d, _ in kept]:
            return None
        rest = iter(s for _, s in kept)
        return replace(self, dims=dims, steps=tuple(const(0) if _is(d, 1) else next(rest) for d in dims))

    def joined(self, other: Affine, axis: int, size: Expr) -> Affine | None:
        """This tensor and `other`, concatenated along an axis of `size` in all; None unless one formula covers both."""
        step = other.steps[axis] if _is(self.dims[axis], 1) else self.steps[axis]
        both = replace(
            self,
            dims=(*self.dims[:axis], size, *self.dims[axis + 1 :]),
            steps=(*self.steps[:axis], step, *self.steps[axis + 1 :]),
        )
        behind = both.sliced(axis, self.dims[axis], 1, other.dims[axis])
        single = _is(other.dims[axis], 1)
        same = all(
            a is b or (i == axis and single) or _is(d, 1)
            for i, (a, b, d) in enumerate(zip(behind.steps, other.steps, other.dims, strict=True))
        )
        return both if same and behind.offset is other.offset else None

    def never_negative(self, scope: Scope) -> bool:
        """Whether every element is proved to be at least 0."""
        low = self.offset
        for step, extent in zip(self.steps, self.dims, strict=True):
            if not scope.le(0, step):
                if not scope.le(step, 0):
                    return False
                low = low + step * (extent - 1)
        return scope.le(0, low)


@dataclass(frozen=True)
class Mask:
    """A boolean tensor: true where every formula is at least 0 and every value, which broadcasts to it, is true."""

    dims: Shape
    formulas: tuple[Affine, ...] = ()
    values: tuple[SSAValue, ...] = ()

    def both(self, other: Mask, dims: Shape) -> Mask:
        """The mask that is true where both masks are true."""
        formulas = dict.fromkeys((*self.broadcast(dims).formulas, *other.broadcast(dims).formulas))
        return Mask(dims, tuple(formulas), tuple(dict.fromkeys((*self.values, *other.values))))

    def broadcast(self, dims: Shape) -> Mask:
        """The mask broadcast to a larger shape."""
        return Mask(dims, tuple(f.broadcast(dims) for f in self.formulas), self.values)

    def everywhere(self) -> bool | None:
        """True if the mask is known to be true everywhere, False if nowhere, else None."""
        numbers = [None if f.moving_axes() else f.offset.as_int() for f in self.formulas]
        if any(n is not None and n < 0 for n in numbers):
            return False
        return True if not self.values and None not in numbers else None

    def parted(self) -> tuple[Mask, Mask]:
        """The causal triangles of the mask and the rest of it; their conjunction is the mask."""
        triangles = tuple(f for f in self.formulas if is_causal(f))
        others = tuple(f for f in self.formulas if f not in triangles)
        return Mask(self.dims, triangles), Mask(self.dims, others, self.values)

    def proved(self, scope: Scope) -> Mask:
        """The mask without the formulas that are proved to be always true."""
        return Mask(self.dims, tuple(f for f in self.formulas if not f.never_negative(scope)), self.values)


@dataclass(frozen=True)
class Spread:
    """A value and the dims to which it is broadcast; ops that broadcast their operands read the value itself."""

    dims: Shape
    value: SSAValue


Value = SSAValue | Affine | Mask | Spread


def dims_of(value: Value) -> Shape:
    """The dims of a value: an SSA value's, or a formula's."""
    return tensor_type(value).dims if isinstance(value, SSAValue) else value.dims


def spread(value: SSAValue, dims: Shape) -> Value:
    """`value`, which broadcasts to `dims`, as a value of these dims."""
    return value if tensor_type(value).dims == dims else Spread(dims, value)


def masked_or_spread(value: SSAValue, dims: Shape) -> Value:
    """`value`, which broadcasts to `dims`, as a value of these dims; booleans as a mask."""
    return Mask(dims, (), (value,)) if tensor_type(value).element_type == i1 else spread(value, dims)


def as_mask(value: Value) -> Mask:
    """A boolean value as a mask."""
    if isinstance(value, Mask):
        return value
    assert not isinstance(value, Affine)
    return Mask(dims_of(value), (), (value if isinstance(value, SSAValue) else value.value,))


def is_mask(value: object) -> bool:
    """Whether a value holds booleans."""
    if isinstance(value, Mask):
        return True
    written = value.value if isinstance(value, Spread) else cast(Value, value)
    return isinstance(written, SSAValue) and tensor_type(written).element_type == i1


_ORDER = {"ge": (1, -1, 0), "gt": (1, -1, -1), "le": (-1, 1, 0), "lt": (-1, 1, -1)}
"""The factors of two integers and a constant whose sum is at least 0 where a comparison holds."""


def compared(a: Affine, b: Affine, predicate: str, dims: Shape) -> Mask | None:
    """A comparison of order of two formulas that broadcast to `dims`; None for others, and for too large numbers."""
    if predicate not in _ORDER:
        return None
    of_a, of_b, constant = _ORDER[predicate]
    try:
        return Mask(dims, (Affine.filled(dims, constant).plus(a, of_a, dims).plus(b, of_b, dims),))
    except DimError:
        return None


def lower_triangle(dims: Shape, diagonal: int | Expr) -> Affine:
    """The formula of the elements on and below a diagonal of the last two dims."""
    steps = (*(const(0) for _ in dims[:-2]), const(1), const(-1))
    return Affine(dims, steps, diagonal if isinstance(diagonal, Expr) else const(diagonal))


def is_causal(formula: Affine) -> bool:
    """Whether a formula of shape [..., S, L] lets row s see exactly the columns up to s + L - S."""
    if len(formula.dims) < 2:
        return False
    *outer, row, column = formula.steps
    rows, columns = formula.dims[-2:]
    return all(_is(s, 0) for s in outer) and _is(row, 1) and _is(column, -1) and formula.offset is columns - rows


def reach(formula: Affine, right: bool) -> int | None:
    """The width W if a formula of shape [..., S, L] lets row s see only columns less than W after (`right`) or before
    its position s + L - S; None for other formulas."""
    if len(formula.dims) < 2:
        return None
    *outer, row, column = formula.steps
    rows, columns = formula.dims[-2:]
    sign = 1 if right else -1
    if not (all(_is(s, 0) for s in outer) and _is(row, sign) and _is(column, -sign)):
        return None
    found = (formula.offset - (columns - rows) * sign).as_int()
    return None if found is None or found < 0 else found + 1


def _is(e: Expr, number: int) -> bool:
    return e.as_int() == number
