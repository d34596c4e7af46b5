"""Indices of scatters that are repeated for each column, as graph networks write them."""

from __future__ import annotations

import pytest
import torch

from ait_mlir.dialects.ait.index import ScatterOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.torch.program import import_program
from tests.importers.function import Function


@pytest.mark.parametrize(
    ("function", "read"),
    [
        (lambda x, i, s: x.scatter_add(0, i[:, None].expand_as(s), s), [5, 1]),
        (lambda x, i, s: x.T.scatter_add(1, i.expand(6, 5), s.T), [1, 5]),
        (lambda x, i, s: x.scatter(0, i[:, None].expand(-1, 6), 2.0), [5, 1]),  # all columns of x
        (lambda x, i, s: x.scatter(0, i[:, None].expand(-1, 4), 2.0), [5, 4]),  # fewer, which the index alone says
        (lambda x, i, s: x.scatter_add(0, i[:, None].expand(-1, 4), s), [5, 1]),  # the values have as many
        (lambda x, i, s: x.scatter_add(0, i[:1, None].expand(5, 6), s), [1, 1]),  # one element for all values
    ],
)
def test_a_repeated_index_is_read_once(function, read):
    inputs = torch.randn(4, 6), torch.tensor([3, 0, 3, 1, 3]), torch.randn(5, 6)
    module = import_program(torch.export.export(Function(function), inputs)).module
    (scatter,) = (op for op in module.walk() if isinstance(op, ScatterOp))
    assert [d.as_int() for d in tensor_type(scatter.indices[0]).dims] == read
