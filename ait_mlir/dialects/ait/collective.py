"""Collectives: ops that all ranks of a group run at the same time, each on its own piece.

An op names the whole mesh, so that it means the same in a graph and in a kernel: `over ["tp"] of <["dp"=2, "tp"=4]>`.
The ranks that differ along the named axes only are a group. The members of a group are numbered by their places along
these axes, the last axis fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, UnitAttr, i1
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from ait_mlir.dialects.ait.base import PureOp, ResultTypes
from ait_mlir.dialects.ait.bits import known_number
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.syntax import (
    INT,
    NUMBER,
    Flag,
    Kind,
    Operand,
    Operands,
    Prop,
    Syntax,
    Word,
    int_list,
    int_list_attr,
    parse_int_attr,
)
from ait_mlir.dialects.ait.traits import Collective, Cost, ReadsAll
from ait_mlir.dialects.ait.types import Shape, ShapeAttr, TensorType, scope_of, shape_text
from ait_mlir.dialects.sdy import Mesh, MeshAttr, parse_axis, parse_mesh
from ait_mlir.dims import Expr

KINDS = ("sum", "prod", "max", "min")


def _parse_axes(parser: Parser) -> ArrayAttr[StringAttr]:
    found: list[str] = []
    parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: found.append(parse_axis(parser, found)))
    return ArrayAttr([StringAttr(axis) for axis in found])


def _print_axes(printer: Printer, axes: ArrayAttr[StringAttr]) -> None:
    printer.print_string("[")
    printer.print_list(axes.data, lambda axis: printer.print_string_literal(axis.data))
    printer.print_string("]")


OVER: Syntax = (
    Prop("axes", Kind(_parse_axes, _print_axes, lambda axes: ArrayAttr([StringAttr(axis) for axis in axes])), "over"),
    Prop(
        "mesh",
        Kind(lambda p: MeshAttr(parse_mesh(p)), lambda p, mesh: p.print_string(str(mesh.data)), MeshAttr),
        "of",
    ),
)
"""`over ["tp"] of <["dp"=2, "tp"=4]>`"""


Pairs = tuple[tuple[int, int], ...]
"""A member that sends, and the member that receives."""


def _parse_pairs(parser: Parser) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    def pair() -> ArrayAttr[IntegerAttr]:
        source = parse_int_attr(parser)
        parser.parse_punctuation("->")
        return ArrayAttr([source, parse_int_attr(parser)])

    return ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, pair))


def _print_pairs(printer: Printer, pairs: ArrayAttr[ArrayAttr[IntegerAttr]]) -> None:
    printer.print_string("[" + ", ".join(" -> ".join(map(str, int_list(pair))) for pair in pairs.data) + "]")


def _make_pairs(pairs: Sequence[tuple[int, int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    return ArrayAttr([int_list_attr(pair) for pair in pairs])


PAIRS = Kind(_parse_pairs, _print_pairs, _make_pairs)
"""`[0 -> 1, 1 -> 2]`"""


class CollectiveOp(Collective, Cost, PureOp):
    """Base of collectives with one operand and one result."""

    input = operand_def(TensorType)
    axes = prop_def(ArrayAttr[StringAttr])
    mesh = prop_def(MeshAttr)
    output = result_def(TensorType)

    def group_axes(self) -> tuple[str, ...]:
        return tuple(axis.data for axis in self.axes.data)

    def ranks(self) -> Mesh:
        return self.mesh.data

    def piece_type(self) -> TensorType:
        """The type of the operand; raises for a group that is none."""
        t = self.expect_tensor(self.operands[0], "the input")
        if (around := self.parent_op()) is not None and around.name not in ("ait.graph", "ait_rt.kernel"):
            raise self.fail(f"stands in {around.name}; ranks meet in the body of an ait.graph only")
        axes = self.group_axes()
        if not axes:
            raise self.fail("needs at least one axis")
        if unknown := [axis for axis in axes if axis not in self.ranks().names]:
            raise self.fail(f"axis '{unknown[0]}' is not in the mesh {self.ranks()}")
        if len(set(axes)) < len(axes):
            raise self.fail(f"an axis stands twice in {list(axes)}")
        return t

    def axis_of(self, t: TensorType, name: str) -> int:
        """The dim that a property names; raises if the operand has no such dim."""
        axis = cast(IntegerAttr, self.properties[name]).value.data
        if not 0 <= axis < t.rank:
            raise self.fail(f"{name} {axis} is out of range for shape {shape_text(t.dims)}")
        return axis

    def check_kind(self, t: TensorType) -> None:
        kind = cast(StringAttr, self.properties["kind"]).data
        if t.element_type == i1:
            raise self.fail(f"{kind} of i1 has no meaning; convert with ait.cast")

    def joined(self, t: TensorType, axis: int) -> TensorType:
        """The type where a dim holds the pieces of all members of the group."""
        return _with_dim(t, axis, t.dims[axis] * self.members())

    def parted(self, t: TensorType, axis: int) -> TensorType:
        """The type of one piece of a dim; raises unless the members divide it."""
        if not scope_of(self).divisible(t.dims[axis], self.members()):
            raise self.fail(
                f"dim {axis} of {shape_text(t.dims)} is not proved to be a multiple of {self.members()}, "
                f"the number of ranks over {', '.join(self.group_axes())}"
            )
        return _with_dim(t, axis, divided(t.dims[axis], self.members()))


def divided(dim: Expr, parts: int) -> Expr:
    """One part of a dim that is a multiple of `parts`."""
    return dim // parts


def _with_dim(t: TensorType, axis: int, dim: Expr) -> TensorType:
    dims: Shape = (*t.dims[:axis], dim, *t.dims[axis + 1 :])
    return TensorType.get(dims, t.element_type)


@irdl_op_definition
class AllReduceOp(ReadsAll, CollectiveOp):
    """The sum, product, largest or smallest of the operands of all members of the group, for each element; the same on
    each member.

    The words are `sum`, `prod`, `max` and `min`.

    On a CPU sums are rounded once: the members add in the order of their numbers. NCCL rounds after each addition.

    ```mlir
    %y = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<batch x 768 x f32>
    ```
    """

    name = "ait.all_reduce"
    SYNTAX: ClassVar[Syntax] = (Word("kind", KINDS), Operands(), *OVER)

    kind = prop_def(StringAttr)

    def infer_result_types(self) -> ResultTypes:
        t = self.piece_type()
        self.check_kind(t)
        return [t]


@irdl_op_definition
class AllGatherOp(ReadsAll, CollectiveOp):
    """The operands of all members of the group, joined along a dim; the same on each member.

    ```mlir
    %y = ait.all_gather %x dim 1 over ["tp"] of <["tp"=2]> : !ait.tensor<batch x 1536 x f32>
    ```
    """

    name = "ait.all_gather"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("dim", INT), *OVER)
    WORK: ClassVar[int] = 0

    dim = prop_def(IntegerAttr)

    def infer_result_types(self) -> ResultTypes:
        t = self.piece_type()
        return [self.joined(t, self.axis_of(t, "dim"))]


@irdl_op_definition
class ReduceScatterOp(ReadsAll, CollectiveOp):
    """Of the sum, product, largest or smallest over all members of the group, the piece of a dim that belongs to this
    member.

    ```mlir
    %y = ait.reduce_scatter sum %x dim 0 over ["tp"] of <["tp"=2]> : !ait.tensor<batch x 768 x f32>
    ```
    """

    name = "ait.reduce_scatter"
    SYNTAX: ClassVar[Syntax] = (Word("kind", KINDS), Operands(), Prop("dim", INT), *OVER)

    kind = prop_def(StringAttr)
    dim = prop_def(IntegerAttr)

    def infer_result_types(self) -> ResultTypes:
        t = self.piece_type()
        self.check_kind(t)
        return [self.parted(t, self.axis_of(t, "dim"))]


@irdl_op_definition
class AllToAllOp(ReadsAll, CollectiveOp):
    """Piece j of dim `split` goes to member j, which joins the pieces that it receives along dim `concat`.

    ```mlir
    %y = ait.all_to_all %x split 1 concat 0 over ["tp"] of <["tp"=2]> : !ait.tensor<(2*batch) x 384 x f32>
    ```
    """

    name = "ait.all_to_all"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("split", INT), Prop("concat", INT), *OVER)
    WORK: ClassVar[int] = 0

    split = prop_def(IntegerAttr)
    concat = prop_def(IntegerAttr)

    def infer_result_types(self) -> ResultTypes:
        t = self.piece_type()
        split, concat = self.axis_of(t, "split"), self.axis_of(t, "concat")
        return [self.joined(self.parted(t, split), concat)]


@irdl_op_definition
class BroadcastOp(CollectiveOp):
    """The operand of the member `root` of the group; the same on each member.

    ```mlir
    %y = ait.broadcast %x root 0 over ["tp"] of <["tp"=2]> : !ait.tensor<batch x 768 x f32>
    ```
    """

    name = "ait.broadcast"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("root", INT), *OVER)
    WORK: ClassVar[int] = 0

    root = prop_def(IntegerAttr)

    def infer_result_types(self) -> ResultTypes:
        t = self.piece_type()
        if not 0 <= (root := self.root.value.data) < self.members():
            raise self.fail(f"root is {root}, expected 0 to {self.members() - 1}, a member of the group")
        return [t]


@irdl_op_definition
class CollectivePermuteOp(CollectiveOp):
    """Each pair sends the operand of its first member to its second member; a member that receives nothing has zeros.

    The op is the `send` of each source and the `recv` of each target, in one: every rank runs the same program, so one
    op names all messages. A member sends at most once and receives at most once.

    ```mlir
    %y = ait.collective_permute %x [0 -> 1] over ["pp"] of <["pp"=2]> : !ait.tensor<batch x 768 x f32>
    ```
    """

    name = "ait.collective_permute"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("pairs", PAIRS, ""), *OVER)
    WORK: ClassVar[int] = 0

    pairs = prop_def(ArrayAttr[ArrayAttr[IntegerAttr]])

    def messages(self) -> Pairs:
        """The pairs as numbers."""
        return tuple(cast("tuple[int, int]", int_list(pair)) for pair in self.pairs.data)

    def infer_result_types(self) -> ResultTypes:
        t = self.piece_type()
        if not self.pairs.data:
            raise self.fail("needs at least one pair of members, as in [0 -> 1]")
        if wrong := [pair for pair in self.pairs.data if len(pair.data) != 2]:
            raise self.fail(f"a pair is {list(int_list(wrong[0]))}, expected a source and a target")
        for what, members in zip(("sends", "receives"), zip(*self.messages(), strict=True), strict=True):
            seen = set[int]()
            for member in members:
                if not 0 <= member < self.members():
                    most = self.members() - 1
                    raise self.fail(f"member {member} {what}, expected 0 to {most}, a member of the group")
                if member in seen:
                    raise self.fail(f"member {member} {what} twice, expected at most once")
                seen.add(member)
        return [t]


@irdl_op_definition
class AllSliceOp(CollectiveOp):
    """The piece of a dim that belongs to this member of the group. Nothing is sent.

    ```mlir
    %y = ait.all_slice %x dim 1 over ["tp"] of <["tp"=2]> : !ait.tensor<batch x 384 x f32>
    ```
    """

    name = "ait.all_slice"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("dim", INT), *OVER)
    WORK: ClassVar[int] = 0

    dim = prop_def(IntegerAttr)

    def bytes_read(self, position: int) -> Expr:
        return self.bytes_written(0)

    def infer_result_types(self) -> ResultTypes:
        t = self.piece_type()
        return [self.parted(t, self.axis_of(t, "dim"))]


@irdl_op_definition
class ReducedNormOp(ReadsAll, CollectiveOp):
    """The sum of the operands of all members and of a residual, normalised over its trailing `axes` dims, and the sum.

    The norm is that of `ait.rms_norm`, with `centred` that of `ait.layer_norm`. Each member adds its own residual. The
    pass `join-norms` makes this op of an all-reduce, an addition and a norm.

    ```mlir
    %y, %sum = ait.reduced_norm %x add %r scale %g axes 1 eps 1e-05 over ["tp"] of <["tp"=2]>
        : !ait.tensor<batch x 768 x f16>, !ait.tensor<batch x 768 x f16>
    ```
    """

    name = "ait.reduced_norm"
    SYNTAX: ClassVar[Syntax] = (
        Operand("input"),
        Operand("residual", "add"),
        Operand("scale", "scale", optional=True),
        Operand("bias", "bias", optional=True),
        Prop("trailing", INT, "axes"),
        Prop("eps", NUMBER),
        Flag("centred"),
        *OVER,
    )
    SEGMENTED: ClassVar[bool] = True
    WORK: ClassVar[int] = 8

    input = operand_def(TensorType)
    residual = operand_def(TensorType)
    scale = opt_operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    trailing = prop_def(IntegerAttr)
    eps = prop_def(FloatAttr | ShapeAttr)
    centred = opt_prop_def(UnitAttr)
    output = result_def(TensorType)
    sum = result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def infer_result_types(self) -> ResultTypes:
        t, scope = self.piece_type(), scope_of(self)
        trailing = self.trailing.value.data
        if not 1 <= trailing <= t.rank:
            raise self.fail(f"axes is {trailing}, expected 1 to {t.rank} for shape {shape_text(t.dims)}")
        if not is_float(t.element_type):
            raise self.fail(f"needs a floating-point type, got {t.element_type}")
        if (eps := known_number(self.eps)) is not None and not eps >= 0:
            raise self.fail(f"eps must not be negative, got {eps}")
        row = t.dims[t.rank - trailing :]
        for what, value, dims in (
            ("the residual", self.residual, t.dims),
            ("scale", self.scale, row),
            ("bias", self.bias, row),
        ):
            if value is None:
                continue
            v = self.expect_tensor(value, what)
            if len(v.dims) != len(dims) or not all(scope.equal(x, y) for x, y in zip(v.dims, dims, strict=True)):
                raise self.fail(f"{what} has shape {shape_text(v.dims)}, expected {shape_text(dims)}")
            if v.element_type != t.element_type:
                raise self.fail(f"{what} has element type {v.element_type}, but the input has {t.element_type}")
        return [t, t]


OPS = (
    AllReduceOp,
    AllGatherOp,
    ReduceScatterOp,
    AllToAllOp,
    BroadcastOp,
    CollectivePermuteOp,
    AllSliceOp,
    ReducedNormOp,
)
