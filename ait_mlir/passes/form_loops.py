"""Joins memory-bound ops into one launch, `ait.loops`.

A group grows from its last op upward: over producers that only the group uses, or that only move elements. The group
becomes one definition of an element (`ait_mlir/elements`), so intermediate values need no memory. What others use, too,
becomes a further result, where it has the shape of the last one or a number for each row.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.data import OutputOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.elementwise import BitAndOp, CompareOp, WhereOp
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.index import GatherOp
from ait_mlir.dialects.ait.loops import AtOp, FoldOp, LoopsOp
from ait_mlir.dialects.ait.quantize import QuantizeOp
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.resize import GridSampleOp
from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dialects.ait.structure import op_key
from ait_mlir.dialects.ait.traits import ChecksIndices, ReadsAll, ScalarLike, ViewLike
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp, to_first
from ait_mlir.dims import Expr, Scope, product, total
from ait_mlir.elements import NoElements, form_loops, has_elements
from ait_mlir.lowering.candidates import Candidate, candidates_of, standalone, steps_of
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.counted_sums import count_sums
from ait_mlir.passes.grouping import best_seconds
from ait_mlir.passes.remove_duplicates import is_new_state
from ait_mlir.passes.row_sums import divide_row_sums

MAX_MEMBERS = 32
"""Most ops of a group."""
MAX_OPERANDS = 16
"""Most tensors that one launch reads."""
MAX_SCALARS = 256
"""Most ops in the region of a group."""
MAX_SWEEPS = 4
MAX_RECOMPUTED = 4
"""Most scalar ops that each user of an elementwise op computes again."""
MORE_WORK = 2.0
"""The factor by which a group may do more work than its members alone, because elements are computed again."""
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


@dataclass(frozen=True)
class FormLoopsPass(ByEstimatePass):
    """Join memory-bound ops into one `ait.loops`; with a target, only where estimates say that it is faster."""

    name = "form-loops"

    def rewrite(self, block: Block, target: Target | None) -> bool:
        if target is None or not target.is_gpu:
            return Former(block, target).run()
        return any([count_sums(block, target), divide_row_sums(block), Former(block, target).run()])


@dataclass
class Former:
    """Forms the loops of one block."""

    block: Block
    target: Target | None
    loops: dict[object, LoopsOp | None] = field(default_factory=dict[object, "LoopsOp | None"])
    """By the key of a group: its loops, which stand in no block, or None if there are none."""
    times: dict[object, tuple[float, float]] = field(default_factory=dict[object, "tuple[float, float]"])
    """By the key of a group: the seconds that one launch is estimated to save, and those that it saves clearly."""
    keys: dict[Operation, object] = field(default_factory=dict[Operation, object])
    fastest: dict[object, Candidate | None] = field(default_factory=dict[object, "Candidate | None"])
    """By the key of an op: its fastest candidate, or None if no kernel runs it."""

    def __post_init__(self) -> None:
        self.scope: Scope = scope_of(self.block.first_op)
        self.env = estimate_env(self.scope)
        self.place = {op: i for i, op in enumerate(self.block.ops)}
        self.gone: set[Operation] = set()

    def run(self) -> bool:
        """Rewrite the block; returns whether anything changed. Loops of one sweep may join others in the next."""
        sweeps = 0
        while sweeps < MAX_SWEEPS and self._sweep():
            sweeps += 1
        is_gpu = self.target is not None and self.target.is_gpu
        joined = is_gpu and any([self._join_producers(), self._join_siblings()])
        return sweeps > 0 or joined

    def _sweep(self) -> bool:
        changed = False
        for root in reversed(list(self.block.ops)):
            may_end = root not in self.gone and self._may_join(root) and self._is_root(root)
            if group := self._best(root) if may_end else []:
                self._replace(group, [self._result(root)])
                changed = True
        return changed

    # ** groups **

    def _best(self, root: Operation) -> list[Operation]:
        """The group that ends with an op and saves the most time, including the time that the producers left out may
        save as a group of their own. Empty if no group saves time.
        """
        group = self._grown(root)
        gains = [0.0, *(max(0.0, self._gain(group[:n])) for n in range(1, len(group) + 1))]
        best = max(range(len(gains)), key=lambda n: (gains[n], n))
        views = next((n for n, op in enumerate(group) if not isinstance(op, ViewLike)), 0)
        views = views if any(isinstance(op, PermuteOp) for op in group[:views]) else 0
        parts = [*range(1, len(gains))] if 0 < best < len(group) else [views, best] if 0 < views < best else [best]
        if len(parts) > 1:
            best = max(parts, key=lambda n: (gains[n] + self._gain_of(group[n:]), n))
        chosen = group[: best if gains[best] > 0 else 1]
        for op in group[len(chosen) :]:  # members that joined late, after those left out
            if (isinstance(op, ViewLike) or is_recomputed(op, self.scope)) and self._joins(op, chosen):
                wider = [*chosen, op]
                chosen = wider if self._gain(wider) > max(0.0, self._gain(chosen)) else chosen
        return chosen if chosen and self._gain(chosen) > 0 else []

    def _gain_of(self, rest: Sequence[Operation]) -> float:
        """The most seconds that a group saves whose last op is the first op of `rest` that is no view."""
        root = next((op for op in rest if not isinstance(op, ViewLike)), None)
        if root is None or not self._is_root(root):
            return 0.0
        group = self._grown(root)
        return max((self._gain(group[:n]) for n in range(1, len(group) + 1)), default=0.0)

    def _is_root(self, op: Operation) -> bool:
        """Whether a group may end with an op: it has one used result, which is not the new state of an input. A reshape
        of the numbers of groups ends none: the shape before it has the dim of a group, along which scales are stored.
        """
        used = [r for r in op.results if r.uses]
        if isinstance(op, ReshapeOp) and isinstance(op.input.owner, QuantizeOp):
            return False
        return len(used) == 1 and not is_new_state(used[0]) and (self.target is not None or not isinstance(op, LoopsOp))

    def _may_join(self, op: Operation) -> bool:
        if not has_elements(op) or "kernel" in op.attributes:
            return False
        is_cpu = self.target is not None and not self.target.is_gpu
        if is_cpu and isinstance(op, GatherOp) and op.says is not None:  # ait.at has errors of its own
            return False
        if is_cpu and isinstance(op, ContractionOp | ConvOp):  # kernels of their own sum in more accumulators
            return False
        types = [tensor_type(v) for v in (*op.operands, *op.results)]
        return not any(self.scope.host_symbols(e) for t in types for e in t.dims)

    def _grown(self, root: Operation, stores: bool = False) -> list[Operation]:
        """The largest group that ends with an op. Its members are in the order in which they joined, the op first. With
        `stores`, it also has members whose results others use.
        """
        group = [root]
        if self._formed(group) is None:
            return []
        refused: set[Operation] = set()
        while len(group) < MAX_MEMBERS:
            found = [
                op
                for op in {v.owner for member in group for v in member.operands}
                if isinstance(op, Operation)
                and op not in refused
                and op not in group
                and (self._joins(op, group) or (stores and self._joins_stored(op, group)))
            ]
            if not found:
                break
            op = max(found, key=self.place.__getitem__)
            loops = self._formed([*group, op], stores)
            if loops is None or not self._is_fit(loops, [*group, op]):
                refused.add(op)
            else:
                group.append(op)
        return group

    def _joins(self, op: Operation, group: Sequence[Operation]) -> bool:
        """Whether a producer may join a group: only the group uses its results, or computing them twice is free."""
        if op not in self.place or op in self.gone or not self._may_join(op):
            return False
        is_cpu = self.target is not None and not self.target.is_gpu
        if is_cpu and isinstance(op, ChecksIndices) and op.checks_indices and not all_is_read(op, group):
            return False
        return isinstance(op, ViewLike) or self._is_inside(op, group) or is_recomputed(op, self.scope)

    @staticmethod
    def _is_inside(op: Operation, group: Sequence[Operation]) -> bool:
        """Whether only a group uses the results of an op."""
        return all(use.operation in group for r in op.results for use in r.uses)

    def _formed(self, group: Sequence[Operation], stores: bool = False) -> LoopsOp | None:
        """The `ait.loops` op of a group, in a graph of its own; None if the group has none."""
        return self._formed_of(group, self._key(group, stores), stores)

    def _formed_of(self, group: Sequence[Operation], key: object, stores: bool) -> LoopsOp | None:
        """The loops of the group that has a key."""
        if key not in self.loops:
            try:
                self.loops[key] = self._standalone(self._made(group, self._results(group, stores)), group[0])
            except NoElements:
                self.loops[key] = None
        return self.loops[key]

    def _standalone(self, made: LoopsOp, place: Operation) -> LoopsOp:
        """Loops in a graph of their own. The ones given are erased."""
        self.block.insert_op_after(made, place)  # in the block, where the dims are declared
        _, alone = standalone(made)
        assert isinstance(alone, LoopsOp)
        made.detach()
        made.erase()
        return alone

    def _made(self, group: Sequence[Operation], results: Sequence[SSAValue]) -> LoopsOp:
        """The loops of a group that compute some results of its ops, in no block."""
        has_errors = self.target is None or not self.target.is_gpu
        return form_loops(results, set(group), self.scope, has_errors)

    @staticmethod
    def _result(root: Operation) -> SSAValue:
        return next(r for r in root.results if r.uses)

    def _results(self, group: Sequence[Operation], stores: bool) -> list[SSAValue]:
        """The results of a group: that of its first op and, with `stores`, those of others that are used outside."""
        stored = [op for op in group[1:] if self._may_store(op, group)] if stores else []
        return [self._result(group[0]), *(r for op in stored for r in used_outside(op, group))]

    def _joins_stored(self, op: Operation, group: Sequence[Operation]) -> bool:
        """Whether a producer may join a group that stores those of its results that others use."""
        return op in self.place and op not in self.gone and self._may_join(op) and self._may_store(op, group)

    def _may_store(self, op: Operation, group: Sequence[Operation]) -> bool:
        """Whether a group can store what others use of an op: values with the shape of the group's result or with 1 for
        some of its dims, which nothing before the end of the group needs but reshapes that can follow it.
        """
        shape, end = tensor_type(self._result(group[0])).dims, self.place[group[0]]
        found = [] if isinstance(op, ViewLike) else used_outside(op, group)
        for value in found:
            dims = tensor_type(value).dims
            if is_new_state(value) or len(dims) != len(shape):
                return False
            if not all(
                self.scope.equal(dim, size) or (dim.as_int() == 1 and self.scope.positive(size))
                for dim, size in zip(dims, shape, strict=True)
            ):
                return False
            if self._reshapes_before(value, group, end) is None:
                return False
        return bool(found)

    def _reshapes_before(self, value: SSAValue, group: Container[Operation], end: int) -> list[Operation] | None:
        """The reshapes of a value that stand before the end of a group outside of it, and whose users follow it; None
        if another op there uses the value.
        """
        found: list[Operation] = []
        for op in {use.operation: None for use in value.uses}:
            if op in group or self.place.get(op, -1) > end:
                continue
            behind = self._reshapes_before(op.results[0], group, end) if isinstance(op, ReshapeOp) else None
            if behind is None or op not in self.place:
                return None
            found += [op, *behind]
        return found

    def _key(self, group: Sequence[Operation], stores: bool = False) -> object:
        """A key that is equal for groups with the same computation and the same types of operands."""
        numbers: dict[SSAValue, int] = {}
        parts: list[object] = [[bool(r.uses) for r in group[0].results].index(True)]
        for op in group:
            for value in (*op.results, *op.operands):
                numbers.setdefault(value, len(numbers))
            wires = tuple(numbers[v] for v in (*op.results, *op.operands))
            parts.append((self._own_key(op), wires, self._is_inside(op, group)))
        if stores:
            parts.append(tuple(numbers[value] for value in self._results(group, stores)))
        return tuple(parts)

    def _own_key(self, op: Operation) -> object:
        if op not in self.keys:
            self.keys[op] = op_key(op)
        return self.keys[op]

    # ** cost **

    def _is_fit(self, loops: LoopsOp, group: Sequence[Operation]) -> bool:
        """Whether loops are small enough for one launch and compute few values twice."""
        if len(loops.operands) > MAX_OPERANDS or sum(1 for _ in loops.body.walk()) > MAX_SCALARS:
            return False
        alone = [self._formed([op]) for op in group]
        if any(op is None for op in alone):
            return True
        counts = [self._work]
        if self.target is not None and not self.target.is_gpu:
            counts.append(self._functions)  # whose time its estimates do not see
        return all(count(loops) <= MORE_WORK * sum(count(op) for op in alone if op is not None) for count in counts)

    def _work(self, loops: LoopsOp) -> float:
        """The number of reads, folded values and scalar ops; a cheap op counts as a quarter."""
        return sum(
            self._number(times) * (0.25 if isinstance(op, ScalarLike) and op.CHEAP else 1.0)
            for op, times in loops.runs()
            if isinstance(op, FoldOp | AtOp | ScalarLike)
        )

    def _functions(self, loops: LoopsOp) -> float:
        """The number of calls of costly functions, such as a cosine. A generated nest calls a function in the innermost
        loop that the function depends on, so each index of the loops around it counts.
        """
        nests, dims, called = loops.nests(), loops.iterations.data, 0
        for op, times in loops.runs():
            if isinstance(op, ScalarLike) and not op.CHEAP:
                if op.parent is loops.block:
                    depth = max((i + 1 for i, dim in enumerate(dims) if dim in nests[op.results[0]]), default=0)
                    times = product(dim.count for dim in dims[:depth])
                called += self._number(times)
        return float(called)

    def _number(self, e: Expr) -> int:
        return e.evaluate(self.env)

    def _gain(self, group: Sequence[Operation]) -> float:
        """The seconds that one launch saves; at most 0 unless it is clearly faster."""
        return self._gains(group)[1]

    def _gains(self, group: Sequence[Operation], stores: bool = False) -> tuple[float, float]:
        """The seconds that one launch is estimated to save, and the same less a share of its time."""
        key = self._key(group, stores)
        loops = self._formed_of(group, key, stores)
        if loops is None:
            return -math.inf, -math.inf
        if self.target is None:
            return float(len(group)), float(len(group))
        if key not in self.times:
            ends = {value.owner for value in self._results(group, stores)}
            seconds = [self._alone(op, group, op in ends) for op in group]
            before = sum(seconds)
            factor = GAIN if sum(s > 0 for s in seconds) > 1 else GAIN_ALONE
            factor = factor if self.target.is_gpu or computes(loops) else GAIN_MOVES_CPU
            least = self.target.launch_seconds + bytes_moved(loops, self.scope) / self.target.bandwidth
            if before > factor * least:
                least = best_seconds(loops, self.target)
            self.times[key] = before - least, before - factor * least
        return self.times[key]

    def _alone(self, op: Operation, group: Sequence[Operation], is_result: bool = False) -> float:
        """The seconds of a member's launch if it does not join; 0 for a view that costs no copy, or for an op that
        others need as well and whose results the group does not store.
        """
        assert self.target is not None
        if not is_result and not self._is_inside(op, group) and op is not group[0]:
            return 0.0
        if not isinstance(op, ViewLike):
            best = self._fastest(op)
            return math.inf if best is None else best.seconds
        if isinstance(op, ReshapeOp):
            return 0.0
        moved = total(r.type.byte_size() for r in op.results if isinstance(r.type, TensorType))
        if len(op.operands) > 1:  # pieces that are not written in place join other copies
            written = [self._is_written(op, i, value) for i, value in enumerate(op.operands)]
            if any(written):
                left = [tensor_type(v).byte_size() for v, done in zip(op.operands, written, strict=True) if not done]
                return 2 * self._number(total(left)) / self.target.bandwidth
        seconds = 2 * self._number(moved) / self.target.bandwidth
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
        """Whether a view is an image of small channels that is only sampled, to results of channels side by side."""
        users = [use.operation for r in op.results for use in r.uses]
        if not all(isinstance(user, GridSampleOp) for user in users):
            return False
        image = tensor_type(op.results[0])
        plane = self._number(product(image.dims[1:3])) * BY_IR[image.element_type].bytes
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
        if not isinstance(user, LoopsOp) or user in self.gone or (joined := self._formed([user, op])) is None:
            return None
        apart, together = self._fastest(user), self._fastest(joined)
        return None if apart is None or together is None else max(0.0, together.seconds - apart.seconds)

    def _copy_slowdown(self, op: ViewLike) -> float:
        """The time of a copy of a view over that of its bytes."""
        assert self.target is not None
        if not self.target.is_gpu or self._walks(op):
            return 1.0
        sizes = [self._number(d) for d in tensor_type(op.results[0]).dims if d.as_int() != 1]
        return min(MOST_NARROW, max(1.0, NARROW / max(1, sizes[-1]))) if sizes else 1.0

    def _fastest(self, op: Operation) -> Candidate | None:
        """The fastest candidate of an op by estimate, found once for equal ops."""
        assert self.target is not None
        key = self._own_key(op)
        if key not in self.fastest:
            known = (c for c in candidates_of(op, self.target) if not c.only_timed)
            self.fastest[key] = min(known, key=lambda c: c.seconds, default=None)
        return self.fastest[key]

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
        views = [op.result_view(i, whole, self.scope) for i in range(len(op.results))]
        return all(view is None or walks_along(view) for view in views)

    def _is_free(self, op: ViewLike) -> bool:
        """Whether a view needs no copy: the kernels that read it accept its strides, or the kernel of its operand
        writes it in place.
        """
        (source,) = op.operands[:1]
        whole = tensor_type(source)
        base = Strided.whole(whole.dims)
        views = [op.result_view(i, base, self.scope) for i in range(len(op.results))]
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
        part = view.operand_view(position, Strided.whole(whole.dims), self.scope)
        place = len(owner.operands) + list(owner.results).index(value)  # pyright: ignore[reportArgumentType]
        return part is not None and self._accepts(owner, place, part)

    def _accepts(self, op: Operation, position: int, view: Strided) -> bool:
        """Whether the fastest kernel of an op accepts the strides of a view."""
        if isinstance(op, OutputOp) or self.target is None:
            return False
        if isinstance(op, ReshapeOp):
            return view.reshape(tensor_type(op.output).dims, self.scope) is not None and all(
                not isinstance(use.operation, OutputOp) for use in op.output.uses
            )
        best = self._fastest(op)
        if best is None or best.cut is not None:
            return isinstance(op, ViewLike)
        step = steps_of(op, best, self.target)[0]
        return step.kernel.accepts(op, position, view.strides, self.scope)

    # ** results that others use, too **

    def _join_producers(self) -> bool:
        """Let one launch also store what others use of the values that it needs, such as the scale of each row beside
        the numbers that it quantises, or a residual sum beside its norm.
        """
        changed = False
        for root in reversed(list(self.block.ops)):
            if root in self.gone or not self._may_join(root) or not self._is_root(root):
                continue
            if not any(isinstance(v.owner, Operation) and self._joins_stored(v.owner, [root]) for v in root.operands):
                continue
            group = self._grown(root, stores=True)
            parts = [group[:n] for n in range(2, len(group) + 1)]
            parts = [part for part in parts if len(self._results(part, stores=True)) > 1]
            parts = [part for part in parts if self._gains(part, stores=True)[1] > 0]
            if parts:
                best = max(parts, key=lambda part: self._gains(part, stores=True))
                self._replace(best, self._results(best, stores=True))
                changed = True
        return changed

    # ** reductions side by side **

    def _join_siblings(self) -> bool:
        """Join reductions of the same elements, such as a mean and a variance, so that these are read once."""
        changed = False
        for op in reversed(list(self.block.ops)):
            others = self._siblings(op) if op not in self.gone and self._is_sibling(op) else set[Operation]()
            for other in sorted(others, key=self.place.__getitem__, reverse=True):
                group = self._grown_beside([op, other])
                if group and self._gain_beside(group) > 0:
                    self._replace(group, self._first_results(group))
                    changed = True
                    break
        return changed

    def _is_sibling(self, op: Operation) -> bool:
        """Whether an op is a reduction that may be one of two in a launch."""
        inner = op.block.ops if isinstance(op, LoopsOp) else ()
        folds = isinstance(op, ReduceOp) or any(isinstance(i, FoldOp) for i in inner)
        return folds and len(op.results) == 1 and self._may_join(op) and self._is_root(op)

    def _siblings(self, op: Operation) -> set[Operation]:
        """The earlier reductions to the same shape that read an operand of this one, and of which no op between the two
        uses the result.
        """
        (result,), found = op.results, set[Operation]()
        for other in {use.operation for value in op.operands for use in value.uses}:
            if other in self.place and other not in self.gone and self.place[other] < self.place[op]:
                same = self._is_sibling(other) and tensor_type(other.results[0]).dims == tensor_type(result).dims
                after = [use.operation for use in other.results[0].uses] if same else [op]
                if all(self.place.get(user, -1) > self.place[op] for user in after):
                    found.add(other)
        return found

    def _first_results(self, group: Sequence[Operation]) -> list[SSAValue]:
        """The results of the two reductions that a group begins with."""
        return [self._result(op) for op in group[:2]]

    def _grown_beside(self, group: list[Operation]) -> list[Operation]:
        """Two reductions and the elementwise ops before them that nothing else uses; empty if they do not fit."""
        while True:
            try:
                loops = self._standalone(self._made(group, self._first_results(group)), group[0])
            except NoElements:
                loops = None
            if loops is None or not self._is_fit(loops, group):
                return group[:-1] if len(group) > 2 else []
            before = {v.owner for member in group for v in member.operands}
            found = [
                op
                for op in before
                if isinstance(op, FusedElementwiseOp | ScalarLike)
                and op not in group
                and self._is_inside(op, group)
                and self._joins(op, group)
            ]
            if not found or len(group) == MAX_MEMBERS:
                return group
            group = [*group, max(found, key=self.place.__getitem__)]

    def _gain_beside(self, group: Sequence[Operation]) -> float:
        """The seconds that one launch of two reductions saves; at most 0 unless it is clearly faster."""
        assert self.target is not None
        loops = self._standalone(self._made(group, self._first_results(group)), group[0])
        before = sum(self._alone(op, group) for op in group[2:]) + sum(
            best.seconds for op in group[:2] if (best := self._fastest(op)) is not None
        )
        return before - GAIN * best_seconds(loops, self.target)

    # ** rewriting **

    def _replace(self, group: Sequence[Operation], results: Sequence[SSAValue]) -> None:
        """Let others use the results of a group's loops, and erase members without users."""
        root = group[0]
        made = self._made(group, results)
        made.location = root.location
        self.block.insert_op_before(made, root)
        moved = [op for value in results for op in self._reshapes_before(value, group, self.place[root]) or ()]
        for op in reversed(moved):
            op.detach()
            self.block.insert_op_after(op, made)
            self.place[op] = self.place[root]
        for value, result in zip(results, made.results, strict=True):
            value.replace_uses_with_if(result, lambda use: use.operation not in group)
        self.place[made] = self.place[root]
        for op in sorted(group, key=self.place.__getitem__, reverse=True):
            if not any(r.uses for r in op.results):
                self.gone.add(op)
                op.detach()
                op.erase()


def used_outside(op: Operation, group: Container[Operation]) -> list[SSAValue]:
    """The results of an op that ops outside of a group use."""
    return [r for r in op.results if any(use.operation not in group for use in r.uses)]


def computes(loops: LoopsOp) -> bool:
    """Whether loops do more than move elements and choose among them."""
    ops = [op for op in loops.body.walk() if isinstance(op, ScalarLike | FoldOp)]
    return any(not isinstance(op, CompareOp | WhereOp | BitAndOp) for op in ops)


def all_is_read(op: Operation, group: Container[Operation]) -> bool:
    """Whether a group reads every element of an op's results, and so fails for the same indices as the op by itself."""
    left = [use.operation for r in op.results for use in r.uses if use.operation in group]
    while left:
        user = left.pop()
        if not isinstance(user, ReadsAll):
            return False
        left += [use.operation for r in user.results for use in r.uses if use.operation in group]
    return True


def walks_along(view: Strided) -> bool:
    """Whether elements along the last dim that is not 1 have stride 1 or 2: an op that rotates pairs reads both
    elements of a pair.
    """
    strides = [s for d, s in zip(view.dims, view.strides, strict=True) if d.as_int() != 1]
    return not strides or strides[-1].as_int() in (1, 2)


def is_recomputed(op: Operation, scope: Scope) -> bool:
    """Whether an elementwise op is so cheap, and reads so little, that each user may compute it again."""
    if isinstance(op, FusedElementwiseOp):
        scalars = [inner for inner in op.body.block.ops if isinstance(inner, ScalarLike)]
        cheap = len(scalars) <= MAX_RECOMPUTED and all(inner.CHEAP for inner in scalars)
    else:
        cheap = isinstance(op, ScalarLike) and op.CHEAP
    sides = ([tensor_type(v).byte_size() for v in values] for values in (op.operands, op.results))
    read, written = map(total, sides)
    return cheap and scope.le(read, written)
