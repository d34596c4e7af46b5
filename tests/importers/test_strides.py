"""The memory of inputs and results of imported models: as the example's and PyTorch's, with no copy where it fits."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import ait_mlir  # noqa: E402
from ait_mlir.dialects.ait_rt.program import LaunchOp  # noqa: E402
from ait_mlir.driver import run_to_phase  # noqa: E402
from ait_mlir.importers.torch import from_torch  # noqa: E402
from ait_mlir.importers.torch.dynamo import register  # noqa: E402
from tests.importers.blind import Function  # noqa: E402

BATCH = {0: torch.export.Dim("batch", min=1, max=8)}


class Block(torch.nn.Module):
    """A convolution, and a product whose result is turned."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.linear = torch.nn.Conv2d(4, 8, 3, padding=1), torch.nn.Linear(16, 12)

    def forward(self, x: Any, y: Any) -> Any:
        return self.conv(x).relu(), self.linear(y).transpose(1, 2)


def inputs(batch: int) -> tuple[Any, Any]:
    torch.manual_seed(batch)
    return torch.randn(batch, 4, 6, 5).to(memory_format=torch.channels_last), torch.randn(batch, 7, 16)


def launches(imported: Any) -> int:
    run_to_phase(imported.module, "planned", known=imported.constants)
    return sum(isinstance(op, LaunchOp) for op in imported.module.walk())


def test_channels_last_and_turned_results_need_no_copy() -> None:
    module = Block().eval()
    imported = from_torch(module, inputs(2), dynamic_shapes=(BATCH, BATCH))
    text = str(imported.module)
    assert "%x: !ait.tensor<batch x 4 x 6 x 5 x f32> strides [120, 1, 20, 4], %y" in text
    assert '"output_0" %' in text and "strides [240, 1, 40, 8]" in text and "strides [84, 1, 12]" in text
    assert launches(imported) == 2

    compiled = ait_mlir.compile(module, inputs(2), dynamic_shapes=(BATCH, BATCH), target="cpu")
    for batch in (1, 2, 5):
        x, y = inputs(batch)
        expected = module(x, y)
        for found, want in zip(compiled(x, y), expected, strict=True):
            torch.testing.assert_close(found, want)
            assert found.stride() == want.stride() or batch == 1
    assert compiled.model.stats()["copies"] == 0
    x, y = inputs(3)
    turned = y.transpose(1, 2).contiguous().transpose(1, 2)
    for found, want in zip(compiled(x.contiguous(), turned), module(x, y), strict=True):
        torch.testing.assert_close(found, want)
    assert compiled.model.stats()["copies"] == 2


def test_strides_in_dims_of_the_example() -> None:
    class Turned(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    n, m = torch.export.Dim("n", min=1, max=8), torch.export.Dim("m", min=1, max=8)
    module = Turned().eval()
    compiled = ait_mlir.compile(module, (torch.randn(5, 3).t(),), dynamic_shapes=({0: n, 1: m},), target="cpu")
    assert compiled.ir().count("strides [1, n]") == 2
    for shape in ((4, 2), (1, 6), (7, 1)):
        x = torch.randn(*shape).t()
        torch.testing.assert_close(compiled(x), x * 2)
    assert compiled.model.stats()["copies"] == 0


@pytest.mark.parametrize(
    ("example", "declared"),
    [
        (lambda: torch.randn(4, 6), ""),
        (lambda: torch.randn(6, 4).t(), " strides [1, 4]"),
        (lambda: torch.randn(4, 9)[:, :6], ""),  # gaps: the next call may have others
        (lambda: torch.randn(4, 1).expand(4, 6), ""),
        (lambda: torch.randn(1, 6).t().t(), ""),
        (lambda: torch.randn(6, 1).t(), ""),  # a dim of 1 lies anywhere
        (lambda: torch.randn(6, 0).t(), ""),
    ],
)
def test_only_examples_without_gaps_say_how_an_input_lies(example: Any, declared: str) -> None:
    class Doubled(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return (x + x).sum(0)

    x = example()
    compiled = ait_mlir.compile(Doubled().eval(), (x,), target="cpu")
    head = compiled.ir().splitlines()[1]
    assert f"f32>{declared})" in head and ("strides" in head) == bool(declared)
    torch.testing.assert_close(compiled(x), (x + x).sum(0))


def test_what_a_model_writes_and_sizes_that_a_run_finds_are_row_major() -> None:
    class Written(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            y += x
            return x.nonzero().t()

    x, y = torch.eye(4), torch.zeros(4, 4)
    compiled = ait_mlir.compile(Written().eval(), (x.t().contiguous().t(), y.t().contiguous().t()), target="cpu")
    assert "%y: !ait.tensor<4 x 4 x f32> donated)" in compiled.ir()
    assert "strides" not in "".join(line for line in compiled.ir().splitlines() if "ait.output" in line)
    turned = torch.zeros(4, 4).t().contiguous().t()
    torch.testing.assert_close(compiled(x, turned), x.nonzero().t())
    torch.testing.assert_close(turned, x)


def test_torch_compile_keeps_the_strides_of_its_tensors() -> None:
    register()
    torch._dynamo.reset()
    module = Block().eval()
    fast = torch.compile(module, backend="ait")
    with torch.no_grad():
        for x, y in (inputs(2), inputs(3)):
            for found, want in zip(fast(x, y), module(x, y), strict=True):
                torch.testing.assert_close(found, want)
                assert found.stride() == want.stride()
    torch._dynamo.reset()


def test_as_strided_takes_the_order_of_the_example() -> None:
    strided = Function(lambda x: torch.as_strided(x, (5, 2), (3, 1)) + 1).eval()
    x = torch.arange(48.0).reshape(2, 2, 3, 4)
    last = x.to(memory_format=torch.channels_last)
    for example in (x, last):
        compiled = ait_mlir.compile(strided, (example,))
        for given in (x, last):
            torch.testing.assert_close(compiled(given), strided(example))

    register()
    compiled = torch.compile(strided, backend="ait")
    for given in (x, last):
        torch.testing.assert_close(compiled(given), strided(given))
