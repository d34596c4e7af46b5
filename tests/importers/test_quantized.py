"""Quantised programs of PyTorch: `quantized_decomposed`, 8-bit floats, by the meaning of the ops and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed

import ait_mlir
from ait_mlir.dialects.ait.dtypes import f8E4M3FN
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.driver import run_to_phase
from ait_mlir.importers.errors import ImportFailure
from ait_mlir.importers.torch import from_torch
from ait_mlir.options import CompileOptions
from ait_mlir.reference.graph import evaluate_graph
from tests.importers.function import Function

F: Any = torch.nn.functional
QD: Any = torch.ops.quantized_decomposed
I8, U8 = torch.int8, torch.uint8
SCALES = torch.tensor([0.5, 0.125, 0.25, 1.0])
ZEROS = torch.tensor([0, 3, -2, 7])


def there_and_back(name: str, *arguments: Any, after: tuple[Any, ...] = ()) -> Callable[[torch.Tensor], Any]:
    """The stored numbers and their values; `after` are further arguments of the way back."""
    there, back = getattr(QD, f"quantize_{name}"), getattr(QD, f"dequantize_{name}")

    def function(x: torch.Tensor) -> Any:
        q = there(x, *arguments)
        return q, back(q, *arguments, *after)

    return function


CASES: dict[str, Callable[[torch.Tensor], Any]] = {
    "tensor": there_and_back("per_tensor", 0.25, 3, -128, 127, I8),
    "unsigned": there_and_back("per_tensor", 0.125, 128, 0, 255, U8),
    "narrow": there_and_back("per_tensor", 0.5, 0, -8, 7, I8),
    "in-tensors": there_and_back("per_tensor", torch.tensor(0.25), torch.tensor(-1), -128, 127, I8),
    "channels": there_and_back("per_channel", SCALES, ZEROS, 1, -128, 127, I8),
    "tokens": there_and_back("per_token", SCALES.repeat(2).reshape(2, 4, 1), ZEROS.repeat(2).reshape(2, 4, 1), -128, 127, I8, after=(torch.float32,)),
    "casts": lambda x: (
        (x * 300).to(torch.float8_e4m3fn).float(),
        (x * 1e5).to(torch.float8_e5m2),
        x.to(torch.float8_e4m3fn),
    ),
}


def as_float(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    return tensor.double().numpy()


@pytest.mark.parametrize("name", CASES)
def test_the_row_means_what_pytorch_does(name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 4, 8) * 3
    model = Function(CASES[name]).eval()
    imported = from_torch(model, (x,))
    imported.module.verify()
    got = evaluate_graph(imported.graph, {imported.inputs.tensors[0].name: x.numpy()}, imported.constants, {})
    found = [got[value] for kind, value in imported.outputs if kind == "output"]
    for a, b in zip(found, model(x), strict=True):
        np.testing.assert_allclose(a.astype(np.float64), as_float(b), rtol=1e-6, atol=1e-6)


def test_groups_along_a_row() -> None:
    q = torch.arange(-16, 16, dtype=I8).reshape(2, 16)
    scales, zeros = torch.tensor([[0.5, 2.0], [4.0, 0.25]]), torch.tensor([[1, -1], [0, 2]])
    model = Function(lambda q: QD.dequantize_per_channel_group(q, scales, zeros, -128, 127, I8, 8, torch.float32)).eval()
    imported = from_torch(model, (q,))
    assert "blocks [1, 8]" in str(imported.module)
    got = evaluate_graph(imported.graph, {imported.inputs.tensors[0].name: q.numpy()}, imported.constants, {})
    np.testing.assert_array_equal(next(iter(got.values())), model(q).numpy())


@pytest.mark.parametrize("by_recipe", [False, True], ids=["_scaled_mm", "scaled_mm"])
@pytest.mark.parametrize("scales", ["whole", "rows"])
def test_scaled_products(scales: str, by_recipe: bool) -> None:
    """On a card that multiplies 8-bit floats each is one launch."""
    recipe = F.ScalingType.TensorWise if scales == "whole" else F.ScalingType.RowWise
    shapes = {"whole": ((), ()), "rows": ((4, 1), (1, 16))}[scales]
    torch.manual_seed(0)
    a, b = (torch.randn(n, 256).to(torch.float8_e4m3fn) for n in (4, 16))
    x, y = (torch.rand(shape) + 0.5 for shape in shapes)

    class Model(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> Any:
            if by_recipe:
                return F.scaled_mm(a, b.t(), x, recipe, y, recipe, output_dtype=torch.bfloat16)
            return torch._scaled_mm(a, b.t(), x, y, out_dtype=torch.bfloat16)

    imported = from_torch(Model().eval(), (a, b, x, y))
    module = imported.module.clone()
    run_to_phase(module, "selected", CompileOptions("cuda", "sm_90a"))
    (launch,) = (op for op in module.walk() if "kernel" in op.attributes)
    assert isinstance(launch, GemmOp) and tensor_type(launch.a).element_type == f8E4M3FN
    want = (a.double() * x.double()) @ (b.t().double() * y.double())
    names = [item.name for item in imported.inputs.tensors]
    arrays = dict(zip(names, (a.double().numpy(), b.double().numpy(), x.numpy(), y.numpy()), strict=True))
    (got,) = evaluate_graph(imported.graph, arrays, imported.constants, {}).values()
    np.testing.assert_allclose(got, want.bfloat16().double().numpy(), rtol=1e-6)


def test_scaled_products_with_blocks_may_round_what_bfloat16_results_lose() -> None:
    """Those are not multiplied as they are stored, but on tensor cores."""
    a, b = (torch.randn(n, 256).to(torch.float8_e4m3fn) for n in (128, 256))
    x, y = torch.rand(128, 2) + 0.5, torch.rand(2, 2) + 0.5
    model = Function(lambda a, b, x, y: torch._scaled_mm(a, b.t(), x, y, out_dtype=torch.bfloat16)).eval()
    imported = from_torch(model, (a, b, x, y))
    assert "blocks [1, 128]" in str(imported.module) and "blocks [128, 128]" in str(imported.module)
    (product,) = (op for op in imported.module.walk() if isinstance(op, GemmOp))
    assert product.tf32 is not None


class Stored(torch.nn.Module):
    """A product with a weight of 8-bit floats."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(16, 32).to(torch.float8_e4m3fn))

    def forward(self, x: torch.Tensor) -> Any:
        y = x.float() @ self.weight.float().T
        return y, y.to(torch.float8_e5m2)


def test_tensors_of_8_bit_floats_go_in_and_out_of_a_compiled_model() -> None:
    torch.manual_seed(0)
    x, model = torch.randn(4, 32).to(torch.float8_e4m3fn), Stored().eval()
    compiled = ait_mlir.compile(model, (x,), target="cpu")
    y, narrow = compiled(x)
    want, narrow_want = model(x)
    torch.testing.assert_close(y, want)
    assert narrow.dtype == torch.float8_e5m2
    assert (narrow.float() - narrow_want.float()).abs().max() <= narrow_want.float().abs().max() / 8


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: QD.quantize_per_tensor(x, 0.0, 0, -128, 127, I8), "the scale is 0.0, expected a number above 0"),
        (lambda x: x.to(torch.float8_e4m3fnuz), "tensors of float8_e4m3fnuz are not supported"),
    ],
)
def test_what_is_refused(function: Callable[[torch.Tensor], Any], message: str) -> None:
    with pytest.raises(ImportFailure, match=message):
        from_torch(Function(function).eval(), (torch.randn(2, 8),))
