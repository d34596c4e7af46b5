"""Reductions, and differences of neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Mask, Value, dims_of
from ait_mlir.compositions.index import not_empty
from ait_mlir.dialects.ait.dtypes import compute_type, is_float
from ait_mlir.dialects.ait.elementwise import SqrtOp
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const, product
from ait_mlir.importers.torch.call import Call, Row
from ait_mlir.importers.torch.rows.view import cut, joined


def reduce(kind: str) -> Row:
    """A row for a reduction over one, several or all dims, computed in the result's type; `keepdim` is a reshape."""

    def row(c: Call) -> Value:
        x = c.tensor("self")
        t = tensor_type(x)
        if is_float(c.element) or kind in ("sum", "prod"):
            x = c.w.cast(x, c.element)
        axes = axes_of(c, t.rank)
        return reduced(c, kind, not_empty(c.w, x, axes) if kind in ("max", "min") else x, axes)

    return row


def reduced(c: Call, kind: str, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    """`x` reduced over `axes`, reshaped to the result's dims."""
    return c.w.reshape(c.w.put(ReduceOp(kind, x, axes)), c.dims)


def variance(c: Call) -> Value:
    """The variance over `dim`, with any correction."""
    x = c.tensor("self")
    return c.w.reshape(_variance(c, x, axes_of(c, tensor_type(x).rank)), c.dims)


def _variance(c: Call, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    """The variance; a correction that is negative or a fraction is applied as a factor to the uncorrected variance."""
    correction = 1 if c["correction"] is None else c["correction"]
    if correction == int(correction) and correction >= 0:
        return c.w.put(ReduceOp("var", x, axes, int(correction)))
    plain = c.w.put(ReduceOp("var", x, axes, 0))
    element = compute_type(tensor_type(x).element_type)
    count = c.w.number(product([tensor_type(x).dims[axis] for axis in axes]), element)
    zero, less = c.w.scalar(0.0, element), c.w.scalar(float(correction), element)
    factor = c.w.div(count, c.w.maximum(c.w.sub(count, less), zero))
    return c.w.cast(c.w.mul(c.w.cast(plain, element), factor), tensor_type(plain).element_type)


def axes_of(c: Call, rank: int) -> list[int]:
    """The argument `dim`, one or several or all, as axes from the front."""
    given = c["dim"]
    if given is None or given == [] or rank == 0:  # for a scalar, dims 0 and -1 are allowed
        return list(range(rank))
    return sorted({axis % rank for axis in ([given] if isinstance(given, int) else given)})


def any_or_all(kind: str) -> Row:
    """A row for `any` or `all`, as the maximum or minimum of booleans; of uint8, PyTorch returns uint8."""

    def row(c: Call) -> Value:
        x = c.w.cast(c.tensor("self"), i1)
        found = reduced(c, kind, x, axes_of(c, tensor_type(x).rank))
        return Mask(c.dims, (), (found,)) if c.element == i1 else c.w.cast(found, c.element)

    return row


def statistics(root: bool) -> Row:
    """A row for the variance, or its root, and the mean."""

    def row(c: Call) -> Sequence[Value]:
        x = c.tensor("self")
        axes = axes_of(c, tensor_type(x).rank)
        parts = _variance(c, x, axes), c.w.put(ReduceOp("mean", x, axes))
        var, mean = (c.w.reshape(part, c.type(0).dims) for part in parts)
        return [c.w.op(SqrtOp, var) if root else var, mean]

    return row


def extremes(c: Call) -> Sequence[Value]:
    """The smallest and the largest elements."""
    x = c.tensor("self")
    axes = axes_of(c, tensor_type(x).rank) if tensor_type(x).rank else []
    x = not_empty(c.w, x, axes)
    return [c.w.reshape(c.w.put(ReduceOp(kind, x, axes)), c.type(0).dims) for kind in ("min", "max")]


def count_nonzero(c: Call) -> Value:
    """How many elements are not 0."""
    x = c.w.cast(c.w.cast(c.tensor("self"), i1), c.element)
    return reduced(c, "sum", x, axes_of(c, tensor_type(x).rank))


def differences(c: Call) -> Value:
    """Differences of neighbours along a dim, taken `n` times, after joining `prepend` and `append` to the ends."""
    axis = c.axis("dim")
    if c["n"] == 0:
        return c.value("self")
    result = joined(c, [c.value(name) for name in ("prepend", "self", "append") if c[name] is not None], axis)
    if c.dims[axis].as_int() == 0:
        return cut(c, result, axis, const(0), const(0))
    for left in reversed(range(c["n"])):
        size = c.dims[axis] + left
        after, before = (cut(c, result, axis, const(start), size) for start in (1, 0))
        if isinstance(after, Affine) and isinstance(before, Affine):
            result = after.plus(before, -1, after.dims)
        elif c.element == i1:
            result = Mask(dims_of(after), (), (c.w.compare("ne", c.w.full(after), c.w.full(before)),))
        else:
            result = c.w.sub(c.w.full(after), c.w.full(before))
    return result


ROWS: dict[str, Row] = {
    "aten.sum.default aten.sum.dim_IntList": reduce("sum"),
    "aten.mean.default aten.mean.dim": reduce("mean"),
    "aten.amax.default": reduce("max"),
    "aten.amin.default": reduce("min"),
    "aten.max.default": reduce("max"),
    "aten.min.default": reduce("min"),
    "aten.var.correction": variance,
    "aten.prod.default aten.prod.dim_int": reduce("prod"),
    "aten.any.default aten.any.dim aten.any.dims": any_or_all("max"),
    "aten.all.default aten.all.dim aten.all.dims aten._is_all_true.default": any_or_all("min"),
    "aten._is_any_true.default": any_or_all("max"),
    "aten.aminmax.default": extremes,
    "aten.count_nonzero.default aten.count_nonzero.dim_IntList": count_nonzero,
    "aten.var_mean.correction": statistics(root=False),
    "aten.std_mean.correction": statistics(root=True),
    "aten.diff.default": differences,
}
