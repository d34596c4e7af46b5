"""Loops with carried values: recurrent networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)

from ait_mlir.dialects.ait.base import AitOp, PureOp, ResultTypes, same_type
from ait_mlir.dialects.ait.data import GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.syntax import INT, Flag, Group, Operands, PlainRegion, Prop, Syntax
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, total


@irdl_op_definition
class ScanOp(Cost, PureOp):
    """Run a region once for each index along a dim, in order, and carry values from one step to the next.

    The region takes a slice of each scanned tensor without the dim, the carried values, and the captured tensors, which
    are the same in every step. It yields the carried values of the next step, of unchanged types, and then slices of
    the stacked results. The results are the carried values after the last step (`init` if the length is 0), and the
    stacked results with the dim at the same axis. `reverse` starts at the last index; each stacked slice is at the
    index of its step.

    ```mlir
    %h, %ys = ait.scan %x init(%h0) with(%w) dim 0 {
    ^bb0(%xt: !ait.tensor<b x d x f16>, %before: !ait.tensor<b x d x f16>, %u: !ait.tensor<d x d x f16>):
      %p = ait.gemm rcr %before, %u : !ait.tensor<b x d x f16>
      %s = ait.add %xt, %p : !ait.tensor<b x d x f16>
      %after = ait.tanh %s : !ait.tensor<b x d x f16>
      ait.yield %after, %after : !ait.tensor<b x d x f16>, !ait.tensor<b x d x f16>
    } : !ait.tensor<b x d x f16>, !ait.tensor<seq x b x d x f16>
    ```
    """

    name = "ait.scan"
    TAKES_STORED: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (
        Operands(("scanned",)),
        Group("init", "init", optional=True),
        Group("captured", "with", optional=True),
        Prop("dim", INT),
        Flag("reverse"),
        PlainRegion(),
    )
    SEGMENTED: ClassVar[bool] = True
    SELF_CONTAINED: ClassVar[bool] = False  # its region holds ops with regions of their own

    scanned = var_operand_def(TensorType)
    init = var_operand_def(TensorType)
    captured = var_operand_def(TensorType)
    dim = prop_def(IntegerAttr)
    reverse = opt_prop_def(UnitAttr)
    body = region_def()
    outputs = var_result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        scanned: Sequence[SSAValue],
        init: Sequence[SSAValue],
        captured: Sequence[SSAValue],
        body: Region,
        dim: int = 0,
        reverse: bool = False,
    ) -> None:
        yielded = body.block.last_op
        types = () if yielded is None else tuple(yielded.operand_types)
        self.set_up([scanned, init, captured], [types], [body], dim=dim, reverse=reverse)

    @property
    def axis(self) -> int:
        """The dim that the scan steps along."""
        return self.dim.value.data

    @property
    def block(self) -> Block:
        """The block of a step: slices, carried values, captured values."""
        return self.body.block

    @property
    def length(self) -> Expr:
        """The number of steps."""
        return tensor_type(self.scanned[0]).dims[self.axis]

    @property
    def yielded(self) -> Sequence[SSAValue]:
        """The values that a step yields: carried values, then slices of the stacked results."""
        last = self.block.last_op
        return () if last is None else last.operands

    def infer_result_types(self) -> ResultTypes:
        if not self.scanned:
            raise self.fail("scans nothing: its length is that of the tensors it takes slices of")
        types = [tensor_type(v) for v in self.scanned]
        scope, axis = scope_of(self), self.axis
        for i, t in enumerate(types):
            if not 0 <= axis < t.rank:
                raise self.fail(f"dim {axis} is out of range for scanned tensor {i}, of shape {shape_text(t.dims)}")
            if not scope.equal(t.dims[axis], self.length):
                raise self.fail(f"scanned tensor {i} has {t.dims[axis]} slices, tensor 0 has {self.length}")
        block = self._check_block(
            [*(_without(t, axis) for t in types), *(v.type for v in (*self.init, *self.captured))]
        )
        yielded = [v.type for v in self.yielded]
        carried = len(self.init)
        if len(yielded) < carried:
            raise self.fail(f"a step yields {len(yielded)} values, but {carried} are carried")
        for i, (value, t) in enumerate(zip(self.init, yielded, strict=False)):
            if not same_type(value.type, t, scope):
                raise self.fail(f"carried value {i} is {value.type}, a step yields {t}: its type may not change")
        stacked: list[Attribute] = []
        for i, value in enumerate(block.last_op.operands[carried:] if block.last_op is not None else ()):
            t = tensor_type(value)
            if axis > t.rank:
                raise self.fail(
                    f"slices of stacked result {i} have shape {shape_text(t.dims)}, too few dims for dim {axis}"
                )
            stacked.append(TensorType.get((*t.dims[:axis], self.length, *t.dims[axis:]), t.element_type))
        return [*(v.type for v in self.init), *stacked]

    def _check_block(self, arguments: Sequence[Attribute]) -> Block:
        """Raise unless the region is one block of `ait` ops on tensors that uses no values from outside."""
        if len(self.body.blocks) != 1:
            raise self.fail(f"the region must have one block, it has {len(self.body.blocks)}")
        block = self.block
        if tuple(block.arg_types) != tuple(arguments):
            found, want = (", ".join(map(str, types)) for types in (block.arg_types, arguments))
            raise self.fail(f"a step takes ({found}), expected ({want}): slices, carried and captured values")
        if not isinstance(block.last_op, YieldOp):
            raise self.fail("the region must end with ait.yield")
        scope = scope_of(self)
        for value in (*self.operands, *block.args, *(v for op in block.ops for v in op.results)):
            t = value.type
            if isinstance(t, TensorType) and (bound := [n for e in t.dims for n in scope.host_symbols(e)]):
                raise self.fail(f"{t} has dim {bound[0]!r}, which an op binds; a loop needs sizes that the host knows")
        for op in block.ops:
            if not isinstance(op, AitOp) or not op.name.startswith("ait.") or isinstance(op, GraphOp | OutputOp):
                raise self.fail(f"a step holds {op.name}; only ops on tensors are allowed there")
            if isinstance(op, ParamOp):
                raise self.fail(f"param {op.param_name.data!r} stands in a step; declare it outside and capture it")
            if any(not isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
                raise self.fail(f"{op.name} in a step works on scalars; a step works on tensors")
            for value in op.operands:
                owner = value.owner if isinstance(value.owner, Block) else value.owner.parent
                if owner is not block:
                    raise self.fail(f"{op.name} in a step uses a value from outside of it; capture it by with(...)")
        return block

    def flops(self) -> Expr:
        inner = total(op.flops() for op in self.block.ops if isinstance(op, Cost))
        return self.length * inner


def _without(t: TensorType, axis: int) -> TensorType:
    return TensorType.get((*t.dims[:axis], *t.dims[axis + 1 :]), t.element_type)


def tensor_ops(block: Block) -> Iterator[Operation]:
    """The ops of a graph's block in order, and after each scan the ops of its step."""
    for op in block.ops:
        yield op
        if isinstance(op, ScanOp):
            yield from tensor_ops(op.block)


OPS = (ScanOp,)
