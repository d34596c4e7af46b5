"""Models of bytes and of int16: every operation is PyTorch's, and a compiled model takes images from each framework."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.export import Dim
from torch.nn import functional as F

import ait_mlir
from ait_mlir.errors import InputError
from ait_mlir.importers.torch import ImportFailure, from_torch
from ait_mlir.reference.graph import evaluate_graph
from ait_mlir.runtime import AITData
from tests.importers.function import Function

TOKENS = torch.tensor([2, 0])
CASES = {
    "arithmetic": lambda x, y: (x + y, x - y, x * y, -x, x + 100, 3 - x, x + 300, x + -1, x**2, torch.sub(x, y, alpha=3)),
    "division": lambda x, y: (x / 255, x // 7, x // y, x % 7, torch.fmod(x, y), torch.div(x, y, rounding_mode="trunc")),
    "comparison": lambda x, y: (x > 127, x < 200.5, x > -1, x > 300, x == y, x.float() >= y, x.isinf()),
    "bits": lambda x, y: (x & y, x | y, x ^ y, ~x, x << 1, x << 8, x >> 2, x >> 7, x >> 8, torch.gcd(x, y)),
    "choice": lambda x, y: (torch.where(x > y, x, y), torch.where(x > 9, x, 0), x.masked_fill(x > 9, 7), x[x > 100].sum()),
    "clamp": lambda x, y: (x.clamp(10, 200), x.clamp(min=3), x.clamp(max=20.5), torch.maximum(x, y), x.relu(), x.sign()),
    "pad": lambda x, y: (F.pad(x, (1, 2)), F.pad(x, (1, 2), value=255), F.pad(x.float(), (1, 1), "reflect").byte()),
    "casts": lambda x, y: (x.int(), x.bool(), x.to(torch.int8), (x.int() * 7).byte(), (x > y).byte(), (x / 2 + 0.75).byte()),
    "views": lambda x, y: (x.mT, x.flatten(), x[:, 1:], x[..., ::2], x.flip(1), torch.cat([x, y], 1), x.roll(1, 1), x.triu()),
    "rows": lambda x, y: (x[:, TOKENS], x.index_select(1, TOKENS), x.gather(1, y.long() % 3), x.scatter(1, y.long() % 3, 7)),
    "reductions": lambda x, y: (x.sum(), x.amax(1), x.min(1), x.prod(2), x.cumsum(1), x.any(1), x.all(), x.argmax(2)),
    "order": lambda x, y: (x.sort(2), x.topk(2, 2), x.argsort(1), x.float().mean((0, 1)), x.sum(dtype=torch.uint8)),
    "ranges": lambda x, y: tuple(
        torch.arange(*ends, dtype=t) + x[0, 0, 0]
        for t in (torch.uint8, torch.int16, torch.float32)
        for ends in ((2.1, -2.9, -1.0), (0.1, 1.1, 1.0), (-1, 2, 2))
    ),
    "fills": lambda x, y: (torch.full_like(x, 255), x + torch.tensor([1, 2, 255, 0, 0, 0, 7, 9]).byte(), x + x.new_ones(8)),
    "nibbles": lambda x, y: torch.stack([x & 15, x >> 4], -1).flatten(-2).half() - 8,
}  # fmt: skip


def bytes_of(seed):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (2, 3, 8), np.uint8))


@pytest.mark.parametrize("name", CASES)
def test_an_operation_is_that_of_pytorch(name):
    inputs = bytes_of(0), bytes_of(1) | 1
    inputs[0][0, 0, :2] = torch.tensor([0, 255])
    agrees(name, *inputs)


@pytest.mark.parametrize(
    "name", ["arithmetic", "division", "comparison", "bits", "choice", "clamp", "reductions", "order"]
)
def test_an_operation_on_16_bits_is_that_of_pytorch(name):
    x, y = bytes_of(0).short() * 257 - 2**15, bytes_of(1).short() * 100 | 1
    x[0, 0, :2] = torch.tensor([-(2**15), 2**15 - 1])
    agrees(name, x, y)


def agrees(name, *inputs):
    imported = from_torch(Function(CASES[name]).eval(), inputs)
    imported.module.verify()
    names = [item.name for item in imported.inputs.tensors]
    arrays = {n: inputs[item.leaf].numpy() for n, item in zip(names, imported.inputs.tensors, strict=True)}
    found = evaluate_graph(imported.graph, arrays, imported.constants, {}, rounding=True)
    wanted = torch.utils._pytree.tree_leaves(CASES[name](*inputs))
    for (_, output), want in zip(imported.outputs, wanted, strict=True):
        got = np.asarray(found[output])
        assert got.shape == want.shape
        if want.is_floating_point():
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-3)
        else:
            assert got.dtype == want.numpy().dtype
            np.testing.assert_array_equal(got, want.numpy())


class Image(torch.nn.Module):
    """An image as cameras give it: scaled, normalised, and thresholded; a mask and the image upside down as bytes."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.register_buffer("table", torch.arange(255, -1, -1).byte())

    def forward(self, x):
        y = x.permute(0, 3, 1, 2).float() / 255
        y = (y - torch.tensor([0.4, 0.5, 0.6])[:, None, None]) / 0.25
        return self.conv(y).relu().mean((2, 3)), (x > 127).byte() * 255, 255 - x + 3, self.table[x.long()].flip(1)


@pytest.fixture(scope="module")
def image():
    torch.manual_seed(0)
    module = Image().eval()
    shapes = ({0: Dim("batch", min=1, max=4)},)
    example = torch.zeros(2, 6, 5, 3, dtype=torch.uint8)
    return module, ait_mlir.compile(module, (example,), dynamic_shapes=shapes, target="cpu")


class Foreign:
    """A tensor that has nothing but DLPack."""

    def __init__(self, value):
        self.value = value

    def __dlpack__(self, **kwargs):
        return self.value.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.value.__dlpack_device__()


WAYS = {
    "torch": lambda x: x,
    "numpy": lambda x: x.numpy(),
    "dlpack": Foreign,
    "strided": lambda x: x.permute(0, 3, 2, 1).contiguous().permute(0, 3, 2, 1),
    "address": lambda x: AITData(x.data_ptr(), list(x.shape), "uint8"),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_image_model_takes_bytes_of_each_framework(image, way):
    module, compiled = image
    x = torch.from_numpy(np.random.default_rng(2).integers(0, 256, (3, 6, 5, 3), np.uint8))
    with torch.no_grad():
        wanted = module(x)
    outputs = {f"y{i}": np.empty(t.shape, t.numpy().dtype) for i, t in enumerate(wanted)}
    names = list(compiled.model.get_output_name_to_index_map())
    compiled.model.run([WAYS[way](x)], dict(zip(names, outputs.values(), strict=True)))
    for got, want in zip(outputs.values(), wanted, strict=True):
        assert got.dtype == want.numpy().dtype
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-5 if want.is_floating_point() else 0)


def test_a_call_returns_bytes(image):
    module, compiled = image
    x = torch.randint(0, 256, (2, 6, 5, 3), dtype=torch.uint8)
    for got, want in zip(compiled(x), module(x), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float32, torch.bool], ids=str)
def test_another_dtype_is_refused(image, dtype):
    found = str(dtype).removeprefix("torch.")
    with pytest.raises(InputError, match=f"input 'x' has dtype {found}, expected uint8"):
        image[1](torch.zeros(2, 6, 5, 3, dtype=dtype))
    with pytest.raises(InputError, match=f"has dtype {found}, expected uint8"):
        y = torch.empty(2, 4)
        image[1].model.run(
            [torch.zeros(2, 6, 5, 3, dtype=torch.uint8)], [y, *(torch.empty(2, 6, 5, 3, dtype=dtype),) * 3]
        )


def test_resampling_in_fixed_point_is_refused():
    for options in ({"antialias": True}, {}):
        with pytest.raises(
            ImportFailure, match=r"resampling of ui8 with antialias=True.*convert to float|linear needs a floating"
        ):
            from_torch(
                Function(lambda x, o=options: F.interpolate(x, (3, 3), mode="bilinear", **o)).eval(), (bytes_of(0)[None],)
            )


def test_bytes_are_no_indices():
    table, ids = torch.randn(8, 4), torch.ones(8, dtype=torch.uint8)
    with pytest.raises(ImportFailure, match="tensors used as indices must be long, int, byte or bool"):
        from_torch(Function(lambda x, i: x[i]).eval(), (table, ids))
    for function in (F.embedding, lambda i, x: x.gather(0, i[:, None]), lambda i, x: x.index_select(0, i)):
        with pytest.raises(ImportFailure, match=r"Long, Int|int32/int64|must be i32 or i64"):
            from_torch(Function(function).eval(), (ids, table))
