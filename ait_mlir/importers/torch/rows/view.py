"""Operations on shapes, which move elements and compute nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Mask, Spread, Value, dims_of
from ait_mlir.compositions.bits import reinterpreted
from ait_mlir.compositions.index import at_least, slices_at
from ait_mlir.compositions.rearrange import every, reshaped
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dialects.ait.view import SplitOp
from ait_mlir.dims import Expr, ceildiv, const, maximum, minimum
from ait_mlir.importers.torch.call import Call, NotSupported, Row, as_expr
from ait_mlir.importers.torch.conditions import is_about_values, is_only_returned, is_proved
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.run_numbers import is_run_number, read

ONE = const(1)


def same(name: str = "self") -> Row:
    """A row that gives the argument itself: copies and aliases are the same value."""
    return lambda c: c.value(name)


def dropout(c: Call) -> Value:
    """The input itself; dropout in training is refused, unless its probability is 0."""
    if c["train"] and c["p"] != 0:
        raise NotSupported("dropout is active; call model.eval() before the export")
    return c.value("input")


def nothing(c: Call) -> None:
    """An operation that only checks."""


def asserted(c: Call) -> None:
    """A condition on the dims: nothing if it is proved, else `NotSupported`, because a run would not check it.

    Conditions on the values of tensors are left out, like those of `aten._assert_async`: they never change a result.
    """
    if not is_about_values(c.node.args[0]) and not is_proved(c.node.args[0], c.table):
        claim = str(c.node.args[1]).removeprefix("Runtime assertion failed for expression ").partition(" on node")[0]
        raise NotSupported(f"the model demands {claim}, which the ranges of the dims do not prove; narrow them")


# ** shapes **


def reshape(c: Call) -> Value:
    """The same elements in the result's shape, for all reshaping operations."""
    return reshaped(c.w, c.value("self"), c.dims)


def other_type(c: Call) -> Value:
    """`view(dtype)`: the same memory as elements of another type."""
    return reinterpreted(c.w, c.tensor("self"), c.element, c.dims)


def expand(c: Call) -> Value:
    """`self` broadcast to the result's shape; the broadcast is only written when an op needs it."""
    value = c.value("self")
    if isinstance(value, Affine | Mask):
        return value.broadcast(c.dims)
    small = c.w.natural(value)
    return small if tensor_type(small).dims == c.dims else Spread(c.dims, small)


def permute_by(order: Callable[[Call, int], Sequence[int]]) -> Row:
    """A row that permutes the dims."""

    def row(c: Call) -> Value:
        rank = len(c.shape("self"))
        return permuted(c, [a % rank for a in order(c, rank)])

    return row


def permuted(c: Call, axes: Sequence[int]) -> Value:
    """`self` permuted: dim i of the result is dim `axes[i]` of `self`."""
    value = c.value("self")
    if isinstance(value, Affine):
        return value.permuted(axes)
    if isinstance(value, Mask) and not value.values:
        return Mask(c.dims, tuple(f.permuted(axes) for f in value.formulas))
    return c.w.permute(c.w.full(value), axes)


def _moved(rank: int, source: int, destination: int) -> list[int]:
    """The permutation that moves the dim `source` to `destination`."""
    order = [a for a in range(rank) if a != source % rank]
    order.insert(destination % rank, source % rank)
    return order


def _swapped(rank: int, a: int, b: int) -> list[int]:
    order = list(range(rank))
    if order:  # a scalar accepts dims 0 and -1 but has none
        order[a], order[b] = order[b], order[a]
    return order


def repeat(c: Call) -> Value:
    """The whole tensor several times along each dim."""
    counts = [as_expr(r) for r in c["repeats"]]
    dims = (*(ONE for _ in range(len(counts) - len(c.shape("self")))), *c.shape("self"))
    if all(r is ONE or d is ONE for r, d in zip(counts, dims, strict=True)):
        value = c.value("self")
        return value.broadcast(c.dims) if isinstance(value, Affine | Mask) else Spread(c.dims, c.w.natural(value))
    pairs = tuple(x for r, d in zip(counts, dims, strict=True) for x in (r, d))
    spread = c.w.reshape(c.tensor("self"), tuple(x for d in dims for x in (ONE, d)))
    return c.w.reshape(c.w.expand(spread, pairs), c.dims)


# ** parts **


def part_start(c: Call, given: object, extent: Expr) -> Expr:
    """Where a slice starts, counted from the front."""
    if given is None:
        return const(0)
    start = as_expr(given)
    if c.w.scope.le(0, start):
        return start
    if not c.w.scope.lt(start, 0):
        raise NotSupported(f"a slice starts at {start}, which may be negative or not; give the dims tighter ranges")
    return start + extent if c.w.scope.le(0, start + extent) else maximum(start + extent, 0)


def cut(c: Call, value: Value, axis: int, start: Expr, size: Expr, step: int = 1) -> Value:
    """`size` elements of `value` along one axis, from `start`, `step` apart."""
    extent = dims_of(value)[axis]
    if extent is size and step == 1:
        return value
    if isinstance(value, Affine):
        return value.sliced(axis, start, step, size)
    if isinstance(value, Mask) and not value.values:
        dims = (*value.dims[:axis], size, *value.dims[axis + 1 :])
        return Mask(dims, tuple(f.sliced(axis, start, step, size) for f in value.formulas))
    if step == 1:
        c.table.require_room(start + size, extent)
    x = c.w.full(value)
    return c.w.slice(x, axis, start, size) if step == 1 else every(c.w, x, axis, start, size, step)


def slice_(c: Call) -> Value:
    axis = c.axis("dim")
    extent = c.shape("self")[axis]
    start = part_start(c, c["start"], extent)
    # PyTorch sees ends that depend on values; the import knows them
    if bindings := c.node.meta.get("unbacked_bindings"):
        end = extent if c["end"] is None else minimum(part_start(c, c["end"], extent), extent)
        size = ceildiv(maximum(end - minimum(start, extent), 0), c["step"] or 1)
        for symbol, path in bindings.items():  # a size, or the storage offset, which is 0 here
            c.table.fix(symbol.name, size if len(path) == 2 else const(0))
    return cut(c, c.value("self"), axis, start, c.dims[axis], c["step"] or 1)


def item(c: Call) -> Value | Expr | float:
    """The value of a scalar: a size that follows from the dims, or the value that an assertion of the model states.

    A scalar that is only a result of the model stays a tensor; a call converts it to a number.
    """
    value, meant = c.value("self"), c.node.meta["val"]
    if not isinstance(value, Affine) or not isinstance(meant, torch.SymInt):
        if getattr(getattr(meant, "node", None), "expr", None) is not None and meant.node.expr.free_symbols:
            if is_only_returned(c.node):
                return value
            if is_run_number(meant, c.table):
                return read(c.w, c.tensor("self"), meant)
            raise NotSupported("a value of a tensor decides what is computed; decide by shapes, or use torch.where")
        return meant
    for symbol in c.node.meta.get("unbacked_bindings") or ():
        c.table.fix(symbol.name, value.offset)
    return value.offset


def narrow(c: Call) -> Value:
    axis = c.axis("dim")
    return cut(c, c.value("self"), axis, part_start(c, c["start"], c.shape("self")[axis]), c.dims[axis])


def select(c: Call) -> Value:
    """The slice at one index along a dim, without this dim."""
    axis = c.axis("dim")
    if isinstance(at := c.arguments["index"], SSAValue):  # a number that only the run knows
        ids = c.w.reshape(cast(SSAValue, at), (ONE,))
        return reshaped(c.w, slices_at(c.w, c.tensor("self"), axis, ids, from_end=True), c.dims)
    x, index = c.value("self"), c["index"]
    if isinstance(x, SSAValue) and isinstance(index, int):
        least = index + 1 if index >= 0 else -index
        x = at_least(c.w, x, axis, least, f"there is no element at index {index}")
    part = cut(c, x, axis, part_start(c, index, dims_of(x)[axis]), ONE)
    if isinstance(part, Affine):
        return part.without(axis)
    return reshaped(c.w, part, c.dims)


def split(c: Call) -> Sequence[Value]:
    """Consecutive parts along a dim, with the sizes of the results."""
    axis = c.axis("dim")
    x = c.tensor("self")
    types = [c.type(i) for i in range(len(c.node.meta["val"]))]
    if len(types) == 1:
        return [x]
    return list(c.w.ops(SplitOp, x, properties={"dim": axis}, results=types))


def unbind(c: Call) -> Sequence[Value]:
    """The slices at each index along a dim, without this dim."""
    axis = c.axis("dim")
    x = c.tensor("self")
    dims, element = tensor_type(x).dims, tensor_type(x).element_type
    count = dims[axis].as_int()
    if count is None:
        raise NotSupported("unbind needs a dim that is a number")
    part = TensorType.get((*dims[:axis], 1, *dims[axis + 1 :]), element)
    parts = [x] if count == 1 else c.w.ops(SplitOp, x, properties={"dim": axis}, results=[part] * count)
    return [c.w.reshape(p, (*dims[:axis], *dims[axis + 1 :])) for p in parts]


# ** joining **


def concatenate(c: Call) -> Value:
    """Tensors joined along a dim; empty tensors of rank 1 are left out, as in PyTorch."""
    rank = len(c.dims)
    axis = c.axis("dim", rank)
    parts = [v for v in c["tensors"] if len(dims_of(v)) == rank]
    return joined(c, [v for v in parts if dims_of(v)[axis].as_int() != 0] or parts, axis)


def joined(c: Call, parts: Sequence[Value], axis: int) -> Value:
    """Values joined along an axis, in the result's element type."""
    if (known := _one_formula(parts, axis)) is not None:
        return known
    values = [c.w.cast(c.w.full(v), c.element) for v in parts]
    return values[0] if len(values) == 1 else c.w.concat(values, axis)


def _one_formula(parts: Sequence[Value], axis: int) -> Affine | None:
    """Joined formulas as one formula, for example -1 followed by 0, 1, ...; None if they are not one."""
    result: Affine | None = None
    for part in parts:
        if not isinstance(part, Affine):
            return None
        if result is None:
            result = part
        elif (result := result.joined(part, axis, result.dims[axis] + part.dims[axis])) is None:
            return None
    return result


def stack(c: Call) -> Value:
    """Tensors joined along a new dim. Where a dim follows it, they are concatenated along that dim: then the op that
    computes a tensor can write into the result.
    """
    axis = c.axis("dim", len(c.dims))
    values = [c.w.cast(c.w.full(v), c.element) for v in c["tensors"]]
    if len(values) > 1 and axis < len(c.dims) - 1:
        return c.w.reshape(c.w.concat(values, axis), c.dims)
    dims = (*c.dims[:axis], ONE, *c.dims[axis + 1 :])
    values = [c.w.reshape(v, dims) for v in values]
    return values[0] if len(values) == 1 else c.w.concat(values, axis)


ROWS: dict[str, Row] = {
    # the same value
    "aten.clone.default aten.contiguous.default aten.detach.default aten.detach_.default aten.alias.default": same(),
    "aten.lift_fresh_copy.default aten.positive.default": same(),
    "aten.dropout.default aten.feature_dropout.default": dropout,
    "aten.view.dtype": other_type,
    "aten._assert_tensor_metadata.default": nothing,
    "aten._assert_scalar.default": asserted,
    "aten._assert_async.msg": nothing,
    "aten.item.default": item,
    "aten.sym_constrain_range_for_size.default": nothing,
    # other shapes of the same elements
    "aten.view.default aten.view_copy.default aten.reshape.default aten._unsafe_view.default": reshape,
    "aten.view_as.default aten.reshape_as.default aten.flatten.using_ints aten.unflatten.int": reshape,
    "aten.unsqueeze.default aten.squeeze.default aten.squeeze.dim aten.squeeze.dims": reshape,
    # broadcasts
    "aten.expand.default aten.expand_as.default aten.broadcast_to.default": expand,
    "aten.repeat.default": repeat,
    # orders
    "aten.permute.default aten.permute_copy.default": permute_by(lambda c, rank: c["dims"]),
    "aten.transpose.int": permute_by(lambda c, rank: _swapped(rank, c["dim0"], c["dim1"])),
    "aten.movedim.int": permute_by(lambda c, rank: _moved(rank, c["source"], c["destination"])),
    "aten.t.default aten.numpy_T.default": permute_by(lambda c, rank: range(rank)[::-1]),
    "aten.mT.default": permute_by(lambda c, rank: _swapped(rank, -2, -1)),
    "aten.swapaxes.default": permute_by(lambda c, rank: _swapped(rank, c["axis0"], c["axis1"])),
    # parts
    "aten.slice.Tensor": slice_,
    "aten.narrow.default aten.narrow_copy.default": narrow,
    "aten.select.int": select,
    "aten.split.Tensor aten.split.sizes aten.split_with_sizes.default aten.chunk.default": split,
    "aten.unsafe_chunk.default aten.tensor_split.indices aten.tensor_split.sections": split,
    "aten.unbind.int": unbind,
    # joining
    "aten.cat.default aten.concat.default": concatenate,
    "aten.stack.default": stack,
}
