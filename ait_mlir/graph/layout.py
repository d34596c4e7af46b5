"""Strides: a tensor in memory as a contiguous block with its dims in another order.

A graph of the IR has contiguous inputs and outputs. A tensor with other strides is a block of memory with the tensor's
dims in the order of falling strides; if rows are longer than the tensor, the tensor is a slice of the block. Views
convert the block to the order that the graph declares, without cost if kernels read them in place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ait_mlir.graph.errors import GraphError, cudnnGraphNotSupportedError
from ait_mlir.runtime.data import span


@dataclass(frozen=True)
class Layout:
    """The memory of a tensor: dim i of the block is dim `order[i]` of the tensor, with `block[i]` elements in memory.

    Dims of one element come first. Dims with stride 0 have one element in memory (`repeated`). `step` is the distance
    of innermost elements.
    """

    dims: tuple[int, ...]
    order: tuple[int, ...]
    block: tuple[int, ...]
    repeated: tuple[int, ...] = ()
    step: int = 1
    strides: tuple[int, ...] = ()
    """The strides of a tensor that is only read and whose dims are not nested; its block is flat. Else empty."""

    @property
    def is_padded(self) -> bool:
        """Whether the block has padding: elements that are not the tensor's."""
        if self.strides:
            return True
        kept = [(a, n) for a, n in zip(self.order, self.block, strict=True) if a not in self.repeated]
        return self.step > 1 or any(self.dims[a] != n for a, n in kept)

    @property
    def shape(self) -> tuple[int, ...]:
        """The dims of the block as an input of the IR."""
        return (*self.block, self.step) if self.step > 1 else self.block


def row_major(dims: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor."""
    return tuple(math.prod(dims[i + 1 :]) for i in range(len(dims)))


def in_order_of(dims: Sequence[int], like: Sequence[int]) -> tuple[int, ...]:
    """Contiguous strides for `dims`, in the order of the strides `like`."""
    order = sorted(range(len(dims)), key=lambda a: (-like[a], a))
    strides, step = [0] * len(dims), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(1, dims[axis])
    return tuple(strides)


def strides_like(dims: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The strides of an input of these dims for a result; row-major if elements of the input overlap or repeat."""
    layout = layout_of(dims, strides, "", is_read=True)
    return row_major(dims) if layout.strides or layout.repeated else tuple(strides)


def channels_last(dims: Sequence[int]) -> tuple[int, ...]:
    """The strides of [N, C, sizes...] with the channels innermost."""
    return in_order_of(dims, [len(dims) + 1, 0, *range(len(dims) - 1, 1, -1)]) if len(dims) > 2 else row_major(dims)


def layout_of(dims: Sequence[int], strides: Sequence[int], where: str, is_read: bool = False) -> Layout:
    """The layout of a tensor, which nodes only read if `is_read`: then it may have any strides.

    Raises `GraphError` if elements overlap or a stride is negative, `cudnnGraphNotSupportedError` for strides that no
    block has.
    """
    if len(dims) != len(strides):
        raise GraphError(f"{where} has {len(dims)} dims {list(dims)}, but {len(strides)} strides {list(strides)}")
    if any(s < 0 for s in strides):
        raise GraphError(f"{where} has strides {list(strides)}, expected none below 0")
    repeated = tuple(a for a, (n, s) in enumerate(zip(dims, strides, strict=True)) if n > 1 and s == 0)
    moving = [a for a, n in enumerate(dims) if n != 1 and a not in repeated]
    if 0 in dims:
        return Layout(tuple(dims), tuple(range(len(dims))), tuple(dims))
    moving.sort(key=lambda a: (-strides[a], a))
    block: list[int] = []
    for place, axis in enumerate(moving):
        if place == 0:
            block.append(dims[axis])
            continue
        outer = strides[moving[place - 1]]
        if is_read and (outer % strides[axis] or outer // strides[axis] < dims[axis]):
            return Layout(tuple(dims), tuple(range(len(dims))), (span(dims, strides),), strides=tuple(strides))
        if outer < dims[axis] * strides[axis] and outer < span(
            [dims[a] for a in moving[place:]], [strides[a] for a in moving[place:]]
        ):
            raise GraphError(
                f"{where} has strides {list(strides)} for dims {list(dims)}: elements of dim {moving[place - 1]} "
                f"(stride {outer}) overlap those of dim {axis}"
            )
        if outer % strides[axis] or outer // strides[axis] < dims[axis]:
            raise cudnnGraphNotSupportedError(
                f"{where} has strides {list(strides)} for dims {list(dims)}: stride {outer} of dim "
                f"{moving[place - 1]} is no multiple of stride {strides[axis]} of dim {axis}"
            )
        block.append(outer // strides[axis])
    step = strides[moving[-1]] if moving else 1
    still = [a for a in range(len(dims)) if a not in moving]
    return Layout(tuple(dims), (*still, *moving), (*(1 for _ in still), *block), repeated, step)


def same_memory(dims: Sequence[int], a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two lists of strides address the same memory; strides of dims of one element do not count."""
    return all(x == y for n, x, y in zip(dims, a, b, strict=True) if n > 1) or 0 in dims
