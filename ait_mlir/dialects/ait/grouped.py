"""Several matrix products in one op: `grouped_gemm`, each of its own sizes; `ragged_gemm`, of groups of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, i32, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)

from ait_mlir.dialects.ait.base import AitOp, Value, check_broadcastable, check_region, check_yield
from ait_mlir.dialects.ait.dtypes import compute_type, is_float
from ait_mlir.dialects.ait.epilogue import EPILOGUE, infer_through_epilogue
from ait_mlir.dialects.ait.syntax import Operand, Operands, Syntax, Word
from ait_mlir.dialects.ait.traits import ContractionExtents, Cost, Extents, HasEpilogue, Pure
from ait_mlir.dialects.ait.types import TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, const, minimum, total

LAYOUTS = ("rrr", "rcr", "crr", "ccr")
"""How A and B are stored, as of `ait.gemm`; results are row-major."""


@irdl_op_definition
class GroupedGemmOp(Cost, AitOp):
    """Matrix products of one layout and one epilogue, each with its own sizes.

    The operands are A and B of the first product, A and B of the second, and so on, all of two dims. Each product has
    the same number of epilogue operands, which broadcast to its result; those of the first product come first.

    ```mlir
    %y, %z = ait.grouped_gemm rcr %a, %v, %b, %w epilogue(%c, %d) {
    ^bb0(%acc: f32, %bias: f32):
      %s = ait.add %acc, %bias : f32
      ait.yield %s : f32
    } : !ait.tensor<batch x 64 x f16>, !ait.tensor<batch x 96 x f16>
    ```
    """

    name = "ait.grouped_gemm"
    SYNTAX: ClassVar[Syntax] = (Word("layout", LAYOUTS, "a layout, "), Operands(("factors",)), EPILOGUE)
    SEGMENTED: ClassVar[bool] = True

    layout = prop_def(StringAttr)
    factors = var_operand_def(TensorType)
    epilogue_operands = var_operand_def(TensorType)
    epilogue = region_def()
    outputs = var_result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        layout: str,
        factors: Sequence[SSAValue],
        epilogue_operands: Sequence[SSAValue] = (),
        epilogue: Region | None = None,
        result_types: Sequence[Attribute] = (),
    ) -> None:
        results = result_types or [a.type for a in factors[::2]]
        self.set_up([factors, epilogue_operands], [results], [epilogue or Region()], layout=layout)
        if not result_types:
            self.infer()

    @property
    def count(self) -> int:
        """The number of products."""
        return len(self.results)

    def extras_of(self, i: int) -> Sequence[SSAValue]:
        """The epilogue operands of product `i`."""
        each = len(self.epilogue_operands) // self.count
        return self.epilogue_operands[i * each : (i + 1) * each]

    def sizes(self, i: int) -> tuple[Expr, Expr, Expr]:
        """M, N and K of product `i`."""
        layout = self.layout.data
        a, b = (tensor_type(v).dims for v in self.factors[2 * i : 2 * i + 2])
        m, k = a if layout[0] == "r" else reversed(a)
        return m, b[1] if layout[1] == "r" else b[0], k

    def flops(self) -> Expr:
        return total([m * n * (const(2) * k + self.region_ops()) for m, n, k in map(self.sizes, range(self.count))])

    def infer_result_types(self) -> Sequence[Attribute]:
        layout = self.layout.data
        if layout not in LAYOUTS:
            raise self.fail(f"unknown layout {layout!r}; expected one of {', '.join(LAYOUTS)}")
        if not self.results or len(self.factors) != 2 * self.count:
            raise self.fail(
                f"has {len(self.factors)} matrices and {self.count} results; expected A and B for each result"
            )
        if len(self.epilogue_operands) % self.count:
            raise self.fail(f"has {len(self.epilogue_operands)} epilogue operands for {self.count} products")
        accumulated = [self._accumulated(i) for i in range(self.count)]
        kind = accumulated[0].element_type
        for i, t in enumerate(accumulated):
            if t.element_type != kind:
                raise self.fail(f"product {i} is of {t.element_type}, but product 0 of {kind}")
        if not self.epilogue.blocks:
            if self.epilogue_operands:
                raise self.fail("has epilogue operands but no epilogue region")
            return accumulated
        return self._through_epilogue(accumulated)

    def _accumulated(self, i: int) -> TensorType:
        a, b = (self.expect_tensor(self.factors[2 * i + j], f"{x} of product {i}") for j, x in enumerate("AB"))
        if a.rank != 2 or b.rank != 2:
            raise self.fail(f"A and B of product {i} need 2 dims, got {shape_text(a.dims)} and {shape_text(b.dims)}")
        if a.element_type != b.element_type:
            raise self.fail(f"B of product {i} has element type {b.element_type}, but A has {a.element_type}")
        if not is_float(a.element_type):
            raise self.fail(f"product {i} needs a floating-point type, got {a.element_type}")
        m, n, k = self.sizes(i)
        k_b = b.dims[0] if self.layout.data[1] == "r" else b.dims[1]
        if k is not k_b and not scope_of(self).equal(k, k_b):
            raise self.fail(
                f"A of product {i} sums over {k} (shape {shape_text(a.dims)}), but B over {k_b} "
                f"(shape {shape_text(b.dims)}), layout {self.layout.data}"
            )
        return TensorType.get((m, n), a.element_type)

    def _through_epilogue(self, accumulated: Sequence[TensorType]) -> Sequence[Attribute]:
        found = [self.expect_tensor(r, f"result {i}").element_type for i, r in enumerate(self.results)]
        if len(set(found)) > 1:
            raise self.fail(f"the results have element types {', '.join(map(str, found))}, expected one for all")
        kinds: list[list[Attribute]] = []
        for i, t in enumerate(accumulated):
            extras = [
                self.expect_tensor(v, f"epilogue operand {j} of product {i}") for j, v in enumerate(self.extras_of(i))
            ]
            for j, extra in enumerate(extras):
                check_broadcastable(self, f"epilogue operand {j} of product {i}", extra.dims, t.dims)
            kinds.append([extra.element_type for extra in extras])
            if kinds[i] != kinds[0]:
                raise self.fail(
                    f"the epilogue operands of product {i} are {', '.join(map(str, kinds[i]))}, "
                    f"but those of product 0 {', '.join(map(str, kinds[0]))}"
                )
        arguments = [compute_type(accumulated[0].element_type), *map(compute_type, kinds[0])]
        block = check_region(self, self.epilogue, arguments, "epilogue")
        check_yield(self, block.last_op, [compute_type(found[0])])
        return [TensorType.get(t.dims, found[0]) for t in accumulated]


@irdl_op_definition
class RaggedGemmOp(HasEpilogue, ContractionExtents, AitOp):
    """Groups of rows of A [T, K], each times its own matrix of B [G, K, N]: [T, N], as for a mixture of experts.

    `ends`, i32 or i64 of shape [G], has the end of each group: group g has the rows from the end of group g - 1 up to
    min(max(0, ends[0], ..., ends[g]), T). An end that is below the previous one or outside of the rows is therefore
    clamped. For rows after the last group the sums are 0.

    ```mlir
    %y = ait.ragged_gemm %x, %experts to %ends : !ait.tensor<tokens x 1024 x bf16>
    ```
    """

    name = "ait.ragged_gemm"
    SYNTAX: ClassVar[Syntax] = (Operands(("a", "b")), Operand("ends", "to"), EPILOGUE)

    a = operand_def(TensorType)
    b = operand_def(TensorType)
    ends = operand_def(TensorType)
    output = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, a: Value, b: Value, ends: Value) -> None:
        self.set_up([a, b, ends, []], regions=[Region()])

    def extents(self) -> Extents:
        """The sizes of one product of all rows: the work does not depend on the matrix of B that a row is multiplied
        with.
        """
        (m, k), n = tensor_type(self.a).dims, tensor_type(self.b).dims[2]
        return Extents((), m, n, k)

    def bytes_read(self, position: int) -> Expr:
        whole = super().bytes_read(position)
        if position != 1:
            return whole
        rows, b = tensor_type(self.a).dims[0], tensor_type(self.b)
        one = TensorType.get(b.dims[1:], b.element_type).byte_size()
        return minimum(whole, rows * one)  # no more matrices than there are rows

    def timed_values(self, position: int, env: Mapping[str, int]) -> list[int] | None:
        """Groups of one size: with random ends, most rows would lie behind the last group."""
        if position != 2:
            return None
        rows, groups = (tensor_type(v).dims[0].evaluate(env) for v in (self.a, self.b))
        return [rows * (group + 1) // groups for group in range(groups)]

    def infer_result_types(self) -> Sequence[Attribute]:
        a = self.expect_tensor(self.operands[0], "A")
        b = self.expect_tensor(self.operands[1], "B")
        ends = self.expect_tensor(self.operands[2], "ends")
        if a.rank != 2 or b.rank != 3:
            raise self.fail(
                f"A [T, K] has 2 dims and B [G, K, N] has 3, got {shape_text(a.dims)} and {shape_text(b.dims)}"
            )
        if a.element_type != b.element_type:
            raise self.fail(f"B has element type {b.element_type}, but A has {a.element_type}")
        if not is_float(a.element_type):
            raise self.fail(f"needs a floating-point type, got {a.element_type}")
        scope = scope_of(self)
        if not scope.equal(a.dims[1], b.dims[1]):
            raise self.fail(
                f"A sums over {a.dims[1]} (shape {shape_text(a.dims)}), but B over {b.dims[1]} "
                f"(shape {shape_text(b.dims)})"
            )
        if ends.element_type not in (i32, i64):
            raise self.fail(f"ends must be i32 or i64, got {ends.element_type}")
        if ends.rank != 1 or not scope.equal(ends.dims[0], b.dims[0]):
            raise self.fail(
                f"ends has shape {shape_text(ends.dims)}, expected [{b.dims[0]}]: the end of each group of B"
            )
        return [infer_through_epilogue(self, TensorType.get((a.dims[0], b.dims[2]), a.element_type))]


OPS = (GroupedGemmOp, RaggedGemmOp)
