"""Several problems in one op: `grouped_gemm` and `grouped_norm` for problems of different sizes, and `ragged_gemm` for
groups of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects.builtin import FloatAttr, StringAttr, i32, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from ait_mlir.dialects.ait.base import PureOp, ResultTypes, Value, check_broadcastable
from ait_mlir.dialects.ait.bits import known_number
from ait_mlir.dialects.ait.dtypes import compute_type, is_float
from ait_mlir.dialects.ait.epilogue import EPILOGUE, infer_through_epilogue
from ait_mlir.dialects.ait.region import check_region, check_yield
from ait_mlir.dialects.ait.syntax import NUMBER, Group, Operand, Operands, Prop, Syntax, Word
from ait_mlir.dialects.ait.traits import ContractionExtents, Cost, Extents, HasEpilogue
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, const, minimum, total

LAYOUTS = ("rrr", "rcr", "crr", "ccr")
"""The layouts of A and B, as for `ait.gemm`; results are row-major."""

NORMS = ("layer", "rms")
"""The norms of `ait.grouped_norm`."""


class _Grouped(Cost):
    """One problem for each result, with the same number of epilogue operands each."""

    if TYPE_CHECKING:
        epilogue_operands: Any

    @property
    def count(self) -> int:
        """The number of problems."""
        return len(self.results)

    def extras_of(self, i: int) -> Sequence[SSAValue]:
        """The epilogue operands of problem `i`."""
        each = len(self.epilogue_operands) // self.count
        return self.epilogue_operands[i * each : (i + 1) * each]


@irdl_op_definition
class GroupedGemmOp(_Grouped, PureOp):
    """Matrix products of one layout and one epilogue, each with its own sizes.

    The operands are A and B of the first product, A and B of the second, and so on, all of two dims. Each product has
    the same number of epilogue operands, which broadcast to its result; the operands of the first product come first.

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

    def sizes(self, i: int) -> tuple[Expr, Expr, Expr]:
        """M, N and K of product `i`."""
        layout = self.layout.data
        a, b = (tensor_type(v).dims for v in self.factors[2 * i : 2 * i + 2])
        m, k = a if layout[0] == "r" else reversed(a)
        return m, b[1] if layout[1] == "r" else b[0], k

    def flops(self) -> Expr:
        return total([m * n * (const(2) * k + self.region_ops()) for m, n, k in map(self.sizes, range(self.count))])

    def infer_result_types(self) -> ResultTypes:
        if not self.results or len(self.factors) != 2 * self.count:
            raise self.fail(
                f"has {len(self.factors)} matrices and {self.count} results; expected A and B for each result"
            )
        accumulated = [self._accumulated(i) for i in range(self.count)]
        kind = accumulated[0].element_type
        for i, t in enumerate(accumulated):
            if t.element_type != kind:
                raise self.fail(f"product {i} is of {t.element_type}, but product 0 of {kind}")
        return through_shared_epilogue(self, accumulated, "product")

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


@irdl_op_definition
class GroupedNormOp(_Grouped, PureOp):
    """Norms of one kind and one epilogue over the last dim of several inputs; each input has its own sizes.

    `layer` is the norm of `ait.layer_norm`, `rms` the norm of `ait.rms_norm`. Either each input has a scale or none
    has; likewise for the bias. Each norm has the same number of epilogue operands, which broadcast to its result; the
    operands of the first norm come first.

    ```mlir
    %y, %z = ait.grouped_norm layer %a, %b eps 1e-05 : !ait.tensor<8 x 64 x f16>, !ait.tensor<8 x 96 x f16>
    ```
    """

    name = "ait.grouped_norm"
    SYNTAX: ClassVar[Syntax] = (
        Word("kind", NORMS, "a norm, "),
        Operands(("inputs",)),
        Group("scales", "scale", optional=True),
        Group("biases", "bias", optional=True),
        Prop("eps", NUMBER),
        EPILOGUE,
    )
    SEGMENTED: ClassVar[bool] = True
    WORK: ClassVar[int] = 8

    kind = prop_def(StringAttr)
    inputs = var_operand_def(TensorType)
    scales = var_operand_def(TensorType)
    biases = var_operand_def(TensorType)
    epilogue_operands = var_operand_def(TensorType)
    eps = prop_def(FloatAttr | ShapeAttr)
    epilogue = region_def()
    outputs = var_result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        kind: str,
        inputs: Sequence[SSAValue],
        scales: Sequence[SSAValue],
        biases: Sequence[SSAValue],
        eps: float | FloatAttr | ShapeAttr,
        epilogue_operands: Sequence[SSAValue] = (),
        epilogue: Region | None = None,
        result_types: Sequence[Attribute] = (),
    ) -> None:
        results = result_types or [x.type for x in inputs]
        operands = [inputs, scales, biases, epilogue_operands]
        self.set_up(operands, [results], [epilogue or Region()], kind=kind, eps=eps)
        if not result_types:
            self.infer()

    def elements(self) -> Expr:
        return total([tensor_type(x).num_elements() for x in self.inputs])

    def infer_result_types(self) -> ResultTypes:
        if not self.results or len(self.inputs) != self.count:
            raise self.fail(f"has {len(self.inputs)} inputs and {self.count} results; expected one for each result")
        for what, given in (("scales", self.scales), ("biases", self.biases)):
            if len(given) not in (0, self.count):
                raise self.fail(f"has {len(given)} {what} for {self.count} norms; expected one for each, or none")
        if (eps := known_number(self.eps)) is not None and not eps >= 0:
            raise self.fail(f"eps must not be negative, got {eps}")
        inputs = [self._input(i) for i in range(self.count)]
        return through_shared_epilogue(self, inputs, "norm")

    def _input(self, i: int) -> TensorType:
        t = self.expect_tensor(self.inputs[i], f"input {i}")
        if not t.rank:
            raise self.fail(f"input {i} has no dim to normalise")
        if not is_float(t.element_type):
            raise self.fail(f"norm {i} needs a floating-point type, got {t.element_type}")
        if (first := tensor_type(self.inputs[0]).element_type) != t.element_type:
            raise self.fail(f"norm {i} is of {t.element_type}, but norm 0 of {first}")
        for what, given in (("scale", self.scales), ("bias", self.biases)):
            if not given:
                continue
            v = self.expect_tensor(given[i], f"{what} {i}")
            if v.rank != 1 or not scope_of(self).equal(v.dims[0], t.dims[-1]):
                raise self.fail(f"{what} {i} has shape {shape_text(v.dims)}, expected {shape_text(t.dims[-1:])}")
            if v.element_type != t.element_type:
                raise self.fail(f"{what} {i} has element type {v.element_type}, but the input has {t.element_type}")
        return t


def through_shared_epilogue(
    op: GroupedGemmOp | GroupedNormOp, accumulated: Sequence[TensorType], what: str
) -> Sequence[TensorType]:
    """The result types of problems with one epilogue, or `accumulated` without one. Errors call a problem `what`."""
    many = f"{what}s"
    if len(op.epilogue_operands) % op.count:
        raise op.fail(f"has {len(op.epilogue_operands)} epilogue operands for {op.count} {many}")
    if not op.epilogue.blocks:
        if op.epilogue_operands:
            raise op.fail("has epilogue operands but no epilogue region")
        return accumulated
    found = [op.expect_tensor(r, f"result {i}").element_type for i, r in enumerate(op.results)]
    if len(set(found)) > 1:
        raise op.fail(f"the results have element types {', '.join(map(str, found))}, expected one for all")
    kinds: list[list[Attribute]] = []
    for i, t in enumerate(accumulated):
        extras = [op.expect_tensor(v, f"epilogue operand {j} of {what} {i}") for j, v in enumerate(op.extras_of(i))]
        for j, extra in enumerate(extras):
            check_broadcastable(op, f"epilogue operand {j} of {what} {i}", extra.dims, t.dims)
        kinds.append([extra.element_type for extra in extras])
        if kinds[i] != kinds[0]:
            raise op.fail(
                f"the epilogue operands of {what} {i} are {', '.join(map(str, kinds[i]))}, "
                f"but those of {what} 0 {', '.join(map(str, kinds[0]))}"
            )
    arguments = [compute_type(accumulated[0].element_type), *map(compute_type, kinds[0])]
    block = check_region(op, op.epilogue, arguments, "epilogue")
    check_yield(op, block.last_op, [compute_type(found[0])])
    return [TensorType.get(t.dims, found[0]) for t in accumulated]


@irdl_op_definition
class RaggedGemmOp(HasEpilogue, ContractionExtents, PureOp):
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

    def __init__(self, a: Value, b: Value, ends: Value) -> None:
        self.set_up([a, b, ends, []], regions=[Region()])

    def extents(self) -> Extents:
        """The sizes of one product with all rows: a row costs the same with any matrix of B."""
        (m, k), n = tensor_type(self.a).dims, tensor_type(self.b).dims[2]
        return Extents((), m, n, k)

    def bytes_read(self, position: int) -> Expr:
        whole = super().bytes_read(position)
        if position != 1:
            return whole
        rows, b = tensor_type(self.a).dims[0], tensor_type(self.b)
        one = TensorType.get(b.dims[1:], b.element_type).byte_size()
        return minimum(whole, rows * one)  # at most one matrix for each row

    def timed_values(self, position: int, env: Mapping[str, int]) -> list[int] | None:
        """Ends of groups of equal size; with random ends, most rows would be after the last group."""
        if position != 2:
            return None
        rows, groups = (tensor_type(v).dims[0].evaluate(env) for v in (self.a, self.b))
        return [rows * (group + 1) // groups for group in range(groups)]

    def infer_result_types(self) -> ResultTypes:
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


OPS = (GroupedGemmOp, GroupedNormOp, RaggedGemmOp)
