"""The epilogue clause of an op that `HasEpilogue`: its text and its verification.

```mlir
%y = ait.gemm rcr %x, %w epilogue(%b) {
^bb0(%acc: f32, %bias: f32):
  %s = ait.add %acc, %bias : f32
  ait.yield %s : f32
} : !ait.tensor<batch x 3072 x f16>
```
Some ops may yield several values, each of which is a result:

```mlir
%z, %h = ait.conv %x, %w epilogue(%r) {
^bb0(%acc: f32, %before: f32):
  %s = ait.add %acc, %before : f32
  %t = ait.relu %s : f32
  ait.yield %s, %t : f32, f32
} : !ait.tensor<batch x 56 x 56 x 64 x f16>, !ait.tensor<batch x 56 x 56 x 64 x f16>
```
An op with an epilogue derives from `HasEpilogue` and `AitOp`. Its `SYNTAX` lists `EPILOGUE` after its own operands, and
its `infer_result_types` ends with `infer_through_epilogue`, or with `infer_results` if it may have several results.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.base import AitOp, ResultTypes, check_broadcastable
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.region import check_region, check_yield
from ait_mlir.dialects.ait.syntax import RegionClause
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import TensorType

EPILOGUE = RegionClause("epilogue_operands", "epilogue")
"""`epilogue(%a, %b) { ... }` or nothing, after the op's own operands."""
MAX_RESULTS = 3
"""The most results of ops that may have several: a kernel holds all values until it writes them."""


def infer_results(op: HasEpilogue, accumulated: TensorType) -> ResultTypes:
    """The types of all results of an op whose epilogue may yield several values, or `accumulated` without an epilogue;
    `VerifyException` if the epilogue does not fit, or yields more values than the op's `MAX_RESULTS`."""
    assert isinstance(op, AitOp)
    count = len(op.results)
    if count > 1 and not op.epilogue.blocks:
        raise op.fail(f"has {count} results but no epilogue region, which yields them")
    if not 1 <= count <= op.MAX_RESULTS:
        most = "one" if op.MAX_RESULTS == 1 else f"1 to {op.MAX_RESULTS}"
        raise op.fail(f"has {count} results, expected {most}")
    return _infer(op, accumulated, op.results)


def infer_through_epilogue(op: HasEpilogue, accumulated: TensorType) -> TensorType:
    """The type of the first result, for an op whose epilogue yields one value; errors as in `infer_results`."""
    return _infer(op, accumulated, op.results[:1])[0]


def _infer(op: HasEpilogue, accumulated: TensorType, results: Sequence[SSAValue]) -> list[TensorType]:
    assert isinstance(op, AitOp)
    if not op.epilogue.blocks:
        if op.epilogue_operands:
            raise op.fail("has epilogue operands but no epilogue region")
        return [accumulated]
    which = ["the result"] if len(results) == 1 else [f"result {i}" for i in range(len(results))]
    elements = [op.expect_tensor(v, what).element_type for v, what in zip(results, which, strict=True)]
    extras = [op.expect_tensor(v, f"epilogue operand {i}") for i, v in enumerate(op.epilogue_operands)]
    for i, t in enumerate(extras):
        check_broadcastable(op, f"epilogue operand {i}", t.dims, accumulated.dims)
    arguments = [*op.accumulator_types(), *(compute_type(e.element_type) for e in extras)]
    block = check_region(op, op.epilogue, arguments, "epilogue")
    check_yield(op, block.last_op, [compute_type(element) for element in elements])
    return [TensorType.get(accumulated.dims, element) for element in elements]
