"""Grouped products against PyTorch, which traces them in bf16 only and leaves rows behind the last group undefined."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.export import Dim
from torch.nn import functional as F

from ait_mlir.errors import AitError
from ait_mlir.importers.torch import from_torch
from ait_mlir.reference.graph import evaluate_graph


def floats(*shape):
    return torch.randn(*shape, dtype=torch.bfloat16)


class Grouped(torch.nn.Module):
    def forward(self, a, b, ends=None):
        return F.grouped_mm(a, b, offs=ends)


def check(shapes, given, inputs):
    imported = from_torch(Grouped().eval(), given, dynamic_shapes=shapes)
    names = [item.name for item in imported.inputs.tensors]
    arrays = {n: (v.float() if v.is_floating_point() else v).numpy() for n, v in zip(names, inputs, strict=True)}
    dims = {d.name: inputs[0].shape[0] for d in imported.graph.scope.dims}
    (got,) = evaluate_graph(imported.graph, arrays, imported.constants, dims).values()
    want = Grouped()(*inputs).float().numpy()
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2**-8, atol=1e-2)


def test_groups_of_rows():
    torch.manual_seed(0)
    b = floats(3, 16, 8)

    def inputs(ends):
        return floats(ends[-1], 16), b, torch.tensor(ends, dtype=torch.int32)

    shapes = {"a": {0: Dim("rows", min=2, max=64)}, "b": None, "ends": None}
    for ends in ([2, 2, 9], [0, 5, 20]):
        check(shapes, inputs([2, 5, 8]), inputs(ends))


def test_groups_of_columns():
    given = floats(3, 4, 16), floats(16, 24), torch.tensor([2, 2, 24], dtype=torch.int32)
    check(None, given, given)


def test_matrices_one_by_one():
    given = floats(3, 4, 16), floats(3, 16, 8)
    check(None, given, given)


def test_groups_of_what_is_summed_are_refused():
    given = floats(4, 16), floats(16, 8), torch.tensor([2, 16], dtype=torch.int32)
    with pytest.raises(AitError, match="two matrices give a product for each group"):
        from_torch(Grouped().eval(), given)
