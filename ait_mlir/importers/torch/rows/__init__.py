"""The table of ATen operations: how each is written in `ait`, one row an operation, one file a family."""

from __future__ import annotations

from ait_mlir.importers.torch.call import Row
from ait_mlir.importers.torch.rows import attention, contraction, data, elementwise, norm, view

TABLE: dict[str, Row] = {
    **elementwise.ROWS,
    **contraction.ROWS,
    **attention.ROWS,
    **norm.ROWS,
    **view.ROWS,
    **data.ROWS,
}
"""Rows by the name of the overload as PyTorch prints it: `aten.add.Tensor`."""

ADVICE: dict[str, str] = {
    "aten.item.default": "a value of a tensor decides what is computed; decide by shapes, or use torch.where",
    "aten._local_scalar_dense.default": "a value of a tensor decides what is computed; use torch.where",
    "aten.nonzero.default": "its shape depends on values; compute with all elements and mask with torch.where",
    "aten.masked_select.default": "its shape depends on values; compute with all elements and mask with torch.where",
    "aten.rand.default": "random numbers are not supported; make them an input",
    "aten.randn.default": "random numbers are not supported; make them an input",
    "aten.bernoulli.p": "random numbers are not supported; call model.eval() before the export",
    "aten.cond": "control flow is not supported; compute both sides and choose with torch.where",
    "cond": "control flow is not supported; compute both sides and choose with torch.where",
    "while_loop": "loops over values are not supported; unroll the loop",
}
"""What to do about operations that no row can translate."""
