"""Traces a loop over a dynamic dim as a scan; functions that `loops` has converted call this module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.linear_algebra import LARGEST_TRIANGLE, inverse_of_unit_triangle
from ait_mlir.importers.torch.tracing import any_size, unrecorded

Step = Callable[[Any, Sequence[Any]], tuple[Any, Sequence[Sequence[Any]]]]
"""The body of a loop: from carried values and slices to carried values and the values for each list or tensor."""


class LoopError(Exception):
    """A loop over a dynamic dim cannot become a scan."""


def is_dynamic(count: Any) -> bool:
    """Whether a number of steps is a dim without a value in the trace."""
    return isinstance(count, torch.SymInt) and count.node.maybe_as_int() is None


@dataclass(frozen=True)
class Range:
    """The numbers of a loop: `range(start, stop, by)`, and how many there are."""

    start: Any
    stop: Any
    by: int
    count: Any

    @staticmethod
    def of(*given: Any) -> Range:
        """The range of Python's arguments. Raises `LoopError` for a step that is not a number."""
        start, stop, by = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
        if is_dynamic(by):
            raise LoopError("its step is a dim, expected a number")
        by = int(by)
        if by == 0:
            raise ValueError("range() arg 3 must not be zero")
        apart = stop - start if by > 0 else start - stop
        count = apart if abs(by) == 1 else (apart + abs(by) - 1) // abs(by)
        if is_dynamic(count):
            torch._check(count >= 0)
        return Range(start, stop, by, count)

    def behind(self, offset: Any) -> Range:
        """The range with each number increased. Raises `LoopError` if a number may be below 0."""
        if is_dynamic(offset):
            raise LoopError("it takes elements at a distance that is a dim, expected a number")
        moved = Range(self.start + int(offset), self.stop + int(offset), self.by, self.count)
        if not _is_known(moved.first >= 0):
            raise LoopError(f"it takes elements from {moved.first} on, which count from the end")
        return moved

    @property
    def first(self) -> Any:
        """The smallest number."""
        return self.start if self.by > 0 else self.start + (self.count - 1) * self.by

    def of_axis(self, tensor: Any, axis: int) -> Any:
        """The elements of a tensor at the numbers of the range along an axis, which moves to the front, in ascending
        order.
        """
        moved = tensor.movedim(axis, 0)
        first = self.first
        if _is_known(moved.shape[0] == self.count) and _is_known(first == 0):
            return moved
        step = abs(self.by)
        if step == 1:
            return moved.narrow(0, first, self.count)
        return moved[first : first + (self.count - 1) * step + 1 : step]

    def in_order(self, values: Any) -> Any:
        """Values with dim 0 reversed if the range counts down: this converts from ascending order to the order of the
        steps, and back.
        """
        return values if self.by > 0 else values.flip(0)


def _is_known(condition: Any) -> bool:
    """Whether a condition on sizes holds for all sizes, without recording it."""
    return bool(torch.fx.experimental.symbolic_shapes.statically_known_true(condition))


def without_axis(value: Any, tensor: Any, axis: int) -> Any:
    """A value for one index of a tensor's axis, without that axis; one that broadcasts may lack the axis already."""
    if not isinstance(value, torch.Tensor):
        return torch.full((), value, dtype=tensor.dtype, device=tensor.device)
    behind = axis if axis < 0 else axis - tensor.dim()
    return value.squeeze(behind) if value.dim() >= -behind else value


def substitute_rows(matrix: Any, rows: range) -> None:
    """Run the loop of `loop_code.substituted_rows` over some rows, all rows at once if it is over all.

    Let L be the part of the matrix below its diagonal, and U the rest, which the loop leaves as it is. Below the
    diagonal, column j becomes the solution x of (1 - L) x = (L + L @ U)[:, j] in the rows behind j. The inverse of the
    last rows and columns of a lower triangle is that part of its inverse.
    """
    n = matrix.shape[-1]
    if rows == range(1, n) and matrix.shape[-2] == n and n <= LARGEST_TRIANGLE and matrix.is_floating_point():
        places = torch.arange(n, device=matrix.device)
        is_below = places[:, None] > places
        lower, upper = torch.where(is_below, matrix, 0), torch.where(is_below, 0, matrix)
        known = torch.where(is_below, lower + lower @ upper, 0)
        found = upper + inverse_of_unit_triangle(-lower) @ known
        with unrecorded((matrix,)):
            matrix.copy_(found)
        return
    for i in rows:
        row, above = matrix[..., i, :i].clone(), matrix[..., :i, :i].clone()
        matrix[..., i, :i] = row + (row.unsqueeze(-1) * above).sum(-2)


def augmented(old: Any, new: Any) -> Any:
    """The value of `old` after `old += ...`, given the value `new` of `old + ...`: a tensor keeps its dtype."""
    return new.to(old.dtype) if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor) else new


def run(
    step: Step,
    numbers: Range,
    carried: Any,
    sliced: Sequence[tuple[Any, int, Any, Any]],
    counts: bool,
    names: Sequence[str],
) -> Any:
    """Run a step for each number.

    A step gets the carried values, a part of each tensor of `sliced` and, if `counts`, the number as a scalar. A part
    is taken along an axis; it starts so many elements behind the number, and is so wide; None is one element, without
    the axis. Returns the last carried values, and for each name the values of all steps, stacked along dim 0. Raises
    `LoopError`.
    """
    xs = [_slices(*part, numbers) for part in sliced]
    if counts:
        xs.append(torch.arange(numbers.count) * numbers.by + numbers.start)
    tree = torch.utils._pytree
    some = [torch.zeros(x.shape[1:], dtype=x.dtype, device=x.device) for x in xs]
    first, rows = step(carried, some)  # gives the types; the values are unused
    for name, values in zip(names, rows, strict=True):
        if len(values) != 1 or not isinstance(values[0], torch.Tensor):
            raise LoopError(f"a step gives {name} {len(values)} values, expected one tensor")
    start, spec = tree.tree_flatten(carried)
    after, spec_after = tree.tree_flatten(first)
    if spec != spec_after:
        raise LoopError("the first step changes the structure of what the loop carries")
    init = [_as(old, new).clone() for old, new in zip(start, after, strict=True)]

    def flat(state: Any, slices: Any) -> Any:
        results, lists = step(tree.tree_unflatten(list(state), spec), slices)
        return [t.clone() for t in tree.tree_leaves(results)], [values[0].clone() for values in lists]

    if not init:  # PyTorch's scan must carry a value
        init = [torch.zeros(())]

        def flat(state: Any, slices: Any) -> Any:
            lists = step(carried, slices)[1]
            return [state[0].clone()], [values[0].clone() for values in lists]

    with any_size():  # a range from 1 on may have one step
        last, stacked = torch._higher_order_ops.scan(flat, init, xs)
    return tree.tree_unflatten(list(last)[: len(start)], spec), list(stacked)


def _slices(tensor: Any, axis: int, offset: Any, width: Any, numbers: Range) -> Any:
    if not isinstance(tensor, torch.Tensor):
        raise LoopError(f"it takes elements of a {type(tensor).__name__} by the index of the step")
    if offset != 0:
        numbers = numbers.behind(offset)
    is_part = width is not None
    if is_part:
        if is_dynamic(width) or int(width) < 1:
            raise LoopError(f"it takes {width} elements at once, expected a number from 1 on")
        axis %= tensor.dim()
        tensor = tensor.unfold(axis, int(width), 1).movedim(-1, axis + 1)
    last = numbers.first + (numbers.count - 1) * abs(numbers.by)
    if (is_part or offset != 0) and not _is_known(last < tensor.shape[axis]):
        raise LoopError("it takes elements that may lie behind the last one")
    return numbers.in_order(numbers.of_axis(tensor, axis))


def _as(old: Any, new: Any) -> Any:
    """The initial value `old`, converted to the dtype and shape of `new`, its value after a step."""
    if not isinstance(new, torch.Tensor):
        raise LoopError(f"it carries a value of type {type(new).__name__}, expected tensors")
    if not isinstance(old, torch.Tensor):
        if not isinstance(old, bool | int | float):
            raise LoopError(f"it carries a value that is {old!r} at first, expected a tensor")
        return torch.full_like(new, old)
    if torch.promote_types(old.dtype, new.dtype) != new.dtype:
        raise LoopError(f"the first step changes the dtype of a carried value from {old.dtype} to {new.dtype}")
    try:
        return old.to(new.dtype).expand(new.shape)
    except RuntimeError as error:
        shapes = " to ".join(str(list(t.shape)) for t in (old, new))
        raise LoopError(f"the first step changes the shape of a carried value from {shapes}") from error


def write(tensor: Any, axis: int, stacked: Any, numbers: Range) -> None:
    """Write the values of all steps to `tensor[..., i, ...]`, with `i` at this axis."""
    with any_size():
        place, stacked = numbers.of_axis(tensor, axis), numbers.in_order(stacked)
        for _ in range(place.dim() - stacked.dim()):
            stacked = stacked.unsqueeze(1)
        stacked = stacked.expand(place.shape)
        with unrecorded((place,)):  # whether elements of the place overlap
            place.copy_(stacked)


class Rows:
    """The tensors that all steps have appended to a list, stacked along dim 0; one item of the list."""

    def __init__(self, stacked: Any) -> None:
        self.stacked = stacked

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        parts, dim = _parts(*args, **(kwargs or {}))
        joins = (torch.cat, torch.concat, torch.concatenate)
        if function is not torch.stack and function not in joins:
            raise LoopError(f"torch.{function.__name__} reads a list of what each step gives; stack or cat can")
        rank = next(p.stacked.dim() - 1 if isinstance(p, Rows) else p.dim() for p in parts)
        axis = dim % (rank + (function is torch.stack))
        joined: list[Any] = []
        for part in parts:
            if not isinstance(part, Rows):
                joined.append(part.unsqueeze(axis) if function is torch.stack else part)
            elif function is torch.stack:
                joined.append(part.stacked.movedim(0, axis))
            else:
                joined.append(part.stacked.movedim(0, axis).flatten(axis, axis + 1))
        return joined[0] if len(joined) == 1 else torch.cat(joined, axis)


def _parts(tensors: Any, dim: int = 0, **_: Any) -> tuple[list[Any], int]:
    return _items(tensors), dim


def _items(values: Any) -> list[Any]:
    """The items of a list or tuple."""
    return values.items() if isinstance(values, Collected) else list(values)


class Collected(list[Any]):
    """A list to which a loop over a dynamic dim has appended tensors. `torch.stack` and `torch.cat` take it."""

    def items(self) -> list[Any]:
        """The list itself: tensors, and a `Rows` for each loop that appended to it."""
        return [*super().__iter__()]

    def _refuse(self, *_: Any) -> Any:
        raise LoopError("it reads the length or single items of a list to which each step appends")

    __len__ = __getitem__ = __iter__ = __reversed__ = __add__ = __mul__ = __rmul__ = __eq__ = pop = copy = _refuse


def collected(before: Any, stacked: Any) -> Collected:
    """The list `before` with the tensors appended that a loop has stacked."""
    if not isinstance(before, list):
        raise LoopError(f"it appends to a {type(before).__name__}, expected a list")
    return Collected([*_items(before), Rows(stacked)])


class Unknown:
    """Stands for a variable after a loop that does not carry it; any use is an error."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise LoopError(f"{self.name} is read after the loop: set it before the loop, and read it in each step")

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for value in torch.utils._pytree.tree_leaves((args, kwargs)):
            if isinstance(value, Unknown):
                value._refuse()

    def __getattr__(self, name: str) -> Any:
        self._refuse()

    __getitem__ = __iter__ = __len__ = __bool__ = __call__ = __index__ = __add__ = __radd__ = __mul__ = __rmul__ = (
        _refuse
    )
    __sub__ = __rsub__ = __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = __neg__ = __invert__ = _refuse
