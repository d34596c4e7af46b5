"""Ops that move elements by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from ait_mlir.dialects.ait.base import AitOp, PureOp, ResultTypes, Value, broadcast_shapes, same_shape
from ait_mlir.dialects.ait.dtypes import STORED_ONLY, integer_range
from ait_mlir.dialects.ait.same_elements import have_same_elements
from ait_mlir.dialects.ait.sorting import OrderOp, check_order
from ait_mlir.dialects.ait.syntax import (
    INT,
    INTS,
    STRING,
    Group,
    Operand,
    Operands,
    Prop,
    Several,
    Syntax,
    Word,
    int_list,
)
from ait_mlir.dialects.ait.traits import BindsDim, ChecksIndices, Cost, UpdatesOperand
from ait_mlir.dialects.ait.types import Shape, TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, const, minimum, product, total

MAX_SPACE = 64
"""The most dims of the space of a gather or scatter."""


@irdl_op_definition
class EmbeddingOp(ChecksIndices, Cost, PureOp):
    """Rows of a table: the result at [..., :] is `table[ids[...], :]`; ids outside the table are invalid.

    ```mlir
    %y = ait.embedding %table, %ids : !ait.tensor<batch x seq x 768 x f16>
    ```
    """

    name = "ait.embedding"
    WORK: ClassVar[int] = 0
    MOVES_ONLY: ClassVar[bool] = True

    table = operand_def(TensorType)
    ids = operand_def(TensorType)
    output = result_def(TensorType)

    def __init__(self, table: Value, ids: Value) -> None:
        self.set_up([table, ids])

    def bytes_read(self, position: int) -> Expr:
        whole = super().bytes_read(position)
        return minimum(whole, self.bytes_written(0)) if position == 0 else whole  # the rows that ids name

    def infer_result_types(self) -> ResultTypes:
        return [_looked_up(self, self.operands[0], self.operands[1])]


@irdl_op_definition
class GroupedEmbeddingOp(ChecksIndices, Cost, PureOp):
    """Rows of several tables: each result is `ait.embedding` of a table and its ids.

    All tables have the same element type, and so have all ids; sizes may differ.

    ```mlir
    %y, %z = ait.grouped_embedding %t, %i, %u, %j : !ait.tensor<batch x 64 x f16>, !ait.tensor<batch x 32 x f16>
    ```
    """

    name = "ait.grouped_embedding"
    SYNTAX: ClassVar[Syntax] = (Operands(("pairs",)),)
    WORK: ClassVar[int] = 0
    MOVES_ONLY: ClassVar[bool] = True

    pairs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    def __init__(self, pairs: Sequence[SSAValue]) -> None:
        self.set_up([pairs], [[TensorType.get((), tensor_type(v).element_type) for v in pairs[::2]]])
        self.infer()

    @property
    def count(self) -> int:
        """The number of tables."""
        return len(self.results)

    def elements(self) -> Expr:
        return total([tensor_type(r).num_elements() for r in self.results])

    def bytes_read(self, position: int) -> Expr:
        whole = super().bytes_read(position)
        return whole if position % 2 else minimum(whole, self.bytes_written(position // 2))

    def infer_result_types(self) -> ResultTypes:
        if not self.results or len(self.pairs) != 2 * self.count:
            raise self.fail(
                f"has {len(self.pairs)} operands and {self.count} results; expected a table and ids for each result"
            )
        found = [_looked_up(self, self.pairs[2 * i], self.pairs[2 * i + 1], f" {i}") for i in range(self.count)]
        for what, kinds in (("table", self.pairs[::2]), ("ids", self.pairs[1::2])):
            first = tensor_type(kinds[0]).element_type
            for i, v in enumerate(kinds):
                if (other := tensor_type(v).element_type) != first:
                    raise self.fail(f"{what} {i} has element type {other}, but {what} 0 {first}")
        return found


def _looked_up(op: AitOp, table: SSAValue, ids: SSAValue, number: str = "") -> TensorType:
    """The type of rows of a table chosen by ids; `number` tells tables apart in errors."""
    rows, chosen = (
        op.expect_tensor(table, f"table{number}" if number else "the table"),
        op.expect_tensor(ids, f"ids{number}"),
    )
    if rows.rank != 2:
        raise op.fail(f"{'table' + number if number else 'the table'} must have 2 dims, got {shape_text(rows.dims)}")
    if chosen.element_type not in (i32, i64):
        raise op.fail(f"ids{number} must be i32 or i64, got {chosen.element_type}")
    return TensorType.get((*chosen.dims, rows.dims[1]), rows.element_type)


@irdl_op_definition
class UpdateSliceOp(UpdatesOperand, Cost, PureOp):
    """Replace some rows of a tensor along `dim`.

    ```mlir
    %new = ait.update_slice %cache, %rows at %position dim 2 : !ait.tensor<8 x 12 x 512 x 64 x f16>
    ```

    `rows` has the tensor's shape except along `dim`. `position`, i32 or i64, has rank 0 (row i goes to `position + i`)
    or has a position for each row. A position outside of the tensor is invalid: the CPU fails and names the position;
    a GPU skips the row. If two rows have the same position, the result contains one of them.
    """

    name = "ait.update_slice"
    SYNTAX: ClassVar[Syntax] = (Operands(("input", "rows")), Operand("position", "at"), Prop("dim", INT))

    input = operand_def(TensorType)
    rows = operand_def(TensorType)
    position = operand_def(TensorType)
    dim = prop_def(IntegerAttr)
    output = result_def(TensorType)

    WORK: ClassVar[int] = 0
    MOVES_ONLY: ClassVar[bool] = True

    def __init__(self, input: Value, rows: Value, position: Value, dim: int) -> None:
        self.set_up([input, rows, position], [SSAValue.get(input).type], dim=dim)

    @property
    def axis(self) -> int:
        return self.dim.value.data

    def bytes_read(self, position: int) -> Expr:
        return const(0) if position == 0 else super().bytes_read(position)

    def bytes_written(self, position: int) -> Expr:
        return self.bytes_read(1)

    def infer_result_types(self) -> ResultTypes:
        whole = self.expect_tensor(self.operands[0], "the tensor")
        rows = self.expect_tensor(self.operands[1], "rows")
        position = self.expect_tensor(self.operands[2], "the position")
        axis, scope = self.axis, scope_of(self)
        if not 0 <= axis < whole.rank:
            raise self.fail(f"dim {axis} of a tensor with {whole.rank} dims")
        if rows.element_type != whole.element_type:
            raise self.fail(f"rows are {rows.element_type}, the tensor is {whole.element_type}")
        expected = (*whole.dims[:axis], *rows.dims[axis : axis + 1], *whole.dims[axis + 1 :])
        if rows.rank != whole.rank or not same_shape(rows.dims, expected, scope):
            raise self.fail(
                f"rows have shape {shape_text(rows.dims)}, which is not that of the tensor, "
                f"{shape_text(whole.dims)}, but for dim {axis}"
            )
        count, extent = rows.dims[axis], whole.dims[axis]
        if scope.lt(extent, count):
            raise self.fail(f"{count} rows do not fit into dim {axis}, which is {extent}")
        if position.element_type not in (i32, i64):
            raise self.fail(f"the position must be i32 or i64, got {position.element_type}")
        if position.rank and (position.rank > 1 or not scope.equal(position.dims[0], count)):
            raise self.fail(
                f"the position must be of rank 0 or have the shape [{count}], a place for each row; "
                f"got {shape_text(position.dims)}"
            )
        return [whole]


@irdl_op_definition
class MaskedSelectOp(BindsDim, Cost, PureOp):
    """The elements of a tensor where a mask is true, in order, and their number.

    ```mlir
    ait.graph @f(%x: !ait.tensor<b x 64 x f16>, %mask: !ait.tensor<b x i1>) dims {b = 1 to 8, count = 0 to b bound} {
      %y, %n = ait.masked_select %x, %mask : !ait.tensor<count x 64 x f16>, !ait.tensor<i64>
    ```

    The mask has the leading dims of the tensor; each selected slice keeps the other dims. The op binds the dim `count`.
    """

    name = "ait.masked_select"
    TAKES_STORED: ClassVar[bool] = True

    input = operand_def(TensorType)
    mask = operand_def(TensorType)
    output = result_def(TensorType)
    count = result_def(TensorType)

    WORK: ClassVar[int] = 0

    def __init__(self, input: Value, mask: Value, result: TensorType) -> None:
        self.set_up([input, mask], [result, TensorType.get((), i64)])

    def infer_result_types(self) -> ResultTypes:
        x = self.expect_tensor(self.operands[0], "the tensor")
        mask = self.expect_tensor(self.operands[1], "the mask")
        result = self.expect_tensor(self.results[0], "the first result")
        scope = scope_of(self)
        if mask.element_type != i1:
            raise self.fail(f"the mask must be i1, got {mask.element_type}")
        if not 1 <= mask.rank <= x.rank or not same_shape(mask.dims, x.dims[: mask.rank], scope):
            raise self.fail(
                f"the mask has shape {shape_text(mask.dims)}, expected leading dims of {shape_text(x.dims)}"
            )
        rest = x.dims[mask.rank :]
        dim = result.dims[0] if result.rank else None
        if dim is None or sym_name(dim) is None or result.rank != 1 + len(rest):
            expected = f"[a dim of its own, *{shape_text(rest)}]"
            raise self.fail(f"the first result must have the shape {expected}, got {result}")
        declared = next((d for d in scope.dims if d.name == str(dim)), None)
        if declared is not None and (declared.upper is None or not scope.le(mask.num_elements(), declared.upper)):
            wanted = f"{dim} = 0 to {mask.num_elements()} bound"
            raise self.fail(
                f"dim {dim} is declared as '{declared}', expected '{wanted}' or a bound that is proved to be as large"
            )
        if declared is not None and declared.lo > 0:
            raise self.fail(f"dim {dim} is at least {declared.lo}, but a mask may be false everywhere")
        return [TensorType.get((dim, *rest), x.element_type), TensorType.get((), i64)]


class IndexedOp(Cost, PureOp):
    """Base of the ops that visit an index space; each point of the space selects one element of the first operand.

    `dims` are the dims of that operand with an index tensor, one each. `kept` has for each other dim, in order, the
    corresponding dim of the space. The index tensors broadcast to the space. An index from -size to -1 counts from the
    end.
    """

    WORK: ClassVar[int] = 0
    WHOLE: ClassVar[str] = "the tensor"

    rest = var_operand_def(TensorType)
    dims = prop_def(ArrayAttr[IntegerAttr])
    kept = prop_def(ArrayAttr[IntegerAttr])

    @property
    def order(self) -> Sequence[SSAValue]:
        """The keys and places of the order of the space (`ait.order`), or nothing."""
        return ()

    @property
    def indices(self) -> Sequence[SSAValue]:
        return self.rest[: len(self.rest) - len(self.order)]

    def places(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The dims with indices, and for each other dim the corresponding dim of the space."""
        return int_list(self.dims), int_list(self.kept)

    def kept_dims(self) -> tuple[tuple[int, int], ...]:
        """(dim of the first operand, dim of the space) of the dims without indices."""
        dims, kept = self.places()
        rank = tensor_type(self.operands[0]).rank
        return tuple(zip((d for d in range(rank) if d not in dims), kept, strict=True))

    def space(self) -> Shape:
        """The shape of the space; `VerifyException` if the operands do not fit together."""
        raise NotImplementedError

    def infer_space(self, others: Sequence[tuple[str, SSAValue]] = ()) -> Shape:
        """The shape to which indices and `others` broadcast; a literal 1 becomes the size of its kept dim, if any."""
        whole = self.expect_tensor(self.operands[0], self.WHOLE)
        dims, kept = self.places()
        if not dims or len(set(dims)) != len(dims) or not all(0 <= d < whole.rank for d in dims):
            raise self.fail(f"dims {list(dims)} are not one or more different dims of {shape_text(whole.dims)}")
        if len(self.indices) != len(dims):
            raise self.fail(f"{len(self.indices)} index tensors for {len(dims)} dims")
        rest = whole.rank - len(dims)
        if len(kept) != rest or len(set(kept)) != rest or not all(0 <= k < MAX_SPACE for k in kept):
            raise self.fail(
                f"kept {list(kept)} must name {rest} different dims below {MAX_SPACE}, one for each dim without indices"
            )
        named = [*((f"index {i}", v) for i, v in enumerate(self.indices)), *others]
        types = [self.expect_tensor(v, what) for what, v in named]
        elements = {t.element_type for t in types[: len(dims)]}
        if elements not in ({i32}, {i64}):
            found = ", ".join(str(t.element_type) for t in types[: len(dims)])
            raise self.fail(f"indices must be all i32 or all i64, got {found}")
        shapes = [t.dims for t in types]
        rank = max([*map(len, shapes), *(k + 1 for k in kept)])
        shapes.append((const(1),) * rank)
        space = list(broadcast_shapes(self, [*(what for what, _ in named), "the space"], shapes))
        scope = scope_of(self)
        for d, k in self.kept_dims():
            if space[k].as_int() == 1:
                space[k] = whole.dims[d]
            elif not scope.le(space[k], whole.dims[d]):
                raise self.fail(
                    f"dim {k} of the space is {space[k]}, which is not proved to fit into dim {d} of {self.WHOLE}, "
                    f"{whole.dims[d]}"
                )
        return tuple(space)


@irdl_op_definition
class GatherOp(ChecksIndices, IndexedOp):
    """Elements of a tensor by index, along one or several dims.

    ```mlir
    %y = ait.gather %x at(%i) dims [1] kept [0, 2] : !ait.tensor<batch x 10 x 64 x f16>    // x[b, i[b, k, 0], c]
    ```

    The element of the result at a place is the element of the input at the index for each of `dims`, and at the same
    coordinate along each kept dim. An index from -size to -1 counts from the end. Any other index outside of its dim
    is invalid: the CPU fails and names the index, a GPU writes NaN for floats and 0 for other types. `says` is the
    CPU's error instead, where the index follows from a condition that the model must meet:

    ```mlir
    %z = ait.gather %zero at(%is_zero) dims [0] kept [] says "an integer is divided by 0" : !ait.tensor<1 x i64>
    ```
    """

    name = "ait.gather"
    SYNTAX: ClassVar[Syntax] = (
        Operand("input"), Group("indices", "at"), Prop("dims", INTS), Prop("kept", INTS),
        Prop("says", STRING, optional=True),
    )  # fmt: skip
    MOVES_ONLY: ClassVar[bool] = True
    WHOLE: ClassVar[str] = "the input"

    input = operand_def(TensorType)
    says = opt_prop_def(StringAttr)
    output = result_def(TensorType)

    def __init__(
        self,
        input: Value,
        indices: Sequence[SSAValue],
        dims: Sequence[int],
        kept: Sequence[int],
        says: str | None = None,
    ) -> None:
        self.set_up([input, indices], dims=dims, kept=kept, says=says)

    def bytes_read(self, position: int) -> Expr:
        whole = super().bytes_read(position)
        return minimum(whole, self.bytes_written(0)) if position == 0 else whole

    def space(self) -> Shape:
        return self.infer_space()

    def infer_result_types(self) -> ResultTypes:
        return [TensorType.get(self.space(), self.expect_tensor(self.operands[0], "the input").element_type)]


SCATTERS = ("set", "add", "mul", "max", "min")


def neutral(kind: str, element: Attribute) -> float:
    """The neutral element of a reduction of this kind, from which it starts."""
    if kind in ("add", "mul"):
        return int(kind == "mul")
    if element == i1:
        return int(kind == "min")
    ends = integer_range(element)
    if ends is None:
        return float("-inf") if kind == "max" else float("inf")
    return ends[0] if kind == "max" else ends[1]


@irdl_op_definition
class ScatterOp(UpdatesOperand, IndexedOp):
    """Write or combine values into elements of a tensor, by index along one or several dims.

    ```mlir
    %y = ait.scatter add %x, %values at(%i) dims [0] kept [1] : !ait.tensor<nodes x 64 x f16>    // y[i[e, 0], c] += v
    ```

    Each place of the space combines one element of `values`, which broadcast to the space, with the element of the
    tensor that the indices and kept dims name. If several places name one element, they are combined in row-major
    order on every target, so `set` keeps the last one and sums have the same bits in each run, unless the model is
    compiled with `deterministic=False`. Sums and products of
    16-bit floats are computed in f32 and rounded once. An index outside of its dim is invalid: the CPU fails, names
    the index and writes nothing; a GPU skips the place.

    `order` has the results of `ait.order` for the same indices, so that a GPU need not sort them again. The indices
    must then be the same along every kept dim, and as large as the space along the others.

    ```mlir
    %keys, %places = ait.order %flat sizes [nodes] : !ait.tensor<edges x i32>, !ait.tensor<edges x i32>
    %y = ait.scatter add %x, %values at(%i) dims [0] kept [1] order %keys, %places : !ait.tensor<nodes x 64 x f16>
    ```
    """

    name = "ait.scatter"
    SELF_CONTAINED: ClassVar[bool] = False  # the op that makes its order is checked
    TAKES_STORED: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (
        Word("kind", SCATTERS), Operands(("input", "values")), Group("indices", "at"), Prop("dims", INTS),
        Prop("kept", INTS), Several("order", 2, "keys and places", optional=True),
    )  # fmt: skip

    input = operand_def(TensorType)
    values = operand_def(TensorType)
    kind = prop_def(StringAttr)
    output = result_def(TensorType)

    def __init__(
        self,
        kind: str,
        input: Value,
        values: Value,
        indices: Sequence[SSAValue],
        dims: Sequence[int],
        kept: Sequence[int],
        order: Sequence[SSAValue] = (),
    ) -> None:
        rest = [*indices, *order]
        self.set_up([input, values, rest], [SSAValue.get(input).type], kind=kind, dims=dims, kept=kept)

    @property
    def order(self) -> Sequence[SSAValue]:
        count = len(self.dims.data)
        return self.rest[count:] if len(self.rest) == count + 2 else ()

    def bytes_read(self, position: int) -> Expr:
        return const(0) if position == 0 else super().bytes_read(position)

    def ordered_space(self) -> Shape | None:
        """The dims of the space that `ait.order` numbers: those without the kept dims. None if no order serves the
        scatter, because an index differs along a kept dim, or is smaller than the space along another one.
        """
        space, kept, scope = self.space(), int_list(self.kept), scope_of(self)
        largest: list[Expr] = [const(1)] * len(space)
        for index in self.indices:
            dims = tensor_type(index).dims
            for at, d in enumerate(dims, len(space) - len(dims)):
                largest[at] = largest[at] if d.as_int() == 1 else d
        if any(largest[at].as_int() != 1 for at in kept):
            return None
        places = [(d, largest[at]) for at, d in enumerate(space) if at not in kept]
        return tuple(d for d, _ in places) if all(scope.equal(d, n) for d, n in places) else None

    def bytes_written(self, position: int) -> Expr:
        return self.bytes_read(1)

    def elements(self) -> Expr:
        return tensor_type(self.values).num_elements()

    def space(self) -> Shape:
        return self.infer_space([("values", self.values)])

    def infer_result_types(self) -> ResultTypes:
        whole = self.expect_tensor(self.operands[0], "the tensor")
        values = self.expect_tensor(self.operands[1], "values")
        if values.element_type != whole.element_type:
            raise self.fail(f"values are {values.element_type}, the tensor is {whole.element_type}")
        if whole.element_type in (i1, *STORED_ONLY) and self.kind.data != "set":
            what = "booleans; cast them to integers" if whole.element_type == i1 else f"{whole.element_type}; cast them"
            raise self.fail(f"cannot {self.kind.data} {what}, or use 'set'")
        self.space()
        if self.order:
            self._check_order()
        return [whole]

    def _check_order(self) -> None:
        places = self.ordered_space()
        if places is None:
            raise self.fail(
                "an order is for indices that are the same along kept dims and as large as the space along the others"
            )
        dims, _ = self.places()
        check_order(self, self.order, product(places), tuple(tensor_type(self.input).dims[d] for d in dims))
        if isinstance(maker := self.order[0].owner, OrderOp):
            self._check_indices(maker)

    def _check_indices(self, order: OrderOp) -> None:
        rank, kept, scope = len(self.space()), int_list(self.kept), scope_of(self)
        for i, (own, given) in enumerate(zip(self.indices, order.indices, strict=True)):
            dims = tensor_type(own).dims
            expected = tuple(d for at, d in enumerate(dims, rank - len(dims)) if at not in kept)
            if len(self.indices) > 1 and not same_shape(found := tensor_type(given).dims, expected, scope):
                raise self.fail(f"index {i} of the order is {shape_text(found)}, expected {shape_text(expected)}")
            if not have_same_elements(own, given, scope):
                raise self.fail(
                    f"index {i} of the order is not proved to have the elements of index {i} of the scatter; make the "
                    "order of the same value, reshaped to leave out the kept dims"
                )


def sym_name(e: Expr) -> str | None:
    """The name of a dim expression that is a single dim; None for other expressions."""
    name = str(e)
    return name if e.symbols == frozenset((name,)) else None


OPS = (EmbeddingOp, GroupedEmbeddingOp, UpdateSliceOp, MaskedSelectOp, GatherOp, ScatterOp)
