"""What models of vision, sound and physics compute, against PyTorch, by the meaning of the ops it becomes: float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

import ait_mlir
from ait_mlir.dialects.ait.data import OutputOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.errors import RunError
from ait_mlir.importers.torch import ImportFailure, from_torch
from tests.importers.function import Function
from tests.importers.meaning import B, S, check_meaning
from tests.importers.test_ops import floats

BATCH = {0: B}


def weight_of_each_image(x, weight, bias):
    """A convolution with a weight for each image: as many groups as images."""
    b, c, h, w = x.shape
    y = F.conv2d(x.reshape(1, b * c, h, w), weight.flatten(0, 1), bias.flatten(), (2, 1), (1, 2), (1, 2), groups=b)
    return y.view(b, weight.shape[1], *y.shape[2:])


def filtered(x, weight):
    """The lowest frequencies of a signal, mixed by complex weights and written among zeros."""
    f = torch.fft.rfft(x)
    out = torch.zeros(x.shape[0], 3, f.shape[-1], dtype=torch.complex128)
    out[:, :, :2] = torch.einsum("bix,iox->box", f[:, :, :2], torch.view_as_complex(weight))
    return torch.fft.irfft(out, n=x.shape[-1])


def pieces(x):
    """Parts whose number PyTorch counts by rounded quotients of dims, also where a write to a view is decomposed."""
    doubled = torch.cat([x, x + 1])
    doubled[0] += 1
    guided, plain = doubled.chunk(2)
    first, second = doubled.split(x.shape[0])
    longer, shorter = torch.cat([x, x, x], 1).split(2 * x.shape[1], 1)
    return (
        plain + 3 * (guided - plain),
        first * second,
        longer,
        shorter,
        *x[:0].chunk(2),
        *x.expand(3, *x.shape).chunk(2),
    )


def checked(x):
    """A value that only an assertion reads."""
    torch._check((x.abs().max() + 1).item() > 0)
    return x * 2


def likelihood(x):
    d = torch.distributions.Normal(x[:, :2], x[:, 2:4].exp())
    return d.log_prob(x[:, 4:6]), d.entropy()


# name: (function, inputs, the dynamic dims of each)
CASES = {
    "groups_are_a_dim": (weight_of_each_image, lambda: (floats(2, 4, 7, 6), floats(2, 5, 4, 3, 2), floats(2, 5)), (BATCH,) * 3),
    "padding_of_booleans": (lambda x: F.pad(x > 0, (1, 2), value=True), lambda: (floats(2, 5),), (BATCH,)),
    "bilinear of one row": (lambda x, y, w: F.bilinear(x, y, w), lambda: (floats(3), floats(4), floats(6, 3, 4)), (None, None, None)),
    "bilinear": (lambda x, y, w, b: F.bilinear(x, y, w, b) + F.bilinear(x, y, w), lambda: (floats(2, 5, 3), floats(2, 5, 4), floats(6, 3, 4), floats(6)), ({0: B, 1: S}, {0: B, 1: S}, None, None)),
    "angles": (lambda x: (torch.fft.rfft(x).angle()[..., 1:4], x.angle(), (x[:, 0] * 0 - torch.inf).angle(), (x * 0 / 0).angle()), lambda: (floats(2, 8),), (BATCH,)),
    "products_of_complex_matrices": (lambda x, y: torch.view_as_real(torch.complex(x, y) @ torch.complex(y, x).mT + torch.complex(x, y) @ y.mT.to(torch.complex128)), lambda: (floats(2, 3, 4), floats(2, 3, 4)), (BATCH, BATCH)),
    "complex_numbers_on_a_device": (lambda x: torch.view_as_real(torch.polar(x.exp(), x).to(x.device).to(x.device, torch.complex128)), lambda: (floats(2, 4),), (BATCH,)),
    "frequencies": (filtered, lambda: (floats(2, 4, 8), floats(4, 3, 2, 2)), (BATCH, None)),
    "likelihood": (likelihood, lambda: (floats(2, 6),), (BATCH,)),
    "products_of_four": (lambda x, y: torch.einsum("bij,bjk,bkl,bl->bi", x, y, y.mT, y[:, :, 0]), lambda: (floats(2, 5, 4), floats(2, 4, 5)), ({0: B, 1: S}, {0: B, 2: S})),
    "pieces": (pieces, lambda: (floats(2, 6),), ({0: B, 1: S},)),
    "max_pools_of_any_length": (lambda x: (F.max_pool1d(x, 2, 1, 1)[..., : x.shape[-1]], *F.max_pool1d(F.pad(x, (0, 3)), 3, 2, ceil_mode=True, return_indices=True)), lambda: (floats(2, 4, 6),), ({0: B, 2: S},)),
    "elements_along_a_dim": (lambda x: (x.take_along_dim(x.argsort(-1), -1), x.take_along_dim(x[:, :1].long() * 0, 1), x.take_along_dim((x > 9).long())), lambda: (floats(2, 6),), ({0: B, 1: S},)),
    "assertion": (checked, lambda: (floats(2, 6),), (BATCH,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_function_means_what_pytorch_does(name):
    function, make, shapes = CASES[name]
    torch.manual_seed(0)
    check_meaning(Function(function).eval(), make(), shapes)


class Translator(nn.Module):
    """PyTorch's own transformer with three masks, one of them causal in its numbers only."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)

    def forward(self, x, y, seen):
        causal = nn.Transformer.generate_square_subsequent_mask(y.shape[1], dtype=x.dtype)
        hidden = seen == 0
        return self.layers(x, y, tgt_mask=causal, src_key_padding_mask=hidden, memory_key_padding_mask=hidden)


def test_a_transformer_with_several_masks():
    torch.manual_seed(0)
    seen = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    check_meaning(Translator().double().eval(), (floats(2, 4, 8), floats(2, 3, 8), seen), (BATCH, BATCH, BATCH))


def test_checks_of_arguments_are_back_after_an_import(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)  # the first use of Dynamo clears it
    from_torch(Function(likelihood).eval(), (floats(2, 6),))
    with pytest.raises(ValueError, match="constraint"):
        torch.distributions.Normal(torch.zeros(1), -torch.ones(1))


def test_the_number_in_a_tensor_is_a_result():
    def function(x):
        return x * 2, {"sum": x.sum().item(), "place": x.argmax().item()}

    x = torch.randn(3, 4)
    doubled, numbers = ait_mlir.compile(Function(function).eval(), (x,))(x)
    assert torch.equal(doubled, x * 2) and numbers["place"] == x.argmax().item()
    assert type(numbers["place"]) is int and numbers["sum"] == pytest.approx(x.sum().item(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border"])
def test_places_of_a_grid_that_are_not_finite(mode, padding):
    model = Function(lambda x, g: F.grid_sample(x, g, mode, padding, align_corners=False)).eval()
    nan, inf = torch.nan, torch.inf
    given = torch.randn(1, 2, 4, 4), torch.tensor([[[[nan, 0.0], [0.0, nan], [nan, nan], [inf, 0.0], [0.0, -inf]]]])
    ours, theirs = ait_mlir.compile(model, given)(*given), model(*given)
    torch.testing.assert_close(ours, theirs, equal_nan=True)
    check_meaning(model, [t.double() for t in given], (None, None))


WHOLE = {
    "sums": lambda x, n: (x + n, x.int() - n, n + 1, 3 * n, -n),
    "quotients": lambda x, n: (x / n, x * (n // 2), x * (-n // 2), x * (n % 3), 7 % n * x, n / 2),
    "fills": lambda x, n: (torch.full((2,), n), x.masked_fill(x > 0, n), torch.where(x > 0, n, x), x.clamp(max=n)),
    "conditions": lambda x, n: (x == n, x > n, max(n, 3) * x, min(n, 3) + x, abs(1 - n) + x),
    "places": lambda x, n: (x[n % 2], x[-(n % 2) - 1], x[:, n % 3] * 2),
    "dims": lambda x, n: (x * (n + x.shape[0]), x + n * x.shape[0]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_python_computes_with_a_whole_number_in_a_tensor(name):
    function = WHOLE[name]
    model = Function(lambda x, y: function(x, y.sum().item())).eval()
    rows = {0: Dim("rows", min=2, max=8)}
    run = ait_mlir.compile(model, (torch.randn(3, 5), torch.tensor([2, 3])), dynamic_shapes=((rows, None),))
    for numbers in ([2, 3], [-4, 1], [7, 1]):
        given = torch.randn(4, 5), torch.tensor(numbers)
        for ours, theirs in zip(run(*given), model(*given), strict=True):
            torch.testing.assert_close(ours, theirs)


def test_the_number_of_a_vector_of_one_is_an_output_without_dims():
    imported = from_torch(Function(lambda x: x[:, 0].sum(0, keepdim=True).item()).eval(), (torch.randn(3, 4),))
    ((kind, name),) = imported.outputs
    types = {op.output_name.data: tensor_type(op.value) for op in imported.module.walk() if isinstance(op, OutputOp)}
    assert kind == "number" and types[name].rank == 0


REFUSED = {
    "decides by the values of a tensor": lambda x: torch.cat([p.sum(0, keepdim=True) for p in x[x > 0].split(4)]),
    "decides by the values of a tensor.*chunk": lambda x: sum(p.sum() for p in x[x > 0].chunk(2)),
    "'round' of a number that a tensor holds": lambda x: x * round(x.sum().item(), 2),
    "a power of a whole number": lambda x: x * x.argmax().item() ** 2,
    "end is a number that a tensor holds": lambda x: x[: x.argmax().item()],
    "a number that a tensor holds is found": lambda x: x.roll(x.argmax().item()),
    "the size u0 depends on the values": lambda x: torch.zeros(x.argmax().item()),
    "transposed convolutions with a dynamic number of groups": lambda x: F.conv_transpose1d(
        x.reshape(1, -1, 3), x.reshape(-1, 1, 3), groups=2 * x.shape[0]
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_not_supported_is_said(message):
    with pytest.raises(ImportFailure, match=message):
        from_torch(Function(REFUSED[message]).eval(), (floats(3, 6),), dynamic_shapes=(({0: Dim("b", min=2, max=8)},),))


DIVISIONS = {
    "floor": lambda x, y: x // y,
    "towards zero": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "remainder": lambda x, y: x % y,
    "fmod": torch.fmod,
    "of a number": lambda x, y: 7 % y + x,
}


@pytest.mark.parametrize("name", DIVISIONS)
def test_an_integer_that_is_divided_by_zero_fails_the_run(name):
    model = Function(DIVISIONS[name]).eval()
    x, y = torch.tensor([[5, -7, 3]]), torch.tensor([[2], [-3]])
    run = ait_mlir.compile(model, (x, y), dynamic_shapes=(({1: Dim("n", max=8)}, {0: Dim("m", max=8)}),))
    assert torch.equal(run(x, y), model(x, y))
    assert torch.equal(run(x, y[:0]), model(x, y[:0]))
    with pytest.raises(RunError, match="an integer is divided by 0"):
        run(x, torch.tensor([[2], [0]]))
