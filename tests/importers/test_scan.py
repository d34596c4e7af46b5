"""PyTorch's scan as `ait.scan`, on the CPU, against eager."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.export import Dim, export

import ait_mlir
from ait_mlir.importers.torch.errors import UnsupportedOps
from ait_mlir.importers.torch.program import import_program

SEQ = Dim("seq", min=0, max=64)


class Cell(nn.Module):
    """A recurrent cell over [seq, 3, 8], with a captured weight and two carried values."""

    def __init__(self, reverse: bool = False, dim: int = 0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8) / 3)
        self.reverse, self.dim = reverse, dim

    def forward(self, x, h):
        def step(carried, xt):
            state, total = carried
            new = torch.tanh(xt + state @ self.weight)
            return (new, total + new), (new * 2, xt - total)

        (last, total), (twice, rest) = scan(step, (h, h + 1), x, dim=self.dim, reverse=self.reverse)
        return last, total, twice, rest


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_against_eager(reverse: bool, dim: int) -> None:
    torch.manual_seed(0)
    model = Cell(reverse, dim).eval()
    shape = (5, 3, 8) if dim == 0 else (3, 5, 8)
    with torch.no_grad():
        compiled = ait_mlir.compile(model, (torch.randn(shape), torch.randn(3, 8)), dynamic_shapes=({dim: SEQ}, None))
        for length in (1, 2, 5, 17):
            x = torch.randn((*shape[:dim], length, *shape[dim + 1 :]))
            h = torch.randn(3, 8)
            for ours, theirs in zip(compiled(x, h), model(x, h), strict=True):
                torch.testing.assert_close(ours, theirs)


def test_a_reversed_scan_is_one_op() -> None:
    with torch.no_grad():
        program = export(Cell(True).eval(), (torch.randn(5, 3, 8), torch.randn(3, 8)), dynamic_shapes=({0: SEQ}, None))
    text = str(import_program(program).module)
    assert text.count("ait.scan") == 1 and "dim 0 reverse {" in text and "flip" not in text


def test_what_a_step_cannot_do_is_told() -> None:
    class Strange(nn.Module):
        def forward(self, x, h):
            def step(state, xt):
                new = torch.special.bessel_j0(state + xt)
                return new, new * 2

            return scan(step, h, x, dim=0)

    with torch.no_grad():
        program = export(Strange().eval(), (torch.randn(5, 8), torch.randn(8)), dynamic_shapes=({0: SEQ}, None))
    with pytest.raises(UnsupportedOps, match="bessel_j0"):
        import_program(program)
