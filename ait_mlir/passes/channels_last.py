"""Moves permutes between channels-first and channels-last to the edges of a graph.

Convolutions and pools compute on [N, sizes..., C]. A model with tensors [N, C, sizes...] has a permute before and after
each of them. This pass follows the values after them. An op that treats its dims alike computes on the channels-last
value instead; its result is then also channels-last, and the permute before the next convolution is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.base import AitOp, same_shape
from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, ParamOp
from ait_mlir.dialects.ait.syntax import int_list_attr
from ait_mlir.dialects.ait.traits import AlongDims, ChannelsLast, ReduceLike, RowLike, ScalarLike
from ait_mlir.dialects.ait.types import Shape, TensorType, as_shape, tensor_type
from ait_mlir.dialects.ait.view import ExpandOp, PermuteOp, ReshapeOp, to_first, to_last
from ait_mlir.dims import const


def moves_ones_only(dims: Shape, order: Sequence[int]) -> bool:
    """Whether a permutation keeps the order of all dims that are not 1, so that it is a reshape."""
    kept = [axis for axis in order if dims[axis].as_int() != 1]
    return kept == sorted(kept)


class Turner:
    """Rewrites one block."""

    def __init__(self, graph: GraphOp) -> None:
        self.scope = graph.scope
        self.block: Block = graph.block
        self.last: set[SSAValue] = set()
        """Values that are channels-last."""
        self.any_order = False
        """Whether the graph has ops that need channels-last. If so, every permute to channels-first with more than 3
        dims counts as one of a channels-last value.
        """
        self.twins: dict[SSAValue, SSAValue] = {}
        """The channels-last twin of a channels-first value."""

    def run(self) -> None:
        ops = list(self.block.ops)
        for op in ops:
            if isinstance(op, ReshapeOp) and _parts_places(op):
                self.last.add(op.results[0])
        self.any_order = any(isinstance(op, ChannelsLast) for op in ops)
        if not self.any_order and not self.last:
            return
        for op in ops:
            if isinstance(op, PermuteOp):
                self._permute(op)
            elif isinstance(op, ReshapeOp):
                self._reshape(op)
            elif isinstance(op, ReduceLike):
                self._reduce(op)
            elif isinstance(op, ScalarLike | AlongDims | ExpandOp):
                self._turn(op)
            if isinstance(op, ChannelsLast) or (
                isinstance(op, ScalarLike | RowLike | AlongDims) and any(v in self.last for v in op.operands)
            ):
                self.last.update(op.results)
        for op in reversed(list(self.block.ops)):
            if isinstance(op, AitOp) and op.results and _is_dead(op):
                op.detach()
                op.erase()

    # ** ops **

    def _permute(self, op: PermuteOp) -> None:
        source, order = op.operands[0], list(op.order())
        dims = tensor_type(source).dims
        rank = len(dims)
        if rank < 3:
            return
        if order == to_last(rank) and source in self.twins:
            self._replace(op, self.twins[source])
        elif moves_ones_only(dims, order):
            whole = self._reshaped(op, source, tensor_type(op.results[0]).dims)
            if order == to_first(rank) and source in self.last:
                self.twins[whole] = source
            self._replace(op, whole)
        elif order == to_first(rank) and ((rank > 3 and self.any_order) or source in self.last):
            self.twins[op.results[0]] = source

    def _reshape(self, op: ReshapeOp) -> None:
        """Rewrite reshapes that merge or split spatial dims, and any reshape of a value with spatial dims of 1."""
        source, target = op.operands[0], tensor_type(op.results[0]).dims
        twin = self.twins.get(source)
        if twin is None:
            return
        dims = tensor_type(source).dims
        if len(target) >= 3 and same_shape(dims[:2], target[:2], self.scope):
            self._define(op, [self._reshaped(op, twin, (dims[0], *target[2:], dims[1]))])
        elif moves_ones_only(dims, to_last(len(dims))):
            self._replace(op, self._reshaped(op, twin, target))

    def _reduce(self, op: ReduceLike) -> None:
        source = op.operands[0]
        twin = self.twins.get(source)
        if twin is None or not isinstance(op, AlongDims):
            return
        order = to_last(tensor_type(source).rank)
        kept = [axis for axis in order if axis not in op.reduced_axes()]
        back = [kept.index(axis) for axis in sorted(kept)]
        dims = [tensor_type(source).dims[axis] for axis in kept]
        results = self._made(op, [twin], order, [dims] * len(op.results))
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(self._permuted(op, new, back))

    def _turn(self, op: Operation) -> None:
        """Compute an op in channels-last if an operand of full rank is channels-last and the others can be without a
        copy.
        """
        rank = tensor_type(op.results[0]).rank
        found = [v for v in op.operands if v in self.twins and tensor_type(v).rank == rank]
        if not found or any(tensor_type(r).rank != rank for r in op.results):
            return
        order = to_last(rank)
        kept = op.per_dim_operands() if isinstance(op, AlongDims) else ()
        if any(region.blocks for region in op.regions):
            return
        operands = [
            v if i in kept else self.twins[v] if v in found else self._beside(op, v, rank)
            for i, v in enumerate(op.operands)
        ]
        known = [v for v in operands if v is not None]
        if len(known) == len(operands):
            dims = [[tensor_type(r).dims[axis] for axis in order] for r in op.results]
            self._define(op, self._made(op, known, order, dims))

    def _beside(self, op: Operation, value: SSAValue, rank: int) -> SSAValue | None:
        """A channels-last form of an operand; None if its elements would have to move in every run."""
        dims = tensor_type(value).dims
        aligned = (*(const(1) for _ in range(rank - len(dims))), *dims)
        order = to_last(rank)
        if moves_ones_only(aligned, order):
            turned = [aligned[axis] for axis in order]
            while isinstance(op, ScalarLike) and turned and turned[0].as_int() == 1:
                turned.pop(0)
            return self._reshaped(op, value, turned)
        if not isinstance(value.owner, ParamOp | ConstantOp):
            return None
        return self._permuted(op, self._reshaped(op, value, aligned), order)

    # ** new ops **

    def _made(
        self, op: Operation, operands: Sequence[SSAValue], order: Sequence[int], dims: Sequence[Sequence[object]]
    ) -> Sequence[SSAValue]:
        """The results of the same op on permuted operands."""
        properties = op.along(order) if isinstance(op, AlongDims) else dict(op.properties)
        types = [
            TensorType.get(d, tensor_type(r).element_type)  # pyright: ignore[reportArgumentType]
            for d, r in zip(dims, op.results, strict=True)
        ]
        new = type(op).create(
            operands=operands,
            result_types=types,
            properties=properties,
            attributes=dict(op.attributes),
            regions=[Region() for _ in op.regions],
        )
        return self._added(op, new).results

    def _define(self, op: Operation, turned: Sequence[SSAValue]) -> None:
        """Replace results by channels-last values; users that need them channels-first read a permute."""
        for old, new in zip(op.results, turned, strict=True):
            self.last.add(new)
            first = self._permuted(op, new, to_first(tensor_type(new).rank))
            self.twins[first] = new
            old.replace_all_uses_with(first)

    def _replace(self, op: Operation, value: SSAValue) -> None:
        op.results[0].replace_all_uses_with(value)

    def _reshaped(self, op: Operation, value: SSAValue, dims: Sequence[object]) -> SSAValue:
        t = tensor_type(value)
        shape = as_shape(dims)  # pyright: ignore[reportArgumentType]
        if t.dims == shape:
            return value
        new = ReshapeOp.create(operands=[value], result_types=[TensorType.get(shape, t.element_type)])
        return self._added(op, new).results[0]

    def _permuted(self, op: Operation, value: SSAValue, order: Sequence[int]) -> SSAValue:
        t = tensor_type(value)
        dims = [t.dims[axis] for axis in order]
        if moves_ones_only(t.dims, order):
            return self._reshaped(op, value, dims)
        new = PermuteOp.create(
            operands=[value],
            properties={"permutation": int_list_attr(order)},
            result_types=[TensorType.get(dims, t.element_type)],
        )
        return self._added(op, new).results[0]

    def _added(self, op: Operation, new: Operation) -> Operation:
        new.location = op.location
        self.block.insert_op_before(new, op)
        return new


def _parts_places(op: ReshapeOp) -> bool:
    """Whether an op reshapes [N, places, C] to [N, sizes..., C] and all users permute the result to channels-first, as
    for patches that a product computed.
    """
    source, target = tensor_type(op.operands[0]).dims, tensor_type(op.results[0]).dims
    if len(source) != 3 or len(target) < 4 or source[0] is not target[0] or source[2] is not target[-1]:
        return False
    users = [use.operation for use in op.results[0].uses]
    return all(isinstance(u, PermuteOp) and list(u.order()) == to_first(len(target)) for u in users)


def _is_dead(op: Operation) -> bool:
    return isinstance(op, ScalarLike | AlongDims | ReshapeOp | ExpandOp | PermuteOp) and not any(
        r.uses for r in op.results
    )


@dataclass(frozen=True)
class ChannelsLastPass(ModulePass):
    """Compute on channels-last values between convolutions and pools: permutes remain at the edges."""

    name = "channels-last"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in [g for g in op.ops if isinstance(g, GraphOp)]:
            Turner(graph).run()
