"""Transposed convolutions become plain ones.

Along a dim with stride s, the places q = s u + v of one v are a phase: the same taps of the window reach each of them,
and reach neighbours of x. A phase is therefore a plain convolution with a part of the window. The results of the phases
are then interleaved. Where the window has a multiple of s taps, all phases read the same neighbours, and a single
convolution computes them as further channels: without a copy along the last dim, because the places of a line and their
channels lie side by side.

W. Shi et al., Is the deconvolution layer the same as a convolutional layer? (2016), https://arxiv.org/abs/1609.07009
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import gcd, prod

from xdsl.ir import Operation, Region, SSAValue

from ait_mlir.dialects.ait.base import same_shape
from ait_mlir.dialects.ait.conv import ConvOp, window
from ait_mlir.dialects.ait.elementwise import ElementwiseOp
from ait_mlir.dialects.ait.gemm import BmmOp
from ait_mlir.dialects.ait.syntax import rounding
from ait_mlir.dialects.ait.types import Shape, TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, to_first
from ait_mlir.dims import Expr, const, floordiv, product
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native

MOST_CONVOLUTIONS = 16
"""The most convolutions that one transposed convolution becomes."""


@pattern()
def plain_convolutions(p: PatternBuilder) -> None:
    """A transposed convolution = its phases, plain convolutions, interleaved"""
    w = p.value()
    root = p.op("ait.conv", [p.value(), w])
    p.require("follows_from_params", w)
    p.require("has_phases", root)
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.apply(root, "interleaved_phases", root)


PHASES = patterns(plain_convolutions)


# ** phases **


@dataclass(frozen=True)
class Phase:
    """The window of one phase along one dim: that of a plain convolution.

    `taps` are the taps of the transposed window that the phase has, in the order of the phase; without taps, the phase
    is zero. `before` and `after` count the zeros around x; if negative, the elements of x that the phase does not read.
    """

    taps: tuple[int, ...]
    before: int
    after: int
    dilation: int = 1

    @property
    def unread(self) -> int:
        """The elements of x that the phase does not read."""
        return max(0, -self.before) + max(0, -self.after)


@dataclass(frozen=True)
class Axis:
    """The phases along one dim: one convolution for each, or one convolution with `merged` phases as channels.

    A phase has `more` places more than x. The result begins at place `start` of the interleaved phases and ends `rest`
    places before their end. Merged phases list all taps of the first phase, then those of the second.
    """

    phases: tuple[Phase, ...]
    more: int
    start: int
    rest: int
    merged: int = 1


@dataclass(frozen=True)
class Window:
    """The window of a transposed convolution along one dim."""

    taps: int
    stride: int
    dilation: int
    before: int
    after: int
    output_pad: int

    def separate(self) -> Axis:
        """The phases as convolutions of their own."""
        whole = -(-self._extra // self.stride)
        phases: list[Phase] = []
        for v in range(self.stride):
            taps = [i for i in reversed(range(self.taps)) if (v + self.before - i * self.dilation) % self.stride == 0]
            offsets = [(v + self.before - i * self.dilation) // self.stride for i in taps] or [0]
            step = self.dilation // gcd(self.dilation, self.stride)
            phases.append(Phase(tuple(taps), -offsets[0], offsets[-1] + whole - 1, step))
        return Axis(tuple(phases), whole - 1, 0, whole * self.stride - self._extra)

    def merge(self) -> Axis | None:
        """The phases as channels of one convolution; None if their windows differ, or if they read only a part of x."""
        if self.dilation != 1 or self.taps % self.stride != 0:
            return None
        count = self.taps // self.stride
        skipped, start = divmod(self.before, self.stride)
        before, after = count - 1 - skipped, -(-(self.taps + self.output_pad - self.after) // self.stride) - 1
        if before < 0 or after < 0:
            return None
        taps = [v + self.stride * j for v in range(self.stride) for j in reversed(range(count))]
        more = after - skipped
        rest = (more + 1) * self.stride - start - self._extra
        return Axis((Phase(tuple(taps), before, after),), more, start, rest, self.stride)

    @property
    def _extra(self) -> int:
        """The size of the result, less `stride` for each element of x but the last."""
        return self.dilation * (self.taps - 1) + 1 + self.output_pad - self.before - self.after


def axes_of(conv: ConvOp) -> list[Axis] | None:
    """The phases along each dim; None if they need too many convolutions.

    Phases along the last dim are merged if they can be, because the result is then a view. All phases are merged if the
    result needs no slice and no permute to channels-first follows. The phases of a grouped convolution are never
    merged: further channels would make a depthwise convolution an ordinary one.
    """
    rank, pads = conv.spatial, conv.pads()
    numbers = zip(
        *(conv.kernel(), conv.strides(), conv.dilations(), pads[:rank], pads[rank:], conv.output_pads()), strict=True
    )
    windows = [Window(*n) for n in numbers]
    alone = conv.num_groups() > 1
    whole = [None if alone else w.merge() for w in windows]
    if _permute(conv) is not None or not all(a is not None and a.start == a.rest == 0 for a in whole):
        whole[:-1] = [None] * (rank - 1)
    axes = [axis or w.separate() for axis, w in zip(whole, windows, strict=True)]
    return axes if prod(len(axis.phases) for axis in axes) <= MOST_CONVOLUTIONS else None


# ** constraints and natives **


@constraint
def has_phases(conv: ConvOp) -> bool:
    """A transposed convolution that a few plain convolutions can compute."""
    if not conv.is_transposed():
        return False
    axes, scope = axes_of(conv), scope_of(conv)
    return axes is not None and all(
        scope.positive(size + axis.more) and all(scope.positive(size - phase.unread) for phase in axis.phases)
        for size, axis in zip(tensor_type(conv.x).dims[1:-1], axes, strict=True)
    )


@native
def interleaved_phases(r: Rewriter, conv: ConvOp) -> None:
    """Replace a transposed convolution by its phases, interleaved.

    Elementwise operations that alone read the convolution are applied to each phase. A permute to channels-first that
    alone reads their result becomes part of the interleaving.
    """
    axes = axes_of(conv)
    assert axes is not None, "interleaved_phases needs has_phases"
    following = _following(conv)
    if following:  # whose other operands may be defined after the convolution
        r.move(conv, before=following[-1])
    weight = _in_order_of_phases(r, conv, axes)
    all_chosen = list(combinations(*(axis.phases for axis in axes)))
    if len(all_chosen) > 1 and all(_is_point(axis, conv) for axis in axes):
        parts = _products(r, conv, axes, all_chosen, weight, following)
    else:
        parts = [_part(r, conv, axes, chosen, weight, following) for chosen in all_chosen]
    first = _permute(conv)
    replaced: list[Operation] = [conv, *following, *([] if first is None else [first])]
    r.replace(replaced[-1], [_interleaved(r, parts, axes, tensor_type(conv.output).dims, first is not None)])
    for op in reversed(replaced[:-1]):
        r.erase(op)


def _following(conv: ConvOp) -> list[ElementwiseOp]:
    """The chain of elementwise operations after the convolution. Each is the only reader of its predecessor and keeps
    the shape and type; its other operands have one element, or one for each channel.
    """
    found: list[ElementwiseOp] = []
    value: SSAValue = conv.output
    while True:
        user = value.get_user_of_unique_use()
        if not isinstance(user, ElementwiseOp) or user.results[0].type != value.type:
            return found
        if not all(v is value or _is_row(v, conv) for v in user.operands):
            return found
        found.append(user)
        value = user.results[0]


def _permute(conv: ConvOp) -> PermuteOp | None:
    """The permute to channels-first that follows these operations, if it is the only reader."""
    user = [conv, *_following(conv)][-1].results[0].get_user_of_unique_use()
    return user if isinstance(user, PermuteOp) and list(user.order()) == to_first(2 + conv.spatial) else None


def _is_row(value: SSAValue, conv: ConvOp) -> bool:
    """Whether a value has one element, or one element for each channel."""
    dims, channels = tensor_type(value).dims, tensor_type(conv.output).dims[-1:]
    return all(d.as_int() == 1 for d in dims[:-1]) and (
        not dims or dims[-1].as_int() == 1 or same_shape(dims[-1:], channels, scope_of(conv))
    )


def _in_order_of_phases(r: Rewriter, conv: ConvOp, axes: Sequence[Axis]) -> SSAValue:
    """The weight with its taps along each dim sorted by phase."""
    weight: SSAValue = conv.weight
    for i, axis in enumerate(axes):
        taps = [tap for phase in axis.phases for tap in phase.taps]
        if taps != list(range(len(taps))):
            weight = r.concat([r.slice(weight, 1 + i, tap, 1) for tap in taps], 1 + i)
    return weight


def _part(
    r: Rewriter,
    conv: ConvOp,
    axes: Sequence[Axis],
    chosen: Sequence[Phase],
    weight: SSAValue,
    following: Sequence[ElementwiseOp],
) -> SSAValue:
    """The convolution for one choice of a phase along each dim, merged phases being one: [N, places..., phases * C]."""
    x = conv.x
    batch, *sizes, _ = tensor_type(x).dims
    places = [size + axis.more for size, axis in zip(sizes, axes, strict=True)]
    columns = tensor_type(weight).dims[0] * prod(axis.merged for axis in axes)
    kind = TensorType.get((batch, *places, columns), tensor_type(conv.output).element_type)
    if all(phase.taps for phase in chosen):
        for i, phase in enumerate(chosen):
            x = r.slice(x, 1 + i, max(0, -phase.before), sizes[i] - phase.unread)
        pads = [max(0, n) for n in (*(p.before for p in chosen), *(p.after for p in chosen))]
        properties = window(pad=pads, dilation=[p.dilation for p in chosen], groups=conv.num_groups()) | rounding(conv)
        y = r.create(ConvOp, [x, _weight_of(r, axes, chosen, weight)], [kind], properties, [Region()]).results[0]
    else:
        y = r.filled(0.0, kind.dims, kind.element_type)
    return _followed(r, conv, y, axes, following)


def _is_point(axis: Axis, conv: ConvOp) -> bool:
    """Whether each phase has one tap and reads each element of x once, in a convolution without groups."""
    single = all(len(p.taps) == axis.merged and p.before == p.after == 0 for p in axis.phases)
    return single and axis.more == 0 and conv.num_groups() == 1


def _products(
    r: Rewriter,
    conv: ConvOp,
    axes: Sequence[Axis],
    all_chosen: Sequence[Sequence[Phase]],
    weight: SSAValue,
    following: Sequence[ElementwiseOp],
) -> list[SSAValue]:
    """The phases whose windows are single elements, as one batched product; returns its parts, one for each phase."""
    batch, *sizes, depth = tensor_type(conv.x).dims
    weights = [_weight_of(r, axes, chosen, weight) for chosen in all_chosen]
    columns = tensor_type(weights[0]).dims[0]
    b = r.concat([r.reshape(w, (1, 1, columns, depth)) for w in weights], 0)
    a = r.reshape(conv.x, (1, batch, product(sizes), depth))
    y = r.op(BmmOp, a, b, properties={"layout": "rcr"} | rounding(conv), regions=1)
    y = _followed(r, conv, y, axes, following)
    return [r.reshape(r.slice(y, 0, i, 1), (batch, *sizes, columns)) for i in range(len(weights))]


def _weight_of(r: Rewriter, axes: Sequence[Axis], chosen: Sequence[Phase], weight: SSAValue) -> SSAValue:
    """The weight of one phase along each dim, a slice of the weight that is sorted by phase."""
    for i, (axis, phase) in enumerate(zip(axes, chosen, strict=True)):
        taps = [len(p.taps) for p in axis.phases]
        weight = r.slice(weight, 1 + i, sum(taps[: axis.phases.index(phase)]), len(phase.taps))
    return _with_channels(r, weight, [axis.merged for axis in axes])


def _followed(
    r: Rewriter, conv: ConvOp, y: SSAValue, axes: Sequence[Axis], following: Sequence[ElementwiseOp]
) -> SSAValue:
    """The elementwise operations after the convolution, applied to one part."""
    read: SSAValue = conv.output
    channels, merged = tensor_type(conv.output).dims[-1], prod(axis.merged for axis in axes)
    for op in following:
        operands = [y if v is read else _row(r, v, channels, merged) for v in op.operands]
        y = r.create(type(op), operands, [y.type], op.properties | op.attributes).results[0]
        read = op.results[0]
    return y


def _with_channels(r: Rewriter, weight: SSAValue, merged: Sequence[int]) -> SSAValue:
    """The weight [Cout, merged phases * taps, ..., Cin] as [merged phases * Cout, taps, ..., Cin]."""
    out, *taps, depth = tensor_type(weight).dims
    rank, counts = len(taps), [floordiv(t, n) for t, n in zip(taps, merged, strict=True)]
    if counts == taps:
        return weight
    pairs = [d for n, count in zip(merged, counts, strict=True) for d in (const(n), count)]
    parted = r.reshape(weight, (out, *pairs, depth))
    moved = r.permute(parted, [*range(1, 1 + 2 * rank, 2), 0, *range(2, 2 + 2 * rank, 2), 1 + 2 * rank])
    return r.reshape(moved, (out * prod(merged), *counts, depth))


def _row(r: Rewriter, value: SSAValue, channels: Expr, merged: int) -> SSAValue:
    """An operand of an elementwise operation, repeated for merged phases if it has an element for each channel."""
    dims = tensor_type(value).dims
    if merged == 1 or not dims or dims[-1].as_int() == 1:
        return value
    return r.reshape(r.expand(r.reshape(value, (1, channels)), (merged, channels)), (channels * merged,))


def _interleaved(r: Rewriter, parts: Sequence[SSAValue], axes: Sequence[Axis], dims: Shape, first: bool) -> SSAValue:
    """The interleaved parts, one for each combination of phases, as a tensor of shape `dims`: [N, places..., C], or
    channels-first with `first`. Then the parts are interleaved along the last spatial dim before they are permuted.
    """
    rank = len(axes)
    if any(axis.merged > 1 for axis in axes[:-1]):
        return _all_merged(r, parts[0], [axis.merged for axis in axes], dims)
    *_, line = axes
    joined = list(parts)
    if line.merged > 1:
        batch, *places, _ = tensor_type(parts[0]).dims
        whole = (batch, *places[:-1], places[-1] * line.merged, dims[-1])
        joined = [r.slice(r.reshape(part, whole), rank, line.start, dims[rank]) for part in parts]
    for axis in reversed(range(1, 1 + rank)):
        count, at = len(axes[axis - 1].phases), axis + (first and axis < rank)
        groups = [joined[k : k + count] for k in range(0, len(joined), count)]
        joined = [r.slice(_interleave(r, group, at), at, 0, dims[axis]) for group in groups]
        if first and axis == rank:
            joined = [r.permute(part, to_first(2 + rank)) for part in joined]
    return joined[0]


def _all_merged(r: Rewriter, y: SSAValue, merged: Sequence[int], dims: Shape) -> SSAValue:
    """The result from one convolution [N, places..., phases * C] with the phases of all dims; no place is cut off."""
    (batch, *places, _), rank = tensor_type(y).dims, len(merged)
    pairs = [axis for i in range(rank) for axis in (1 + i, 1 + rank + i)]
    parted = r.reshape(y, (batch, *places, *merged, dims[-1]))
    return r.reshape(r.permute(parted, [0, *pairs, 1 + 2 * rank]), dims)


def _interleave(r: Rewriter, values: Sequence[SSAValue], axis: int) -> SSAValue:
    """The values interleaved along a dim."""
    if len(values) == 1:
        return values[0]
    dims = tensor_type(values[0]).dims
    joined = r.concat([r.reshape(v, (*dims[: axis + 1], 1, *dims[axis + 1 :])) for v in values], axis + 1)
    return r.reshape(joined, (*dims[:axis], dims[axis] * len(values), *dims[axis + 1 :]))
