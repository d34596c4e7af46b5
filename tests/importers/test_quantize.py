"""`ait_mlir.quantize`: recipes by rounding to the nearest, layers left out, and the report against PyTorch."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ait_mlir
from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.quantize import DequantizeOp
from ait_mlir.errors import InputError
from ait_mlir.importers.quantized import RECIPES, Quantized, recipe_named
from ait_mlir.importers.quantized.layers import attentions_of
from ait_mlir.rewrites.engine.numbers import splat
from ait_mlir.tools.cli import main
from tests import tiers


class Network(torch.nn.Module):
    """Two layers in a row, one whose weight is [columns, rows], and a tied one."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(40, 96)
        self.up, self.down = torch.nn.Linear(96, 200), torch.nn.Linear(200, 96)
        self.turned = torch.nn.Parameter(torch.randn(96, 96) / 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        x = x + self.down(torch.relu(self.up(x)))
        return torch.addmm(torch.zeros(96), x, self.turned) @ self.table.weight.T


def ids(seed: int) -> torch.Tensor:
    return torch.randint(0, 40, (6,), generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def network() -> Network:
    return Network().eval()


def stored(made: Quantized, name: str, size: tuple[int, int]) -> np.ndarray:
    """The values of a quantised weight, from the arrays of the model: what the recipe made of it."""
    arrays = {n.removeprefix(f"{name}."): a for n, a in made.imported.constants.items() if n.startswith(name)}
    numbers = arrays["numbers"]
    if numbers.dtype == np.uint8:
        numbers = ((np.stack([numbers & 15, numbers >> 4], -1).reshape(len(numbers), -1).astype(np.int8)) ^ 8) - 8
    scale = arrays["scale"].repeat(size[0], 0).repeat(size[1], 1)
    return numbers.astype(np.float32) * scale[: numbers.shape[0], : numbers.shape[1]]


BOUNDS = {"w8a16": 0.01, "w4a16": 0.15, "w8a8": 0.02, "fp8": 0.06, "fp8-static": 0.06, "fp8-block": 0.06}
BOUNDS["fp8-static-attention"] = BOUNDS["fp8-static"]
SPACES = {"int4": 7, "int8": 127, "float8_e4m3fn": 14}
"""The largest number, divided by the largest distance of two neighbours."""


@pytest.mark.parametrize("recipe", tiers.params(RECIPES, ["w8a8"]))
def test_the_report_says_what_the_model_does(recipe: str, network: Network) -> None:
    examples = [(ids(1),), (ids(2),)]
    made = ait_mlir.quantize(network, examples, recipe)
    report = made.report
    assert [layer.name for layer in report.layers] == ["up", "down", "turned"] and not report.left_out
    compiled = made.compile("cpu")
    with torch.no_grad():
        exact, found = (torch.cat([model(*e) for e in examples]) for model in (network, compiled))
        p, q = exact.double().log_softmax(-1), found.double().log_softmax(-1)
        kl = (p.exp() * (p - q)).sum(-1).mean()
        assert report.error == pytest.approx(float((found - exact).norm() / exact.norm()), rel=1e-3)
        assert report.kl == pytest.approx(float(kl), rel=1e-2)
        assert report.top1 == (exact.argmax(-1) == found.argmax(-1)).double().mean()
        assert 0 < report.error < BOUNDS[recipe]
    for layer, weight in zip(report.layers, (network.up.weight, network.down.weight, network.turned.T), strict=True):
        whole = weight.detach().numpy()
        name = layer.name if layer.name == "turned" else f"{layer.name}.weight"
        rows, columns = RECIPES[recipe].blocks[0], RECIPES[recipe].blocks[1] or whole.shape[1]
        values = stored(made, name, (rows, columns))
        for i, j in itertools.product(range(0, whole.shape[0], rows), range(0, whole.shape[1], columns)):
            part, near = (w[i : i + rows, j : j + columns] for w in (whole, values))
            step = np.abs(part).max() / SPACES[RECIPES[recipe].element]
            assert (np.abs(part - near) <= step * 0.5001).all()  # no number is further away than half a step
        assert layer.weight_error == pytest.approx(np.linalg.norm(values - whole) / np.linalg.norm(whole), rel=1e-3)
        assert 0 < layer.result_error < BOUNDS[recipe]
    text = compiled.ir("canonical")
    assert text.count("i32") >= 3 * (recipe == "w8a8")
    assert ("ait.quantize" in text) != recipe.endswith("a16")


def test_layers_left_out(network: Network) -> None:
    made = ait_mlir.quantize(network, [(ids(1),)], "w4a16", leave_out=["up", "t*"])
    assert [layer.name for layer in made.report.layers] == ["down"] and made.report.left_out == ("up", "turned")
    np.testing.assert_array_equal(made.imported.constants["up.weight"], network.up.weight.detach().numpy())


class Attending(torch.nn.Module):
    """Attention of two heads, twice: of 16 columns, and of 12, which no kernel for 8-bit floats takes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.qkv = torch.nn.Linear(32, 96)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).view(1, 80, 6, 16).transpose(1, 2).chunk(3, 1)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        narrow = (t[..., :12] for t in (q, k, y))
        return torch.nn.functional.scaled_dot_product_attention(*narrow)


def test_attention_in_8_bits() -> None:
    model, example = Attending().half().eval(), (torch.randn(1, 80, 32, dtype=torch.half) * 3,)
    made = ait_mlir.quantize(model, [example], "fp8-static-attention")
    layers = {layer.name: layer for layer in made.report.layers}
    assert list(layers) == ["qkv", "attention.0"] and not made.report.left_out
    row = layers["attention.0"]
    assert (row.shape, row.bytes_after, row.weight_error) == ((2, 16), 0, 0) and 0 < row.result_error < 0.2
    ops = [op for op in made.imported.module.walk() if isinstance(op, AttentionOp)]
    read = [[type(x.owner) for x in op.operands] for op in ops]
    assert read[0] == [DequantizeOp] * 3 and DequantizeOp not in read[1]
    scales = {splat(x.owner.scale) for x in ops[0].operands if isinstance(x.owner, DequantizeOp)}
    largest = float(model.qkv(example[0]).detach().abs().max())
    assert len(scales) == 1 and scales.pop() == pytest.approx(largest / 448, rel=0.1)
    assert not attentions_of(made.imported.module, recipe_named("fp8-static-attention"), ["attention.*"])
    with pytest.raises(InputError, match=r"no layer matches 'attention.1'.* the layers are qkv, attention.0"):
        ait_mlir.quantize(model, [example], "fp8-static-attention", leave_out=["attention.1"])


def test_a_bound_leaves_out_the_layers_that_do_most_harm(network: Network) -> None:
    whole = ait_mlir.quantize(network, [(ids(1),)], "w4a16", max_kl=1.0).report
    assert whole.kl is not None and not whole.left_out and all(layer.kl for layer in whole.layers)
    alone = {layer.name: layer.kl or 0 for layer in whole.layers}
    made = ait_mlir.quantize(network, [(ids(1),)], "w4a16", max_kl=whole.kl * 0.9).report
    assert made.kl is not None and made.kl <= whole.kl * 0.9 and 1 <= len(made.left_out) < 3
    assert min(alone[name] for name in made.left_out) >= max(layer.kl or 0 for layer in made.layers)
    assert made.harm == {name: alone[name] for name in made.left_out}
    assert all(f"{name} (KL alone" in str(made) for name in made.left_out)


class Images(torch.nn.Module):
    """A stem, a block with a residual, a convolution in groups, a depthwise one, a pool, a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem, self.norm = torch.nn.Conv2d(3, 16, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(16)
        self.first, self.second = torch.nn.Conv2d(16, 24, 1), torch.nn.Conv2d(24, 16, 3, padding=1)
        self.groups, self.depth = torch.nn.Conv2d(16, 32, 3, groups=2), torch.nn.Conv2d(32, 32, 3, groups=32)
        self.head = torch.nn.Linear(32, 10)
        for values, low, high in ((self.norm.running_var, 0.5, 2.0), (self.norm.running_mean, -0.3, 0.3)):
            assert values is not None
            values.uniform_(low, high)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.stem(x)))
        x = torch.relu(x + self.second(torch.relu(self.first(x))))
        return self.head(torch.relu(self.depth(torch.nn.functional.silu(self.groups(x)))).mean((2, 3)))


@pytest.mark.parametrize("recipe", tiers.params(("w8a8", "w4a16"), ["w8a8"]))
def test_convolutions(recipe: str) -> None:
    model = Images().eval()
    images = torch.randn(2, 3, 13, 11)
    made = ait_mlir.quantize(model, [(images,)], recipe)
    assert [layer.name for layer in made.report.layers] == ["stem", "first", "second", "groups", "head"]
    assert [layer.shape for layer in made.report.layers][:2] == [(16, 3, 3, 3), (24, 1, 1, 16)]
    compiled = made.compile("cpu")
    with torch.no_grad():
        exact, found = model(images), compiled(images)
    assert made.report.error == pytest.approx(float((found - exact).norm() / exact.norm()), rel=1e-3)
    assert 0 < made.report.error < BOUNDS[recipe]
    text = compiled.ir("bufferized")
    if recipe == "w8a8":  # integers between the convolutions, made where the floats were
        assert text.count("x ui8>") > 2 and "ait.quantize" not in text
        assert len(re.findall(r"= ait.conv .*\n +\^bb0\(%\w+: i32", text)) == 3


def test_groups_of_zeros_and_f16() -> None:
    weight = np.zeros((2, 300), np.float16)
    weight[0, 200] = 3
    stored_weight = recipe_named("w4a16").store(weight)
    np.testing.assert_array_equal(stored_weight.values(), weight)
    assert stored_weight.parts("w")["w.scale"].dtype == np.float16


def test_8_bit_floats_leave_convolutions() -> None:
    made = ait_mlir.quantize(Images().eval(), [(torch.randn(2, 3, 13, 11),)], "fp8")
    assert [layer.name for layer in made.report.layers] == ["head"] and not made.report.left_out


def test_blocks_of_tiny_numbers() -> None:
    """Their scale is the least one, so that their quotients are numbers, too."""
    weight = np.zeros((130, 300), np.float32)
    weight[0, 0], weight[129, 299] = 1e-38, -2
    weight = recipe_named("fp8-block").store(weight)
    assert weight.parts("w")["w.scale"].shape == (2, 3) and np.isfinite(weight.values()).all()
    assert weight.values()[129, 299] == -2


class NoLinear(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu()


def test_what_is_refused(network: Network) -> None:
    for arguments, message in (
        ((network, [], "w8a16"), "needs examples"),
        ((network, [ids(1)], "w8a16"), "an example is a Tensor, expected a tuple"),
        ((network, [(ids(1),)], "w3a16"), "no recipe 'w3a16'; expected one of w8a8, w8a16, w4a16, fp8"),
        ((network, [(ids(1),)], "w8a16", 0.0), r"max_kl is 0.0, expected a number of nats above 0"),
        ((network, [(ids(1),)], "w4a16", 1e-9), r"no layer can be quantised within a divergence of 1e-09: '\w+', which changes"),
        ((NoLinear().eval(), [(torch.zeros(2),)], "w8a16"), "the model has no linear layer or convolution to quantise"),
    ):
        with pytest.raises(InputError, match=message):
            ait_mlir.quantize(*arguments[:3], max_kl=arguments[3] if len(arguments) > 3 else None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no layer matches 'head', which is to be left out; the layers are up, down, turned"):
        ait_mlir.quantize(network, [(ids(1),)], leave_out=["head"])
    with pytest.raises(InputError, match="no linear layer or convolution to quantise that is not left out"):
        ait_mlir.quantize(network, [(ids(1),)], leave_out=["*"])
    broken = Network().eval()
    broken.up.weight.data[3, 4] = float("nan")
    with pytest.raises(InputError, match=r"the weight 'up.weight' has numbers that are not finite"):
        ait_mlir.quantize(broken, [(ids(1),)])


SOURCE = """
import torch


def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval(), (torch.randn(2, 8),)
"""


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(SOURCE)
    assert main(["quantize", "model.py:build", "--recipe", "w8a16", "-o", "q.mlir", "--report", "q.json"]) == 0
    out = capsys.readouterr().out
    assert "wrote q.mlir and q.safetensors" in out and "KL" in out
    report: dict[str, Any] = json.loads((tmp_path / "q.json").read_text())
    assert [layer["name"] for layer in report["layers"]] == ["0"]
    assert "ait.dequantize" in (tmp_path / "q.mlir").read_text()
    assert main(["compile", "q.mlir", "--weights", "q.safetensors", "--to", "selected"]) == 0
    assert main(["quantize", "model.py:build", "--recipe", "int3"]) == 1
    assert "no recipe 'int3'" in capsys.readouterr().err
    assert main(["quantize", "model.onnx"]) == 1
    assert "expected FILE.pt2" in capsys.readouterr().err
