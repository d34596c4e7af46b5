"""The epilogue clause of an op that `HasEpilogue`: its text and its verification.

```mlir
%y = ait.gemm rcr %x, %w epilogue(%b) {
^bb0(%acc: f32, %bias: f32):
  %s = ait.add %acc, %bias : f32
  ait.yield %s : f32
} : !ait.tensor<batch x 3072 x f16>
```
An op with an epilogue derives from `HasEpilogue` and `AitOp`. Its `SYNTAX` lists `EPILOGUE` after its own operands, and
its `infer_result_types` ends with `infer_through_epilogue`.
"""

from __future__ import annotations

from ait_mlir.dialects.ait.base import AitOp, check_broadcastable
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.region import check_region, check_yield
from ait_mlir.dialects.ait.syntax import RegionClause
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import TensorType

EPILOGUE = RegionClause("epilogue_operands", "epilogue")
"""`epilogue(%a, %b) { ... }` or nothing, behind the op's own operands."""


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
