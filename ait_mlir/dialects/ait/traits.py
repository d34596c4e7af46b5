"""The interfaces of ops. Patterns, passes, kernels and reports use them instead of lists of ops.

An interface is a base class of op classes, as in xDSL: `class SoftmaxOp(RowLike, AitOp)`. Code asks
`isinstance(op, RowLike)`, a pattern asks `p.op(trait="RowLike")`; then they call its methods. Interfaces have defaults,
so a new op states only the differences. All sizes are dim expressions. Estimates of seconds are in the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import region_def, var_operand_def
from xdsl.traits import Commutative, OpTrait, Pure

from ait_mlir.dialects.ait.dtypes import accumulator_type
from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dialects.ait.syntax import int_list, int_list_attr
from ait_mlir.dialects.ait.types import Shape, ShapedType, TensorType, tensor_type
from ait_mlir.dialects.sdy import Mesh
from ait_mlir.dims import Expr, Scope, const, product, total

__all__ = [
    "INTERFACES",
    "AffineOperands",
    "AlongDims",
    "BindsDim",
    "ChannelsLast",
    "ChecksIndices",
    "Collective",
    "Commutative",
    "ContractionExtents",
    "Cost",
    "Extents",
    "HasEpilogue",
    "HasOffsets",
    "InPlace",
    "Interface",
    "Monotone",
    "Norm",
    "OpTrait",
    "Pure",
    "ReadsAll",
    "ReduceLike",
    "Reduction",
    "RowLike",
    "ScalarLike",
    "UpdatesOperand",
    "ViewLike",
]


class Interface(Operation):
    """Base of the interfaces. Patterns may name an interface like a trait."""


# ** cost **


class Cost(Interface):
    """The work of an op.

    By default an op reads its operands and writes its results once, and does `WORK` operations for each element of the
    first result, in addition to the operations of its regions.
    """

    SELF_CONTAINED: ClassVar[bool] = True
    """See `AitOp`."""
    WORK: ClassVar[int] = 1
    """Operations for each element."""
    MOVES_ONLY: ClassVar[bool] = False
    """Every element of the results is an element of an operand, bit for bit."""

    def flops(self) -> Expr:
        """The number of operations: two for each multiply-add, one for each scalar op on an element."""
        return self.elements() * (self.WORK + self.region_ops())

    def elements(self) -> Expr:
        """The number of elements that each take `WORK` operations."""
        return _shaped(self.results[0]).num_elements()

    def region_ops(self) -> int:
        """The scalar ops in the regions, terminators left out."""
        return sum(len(block.ops) - 1 for region in self.regions for block in region.blocks)

    def bytes_read(self, position: int) -> Expr:
        """The bytes of operand `position` that the op reads, at most all."""
        return _shaped(self.operands[position]).byte_size()

    def bytes_written(self, position: int) -> Expr:
        """The bytes of result `position` that the op writes."""
        return _shaped(self.results[position]).byte_size()

    def timed_values(self, position: int, env: Mapping[str, int]) -> list[int] | None:
        """The integers to use as operand `position` when a kernel is timed at these dims; None if any integers fit."""
        return None

    def bytes_touched(self) -> Expr:
        """The bytes that the op reads and writes. An operand that occurs twice counts once."""
        first = {value: i for i, value in reversed(list(enumerate(self.operands)))}
        reads = [self.bytes_read(i) for i in first.values()]
        return total([*reads, *(self.bytes_written(i) for i in range(len(self.results)))])


def _shaped(value: SSAValue) -> ShapedType:
    assert isinstance(value.type, ShapedType)
    return value.type


# ** scalars **

Monotone = Literal["up", "down"]


class InPlace(Interface):
    """An element of a result depends only on the elements at the same position of operands of that shape: the result
    may overwrite such an operand."""


class ReadsAll(Interface):
    """Every element of every operand is read for the results."""


class ChecksIndices(Interface):
    """Some operands are indices. A kernel on a CPU fails with the first one that is outside of its dim."""

    @property
    def checks_indices(self) -> bool:
        """Whether this op has such an index."""
        return True


class UpdatesOperand(Interface):
    """The result is the first operand with some elements replaced. Kernels write only these elements, in the operand's
    buffer. If the old value is still needed, bufferisation copies it first."""


class BindsDim(Interface):
    """The run of the op determines the leading dim of its first result. No other op binds this dim. The last result, an
    i64, is its value."""

    @property
    def bound_dim(self) -> Expr:
        return tensor_type(self.results[0]).dims[0]


class HasOffsets(Interface):
    """Some operands are offsets: the first rows of sequences that are packed one after the other. Offsets never
    decrease and stay within the data.
    """

    def offset_positions(self) -> tuple[int, ...]:
        """The positions of the operands that are offsets."""
        raise NotImplementedError


class ScalarLike(ReadsAll, InPlace, Cost):
    """Computes each element of the result from the elements at the same position, after broadcasting. It is also
    defined on scalars, so regions may contain it."""

    CHEAP: ClassVar[bool] = False
    """Whether the op takes one or two instructions, so that computing it again costs no more than reading its result. A
    division takes tens of instructions, a function more."""
    MONOTONE: ClassVar[Monotone | None] = None
    """For one operand: the result never decreases (`up`) or never increases (`down`) with the operand."""

    @property
    def arity(self) -> int:
        """The number of operands."""
        return len(self.operands)


# ** ranks **


class Collective(Interface):
    """All ranks of a group run the op at the same time, each on its own operand; a rank's result depends on the
    operands of the others or on its own number.

    Such an op stands in the body of a graph, where all ranks run it equally often, or alone in a kernel.
    """

    SELF_CONTAINED: ClassVar[bool] = False

    def group_axes(self) -> tuple[str, ...]:
        """The axes of the mesh along which the members of a group differ."""
        raise NotImplementedError

    def ranks(self) -> Mesh:
        """The mesh of all ranks."""
        raise NotImplementedError

    def members(self) -> int:
        """The number of members of a group."""
        return self.ranks().extent(self.group_axes())


# ** views **


class ViewLike(Cost):
    """Moves elements and computes nothing.

    If `result_view` or `operand_view` gives strides, the op may become a view of a buffer, and no byte is moved. `Cost`
    counts the bytes that a copy would move.
    """

    WORK: ClassVar[int] = 0
    MOVES_ONLY: ClassVar[bool] = True

    def result_view(self, position: int, operand: Strided, scope: Scope) -> Strided | None:
        """Result `position` as a view of the first operand's buffer, given the operand's `Strided`; None if no strides
        can describe it."""
        return None

    def operand_view(self, position: int, result: Strided, scope: Scope) -> Strided | None:
        """Operand `position` as a part of the first result's buffer, given the result's `Strided`, as for the operands
        of a concatenation. None if the operand is not a part of it."""
        return None


# ** along axes **


def _number(attribute: Attribute) -> int:
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


class Norm(OpTrait):
    """A `NormOp`: normalises rows; a prologue may compute the input."""


class Reduction(ReadsAll, Cost):
    """Works along some axes of the first operand: it combines the elements with equal indices in all other axes."""

    def reduced_axes(self) -> tuple[int, ...]:
        """The axes that the op works along, ascending; by default its property `dim`."""
        return (_number(self.properties["dim"]),)

    def elements(self) -> Expr:
        return _shaped(self.operands[0]).num_elements()


class RowLike(Reduction):
    """A `Reduction` whose result has the shape of the first operand: softmax, the norms, a cumulative sum."""


class ReduceLike(Reduction):
    """A `Reduction` whose results do not have the reduced axes."""


# ** dims by number **


class AlongDims(Interface):
    """Works along the dims that its properties name and treats all other dims alike: on permuted operands it computes a
    permuted result."""

    def along(self, order: Sequence[int]) -> dict[str, Attribute]:
        """The properties of the op on permuted operands, where dim i is dim `order[i]` of the current operands. By
        default the properties `dim` and `dims` are renumbered.
        """
        found = dict(self.properties)
        if "dim" in found:
            found["dim"] = IntegerAttr(order.index(_number(found["dim"])), i64)
        if "dims" in found:
            found["dims"] = int_list_attr(sorted(order.index(d) for d in int_list(found["dims"])))
        return found

    def per_dim_operands(self) -> tuple[int, ...]:
        """Operands with one element for each index of a dim, such as a scale: a permutation leaves them as they are."""
        return ()


# ** channels last **


class ChannelsLast(Interface):
    """The first operand, and each result of its rank, is [N, spatial dims, C].

    The op works on the spatial dims: an element of a result depends only on elements of the first operand with the same
    N. Patterns move permutes of layouts past such ops.
    """

    def spatial_axes(self) -> tuple[int, ...]:
        """The dims of the first operand between its first and its last."""
        return tuple(range(1, _shaped(self.operands[0]).rank - 1))


# ** contractions **


@dataclass(frozen=True)
class Extents:
    """The sizes of a contraction: for each batch, M rows and N columns of sums over K products. A gated product has N
    columns in its result and twice as many sums."""

    batch: Shape
    m: Expr
    n: Expr
    k: Expr


class HasEpilogue(Interface):
    """The epilogue, a region on scalars, computes the result from the accumulators. Products, grouped products and
    convolutions have it.

    The first `SUMS` arguments of the region are the accumulators, in the compute type, or in i32 for integers of 8
    bits; the others are the elements of the epilogue operands, which are the last operands and broadcast to the
    result's shape. The yielded value is rounded
    once to the result's element type. Without a region, the result is the accumulator.

    An op with `MAX_RESULTS` above 1 may yield several values: each is a result of the same shape, rounded to its own
    element type.
    """

    SUMS: ClassVar[int] = 1
    """The number of accumulators for each element of the result: the first arguments of the epilogue."""
    MAX_RESULTS: ClassVar[int] = 1
    """The most values that the epilogue may yield."""
    STORES_BYTES: ClassVar[bool] = False
    """Whether kernels store results of 8 bits, also f8E4M3FN and f8E5M2, as `ait.quantize` makes them."""

    epilogue_operands = var_operand_def(TensorType)
    epilogue = region_def()

    @property
    def own_operands(self) -> Sequence[SSAValue]:
        """The operands before the epilogue's."""
        return self.operands[: len(self.operands) - len(self.epilogue_operands)]

    def accumulator_types(self) -> list[Attribute]:
        """The type of each accumulator, by the type of the first operand."""
        return [accumulator_type(tensor_type(self.operands[0]).element_type)] * self.SUMS

    def properties_with(self, extras: int) -> dict[str, Attribute]:
        """The properties of the op with `extras` epilogue operands."""
        return dict(self.properties)

    def with_epilogue(self, operands: Sequence[SSAValue], epilogue: Region, element_type: Attribute) -> Self:
        """A new op with the same own operands, properties and attributes, and this epilogue of one result."""
        result = TensorType.get(tensor_type(self.results[0]).dims, element_type)
        return type(self).create(
            operands=[*self.own_operands, *operands],
            result_types=[result],
            properties=self.properties_with(len(operands)),
            attributes=dict(self.attributes),
            regions=[epilogue],
        )


class ContractionExtents(Cost):
    """A sum of products whose cost is that of a matrix product of these extents; the operands need not be matrices."""

    def extents(self) -> Extents:
        raise NotImplementedError

    def flops(self) -> Expr:
        e = self.extents()
        sums = self.SUMS if isinstance(self, HasEpilogue) else 1
        return product([*e.batch, e.m, e.n]) * (const(2 * sums) * e.k + self.region_ops())


class AffineOperands(Interface):
    """A product whose operands A (0) and B (1) and whose result (2) are matrices that strides address."""

    def matrix_axes(self, position: int) -> tuple[int, int]:
        """The axes, from the end, of (M, K) in A, of (K, N) in B, of (M, N) in the result."""
        raise NotImplementedError


INTERFACES: dict[str, type[Interface]] = {
    cls.__name__: cls
    for cls in (
        *(
            BindsDim,
            Collective,
            Cost,
            InPlace,
            ReadsAll,
            ChecksIndices,
            UpdatesOperand,
            ScalarLike,
            ViewLike,
            Reduction,
            RowLike,
        ),
        *(ReduceLike, AlongDims, ChannelsLast, HasEpilogue, HasOffsets, ContractionExtents, AffineOperands),
    )
}
"""The interfaces by name, for patterns."""
