"""Reading by index: indexing with tensors and masks, gather, index_select, take, masked_select."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Mask, Spread, Value, dims_of, is_mask, spread
from ait_mlir.compositions import index as compositions
from ait_mlir.compositions.index import in_order, padded, picked, placed, slices_at
from ait_mlir.compositions.sorting import true_places
from ait_mlir.dialects.ait.index import MaskedSelectOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const, product
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.rows.view import cut

ONE, ZERO = const(1), const(0)


# ** indexing **


def index(c: Call) -> Value:
    """x[i, :, j] or x[mask]; consecutive indices give a slice, indices that are formulas into a
    formula give a formula.
    """
    given = c["indices"]
    x = c.value("self")
    rank = len(dims_of(x))
    if len(given) == 1 and is_mask(given[0]) and _is_only_selection(c):
        return _selected(c, c.tensor("self"), c.w.full(given[0]))
    if any(i is not None and is_mask(i) for i in given):
        return picked(c.w, c.w.full(x), *placed(c.w, rank, _without_masks(c, given), c.w.natural), result=c.dims)
    used = [i for i in given if i is not None]
    formulas = all(isinstance(i, Affine) for i in used) and None not in given
    if formulas and isinstance(x, Affine) and all(i.never_negative(c.w.scope) for i in used):
        return _formula_of_formulas(c, x, used)
    if formulas and (made := _index_in_order(c, x, used)) is not None:
        return made
    return picked(c.w, c.w.full(x), *placed(c.w, rank, given, c.w.natural), result=c.dims)


def _without_masks(c: Call, given: Sequence[Value | None]) -> list[Value | None]:
    """The indices with a mask replaced by the places where it is true, one index for each of its dims."""
    if sum(i is not None and is_mask(i) for i in given) > 1:
        raise NotSupported("indexing with several masks is not supported; combine them to one mask")
    axes = _indexed_dims(given)
    rank = max(1, *(1 if is_mask(i) else len(dims_of(i)) for i in given if i is not None))
    together = axes == list(range(axes[0], axes[0] + len(axes)))
    count = c.dims[(axes[0] if together else 0) + rank - 1]
    found: list[Value | None] = []
    for i in given:
        found += true_places(c.w, c.w.full(i), count) if i is not None and is_mask(i) else [i]
    return found


def _is_only_selection(c: Call) -> bool:
    """Whether no other operation selects with the same mask. PyTorch gives such results one size, which only one
    operation can bind: they must share the indices of the mask.
    """
    size = c.table.chief(str(c.node.meta["val"].shape[0]))
    selections = (n for n in c.node.graph.nodes if str(n.target) in ("aten.index.Tensor", "aten.nonzero.default"))
    others = (str(d) for n in selections if n is not c.node for d in n.meta["val"].shape)
    return all(c.table.chief(other) != size for other in others)


def _indexed_dims(given: Sequence[Value | None]) -> list[int]:
    """The indexed dims of the tensor; a mask indexes as many dims as it has."""
    dims: list[int] = []
    at = 0
    for i in given:
        width = len(dims_of(i)) if i is not None and is_mask(i) else 1
        dims += [] if i is None else range(at, at + width)
        at += width
    return dims


def _formula_of_formulas(c: Call, x: Affine, ids: list[Affine]) -> Affine:
    """The formula of a formula `x` indexed with formulas along its leading dims."""
    rest = x.dims[len(ids) :]
    outer = c.dims[: len(c.dims) - len(rest)]
    result = Affine.filled(outer, x.offset, x.element)
    for step, i in zip(x.steps, ids, strict=False):
        result = result.plus(i, step, outer)
    return Affine(c.dims, (*result.steps, *x.steps[len(ids) :]), result.offset, x.element)


def _index_in_order(c: Call, x: Value, ids: list[Affine]) -> Value | None:
    """x with a slice along each indexed axis, permuted as the indices broadcast; None unless all indices are
    consecutive.
    """
    found = [in_order(c.w, i) for i in ids]
    count = len(ids)
    rank = len(c.dims) - (len(dims_of(x)) - count)
    axes: list[int | None] = []
    for p, i in zip(found, ids, strict=True):
        if p is None:
            return None
        axes.append(None if p[0] is None else p[0] + rank - len(i.dims))
    moving = [a for a in axes if a is not None]
    if len(set(moving)) != len(moving):
        return None
    for axis, p in enumerate(found):
        assert p is not None
        x = cut(c, x, axis, p[1], p[2])
    still = [a for a, target in enumerate(axes) if target is None]
    order = [*sorted((a for a in range(count) if a not in still), key=lambda a: axes[a] or 0), *still]
    y = c.w.permute(c.w.full(x), [*order, *range(count, len(dims_of(x)))])
    small = tuple(c.dims[a] if a in moving else ONE for a in range(rank))
    y = c.w.reshape(y, (*small, *c.dims[rank:]))
    if tensor_type(y).element_type == i1:
        return Mask(c.dims, (), (y,))
    return spread(y, c.dims)


def index_select(c: Call) -> Value:
    """Slices along a dim by index; along the first dim, rows of a table."""
    axis, ids = c.axis("dim", max(len(c.shape("self")), 1)), c.value("index")
    dims = c.shape("self")
    if not dims:
        return c.value("self")
    if isinstance(ids, Affine) and (found := in_order(c.w, ids)) is not None:
        part = cut(c, c.value("self"), axis, found[1], found[2])
        return part if dims_of(part) == c.dims else spread(c.w.natural(part), c.dims)
    return slices_at(c.w, c.tensor("self"), axis, ids)


def take(c: Call) -> Value:
    """Elements by their index in row-major order."""
    flat = c.w.reshape(c.tensor("self"), (product(c.shape("self")),))
    return picked(c.w, flat, [c.natural("index")], [0], [], c.dims)


# ** along one dim **


def gather(c: Call) -> Value:
    """Elements along a dim at the positions of an index of the same rank."""
    axis, x, ids = c.axis("dim", max(len(c.shape("self")), 1)), c.value("self"), c.value("index")
    if not c.shape("self"):
        return spread(c.tensor("self"), c.dims)
    if any(d.as_int() == 0 for d in c.dims):  # an index without elements may have any rank
        return c.w.expand(c.w.scalar(0, c.element), c.dims)
    if isinstance(x, Affine) and x.steps[axis] is ZERO:  # all elements along the axis are equal
        return Affine(dims_of(ids), x.steps, x.offset, x.element)
    if isinstance(ids, Affine) and isinstance(x, Affine):
        steps = tuple(ZERO if a == axis else s for a, s in enumerate(x.steps))
        rest = Affine(ids.dims, steps, x.offset, x.element)
        return rest.plus(ids.times(x.steps[axis]), 1, ids.dims)
    for a, d in enumerate(dims_of(ids)):
        if a != axis:
            x = cut(c, x, a, ZERO, d)
    if isinstance(ids, Affine) and (found := in_order(c.w, ids)) is not None and found[0] in (axis, None):
        part = cut(c, x, axis, found[1], found[2])
        return Spread(c.dims, c.w.natural(part)) if dims_of(part) != c.dims else part
    small = padded(c.w, c.w.natural(ids), len(c.dims))
    return picked(c.w, c.w.full(x), [small], [axis], [a for a in range(len(c.dims)) if a != axis], c.dims)


# ** masks **


def masked_select(c: Call) -> Value:
    """The elements where a mask is true; both are broadcast to one shape."""
    return compositions.masked_select(c.w, c.tensor("self"), c.natural("mask"), c.dims[0])[0]


def _selected(c: Call, x: SSAValue, mask: SSAValue) -> Value:
    return c.w.put(MaskedSelectOp(x, mask, c.type()))


ROWS: dict[str, Row] = {
    "aten.gather.default": gather,
    "aten._unsafe_index.Tensor aten.index.Tensor": index,
    "aten.index_select.default": index_select,
    "aten.masked_select.default": masked_select,
    "aten.take.default": take,
}
