"""Loops whose values are combined with elements of a tensor, in an order: scatters without a tensor of the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i1
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
)

from ait_mlir.dialects.ait.base import ResultTypes
from ait_mlir.dialects.ait.dtypes import STORED_ONLY
from ait_mlir.dialects.ait.index import SCATTERS, ScatterOp
from ait_mlir.dialects.ait.loops import AtOp, FoldOp, For, LoopsOp, Nested, rename_iterations
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.sorting import check_order
from ait_mlir.dialects.ait.syntax import (
    INTS,
    Group,
    Operand,
    PlainRegion,
    Prop,
    RegionClause,
    Several,
    Syntax,
    Word,
    int_list,
)
from ait_mlir.dialects.ait.traits import UpdatesOperand
from ait_mlir.dialects.ait.types import TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, const, product, sym, total


class OrderedLoops(Nested):
    """Base of the ops that combine values of a region with elements of a tensor, in the order of `ait.order`.

    The iteration dims are the space; `dims`, `kept` and the order are those of `ait.scatter`. The region is as of
    `ait.loops`, without folds, and yields the value at one point of the space in the compute type of the tensor.
    """

    SELF_CONTAINED: ClassVar[bool] = False  # the op that makes its order is checked
    SYNTAX: ClassVar[Syntax] = (
        Word("kind", SCATTERS), Operand("input"), Prop("dims", INTS), Prop("kept", INTS),
        Several("order", 2, "keys and places", apart=True), Group("inputs", "of"), For(), PlainRegion(),
    )  # fmt: skip
    FIRST_INPUT: ClassVar[int] = 3

    input = operand_def(TensorType)
    keys = operand_def(TensorType)
    places = operand_def(TensorType)
    inputs = var_operand_def(TensorType)
    kind = prop_def(StringAttr)
    dims = prop_def(ArrayAttr[IntegerAttr])
    kept = prop_def(ArrayAttr[IntegerAttr])
    output = result_def(TensorType)

    @property
    def order(self) -> tuple[SSAValue, SSAValue]:
        return self.keys, self.places

    @property
    def values_type(self) -> TensorType:
        """The type of the tensor that would hold the values."""
        return TensorType.get(self.sizes, tensor_type(self.input).element_type)

    def check_ordered(self) -> TensorType:
        """The type of the tensor; raises unless the region, the dims and the order fit it."""
        whole, sizes, scope = self.expect_tensor(self.operands[0], "the tensor"), self.sizes, scope_of(self)
        inputs = [self.expect_tensor(v, f"input {i}") for i, v in enumerate(self.inputs)]
        if whole.element_type in STORED_ONLY or (whole.element_type == i1 and self.kind.data != "set"):
            raise self.fail(f"cannot {self.kind.data} {whole.element_type}; convert with ait.cast before and behind")
        self.check_region(inputs, [self.values_type])
        if any(isinstance(op, FoldOp) for op in self.block.ops):
            raise self.fail("the region holds ait.fold; a value is computed from single elements")
        dims, kept = int_list(self.dims), int_list(self.kept)
        if not dims or len(set(dims)) != len(dims) or not all(0 <= d < whole.rank for d in dims):
            raise self.fail(f"dims {list(dims)} are not one or more different dims of {shape_text(whole.dims)}")
        rest = [d for d in range(whole.rank) if d not in dims]
        if len(kept) != len(rest) or len(set(kept)) != len(rest) or not all(0 <= at < len(sizes) for at in kept):
            raise self.fail(f"kept {list(kept)} must name {len(rest)} different iteration dims, one for each other dim")
        for d, at in zip(rest, kept, strict=True):
            if not scope.le(sizes[at], whole.dims[d]):
                raise self.fail(f"iteration dim {at}, {sizes[at]}, is not proved to fit into dim {d}, {whole.dims[d]}")
        count = product(size for at, size in enumerate(sizes) if at not in kept)
        check_order(self, self.order, count, tuple(whole.dims[d] for d in dims))
        return whole

    def infer_result_types(self) -> ResultTypes:
        return [self.check_ordered()]


@irdl_op_definition
class ScatterLoopsOp(UpdatesOperand, OrderedLoops):
    """`ait.scatter` with an order, of values that a region computes where they are combined: no tensor holds them. Only
    the elements that places name are written. A GPU runs it.

    ```mlir
    %y = ait.scatter_loops add %x dims [0] kept [1] order %keys, %places of(%h, %from) for (d0 = edges, d1 = 64) {
    ^bb0(%a: !ait.tensor<nodes x 64 x f16>, %b: !ait.tensor<edges x i64>):
      %i = ait.at %b[d0] : i64
      %v = ait.at %a[%i, d1] : f32
      ait.yield %v : f32
    } : !ait.tensor<nodes x 64 x f16>
    ```
    """

    name = "ait.scatter_loops"

    def __init__(self, scatter: ScatterOp, values: LoopsOp) -> None:
        """The op that replaces a scatter with an order and the loops that compute its values."""
        self.set_up(
            [scatter.input, *scatter.order, list(values.operands)],
            [scatter.input.type],
            [values.body.clone()],
            kind=scatter.kind,
            dims=scatter.dims,
            kept=scatter.kept,
            iterations=values.iterations,
        )

    def bytes_read(self, position: int) -> Expr:
        return const(0) if position == 0 else super().bytes_read(position)

    def bytes_written(self, position: int) -> Expr:
        return self.values_type.byte_size()


@irdl_op_definition
class SegmentLoopsOp(OrderedLoops):
    """`ait.scatter_loops` with a result of its own, of which each element is written once, also those that no place
    names. The tensor is only read: it may be a number that fills a shape. A GPU runs it, and may combine many values of
    an element in pieces, which it joins in their order.

    The region after `then` has an `ait.loops`, which computes the result from what is combined: it reads that at its
    own index alone, and may read the operands after `then`, too. What is combined is not rounded for it.

    ```mlir
    %x = ait.constant 0.0 : !ait.tensor<nodes x 64 x f16>
    %y = ait.segment_loops add %x dims [0] kept [1] order %keys, %places of(%h, %from) for (d0 = edges, d1 = 64) {
    ^bb0(%a: !ait.tensor<nodes x 64 x f16>, %b: !ait.tensor<edges x i64>):
      %i = ait.at %b[d0] : i64
      %v = ait.at %a[%i, d1] : f32
      ait.yield %v : f32
    } then(%bias) {
    ^bb1(%s: !ait.tensor<nodes x 64 x f16>, %c: !ait.tensor<64 x f32>):
      %r = ait.loops(%s, %c) for (e0 = nodes, e1 = 64) {
      ^bb2(%t: !ait.tensor<nodes x 64 x f16>, %d: !ait.tensor<64 x f32>):
        %w = ait.at %t[e0, e1] : f32
        %u = ait.at %d[e1] : f32
        %z = ait.add %w, %u : f32
        ait.yield %z : f32
      } : !ait.tensor<nodes x 64 x f16>
      ait.yield %r : !ait.tensor<nodes x 64 x f16>
    } : !ait.tensor<nodes x 64 x f16>
    ```
    """

    name = "ait.segment_loops"
    SYNTAX: ClassVar[Syntax] = (*OrderedLoops.SYNTAX, RegionClause("extras", "then"))
    SEGMENTED: ClassVar[bool] = True

    input = operand_def(TensorType)  # xDSL would put the fields of the base behind `extras`
    keys = operand_def(TensorType)
    places = operand_def(TensorType)
    inputs = var_operand_def(TensorType)
    extras = var_operand_def(TensorType)
    body = region_def()
    then = region_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, scatter: ScatterOp, values: LoopsOp) -> None:
        self._set(scatter, values.inputs, values)

    def _set(
        self, scatter: ScatterOp | OrderedLoops, inputs: Sequence[SSAValue], values: Nested,
        extras: Sequence[SSAValue] = (), then: Region | None = None, result: Attribute | None = None,
    ) -> None:  # fmt: skip
        self.set_up(
            [scatter.input, *scatter.order, list(inputs), list(extras)],
            [scatter.input.type if result is None else result],
            [values.body.clone(), Region() if then is None else then],
            kind=scatter.kind,
            dims=scatter.dims,
            kept=scatter.kept,
            iterations=values.iterations,
        )

    @classmethod
    def followed(cls, op: SegmentLoopsOp, loops: LoopsOp) -> SegmentLoopsOp:
        """The op that computes what `loops` compute from the result of `op`, which only they read."""
        extras = [v for v in loops.operands if v is not op.output]
        block = Block(arg_types=[op.output.type, *(v.type for v in extras)])
        for name, inner in zip(("sum", *(v.name_hint for v in extras)), block.args, strict=True):
            inner.name_hint = name
        given = dict(zip((op.output, *extras), block.args, strict=True))
        clone = loops.clone()
        clone.operands = [given[v] for v in loops.operands]
        rename_iterations(clone, "e", scope_of(op))
        block.add_ops([clone, YieldOp(*clone.results)])
        found = cls.__new__(cls)
        found._set(op, op.inputs, op, extras, Region(block), loops.results[0].type)
        return found

    @property
    def following(self) -> LoopsOp | None:
        """The loops after `then`."""
        first = self.then.block.first_op if self.then.blocks else None
        return first if isinstance(first, LoopsOp) else None

    def flops(self) -> Expr:
        return super().flops() + (const(0) if self.following is None else self.following.flops())

    def argument(self, position: int) -> SSAValue | None:
        extra = position - self.FIRST_INPUT - len(self.inputs)
        return super().argument(position) if extra < 0 else self.then.block.args[1 + extra]

    def bytes_read(self, position: int) -> Expr:
        if position < self.FIRST_INPUT + len(self.inputs) or (loops := self.following) is None:
            return super().bytes_read(position)
        argument = self.argument(position)
        return total(loops.bytes_read(i) for i, value in enumerate(loops.operands) if value is argument)

    def infer_result_types(self) -> ResultTypes:
        whole, scope = self.check_ordered(), scope_of(self)
        rest = [d for d in range(whole.rank) if d not in int_list(self.dims)]
        for d, at in zip(rest, int_list(self.kept), strict=True):
            if not scope.equal(self.sizes[at], whole.dims[d]):
                raise self.fail(
                    f"iteration dim {at}, {self.sizes[at]}, is not proved to be dim {d} of the tensor, "
                    f"{whole.dims[d]}, whose elements are all written"
                )
        if not self.then.blocks:
            if self.extras:
                raise self.fail("has operands after 'then', but no region")
            return [whole]
        return [self._check_then(whole)]

    def _check_then(self, whole: TensorType) -> TensorType:
        """The type of what is computed from the result; raises unless it follows from single elements of that."""
        wanted = [whole, *(self.expect_tensor(v, f"operand {i} after then") for i, v in enumerate(self.extras))]
        if len(self.then.blocks) != 1 or list(self.then.block.arg_types) != wanted:
            raise self.fail(f"the region after then must have one block that takes ({', '.join(map(str, wanted))})")
        block, loops = self.then.block, self.following
        end = None if loops is None else loops.next_op
        if loops is None or len(loops.results) != 1 or not isinstance(end, YieldOp) or end is not block.last_op:
            raise self.fail("the region after then must have one ait.loops of one result, and yield that")
        if tuple(end.operands) != tuple(loops.results) or not set(loops.operands) <= set(block.args):
            raise self.fail("the region after then must yield its ait.loops, whose operands are the block's arguments")
        problem = reads_beside(loops, block.args[0], whole)
        if problem is not None:
            raise self.fail(f"after then {problem}")
        return tensor_type(loops.results[0])


def reads_beside(loops: LoopsOp, value: SSAValue, whole: TensorType) -> str | None:
    """Why loops do not compute each element of one result from the element of `value` at its place; None if they do."""
    if len(loops.sizes) != whole.rank or any(a is not b for a, b in zip(loops.sizes, whole.dims, strict=True)):
        return f"the iteration dims must be those of {shape_text(whole.dims)}"
    if any(isinstance(op, FoldOp) for op in loops.block.ops):
        return "an ait.fold cannot stand: elements are computed one by one"
    if tensor_type(loops.results[0]).dims != loops.sizes:
        return "the result must have the size of each iteration dim"
    own = tuple(sym(loop.name) for loop in loops.iterations.data)
    zero = const(0)
    arguments = [a for a, v in zip(loops.block.args, loops.operands, strict=True) if v is value]
    for use in (use for argument in arguments for use in argument.uses):
        at = use.operation
        index = at.indices.data if isinstance(at, AtOp) else ()
        places = zip(index, own, whole.dims, strict=True)
        if any(e is not i and not (e is zero and d.as_int() == 1) for e, i, d in places):
            return "the result is read at another index than its own"
    return None


OPS = (ScatterLoopsOp, SegmentLoopsOp)
