"""Strided memory, and reshapes, permutations, expansions and slices of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ait_mlir.dialects.ait.types import Shape
from ait_mlir.dims import Expr, Scope, const, maximum, total

ZERO, ONE = const(0), const(1)


def contiguous_strides(dims: Sequence[Expr]) -> Shape:
    """Row-major strides in elements."""
    out: list[Expr] = []
    step = ONE
    for e in reversed(dims):
        out.append(step)
        step = step * e
    return tuple(reversed(out))


def is_contiguous(dims: Sequence[Expr], strides: Sequence[Expr], scope: Scope | None = None) -> bool:
    """Whether strides are row-major, ignoring dims of 1; without a scope only identical expressions count as equal."""
    step = ONE
    for e, s in zip(reversed(dims), reversed(strides), strict=True):
        if e.as_int() == 1:
            continue
        if s is not step and (scope is None or not scope.equal(s, step)):
            return False
        step = step * e
    return True


def extent(dims: Sequence[Expr], strides: Sequence[Expr], scope: Scope) -> Expr:
    """The elements of memory from the first element of a tensor to its last one; strides are at least 0."""
    if any(d is ZERO for d in dims):
        return ZERO
    last = total((d - 1) * s for d, s in zip(dims, strides, strict=True)) + 1
    return last if scope.le(ZERO, last) else maximum(last, ZERO)


def are_apart(dims: Sequence[Expr], strides: Sequence[Expr], scope: Scope) -> bool:
    """Whether elements are proved not to overlap: sorted by stride, each dim ends before the stride of the next."""
    if any(d is ZERO for d in dims):
        return True
    far = scope.maximum_env()
    moving = [(d, s) for d, s in zip(dims, strides, strict=True) if d is not ONE]
    moving.sort(key=lambda pair: pair[1].evaluate(far))
    return all(scope.lt(ZERO, s) for _, s in moving[:1]) and all(
        scope.le(inner * d, outer) for (d, inner), (_, outer) in itertools.pairwise(moving)
    )


@dataclass(frozen=True)
class Strided:
    """A strided view of memory: element `i` is at `offset + sum(i * strides)`, counted in elements."""

    dims: Shape
    offset: Expr
    strides: Shape

    @staticmethod
    def whole(dims: Shape) -> Strided:
        return Strided(dims, ZERO, contiguous_strides(dims))

    def is_whole(self, scope: Scope) -> bool:
        """Whether the view starts at offset 0 and is row-major."""
        return self.offset is ZERO and is_contiguous(self.dims, self.strides, scope)

    def repeats(self, scope: Scope) -> bool:
        """Whether several elements may be one element of memory, as in a broadcast."""
        return any(s.as_int() == 0 and not scope.le(d, 1) for d, s in zip(self.dims, self.strides, strict=True))

    def permute(self, order: tuple[int, ...]) -> Strided:
        return Strided(tuple(self.dims[i] for i in order), self.offset, tuple(self.strides[i] for i in order))

    def expand(self, dims: Shape) -> Strided:
        """Broadcast: new and stretched dims have stride 0."""
        lead = len(dims) - len(self.dims)
        strides = [ZERO] * lead
        for have, stride, want in zip(self.dims, self.strides, dims[lead:], strict=True):
            strides.append(ZERO if have.as_int() == 1 and want.as_int() != 1 else stride)
        return Strided(dims, self.offset, tuple(strides))

    def slice(self, offsets: Shape, dims: Shape) -> Strided:
        offset = self.offset
        for o, s in zip(offsets, self.strides, strict=True):
            offset = offset + o * s
        return Strided(dims, offset, self.strides)

    def reshape(self, dims: Shape, scope: Scope) -> Strided | None:
        """The same elements in another shape, or None if no strides can describe them.

        Both shapes are cut into the shortest groups of dims with equal products; a group of several old dims must be
        laid out like one dim.
        """
        if is_contiguous(self.dims, self.strides, scope):
            return Strided(dims, self.offset, contiguous_strides(dims))
        old = [(d, s) for d, s in zip(self.dims, self.strides, strict=True) if d is not ONE]
        strides: list[Expr] = []
        i = j = 0
        new = [d for d in dims if d is not ONE]
        while i < len(old) or j < len(new):
            have, want = (old[i][0] if i < len(old) else ONE), (new[j] if j < len(new) else ONE)
            i_end, j_end = min(i + 1, len(old)), min(j + 1, len(new))
            while have is not want and not scope.equal(have, want):
                if i_end < len(old) and (j_end >= len(new) or _smaller(have, want, scope)):
                    have, i_end = have * old[i_end][0], i_end + 1
                elif j_end < len(new):
                    want, j_end = want * new[j_end], j_end + 1
                else:
                    return None
            for (_, outer), (d, inner) in zip(old[i:i_end], old[i + 1 : i_end], strict=False):
                if not scope.equal(outer, d * inner):
                    return None
            step = old[i_end - 1][1] if i_end > i else ONE
            group: list[Expr] = []
            for d in reversed(new[j:j_end]):
                group.append(step)
                step = step * d
            strides += reversed(group)
            i, j = i_end, j_end
        found: list[Expr] = []
        for d in reversed(dims):  # a dim of 1 gets a packed stride: kernels require multiples
            found.append(strides.pop() if d is not ONE else found[-1] * dims[-len(found)] if found else ONE)
        return Strided(dims, self.offset, tuple(reversed(found)))


def _smaller(have: Expr, want: Expr, scope: Scope) -> bool:
    """Whether the group of old dims should grow: it is not proved to be at least as large as the group of new dims."""
    return not scope.le(want, have)
