"""Views in unusual forms: of rank 0, and of memory in front of a slice."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import ait_mlir  # noqa: E402
from ait_mlir.importers.torch import ImportFailure, from_torch  # noqa: E402
from tests.importers.blind import Function  # noqa: E402


@pytest.mark.parametrize(
    "function",
    [
        lambda x, a: x.relu() * a.squeeze(),
        lambda x, a: (x @ x.mT) / a.view(()),
        lambda x, a: torch.where(x > a.reshape([]), x, a[0, 0]),
        lambda x, a: (x * 2).sum() * a.squeeze() + a.mean(),
    ],
)
def test_one_element_of_several_dims_as_a_scalar(function) -> None:
    model, given = Function(function).eval(), (torch.randn(2, 3), torch.full((1, 1), 0.5))
    torch.testing.assert_close(ait_mlir.compile(model, given)(*given), model(*given))


def test_memory_in_front_of_a_slice_is_refused() -> None:
    with pytest.raises(ImportFailure, match="reads elements before the first one, from -4 on"):
        from_torch(Function(lambda x: (x + 1)[1:].as_strided((2, 2), (4, 1), 0)).eval(), (torch.randn(3, 4),))
