"""The epilogue clause of an op that `HasEpilogue`: its text and its verification.

```mlir
%y = ait.gemm rcr %x, %w epilogue(%b) {
^bb0(%acc: f32, %bias: f32):
  %s = ait.add %acc, %bias : f32
  ait.yield %s : f32
} : !ait.tensor<batch x 3072 x f16>
```
An op with an epilogue is a class of `HasEpilogue` and `AitOp`. It calls `parse_epilogue` and `print_epilogue` at the
end of its body, and ends `infer_result_types` in `infer_through_epilogue`.
"""

from __future__ import annotations

from xdsl.parser import Parser
from xdsl.printer import Printer

from ait_mlir.dialects.ait.base import (
    AitOp,
    Body,
    check_broadcastable,
    check_region,
    check_yield,
    parse_region_clause,
    print_region_clause,
)
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import TensorType


def parse_epilogue(parser: Parser, body: Body) -> None:
    """`epilogue(%a, %b) { ... }` or nothing, behind the op's own operands."""
    parse_region_clause(parser, "epilogue", body)


def print_epilogue(printer: Printer, op: HasEpilogue) -> None:
    """Print what `parse_epilogue` reads."""
    print_region_clause(printer, "epilogue", op.epilogue_operands, op.epilogue)


def infer_through_epilogue(op: HasEpilogue, accumulated: TensorType) -> TensorType:
    """The result type: `accumulated` when there is no epilogue; `VerifyException` if the epilogue does not fit."""
    assert isinstance(op, AitOp)
    if not op.epilogue.blocks:
        if op.epilogue_operands:
            raise op.fail("has epilogue operands but no epilogue region")
        return accumulated
    element = op.expect_tensor(op.results[0], "the result").element_type
    extras = [op.expect_tensor(v, f"epilogue operand {i}") for i, v in enumerate(op.epilogue_operands)]
    for i, t in enumerate(extras):
        check_broadcastable(op, f"epilogue operand {i}", t.dims, accumulated.dims)
    arguments = [*op.accumulator_types(), *(compute_type(e.element_type) for e in extras)]
    block = check_region(op, op.epilogue, arguments, "epilogue")
    check_yield(op, block.last_op, [compute_type(element)])
    return TensorType.get(accumulated.dims, element)
