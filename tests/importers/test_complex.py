"""Functions of complex numbers, against PyTorch, by the meaning of the ops they become: float64."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

import ait_mlir
from tests.importers.function import Function
from tests.importers.meaning import B, S, check_meaning
from tests.importers.test_ops import floats


def of(function):
    """A function of z, at numbers in all quadrants and on the axes."""
    return lambda x: torch.view_as_real(function(torch.view_as_complex(x)))


def plane():
    """Numbers in all four quadrants, on both axes, large ones, and 0 is not among them."""
    around = floats(2, 9, 2)
    around[0, :4] = torch.tensor([[1.5, 0.0], [-1.5, 0.0], [0.0, 2.0], [0.0, -2.0]])
    return (around,)


def pair():
    return floats(2, 4, 3, 2), floats(2, 4, 3, 2)


def with_both(function):
    return lambda x, y: torch.view_as_real(function(torch.view_as_complex(x), torch.view_as_complex(y)))


# name: (function, inputs, the dynamic dims of each)
FUNCTIONS = {
    "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "square": torch.square, "reciprocal": torch.reciprocal,
    "sin": torch.sin, "cos": torch.cos, "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "sign": torch.sgn,
    "fifth_power": lambda z: z**5, "inverse_square": lambda z: z**-2, "zeroth_power": lambda z: z**0,
    "real_power": lambda z: z**1.7, "root": lambda z: z**0.5, "complex_power": lambda z: z ** (0.5 - 1.5j),
    "powers_of_a_tensor": lambda z: z**z, "division_by_a_number": lambda z: z / (1 - 2j),
    "division_of_a_number": lambda z: 2 / z, "sum_of_multiples": lambda z: torch.add(z, z, alpha=3),
    "differences_of_multiples": lambda z: torch.sub(z, z.conj(), alpha=0.5 + 1j),
}  # fmt: skip
CASES = {
    "quotient": (with_both(lambda z, w: z / w), pair, ({0: B}, {0: B})),
    "quotient_of_a_real": (lambda x, y: torch.view_as_real(x[..., 0] / torch.view_as_complex(y)), pair, ({0: B}, {0: B})),
    "large_quotient": (with_both(lambda z, w: z / (w * 1e200)), pair, ({0: B}, {0: B})),
    "of_two_types": (with_both(lambda z, w: z * w.to(torch.complex64) + torch.tensor(1j, dtype=torch.complex64) / z), pair, ({0: B}, {0: B})),
    "chosen": (with_both(lambda z, w: torch.where(z.real > 0, z, w)), pair, ({0: B}, {0: B})),
    "filled": (with_both(lambda z, w: z.masked_fill(w.imag > 0, 0)), pair, ({0: B}, {0: B})),
    "beside_real_ones": (lambda x, y: torch.view_as_real(torch.cat([torch.view_as_complex(x), y[..., 0]], 1)), pair, ({0: B}, {0: B})),
    "vectors": (with_both(lambda z, w: torch.stack([(z[0, 0] @ w.mT).sum(-1), (z @ w[0, 0]).sum(-1)])), pair, ({0: B}, {0: B})),
    "transposed": (with_both(lambda z, w: z @ w[0].T), pair, ({0: B}, {0: B})),
    "layer": (with_both(lambda z, w: F.linear(z, w[0], w[0, :, 0])), pair, ({0: B}, {0: B})),
    "moved": (with_both(lambda z, w: z.cumsum(1)[:, :, [2, 0]] + w.mean(1, keepdim=True).tile(1, 1, 2)[..., :2] + z.tril()[..., :2]), pair, ({0: B}, {0: B})),
    "diagonals": (with_both(lambda z, w: torch.diag_embed(z) * w.diagonal(0, 1, 2)[:, None, :, None]), pair, ({0: B}, {0: B})),
    "adjoint": (with_both(lambda z, w: z.mH @ w), pair, ({0: B}, {0: B})),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_complex_numbers(name):
    torch.manual_seed(0)
    check_meaning(Function(of(FUNCTIONS[name])).eval(), plane(), ({0: B},))


@pytest.mark.parametrize("name", CASES)
def test_complex_numbers(name):
    function, make, shapes = CASES[name]
    torch.manual_seed(0)
    check_meaning(Function(function).eval(), make(), shapes)


@pytest.mark.parametrize("norm", ["backward", "ortho"])
def test_transforms_over_a_dynamic_length(norm):
    """Back to real numbers, of even and odd lengths: the long convolutions of state space models."""

    def function(x, y):
        n = 2 * x.shape[-1]
        together = torch.fft.irfft(
            torch.fft.rfft(x, n=n, norm=norm) * torch.fft.rfft(y, n=n, norm=norm), n=n, norm=norm
        )
        return together[..., : x.shape[-1]], torch.fft.irfft(torch.fft.rfft(x, norm=norm), n=x.shape[-1], norm=norm)

    check_meaning(Function(function).eval(), (floats(2, 5), floats(2, 5)), ({0: B, 1: S}, {0: B, 1: S}))


def test_zero_has_a_root_a_power_and_no_sign():
    def function(x):
        z = torch.view_as_complex(x) * 0
        return torch.view_as_real(torch.stack([z.sqrt(), z**1.5, z.sgn()]))

    check_meaning(Function(function).eval(), (floats(2, 3, 2),), ({0: B},))


def test_numbers_of_half_precision():
    def function(x):
        z = torch.view_as_complex(x)
        return torch.view_as_real(z * z.conj() + z), z.abs(), (z * 2).real

    model, x = Function(function).eval(), torch.randn(3, 4, 2)
    compiled = ait_mlir.compile(model, (x.half(),))
    for ours, want in zip(compiled(x.half()), model(x), strict=True):
        assert ours.dtype == torch.float16
        torch.testing.assert_close(ours.float(), want, rtol=2e-2, atol=2e-2)
