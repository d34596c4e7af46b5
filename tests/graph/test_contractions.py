"""Products and convolutions: dtypes, strides, batches, epilogues."""

from __future__ import annotations

import pytest
import torch

import ait_mlir.graph as cudnn
from tests import tiers
from tests.graph.cases import Cases

F = torch.nn.functional
DTYPES = {"half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32}
LOOSE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-12}


def matrices(*shape: int, dtype: torch.dtype, transposed: bool = False, rows: int = 0) -> torch.Tensor:
    """Random numbers; `transposed`: columns are the neighbours in memory, `rows`: each row has so many elements more."""
    x = (torch.randn(*shape) * shape[-1] ** -0.25).to(dtype)
    if transposed:
        return x.mT.contiguous().mT
    if rows:
        wide = torch.zeros(*shape[:-1], shape[-1] + rows, dtype=dtype)
        wide[..., : shape[-1]] = x
        return wide[..., : shape[-1]]
    return x


PRODUCTS = {
    "plain": (((24, 16), {}), ((16, 32), {})),
    "b transposed": (((24, 16), {}), ((16, 32), {"transposed": True})),
    "a transposed": (((24, 16), {"transposed": True}), ((16, 32), {})),
    "both transposed": (((24, 16), {"transposed": True}), ((16, 32), {"transposed": True})),
    "batch": (((3, 8, 16), {}), ((3, 16, 24), {})),
    "batch of a": (((3, 8, 16), {}), ((1, 16, 24), {})),
    "batch of b": (((1, 8, 16), {}), ((3, 16, 24), {})),
    "two batch dims": (((2, 1, 8, 16), {}), ((1, 3, 16, 24), {})),
    "other ranks": (((2, 8, 16), {}), ((16, 24), {})),
    "batch a transposed": (((3, 8, 16), {"transposed": True}), ((1, 16, 24), {})),
    "long rows": (((24, 16), {"rows": 8}), ((16, 32), {"rows": 16})),
    "one row": (((1, 1, 16), {}), ((1, 16, 24), {})),
}
EPILOGUES = {
    "bias relu": lambda g, y, b: g.relu(g.bias(y, b)),
    "bias gelu": lambda g, y, b: g.gelu(g.bias(y, b)),
    "scale": lambda g, y, b: g.scale(y, b),
    "swish": lambda g, y, b: g.swish(y),
}
EXPECTED = {
    "bias relu": lambda y, b: torch.relu(y + b),
    "bias gelu": lambda y, b: F.gelu(y + b),
    "scale": lambda y, b: y * b,
    "swish": lambda y, b: F.silu(y),
}


@pytest.fixture(scope="module", params=tiers.params(DTYPES, ["half"]))
def products(request: pytest.FixtureRequest, place: str) -> Cases:
    torch.manual_seed(2)
    dtype = DTYPES[request.param]
    c = Cases(place)
    g = c.graph
    for name, ((a_shape, a_options), (b_shape, b_options)) in PRODUCTS.items():
        a, b = matrices(*a_shape, dtype=dtype, **a_options), matrices(*b_shape, dtype=dtype, **b_options)
        expected = a.double() @ b.double()
        y = g.matmul(c.input(a), c.input(b), name=name)
        c.output(name, y, expected, torch.empty_like(expected, dtype=dtype), LOOSE[dtype])
    a, b = matrices(2, 24, 16, dtype=dtype), matrices(2, 16, 32, dtype=dtype)
    bias = matrices(1, 1, 32, dtype=dtype)
    ta, tb, tbias = c.input(a), c.input(b), c.input(bias)
    exact = a.double() @ b.double()
    for name, epilogue in EPILOGUES.items():
        expected = EXPECTED[name](exact, bias.double())
        y = epilogue(g, g.matmul(ta, tb), tbias)
        c.output(name, y, expected, torch.empty_like(expected, dtype=dtype), LOOSE[dtype])
    c.output("sums as float", g.matmul(ta, tb), exact, torch.empty_like(exact, dtype=torch.float32), 1e-4)
    column_major = torch.empty(2, 32, 24, dtype=dtype).mT
    c.output("result column-major", g.identity(g.matmul(ta, tb)), exact, column_major, LOOSE[dtype])
    padded = torch.empty(2, 24, 40, dtype=dtype)[..., :32]
    c.output("result with long rows", g.identity(g.matmul(ta, tb)), exact, padded, LOOSE[dtype])
    both = g.matmul(ta, tb)
    c.output("an output that is read", both, exact, torch.empty_like(exact, dtype=dtype), LOOSE[dtype])
    c.output("what reads it", g.neg(both), -exact, torch.empty_like(exact, dtype=dtype), LOOSE[dtype])
    wide = matrices(16, 32, dtype=torch.float32)
    mixed = a.double() @ wide.double()
    c.output("other types", g.matmul(ta, c.input(wide)), mixed, torch.empty_like(mixed, dtype=dtype), LOOSE[dtype])
    return c.run()


@pytest.mark.parametrize(
    "name",
    [
        *PRODUCTS,
        *EPILOGUES,
        *("sums as float", "result column-major", "result with long rows", "an output that is read", "what reads it"),
        "other types",
    ],
)
def test_product(products: Cases, name: str):
    products.check(name)


def last(x: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.to(memory_format=formats[x.dim()]) if x.dim() in formats else x.mT.contiguous().mT


ROUNDED = 2e-3
"""The error of convolutions of f32 on a card, which rounds factors to TF32 as cuDNN does."""
CONVOLUTIONS = {
    "3x3": ((2, 8, 7, 6), (12, 8, 3, 3), {"padding": [1, 1]}),
    "1x1": ((2, 8, 7, 6), (12, 8, 1, 1), {}),
    "stride": ((2, 8, 7, 6), (12, 8, 3, 3), {"padding": [1, 1], "stride": [2, 2]}),
    "dilation": ((2, 8, 9, 8), (12, 8, 3, 3), {"padding": [2, 2], "dilation": [2, 2]}),
    "groups": ((2, 8, 7, 6), (8, 2, 3, 3), {"padding": [1, 1]}),
    "depthwise": ((2, 8, 7, 6), (8, 1, 3, 3), {"padding": [1, 1]}),
    "one size": ((2, 8, 9), (12, 8, 3), {"padding": [1]}),
    "three sizes": ((1, 4, 4, 5, 4), (8, 4, 2, 2, 2), {}),
}


def convolve(x: torch.Tensor, w: torch.Tensor, options: dict[str, list[int]]) -> torch.Tensor:
    f = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[x.dim()]
    return f(x.double(), w.double(), groups=x.shape[1] // w.shape[1], **options)


@pytest.fixture(scope="module", params=tiers.params(DTYPES, ["half"]))
def convolutions(request: pytest.FixtureRequest, place: str) -> Cases:
    torch.manual_seed(3)
    dtype = DTYPES[request.param]
    loose = ROUNDED if place.startswith("cuda") and dtype is torch.float32 else LOOSE[dtype]
    c = Cases(place)
    g = c.graph
    for name, (shape, taps, options) in CONVOLUTIONS.items():
        x, w = last(torch.randn(shape).to(dtype)), last((torch.randn(taps) * 0.2).to(dtype))
        expected = convolve(x, w, options)
        y = g.conv_fprop(image=c.input(x), weight=c.input(w), name=name, **options)
        c.output(name, y, expected, last(torch.empty(expected.shape, dtype=dtype)), loose)
    x, w = torch.randn(2, 8, 7, 6).to(dtype), (torch.randn(12, 8, 3, 3) * 0.2).to(dtype)
    tx, tw = c.input(x), c.input(w)
    pad = {"pre_padding": [1, 0], "post_padding": [0, 1], "stride": [1, 1], "dilation": [1, 1]}
    uneven = F.conv2d(F.pad(x.double(), (0, 1, 1, 0)), w.double())
    y = g.conv_fprop(image=tx, weight=tw, **pad)
    c.output("row-major, uneven pads", y, uneven, torch.empty(uneven.shape, dtype=dtype), loose)
    mirrored = F.conv2d(x.double(), w.double().flip(2, 3))
    y = g.conv_fprop(image=tx, weight=tw, convolution_mode=cudnn.convolution_mode.CONVOLUTION)
    c.output("mirrored taps", y, mirrored, torch.empty(mirrored.shape, dtype=dtype), loose)
    scale, bias = torch.rand(1, 12, 1, 1).to(dtype), torch.randn(1, 12, 1, 1).to(dtype)
    plain = F.conv2d(x.double(), w.double(), padding=1)
    y = g.relu(g.bias(g.scale(g.conv_fprop(image=tx, weight=tw, padding=[1, 1]), c.input(scale)), c.input(bias)))
    expected = torch.relu(plain * scale.double() + bias.double())
    c.output("scale bias relu", y, expected, torch.empty(expected.shape, dtype=dtype), loose)
    image = torch.randn(2, 6, 8, 7).to(dtype)
    ti = c.input(image)
    window = {"window": [3, 2], "stride": [2, 2], "padding": [1, 1]}
    average = F.avg_pool2d(image.double(), (3, 2), 2, 1)
    modes = cudnn.resample_mode
    for name, mode, expected in (
        ("max pool", modes.MAXPOOL, F.max_pool2d(image.double(), (3, 2), 2, 1)),
        ("mean pool", modes.AVGPOOL_INCLUDE_PADDING, average),
        (
            "mean pool without pads",
            modes.AVGPOOL_EXCLUDE_PADDING,
            F.avg_pool2d(image.double(), (3, 2), 2, 1, count_include_pad=False),
        ),
    ):
        y = g.resample(ti, mode=mode, **window)
        c.output(name, y, expected, torch.empty(expected.shape, dtype=dtype), LOOSE[dtype])
    return c.run()


@pytest.mark.parametrize(
    "name",
    [
        *CONVOLUTIONS,
        *("row-major, uneven pads", "mirrored taps", "scale bias relu"),
        *("max pool", "mean pool", "mean pool without pads"),
    ],
)
def test_convolution(convolutions: Cases, name: str):
    convolutions.check(name)


INTEGERS = {
    "int8": (torch.int8, torch.int8, 40),
    "uint8 and int8": (torch.uint8, torch.int8, 40),
    "more terms than f32 counts": (torch.int8, torch.int8, 1200),
}


@pytest.fixture(scope="module")
def integers(place: str) -> Cases:
    """Products and convolutions of 8-bit integers: each sum is exact."""
    torch.manual_seed(9)
    c = Cases(place, intermediate_data_type=cudnn.data_type.INT32, compute_data_type=cudnn.data_type.INT32)

    def numbers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
        low, high = (0, 256) if dtype is torch.uint8 else (-128, 128)
        return torch.randint(low, high, shape).to(dtype)

    for name, (first, second, terms) in INTEGERS.items():
        a, b = numbers(first, 2, 6, terms), numbers(second, 1, terms, 5)
        a[0, 0], b[0, :, 0] = (255 if first is torch.uint8 else -128), -128  # the largest sum
        expected = a.double() @ b.double()
        y = c.graph.identity(c.graph.matmul(c.input(a), c.input(b), name=f"mm {name}"))
        c.output(f"product of {name}", y, expected, torch.empty(2, 6, 5, dtype=torch.int32))
    x, w = last(numbers(torch.int8, 2, 8, 7, 6)), last(numbers(torch.int8, 4, 8, 3, 3))
    expected = convolve(x, w, {"padding": [1, 1]})
    y = c.graph.conv_fprop(image=c.input(x), weight=c.input(w), padding=[1, 1], stride=[1, 1], dilation=[1, 1])
    c.output("convolution", c.graph.identity(y), expected, last(torch.empty(expected.shape, dtype=torch.int32)))
    return c.run()


@pytest.mark.parametrize("name", [*(f"product of {name}" for name in INTEGERS), "convolution"])
def test_integers(integers: Cases, name: str):
    integers.check(name)
