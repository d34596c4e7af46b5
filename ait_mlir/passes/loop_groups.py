"""Groups of ops that may become one `ait.loops`: which ops may join, the loops of a group, and its replacement."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.index import GatherOp
from ait_mlir.dialects.ait.loops import AtOp, FoldOp, LoopsOp
from ait_mlir.dialects.ait.quantize import QuantizeOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.structure import op_key
from ait_mlir.dialects.ait.traits import ChecksIndices, ReadsAll, ScalarLike, ViewLike
from ait_mlir.dialects.ait.types import Shape, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.dims import Expr, Scope, product, total
from ait_mlir.elements import NoElements, form_loops, has_elements
from ait_mlir.elements.view import segments
from ait_mlir.lowering.candidates import standalone
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.passes.remove_duplicates import is_new_state

MAX_MEMBERS = 32
"""Most ops of a group."""
MAX_OPERANDS = 16
"""Most tensors that one launch reads."""
MAX_SCALARS = 256
"""Most ops in the region of a group."""
MAX_RECOMPUTED = 4
"""Most scalar ops that each user of an elementwise op computes again."""
MORE_WORK = 2.0
"""The factor by which a group may do more work than its members alone, because elements are computed again."""


@dataclass
class Groups:
    """The groups of ops in one block that may become one `ait.loops`.

    A group is a list that starts with the op which comes last in the block. The result of this op is the result of the
    group.
    """

    block: Block
    target: Target | None
    found: dict[object, LoopsOp | None] = field(default_factory=dict[object, "LoopsOp | None"])
    """By the key of a group: its loops, which stand in no block, or None if there are none."""
    keys: dict[Operation, object] = field(default_factory=dict[Operation, object])

    def __post_init__(self) -> None:
        self.scope: Scope = scope_of(self.block.first_op)
        self.env = estimate_env(self.scope)
        self.place = {op: i for i, op in enumerate(self.block.ops)}
        self.gone: set[Operation] = set()

    @property
    def on_gpu(self) -> bool:
        return self.target is not None and self.target.is_gpu

    def is_root(self, op: Operation) -> bool:
        """Whether a group may end with an op: it has one used result, which is not the new state of an input. A reshape
        of the numbers of groups ends none: the shape before it has the dim of a group, along which scales are stored.
        """
        used = [r for r in op.results if r.uses]
        if isinstance(op, ReshapeOp) and isinstance(op.input.owner, QuantizeOp):
            return False
        return len(used) == 1 and not is_new_state(used[0]) and (self.target is not None or not isinstance(op, LoopsOp))

    def may_join(self, op: Operation) -> bool:
        if not has_elements(op) or "kernel" in op.attributes:
            return False
        is_cpu = self.target is not None and not self.target.is_gpu
        if is_cpu and isinstance(op, GatherOp) and op.says is not None:  # ait.at has errors of its own
            return False
        if is_cpu and isinstance(op, ContractionOp | ConvOp):  # kernels of their own sum in more accumulators
            return False
        types = [tensor_type(v) for v in (*op.operands, *op.results)]
        return not any(self.scope.host_symbols(e) for t in types for e in t.dims)

    def grown(self, root: Operation, stores: bool = False) -> list[Operation]:
        """The largest group that ends with an op. Its members are in the order in which they joined, the op first. With
        `stores`, it also has members whose results others use.
        """
        group = [root]
        if self.formed(group) is None:
            return []
        refused: set[Operation] = set()
        while len(group) < MAX_MEMBERS:
            found = [
                op
                for op in {v.owner for member in group for v in member.operands}
                if isinstance(op, Operation)
                and op not in refused
                and op not in group
                and (self.joins(op, group) or (stores and self.joins_stored(op, group)))
            ]
            if not found:
                break
            op = max(found, key=self.place.__getitem__)
            loops = self.formed([*group, op], stores)
            if loops is None or not self.is_fit(loops, [*group, op]):
                refused.add(op)
            else:
                group.append(op)
        return group

    def joins(self, op: Operation, group: Sequence[Operation]) -> bool:
        """Whether a producer may join a group: only the group uses its results, or computing them twice is free."""
        if op not in self.place or op in self.gone or not self.may_join(op):
            return False
        is_cpu = self.target is not None and not self.target.is_gpu
        if is_cpu and isinstance(op, ChecksIndices) and op.checks_indices and not all_is_read(op, group):
            return False
        return isinstance(op, ViewLike) or self.is_inside(op, group) or is_recomputed(op, self.scope)

    @staticmethod
    def is_inside(op: Operation, group: Sequence[Operation]) -> bool:
        """Whether only a group uses the results of an op."""
        return all(use.operation in group for r in op.results for use in r.uses)

    def formed(self, group: Sequence[Operation], stores: bool = False) -> LoopsOp | None:
        """The `ait.loops` op of a group, in a graph of its own; None if the group has none."""
        return self.formed_of(group, self.key(group, stores), stores)

    def formed_of(self, group: Sequence[Operation], key: object, stores: bool) -> LoopsOp | None:
        """The loops of the group that has a key."""
        if key not in self.found:
            try:
                self.found[key] = self.standalone(self.made(group, self.results(group, stores)), group[0])
            except NoElements:
                self.found[key] = None
        return self.found[key]

    def standalone(self, made: LoopsOp, place: Operation) -> LoopsOp:
        """Loops in a graph of their own. The ones given are erased."""
        self.block.insert_op_after(made, place)  # in the block, where the dims are declared
        _, alone = standalone(made)
        assert isinstance(alone, LoopsOp)
        made.detach()
        made.erase()
        return alone

    def made(self, group: Sequence[Operation], results: Sequence[SSAValue]) -> LoopsOp:
        """The loops of a group that compute some results of its ops, in no block."""
        has_errors = self.target is None or not self.target.is_gpu
        return form_loops(results, set(group), self.scope, has_errors)

    @staticmethod
    def result(root: Operation) -> SSAValue:
        return next(r for r in root.results if r.uses)

    def results(self, group: Sequence[Operation], stores: bool) -> list[SSAValue]:
        """The results of a group: that of its first op and, with `stores`, those of others that are used outside."""
        stored = [op for op in group[1:] if self._may_store(op, group)] if stores else []
        return [self.result(group[0]), *(r for op in stored for r in used_outside(op, group))]

    def joins_stored(self, op: Operation, group: Sequence[Operation]) -> bool:
        """Whether a producer may join a group that stores those of its results that others use."""
        return op in self.place and op not in self.gone and self.may_join(op) and self._may_store(op, group)

    def _may_store(self, op: Operation, group: Sequence[Operation]) -> bool:
        """Whether a group can also store the values of `op` that are used outside of the group.

        Their shape must be that of the group's result, have 1 for some of its dims, or merge neighbouring ones. Before
        the end of the group only reshapes may use them, which can move behind the group.
        """
        shape, end = tensor_type(self.result(group[0])).dims, self.place[group[0]]
        found = [] if isinstance(op, ViewLike) else used_outside(op, group)
        for value in found:
            if is_new_state(value) or not self._is_stored_in(tensor_type(value).dims, shape):
                return False
            if self._reshapes_before(value, group, end) is None:
                return False
        return bool(found)

    def _is_stored_in(self, dims: Shape, shape: Shape) -> bool:
        """Whether loops over a shape can store a tensor: its dims are those of the shape or 1, or each of them is the
        product of neighbouring dims of the shape, as rows are of groups.
        """
        if len(dims) == len(shape):
            return all(
                self.scope.equal(dim, size) or (dim.as_int() == 1 and self.scope.positive(size))
                for dim, size in zip(dims, shape, strict=True)
            )
        parts = [(dims[whole], shape[split]) for whole, split in segments(dims, shape, self.scope)]
        return all(len(whole) == 1 and self.scope.equal(whole[0], product(split)) for whole, split in parts)

    def key(self, group: Sequence[Operation], stores: bool = False) -> object:
        """A key that is equal for groups with the same computation and the same types of operands."""
        numbers: dict[SSAValue, int] = {}
        parts: list[object] = [[bool(r.uses) for r in group[0].results].index(True)]
        for op in group:
            for value in (*op.results, *op.operands):
                numbers.setdefault(value, len(numbers))
            wires = tuple(numbers[v] for v in (*op.results, *op.operands))
            parts.append((self.own_key(op), wires, self.is_inside(op, group)))
        if stores:
            parts.append(tuple(numbers[value] for value in self.results(group, stores)))
        return tuple(parts)

    def own_key(self, op: Operation) -> object:
        if op not in self.keys:
            self.keys[op] = op_key(op)
        return self.keys[op]

    def is_fit(self, loops: LoopsOp, group: Sequence[Operation]) -> bool:
        """Whether loops are small enough for one launch and compute few values twice."""
        if len(loops.operands) > MAX_OPERANDS or sum(1 for _ in loops.body.walk()) > MAX_SCALARS:
            return False
        alone = [self.formed([op]) for op in group]
        if any(op is None for op in alone):
            return True
        counts = [self._work]
        if self.target is not None and not self.target.is_gpu:
            counts.append(self._functions)  # whose time its estimates do not see
        return all(count(loops) <= MORE_WORK * sum(count(op) for op in alone if op is not None) for count in counts)

    def _work(self, loops: LoopsOp) -> float:
        """The number of reads, folded values and scalar ops; a cheap op counts as a quarter."""
        return sum(
            self.number(times) * (0.25 if isinstance(op, ScalarLike) and op.CHEAP else 1.0)
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
                called += self.number(times)
        return float(called)

    def number(self, e: Expr) -> int:
        return e.evaluate(self.env)

    def replace(self, group: Sequence[Operation], results: Sequence[SSAValue]) -> None:
        """Let others use the results of a group's loops, and erase members without users."""
        root = group[0]
        made = self.made(group, results)
        made.location = root.location
        self.block.insert_op_before(made, root)
        moved = [op for value in results for op in self._reshapes_before(value, group, self.place[root]) or ()]
        for op in reversed(moved):
            op.detach()
            self.block.insert_op_after(op, made)
            self.place[op] = self.place[root]
        for value, result in zip(results, made.results, strict=True):
            if result.type != value.type:
                self.block.insert_op_after(merged := ReshapeOp(result, tensor_type(value).dims), made)
                self.place[merged], result = self.place[root], merged.output
            value.replace_uses_with_if(result, lambda use: use.operation not in group)
        self.place[made] = self.place[root]
        for op in sorted(group, key=self.place.__getitem__, reverse=True):
            if not any(r.uses for r in op.results):
                self.gone.add(op)
                op.detach()
                op.erase()

    def _reshapes_before(self, value: SSAValue, group: Container[Operation], end: int) -> list[Operation] | None:
        """The reshapes of a value, outside of a group and before its end, that can move behind the group.

        None if another op before the end of the group uses the value.
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


def used_outside(op: Operation, group: Container[Operation]) -> list[SSAValue]:
    """The results of an op that ops outside of a group use."""
    return [r for r in op.results if any(use.operation not in group for use in r.uses)]


def all_is_read(op: Operation, group: Container[Operation]) -> bool:
    """Whether a group reads every element of an op's results, and so fails for the same indices as the op by itself."""
    left = [use.operation for r in op.results for use in r.uses if use.operation in group]
    while left:
        user = left.pop()
        if not isinstance(user, ReadsAll):
            return False
        left += [use.operation for r in user.results for use in r.uses if use.operation in group]
    return True


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
