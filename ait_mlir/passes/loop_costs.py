"""The seconds that a group saves as one `ait.loops`, by the estimates of kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.data import OutputOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.elementwise import BitAndOp, CompareOp, WhereOp
from ait_mlir.dialects.ait.loops import FoldOp, LoopsOp
from ait_mlir.dialects.ait.resize import GridSampleOp
from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dialects.ait.traits import ScalarLike, ViewLike
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp, to_first
from ait_mlir.dims import product, total
from ait_mlir.elements import has_elements
from ait_mlir.lowering.candidates import Candidate, candidates_of, steps_of
from ait_mlir.lowering.kernels.amounts import bytes_moved
from ait_mlir.passes.grouping import best_seconds
from ait_mlir.passes.loop_groups import Groups

GAIN = 1.1
"""The factor by which one launch must be estimated to be faster than the launches that it replaces."""
GAIN_ALONE = 1.5
"""The same factor for one op, whose own kernel may have been measured."""
STRIDED = 8
"""A strided read of elements of this many bytes is taken to be as fast as a copy, of smaller ones slower in proportion:
four times for f16. A rough estimate: a pool on an H200 that read an image in channels-first order took eight times its
floor."""
SAMPLED = 32
"""The same of an image that is sampled at the places of a grid: each element of a channel is a sector of its own."""
SMALL_PLANE = 8192
"""Bytes of a channel of an image that the first-level cache keeps while the channel is sampled."""
NARROW = 16
MOST_NARROW = 3.5
"""A copy that turns tiles fills them from this size of the last dim on; with fewer elements it takes longer in
proportion, but at most so many times: a shuffle of pixels by 4 took 3.4 times its floor on an H200."""
GAIN_MOVES_CPU = 2.5
"""The same factor on a CPU for loops that only move elements, which written copies do in blocks."""


@dataclass
class Costs:
    """The estimated seconds that groups of ops in one block save when each becomes one launch."""

    groups: Groups
    times: dict[object, tuple[float, float]] = field(default_factory=dict[object, "tuple[float, float]"])
    """By the key of a group: the seconds that one launch is estimated to save, and those that it saves clearly."""
    found: dict[object, Candidate | None] = field(default_factory=dict[object, "Candidate | None"])
    """By the key of an op: its fastest candidate, or None if no kernel runs it."""

    def __post_init__(self) -> None:
        self.target = self.groups.target

    def gain(self, group: Sequence[Operation]) -> float:
        """The seconds that one launch saves; at most 0 unless it is clearly faster."""
        return self.gains(group)[1]

    def gains(self, group: Sequence[Operation], stores: bool = False) -> tuple[float, float]:
        """The seconds that one launch is estimated to save, and the same less a share of its time."""
        key = self.groups.key(group, stores)
        loops = self.groups.formed_of(group, key, stores)
        if loops is None:
            return -math.inf, -math.inf
        if self.target is None:
            return float(len(group)), float(len(group))
        if key not in self.times:
            ends = {value.owner for value in self.groups.results(group, stores)}
            seconds = [self.alone(op, group, op in ends) for op in group]
            before = sum(seconds)
            factor = GAIN if sum(s > 0 for s in seconds) > 1 else GAIN_ALONE
            factor = factor if self.target.is_gpu or computes(loops) else GAIN_MOVES_CPU
            least = self.target.launch_seconds + bytes_moved(loops, self.groups.scope) / self.target.bandwidth
            if before > factor * least:
                least = best_seconds(loops, self.target)
            self.times[key] = before - least, before - factor * least
        return self.times[key]

    def alone(self, op: Operation, group: Sequence[Operation], is_result: bool = False) -> float:
        """The seconds of a member's own launch if it does not join the group.

        0 for a view that needs no copy, and for an op that stays because it is used outside of the group, which does
        not store its results.
        """
        assert self.target is not None
        if not is_result and not self.groups.is_inside(op, group) and op is not group[0]:
            return 0.0
        if not isinstance(op, ViewLike):
            best = self.fastest(op)
            return math.inf if best is None else best.seconds
        if isinstance(op, ReshapeOp):
            return 0.0
        moved = total(r.type.byte_size() for r in op.results if isinstance(r.type, TensorType))
        if len(op.operands) > 1:  # pieces that are not written in place join other copies
            written = [self._is_written(op, i, value) for i, value in enumerate(op.operands)]
            if any(written):
                left = [tensor_type(v).byte_size() for v, done in zip(op.operands, written, strict=True) if not done]
                return 2 * self.groups.number(total(left)) / self.target.bandwidth
        seconds = 2 * self.groups.number(moved) / self.target.bandwidth
        if not self._is_free(op):
            return self.target.launch_seconds + seconds * self._copy_slowdown(op)
        if (more := self._slower_reads(op)) is not None:
            return more
        if self._walks_along(op) or self._is_sampled_by_planes(op):
            return 0.0
        width = BY_IR[tensor_type(op.results[0]).element_type].bytes
        is_sampled = any(isinstance(use.operation, GridSampleOp) for r in op.results for use in r.uses)
        return seconds * (SAMPLED if is_sampled else STRIDED) / width

    def _is_sampled_by_planes(self, op: ViewLike) -> bool:
        """Whether a view is an image with small planes, and all its users sample it and then permute the result to
        channels-first.
        """
        users = [use.operation for r in op.results for use in r.uses]
        if not all(isinstance(user, GridSampleOp) for user in users):
            return False
        image = tensor_type(op.results[0])
        plane = self.groups.number(product(image.dims[1:3])) * BY_IR[image.element_type].bytes
        after = [use.operation for user in users for r in user.results for use in r.uses]
        return plane <= SMALL_PLANE and all(
            isinstance(user, PermuteOp) and list(user.order()) == to_first(image.rank) for user in after
        )

    def _slower_reads(self, op: ViewLike) -> float | None:
        """The seconds that loops, the only user of a view, take longer if they read its operand in place; None if other
        ops use it.
        """
        assert self.target is not None
        users = {use.operation for r in op.results for use in r.uses}
        user = next(iter(users)) if len(users) == 1 else None
        if (
            not isinstance(user, LoopsOp)
            or user in self.groups.gone
            or (joined := self.groups.formed([user, op])) is None
        ):
            return None
        apart, together = self.fastest(user), self.fastest(joined)
        return None if apart is None or together is None else max(0.0, together.seconds - apart.seconds)

    def _copy_slowdown(self, op: ViewLike) -> float:
        """The time of a copy of a view over that of its bytes."""
        assert self.target is not None
        if not self.target.is_gpu or self._walks(op):
            return 1.0
        sizes = [self.groups.number(d) for d in tensor_type(op.results[0]).dims if d.as_int() != 1]
        return min(MOST_NARROW, max(1.0, NARROW / max(1, sizes[-1]))) if sizes else 1.0

    def fastest(self, op: Operation) -> Candidate | None:
        """The fastest candidate of an op by estimate, found once for equal ops."""
        assert self.target is not None
        key = self.groups.own_key(op)
        if key not in self.found:
            known = (c for c in candidates_of(op, self.target) if not c.only_timed)
            self.found[key] = min(known, key=lambda c: c.seconds, default=None)
        return self.found[key]

    def _walks_along(self, op: ViewLike) -> bool:
        """Whether memory-bound ops read contiguous elements along the last dim of a view's results."""
        users = [use.operation for r in op.results for use in r.uses]
        if not any(has_elements(user) or isinstance(user, GridSampleOp) for user in users):
            return True
        return self._walks(op)

    def _walks(self, op: ViewLike) -> bool:
        """Whether the elements of a view's results are contiguous in its operand along their last dim."""
        if len(op.operands) != 1:
            return True
        whole = Strided.whole(tensor_type(op.operands[0]).dims)
        views = [op.result_view(i, whole, self.groups.scope) for i in range(len(op.results))]
        return all(view is None or walks_along(view) for view in views)

    def _is_free(self, op: ViewLike) -> bool:
        """Whether a view needs no copy: the kernels that read it accept its strides, or the kernel of its operand
        writes it in place.
        """
        (source,) = op.operands[:1]
        whole = tensor_type(source)
        base = Strided.whole(whole.dims)
        views = [op.result_view(i, base, self.groups.scope) for i in range(len(op.results))]
        if len(op.operands) == 1 and all(v is not None for v in views):
            uses = [(use, view) for r, view in zip(op.results, views, strict=True) for use in r.uses]
            if all(view is not None and self._accepts(use.operation, use.index, view) for use, view in uses):
                return True
        return all(self._is_written(op, i, value) for i, value in enumerate(op.operands))

    def _is_written(self, view: ViewLike, position: int, value: SSAValue) -> bool:
        """Whether the op that computes an operand of a view can write into the view's result."""
        owner = value.owner
        if not isinstance(owner, Operation) or len(list(value.uses)) != 1:
            return False
        whole = tensor_type(view.results[0])
        part = view.operand_view(position, Strided.whole(whole.dims), self.groups.scope)
        place = len(owner.operands) + list(owner.results).index(value)  # pyright: ignore[reportArgumentType]
        return part is not None and self._accepts(owner, place, part)

    def _accepts(self, op: Operation, position: int, view: Strided) -> bool:
        """Whether the fastest kernel of an op accepts the strides of a view."""
        if isinstance(op, OutputOp) or self.target is None:
            return False
        if isinstance(op, ReshapeOp):
            return view.reshape(tensor_type(op.output).dims, self.groups.scope) is not None and all(
                not isinstance(use.operation, OutputOp) for use in op.output.uses
            )
        best = self.fastest(op)
        if best is None or best.cut is not None:
            return isinstance(op, ViewLike)
        step = steps_of(op, best, self.target)[0]
        return step.kernel.accepts(op, position, view.strides, self.groups.scope)


def computes(loops: LoopsOp) -> bool:
    """Whether loops do more than move elements and choose among them."""
    ops = [op for op in loops.body.walk() if isinstance(op, ScalarLike | FoldOp)]
    return any(not isinstance(op, CompareOp | WhereOp | BitAndOp) for op in ops)


def walks_along(view: Strided) -> bool:
    """Whether elements along the last dim that is not 1 have stride 1 or 2: an op that rotates pairs reads both
    elements of a pair.
    """
    strides = [s for d, s in zip(view.dims, view.strides, strict=True) if d.as_int() != 1]
    return not strides or strides[-1].as_int() in (1, 2)
