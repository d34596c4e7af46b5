"""Results whose size depends on values: indices of nonzero elements, and distinct elements."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from xdsl.dialects.builtin import i1

from ait_mlir.building.formulas import Affine, Value
from ait_mlir.compositions import sorting
from ait_mlir.compositions.sorting import true_places
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.torch.call import Call, NotSupported, Row


def nonzero(c: Call) -> Value:
    """The indices of the nonzero elements, one element in each row."""
    x = c.w.cast(c.tensor("self"), i1)
    if not tensor_type(x).dims:
        raise NotSupported("nonzero of a single element is not supported; reshape it to one dim first")
    bound = c.dims[0]
    if bound.as_int() == 0:
        return Affine.filled(c.dims, 0)
    columns = [c.w.reshape(index, [bound, const(1)]) for index in true_places(c.w, x, bound)]
    return columns[0] if len(columns) == 1 else c.w.concat(columns, 1)


def unique(in_order: bool) -> Row:
    """A row for `unique` of elements or of slices along a dim: the distinct values, the index of each element's value
    among them, and their counts. `in_order` keeps one value of each run of equal neighbours; otherwise the values are
    sorted.
    """

    def row(c: Call) -> Sequence[Value]:
        x = c.tensor("self")
        axis = None if c["dim"] is None or not tensor_type(x).dims else c.axis("dim")
        order_of = None if in_order else functools.partial(sorting.order_of_rows, c.w)
        return sorting.unique(c.w, x, axis, c.type(0).dims[axis or 0], order_of)

    return row


ROWS: dict[str, Row] = {
    "aten.nonzero.default": nonzero,
    "aten.unique_consecutive.default": unique(in_order=True),
    "aten.unique_dim.default aten._unique2.default": unique(in_order=False),
}
