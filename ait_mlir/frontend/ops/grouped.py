"""Several matrix products in one launch: `group_gemm_rcr_bias_relu`, `ragged_gemm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i32
from xdsl.ir import Attribute, Block, Region

from ait_mlir.dialects.ait import elementwise, grouped
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.view import concatenate
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "group_gemm_rcr", "group_gemm_rcr_bias", "group_gemm_rcr_bias_relu", "group_gemm_rcr_bias_sigmoid",
    "ragged_gemm",
]  # fmt: skip


class group_gemm_rcr(Operator):
    """a @ b^T for each group [a, b], in one launch; a is [M, K], b [N, K], and each group has its own sizes.

    Returns a result [M, N] for each group. With `output_stride_dim` the results are joined along this dim; then returns
    the joined tensor.
    """

    operands: ClassVar[tuple[str, ...]] = ("a", "b")
    activation: ClassVar[type[elementwise.UnaryOp] | None] = None

    def __call__(
        self, operand_groups: Sequence[Sequence[Tensor]], output_stride_dim: int | None = None
    ) -> list[Tensor] | Tensor:
        self.begin(*(t for group in operand_groups for t in group))
        if not operand_groups or any(len(group) != len(self.operands) for group in operand_groups):
            found = ", ".join(str(len(group)) for group in operand_groups) or "no groups"
            raise self.fail(f"each group has {len(self.operands)} tensors ({', '.join(self.operands)}), found {found}")
        factors = [t for group in operand_groups for t in group[:2]]
        biases = [group[2] for group in operand_groups] if "bias" in self.operands else []
        for bias, b in zip(biases, factors[1::2], strict=True) if biases else ():
            if bias.rank != 1 or bias.type.dims[0] is not b.type.dims[0]:
                raise self.fail(f"the bias must have shape [{b.type.dims[0]}], found {bias.describe()}")
        if wrong := [t for t in factors if t.rank != 2]:
            raise self.fail(f"a and b must have 2 dims, found {wrong[0].describe()}")
        kind = factors[0].type.element_type
        pairs = zip(factors[::2], factors[1::2], strict=True)
        types: list[Attribute] = [TensorType.get((a.type.dims[0], b.type.dims[0]), kind) for a, b in pairs]
        properties = {
            "layout": StringAttr("rcr"),
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [len(factors), len(biases)]),
        }
        region = self._epilogue(kind, biases[0].type.element_type) if biases else Region()
        found = self.emit(grouped.GroupedGemmOp, [*factors, *biases], properties, types, [region])
        self.outputs = found
        if output_stride_dim is None:
            return found
        return self.finish(concatenate()(found, self.axis(found[0], output_stride_dim)))

    def _epilogue(self, kind: Attribute, bias: Attribute) -> Region:
        block = Block(arg_types=[compute_type(kind), compute_type(bias)])
        total = elementwise.AddOp(*block.args)
        made = [total] if self.activation is None else [total, self.activation(total.results[0])]
        block.add_ops([*made, elementwise.YieldOp(made[-1].results[0])])
        return Region(block)


class group_gemm_rcr_bias(group_gemm_rcr):
    """a @ b^T + bias for each group [a, b, bias]: see `group_gemm_rcr`."""

    operands = ("a", "b", "bias")


class group_gemm_rcr_bias_relu(group_gemm_rcr_bias):
    """relu(a @ b^T + bias) for each group [a, b, bias]: see `group_gemm_rcr`."""

    activation = elementwise.ReluOp


class group_gemm_rcr_bias_sigmoid(group_gemm_rcr_bias):
    """sigmoid(a @ b^T + bias) for each group [a, b, bias]: see `group_gemm_rcr`."""

    activation = elementwise.SigmoidOp


class ragged_gemm(Operator):
    """Groups of rows of a [T, K], each times its own matrix of b [G, K, N]: [T, N], as for a mixture of experts.

    `ends` [G], int32 or int64, has the end of each group: group g has the rows from the end of group g - 1 up to
    `ends[g]`. Rows after the last group are 0. An end below the previous one or outside of the rows is clamped.
    """

    def __call__(self, a: Tensor, b: Tensor, ends: Tensor) -> Tensor:
        return self.finish(self.emit_one(grouped.RaggedGemmOp, [a, b, ends], regions=1))
