"""Published checkpoints: each format from a file of the library that owns it where that installs, to the bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import load_file, save_file
from transformers.integrations.finegrained_fp8 import Fp8Dequantize

import ait_mlir
from ait_mlir.driver import run_to_phase
from ait_mlir.importers.checkpoints import CheckpointError, StoredWeight, read_checkpoint, use_checkpoint
from ait_mlir.importers.torch import from_torch
from ait_mlir.options import CompileOptions
from ait_mlir.reference.graph import evaluate_graph
from ait_mlir.tools.cli import main

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
MODULE = "layers.0.proj"


def write(folder: Path, tensors: dict[str, torch.Tensor], config: dict[str, Any] | None, name: str = "config.json") -> Path:
    """A folder with a safetensors file and a config."""
    save_file({n: t.contiguous() for n, t in tensors.items()}, folder / "model.safetensors")
    if config is not None:
        whole = {"quantization_config": config, "torch_dtype": "bfloat16"} if name == "config.json" else config
        (folder / name).write_text(json.dumps(whole))
    return folder


def same_bits(weight: StoredWeight, expected: torch.Tensor) -> None:
    found = weight.values()
    assert found.dtype.name == str(expected.dtype).removeprefix("torch.")
    bits = expected.contiguous().view(torch.int16 if expected.element_size() == 2 else torch.int32).numpy()
    np.testing.assert_array_equal(found.view(bits.dtype), bits)


# ** compressed-tensors **

INT4 = {"num_bits": 4, "strategy": "group", "group_size": 32}
SCHEMES: dict[str, tuple[str, dict[str, Any], tuple[int, int], torch.dtype]] = {
    "packed": ("pack-quantized", INT4, (24, 96), F16),
    "packed-zeros": ("pack-quantized", {**INT4, "symmetric": False}, (21, 96), BF16),
    "packed-columns": ("pack-quantized", {"num_bits": 4, "strategy": "channel"}, (8, 37), F16),
    "packed-8": ("pack-quantized", {**INT4, "num_bits": 8}, (8, 64), BF16),
    "packed-8-zeros": ("pack-quantized", {"num_bits": 8, "strategy": "channel", "symmetric": False}, (7, 33), F32),
    "int8": ("int-quantized", {"num_bits": 8, "strategy": "channel"}, (8, 40), BF16),
    "int8-zeros": ("int-quantized", {"num_bits": 8, "strategy": "group", "group_size": 32, "symmetric": False}, (8, 64), F16),
    "fp8": ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "tensor"}, (8, 40), BF16),
    "fp8-rows": ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel"}, (8, 40), F16),
    "naive": ("naive-quantized", {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [16, 32]}, (40, 64), F32),
}


def compressed(folder: Path, name: str, **activations: Any) -> tuple[Path, torch.Tensor]:
    """A checkpoint of the library, and the weight that the library makes of it; with how it rounds activations."""
    form, settings, shape, dtype = SCHEMES[name]
    torch.manual_seed(0)
    args = QuantizationArgs(**settings)
    inputs = QuantizationArgs(**activations) if activations else None
    scheme = QuantizationScheme(targets=["Linear"], weights=args, input_activations=inputs, format=form)
    weight = torch.randn(shape) + (0 if args.symmetric else 0.5)
    rows, columns = {"tensor": shape, "channel": (1, shape[1]), "group": (1, 32), "block": (16, 32)}[str(args.strategy)]
    parts = weight.unfold(0, rows, rows).unfold(1, columns, columns) if str(args.strategy) != "block" else None
    if parts is None:
        padded = torch.nn.functional.pad(weight, (0, 0, 0, -shape[0] % rows))
        parts = padded.unfold(0, rows, rows).unfold(1, columns, columns)
    scale, zero = calculate_qparams(parts.amin((-1, -2)), parts.amax((-1, -2)), args)
    scale, zero = scale.to(dtype), zero
    if str(args.strategy) == "tensor":
        scale, zero = scale.reshape(1), zero.reshape(1)
    compressor = BaseCompressor.get_value_from_registry(form)
    stored = compressor.compress({"weight": weight.to(dtype), "weight_scale": scale, "weight_zero_point": zero}, scheme)
    config = QuantizationConfig(config_groups={"group_0": scheme}, format=form, ignore=["lm_head"]).to_dict()
    path = write(folder, {f"{MODULE}.{n}": t for n, t in stored.items()}, json.loads(json.dumps(config, default=str)))
    return path, compressor.decompress(stored, scheme)["weight"]


@pytest.mark.parametrize("name", SCHEMES)
def test_compressed_tensors(name: str, tmp_path: Path) -> None:
    path, expected = compressed(tmp_path, name)
    same_bits(read_checkpoint(path).weights[f"{MODULE}.weight"], expected)


# ** GPTQ and AWQ: the published algorithms **


def into_words(numbers: np.ndarray, bits: int, order: list[int] | None = None) -> torch.Tensor:
    """Numbers along the last dim in words of int32; `order[i]` is the column in the i-th lowest bits."""
    each = 32 // bits
    padded = np.pad(numbers.astype(np.uint64), ((0, 0), (0, -numbers.shape[1] % each)))
    parts = padded.reshape(len(numbers), -1, each)
    words = sum(parts[..., (order or list(range(each)))[i]] << np.uint64(bits * i) for i in range(each))
    return torch.from_numpy(np.asarray(words).astype(np.uint32).view(np.int32))


def gptq(folder: Path, bits: int = 4, version: int = 1, sym: bool = False, moved: bool = False, group: int = 32, **config: Any) -> tuple[Path, torch.Tensor]:
    random = np.random.default_rng(0)
    rows, columns = 24, 96
    size = columns if group == -1 else group
    groups = columns // size
    q = random.integers(0, 2**bits, (columns, rows))
    zeros = np.full((groups, rows), 2 ** (bits - 1)) if sym else random.integers(0, 2**bits, (groups, rows))
    g_idx = np.arange(columns) // size
    g_idx = random.permutation(g_idx) if moved else g_idx
    scales = torch.from_numpy(random.random((groups, rows)).astype(np.float16) / 8 + np.float16(0.01))
    stored_zeros = (zeros - 1) % 2**bits if version == 1 else zeros
    tensors = {
        "qweight": into_words(q.T, bits).T,
        "qzeros": into_words(stored_zeros, bits),
        "scales": scales,
        "g_idx": torch.from_numpy(g_idx.astype(np.int32)),
        "bias": torch.zeros(rows, dtype=F16),
    }
    form = {1: "gptq", 2: "gptq_v2"}[version]
    settings = {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": sym, "desc_act": moved, "checkpoint_format": form}
    path = write(folder, {f"{MODULE}.{n}": t for n, t in tensors.items()}, {**settings, **config})
    weight = scales[g_idx.tolist()] * torch.from_numpy(q - zeros[g_idx]).to(F16)
    return path, weight.T


@pytest.mark.parametrize("moved", [False, True], ids=["in-order", "act-order"])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("sym", [False, True], ids=["zeros", "sym"])
def test_gptq(version: int, bits: int, sym: bool, moved: bool, tmp_path: Path) -> None:
    path, expected = gptq(tmp_path, bits, version, sym, moved)
    checkpoint = read_checkpoint(path)
    same_bits(checkpoint.weights[f"{MODULE}.weight"], expected)
    assert set(checkpoint.plain) == {f"{MODULE}.bias"}
    assert checkpoint.weights[f"{MODULE}.weight"].scaled.element == {(4, True): "int4", (4, False): "uint4", (8, True): "int8", (8, False): "uint8"}[bits, sym]


def awq(folder: Path, **config: Any) -> tuple[Path, torch.Tensor]:
    random = np.random.default_rng(1)
    rows, columns, size = 24, 64, 32
    q, zeros = random.integers(0, 16, (columns, rows)), random.integers(0, 16, (columns // size, rows))
    scales = torch.from_numpy(random.random((columns // size, rows)).astype(np.float16) / 8 + np.float16(0.01))
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    tensors = {"qweight": into_words(q, 4, order), "qzeros": into_words(zeros, 4, order), "scales": scales}
    settings = {"quant_method": "awq", "bits": 4, "group_size": size, "zero_point": True, "version": "gemm"}
    path = write(folder, {f"{MODULE}.{n}": t for n, t in tensors.items()}, {**settings, **config})
    weight = torch.from_numpy(q - zeros.repeat(size, 0)).to(F16) * scales.repeat_interleave(size, 0)
    return path, weight.T


def test_awq(tmp_path: Path) -> None:
    path, expected = awq(tmp_path)
    same_bits(read_checkpoint(path).weights[f"{MODULE}.weight"], expected)


def test_the_older_configs_of_gptq_and_awq(tmp_path: Path) -> None:
    """They are files of their own, with other names."""
    path, expected = gptq(tmp_path)
    (path / "config.json").unlink()
    (path / "quantize_config.json").write_text(json.dumps({"bits": 4, "group_size": 32}))
    same_bits(read_checkpoint(path).weights[f"{MODULE}.weight"], expected)
    path, expected = awq(tmp_path)
    (path / "quantize_config.json").unlink()
    (path / "config.json").unlink()
    (path / "quant_config.json").write_text(json.dumps({"w_bit": 4, "q_group_size": 32, "version": "GEMM"}))
    same_bits(read_checkpoint(path).weights[f"{MODULE}.weight"], expected)


# ** fp8 **


def fp8(folder: Path, **config: Any) -> tuple[Path, torch.Tensor]:
    torch.manual_seed(2)
    weight, scale = torch.randn(64, 96).to(torch.float8_e4m3fn), torch.rand(4, 6) + 0.01
    settings = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [16, 16]}
    path = write(folder, {f"{MODULE}.weight": weight, f"{MODULE}.weight_scale_inv": scale}, {**settings, **config})
    return path, Fp8Dequantize(None)._dequantize_one(weight, scale, BF16)


def test_block_scaled_fp8(tmp_path: Path) -> None:
    path, expected = fp8(tmp_path)
    same_bits(read_checkpoint(path).weights[f"{MODULE}.weight"], expected)


# ** GGUF **

KINDS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
UNITS = {"Q2_K": (80, 84), "Q3_K": (108, 110), "Q4_K": (0, 4), "Q5_K": (0, 4), "Q6_K": (208, 210)}
"""The bytes of the f16 numbers in a block of a K type."""


def gguf_blocks(kind: str, rows: int, columns: int) -> np.ndarray:
    """The bytes of rows: quantised by the package, or random ones for K types, which it only reads."""
    random = np.random.default_rng(3)
    qtype = gguf.GGMLQuantizationType[kind]
    if kind not in UNITS:
        return gguf.quants.quantize(random.standard_normal((rows, columns)).astype(np.float32), qtype)
    size, nbytes = gguf.GGML_QUANT_SIZES[qtype]
    data = random.integers(0, 256, (rows, columns // size, nbytes)).astype(np.uint8)
    begin, end = UNITS[kind]
    units = (random.random((rows, columns // size, (end - begin) // 2)) / 8).astype(np.float16)
    data[..., begin:end] = units.view(np.uint8)
    return data.reshape(rows, -1)


def gguf_file(
    path: Path, tensors: dict[str, tuple[np.ndarray, str | None]], architecture: str = "llama", **numbers: int
) -> Path:
    writer = gguf.GGUFWriter(path, architecture)
    for name, number in numbers.items():
        writer.add_uint32(f"{architecture}.{name.replace('__', '.')}", number)
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=None if kind is None else gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_gguf(tmp_path: Path) -> None:
    data = {kind: gguf_blocks(kind, 3, 512) for kind in KINDS}
    norm = np.arange(8, dtype=np.float32)
    path = gguf_file(tmp_path / "m.gguf", {**{kind: (data[kind], kind) for kind in KINDS}, "norm": (norm, None)})
    checkpoint = read_checkpoint(path)
    assert checkpoint.weights.keys() == set(KINDS)
    np.testing.assert_array_equal(checkpoint.plain["norm"], norm)
    for kind in KINDS:
        expected = gguf.quants.dequantize(data[kind], gguf.GGMLQuantizationType[kind])
        found = checkpoint.weights[kind].values()
        np.testing.assert_array_equal(found.view(np.int32), expected.view(np.int32), err_msg=kind)


# ** models **


class Layers(torch.nn.Module):
    def __init__(self, rows: int, columns: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.ModuleDict({"proj": torch.nn.Linear(columns, rows, bias=False, dtype=dtype)})])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers[0]["proj"](x)


def in_f32(path: Path) -> torch.Tensor:
    """The weight, not rounded to the type of the checkpoint: a model of f32 computes with it."""
    return torch.from_numpy(replace(read_checkpoint(path).weights[f"{MODULE}.weight"], dtype="float32").values())


MADE: dict[str, Callable[[Path], tuple[Path, torch.Tensor]]] = {
    "packed": lambda folder: compressed(folder, "packed-zeros"),
    "fp8-tensor": lambda folder: compressed(folder, "fp8"),
    "gptq": lambda folder: gptq(folder, moved=True),
    "awq": awq,
    "fp8": fp8,
}


@pytest.mark.parametrize("name", MADE)
def test_a_model_reads_what_is_stored(name: str, tmp_path: Path) -> None:
    """The params are the stored arrays, and the graph computes the product with the weight."""
    path, weight = MADE[name](tmp_path)
    model = Layers(*weight.shape, torch.float32).eval()
    x = torch.randn(2, weight.shape[1])
    imported = from_torch(model, (x,))
    done = use_checkpoint(imported.module, imported.constants, read_checkpoint(path))
    imported.module.verify()
    assert done.stored == [f"{MODULE}.weight"] and f"{MODULE}.weight" not in imported.constants
    products = [op for op in imported.graph.block.ops if op.name == "ait.gemm"]
    assert [type(op.operands[1].owner).__name__ for op in products] == ["DequantizeOp"]
    got = evaluate_graph(imported.graph, {imported.inputs.tensors[0].name: x.numpy()}, imported.constants, {})
    rounded = in_groups(x, 16) if name == "fp8" else x
    found, expected = next(iter(got.values())), rounded.double() @ in_f32(path).double().T
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-5)


def in_groups(x: torch.Tensor, size: int, dtype: torch.dtype = torch.float8_e4m3fn) -> torch.Tensor:
    """Rows rounded to numbers of 8 bits, with a scale for each group of a row."""
    parts = x.unflatten(1, (-1, size))
    largest = 127.0 if dtype == torch.int8 else torch.finfo(dtype).max
    scale = parts.abs().amax(-1, keepdim=True) / largest
    near = (parts / scale).round() if dtype == torch.int8 else parts / scale
    return (near.to(dtype).float() * scale).flatten(1)


FLOAT8 = {"num_bits": 8, "type": "float", "symmetric": True}
INPUTS: dict[str, tuple[str, dict[str, Any], Callable[[torch.Tensor], torch.Tensor]]] = {
    "rows": ("fp8-rows", {**FLOAT8, "strategy": "token", "dynamic": True}, lambda x: in_groups(x, 40)),
    "groups": ("fp8", {**FLOAT8, "strategy": "group", "group_size": 8, "dynamic": True}, lambda x: in_groups(x, 8)),
    "whole": ("fp8", {**FLOAT8, "strategy": "tensor"}, lambda x: (x / 0.0078125).to(torch.float8_e4m3fn).float() * 0.0078125),
    "bytes": ("int8", {"num_bits": 8, "strategy": "token", "dynamic": True}, lambda x: in_groups(x, 40, torch.int8)),
    "other": ("fp8", {**FLOAT8, "strategy": "tensor", "dynamic": True}, lambda x: x),
}


@pytest.mark.parametrize("name", INPUTS)
def test_products_round_as_compressed_tensors_says(name: str, tmp_path: Path) -> None:
    weights, settings, expected = INPUTS[name]
    path, _ = compressed(tmp_path, weights, **settings)
    tensors = load_file(path / "model.safetensors")
    if name == "whole":
        save_file({**tensors, f"{MODULE}.input_scale": torch.tensor([0.0078125])}, path / "model.safetensors")
    checkpoint, x = read_checkpoint(path), torch.randn(3, 40)
    imported = from_torch(Layers(8, 40, F32).eval(), (x,))
    use_checkpoint(imported.module, imported.constants, checkpoint)
    got = evaluate_graph(imported.graph, {imported.inputs.tensors[0].name: x.numpy()}, imported.constants, {})
    found = next(iter(got.values()))
    np.testing.assert_allclose(found, (expected(x) @ in_f32(path).T).numpy(), rtol=1e-5, atol=1e-5)
    if name == "whole":
        for scale, message in (([0.0], "has the scale 0"), ([1.0, 2.0], r"has shape \[2\], expected one number")):
            save_file({**tensors, f"{MODULE}.input_scale": torch.tensor(scale)}, path / "model.safetensors")
            with pytest.raises(CheckpointError, match=f"{MODULE}.input_scale' {message}"):
                read_checkpoint(path)
        save_file(tensors, path / "model.safetensors")
        with pytest.raises(CheckpointError, match=f"there is no tensor '{MODULE}.input_scale'"):
            read_checkpoint(path)


@pytest.mark.parametrize("kind", ["blocks", "rows"])
def test_8_bit_floats_are_multiplied_as_they_are_stored(kind: str, tmp_path: Path) -> None:
    """On a card that multiplies them, whatever multiplies rows: a weight with another reader is one, too."""
    weight = torch.randn(256, 384).to(torch.float8_e4m3fn)
    if kind == "blocks":
        config: dict[str, Any] = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
        tensors = {f"{MODULE}.weight": weight, f"{MODULE}.weight_scale_inv": torch.rand(2, 3) + 0.5}
    else:
        group = {"targets": ["Linear"], "weights": {**FLOAT8, "strategy": "channel"}}
        group["input_activations"] = {**FLOAT8, "strategy": "token", "dynamic": True}
        config = {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"group_0": group}}
        tensors = {f"{MODULE}.weight": weight, f"{MODULE}.weight_scale": torch.rand(256, 1) + 0.5}
    path = write(tmp_path, tensors, config)
    imported = from_torch(Layers(256, 384, F16).eval(), (torch.zeros(5, 384, dtype=F16),))
    use_checkpoint(imported.module, imported.constants, read_checkpoint(path))
    run_to_phase(imported.module, "selected", CompileOptions("cuda", "sm_90a"))
    launches = [op for op in imported.module.walk() if "kernel" in op.attributes]
    assert [op.name for op in launches] == ["ait.loops", {"blocks": "ait.scaled_gemm", "rows": "ait.gemm"}[kind]]
    assert str(launches[1].operands[0].type).endswith("x f8E4M3FN>")


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_K", "Q6_K"])
def test_a_model_reads_gguf(kind: str, tmp_path: Path) -> None:
    data = gguf_blocks(kind, 3, 512)
    checkpoint = read_checkpoint(gguf_file(tmp_path / "m.gguf", {"blk.0.ffn_up.weight": (data, kind)}))
    imported = from_torch(Layers(3, 512, torch.float32).eval(), (torch.eye(512),))
    use_checkpoint(imported.module, imported.constants, checkpoint, names=lambda _: "blk.0.ffn_up.weight")
    imported.module.verify()
    got = evaluate_graph(imported.graph, {imported.inputs.tensors[0].name: np.eye(512, dtype=np.float32)}, imported.constants, {})
    expected = gguf.quants.dequantize(data, gguf.GGMLQuantizationType[kind])
    np.testing.assert_allclose(next(iter(got.values())).T, expected, rtol=1e-6)


def test_other_tensors_and_names(tmp_path: Path) -> None:
    """A tensor of the checkpoint is converted to the type of the param; params may be kept, under a pattern."""
    path = write(tmp_path, {"w": torch.full((4, 8), 1.5, dtype=BF16)}, None)
    imported = from_torch(Layers(4, 8, F16).eval(), (torch.zeros(1, 8, dtype=F16),))
    checkpoint = read_checkpoint(path)
    done = use_checkpoint(imported.module, imported.constants, checkpoint, keep=["layers.*"])
    assert done.kept == [f"{MODULE}.weight"] and not (imported.constants[f"{MODULE}.weight"] == 1.5).any()
    use_checkpoint(imported.module, imported.constants, checkpoint, names={f"{MODULE}.weight": "w"}.__getitem__)
    found = imported.constants[f"{MODULE}.weight"]
    assert found.dtype == np.float16 and (found == 1.5).all()


def test_shards(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2)}, tmp_path / "model-1.safetensors")
    save_file({"b": torch.ones(3)}, tmp_path / "model-2.safetensors")
    places = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    assert set(read_checkpoint(tmp_path).plain) == {"a", "b"}
    index.write_text(json.dumps({"weight_map": {**places, "c": "model-2.safetensors"}}))
    with pytest.raises(CheckpointError, match=r"model-2.safetensors: tensor 'c' of model.safetensors.index.json is not in it"):
        read_checkpoint(tmp_path)
    index.write_text(json.dumps({"weight_map": {"a": "../model-1.safetensors"}}))
    with pytest.raises(CheckpointError, match="is not the name of a file beside it"):
        read_checkpoint(tmp_path)


# ** checkpoints that disagree with themselves **

Change = Callable[[dict[str, torch.Tensor], dict[str, Any]], None]


def setting(**values: Any) -> Change:
    return lambda tensors, config: config.update(values)


def without(part: str) -> Change:
    def apply(tensors: dict[str, torch.Tensor], config: dict[str, Any]) -> None:
        del tensors[f"{MODULE}.{part}"]

    return apply


def changed(part: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    def apply(tensors: dict[str, torch.Tensor], config: dict[str, Any]) -> None:
        tensors[f"{MODULE}.{part}"] = change(tensors[f"{MODULE}.{part}"])

    return apply


def at(place: tuple[int, int], value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def apply(t: torch.Tensor) -> torch.Tensor:
        t = t.clone()
        t[place] = value
        return t

    return apply


def weights(**values: Any) -> Change:
    return lambda tensors, config: config["config_groups"]["group_0"]["weights"].update(values)


BAD: dict[str, tuple[Callable[[Path], tuple[Path, torch.Tensor]], Change, str]] = {
    "scale 0": (gptq, changed("scales", at((1, 2), 0)), r"model.safetensors: tensor 'layers.0.proj.scales' has the scale 0 at \[1, 2\], expected finite numbers above 0"),
    "scale below 0": (awq, changed("scales", at((0, 3), -1)), r"has the scale -1 at \[0, 3\]"),
    "scale nan": (fp8, changed("weight_scale_inv", at((2, 2), float("nan"))), r"'layers.0.proj.weight_scale_inv' has the scale nan at \[2, 2\]"),
    "scale inf": (MADE["packed"], changed("weight_scale", at((2, 0), float("inf"))), r"has the scale inf"),
    "no scales": (gptq, without("scales"), "there is no tensor 'layers.0.proj.scales'"),
    "no block scales": (fp8, without("weight_scale_inv"), "tensor 'layers.0.proj.weight' is float8_e4m3fn but has no scales"),
    "no weight_scale": (MADE["packed"], without("weight_scale"), "there is no tensor 'layers.0.proj.weight_scale'"),
    "no scale of fp8": (MADE["fp8-tensor"], without("weight_scale"), "is quantised but has no scales"),
    "no weight": (MADE["fp8-tensor"], without("weight"), "has no weight beside it"),
    "no zero points": (MADE["packed"], without("weight_zero_point"), "is missing: the config says that the weights are not symmetric"),
    "zero points of symmetric": (MADE["packed"], weights(symmetric=True), "is not 0, but the config says that the weights are symmetric"),
    "no shape": (MADE["packed"], without("weight_shape"), "there is no tensor 'layers.0.proj.weight_shape'"),
    "other shape": (MADE["packed"], changed("weight_shape", lambda t: t + 8), r"'layers.0.proj.weight_packed' has shape \[21, 12\], expected \[29, 13\]: 4 bits each of the 29 x 104"),
    "other bits": (MADE["packed"], weights(num_bits=8), r"expected \[21, 24\]: 8 bits"),
    "floats packed": (MADE["packed"], weights(num_bits=8, type="float"), "is packed, but the config says that the weights are floats"),
    "other group": (MADE["packed"], weights(group_size=48), r"'layers.0.proj.weight_scale' has shape \[21, 3\], expected \[21, 2\]"),
    "no target": (MADE["packed"], lambda _, config: config["config_groups"]["group_0"].update(targets=["re:model.*"]), "is in no group of the config"),
    "other format": (MADE["packed"], setting(format="marlin-24"), "quantization_config.format is 'marlin-24', expected one of pack-quantized"),
    "other method": (gptq, setting(quant_method="aqlm"), "is 'aqlm', expected one of compressed-tensors, gptq, awq, fp8"),
    "gptq bits": (gptq, setting(bits=3), "quantization_config.bits is 3, expected 4 or 8"),
    "gptq other bits": (gptq, setting(bits=8), r"has shape \[3, 24\], expected \[2, 24\]"),
    "gptq group": (gptq, setting(group_size=24), r"'layers.0.proj.scales' has shape \[3, 24\], expected \[4, 24\]"),
    "gptq group 0": (gptq, setting(group_size=0), "quantization_config.group_size is 0, expected -1 or a number above 0"),
    "gptq zeros": (gptq, changed("qzeros", lambda t: t[:2]), r"'layers.0.proj.qzeros' has shape \[2, 3\], expected \[3, 3\]"),
    "gptq version": (lambda f: gptq(f, sym=True), setting(checkpoint_format="gptq_v2"), "has the zero point 7, but with sym all are 8; is the checkpoint_format gptq?"),
    "gptq dtype": (gptq, changed("qweight", lambda t: t.to(torch.int64)), "has dtype int64, expected int32"),
    "moved without desc_act": (lambda f: gptq(f, moved=True), setting(desc_act=False), "moves columns between groups, but desc_act of the config is false"),
    "no g_idx": (lambda f: gptq(f, moved=True), without("g_idx"), "'layers.0.proj.g_idx' is missing: the config says that the columns were ordered"),
    "g_idx of other length": (lambda f: gptq(f, moved=True), changed("g_idx", lambda t: t[:5]), r"has shape \[5\], expected \[96\]"),
    "g_idx beyond": (lambda f: gptq(f, moved=True), changed("g_idx", lambda t: t + 1), "has the group 3, expected 0 to 2"),
    "g_idx uneven": (lambda f: gptq(f, moved=True), changed("g_idx", torch.zeros_like), "puts 96 columns into group 0, expected 32"),
    "awq bits": (awq, setting(bits=8), "quantization_config.bits is 8, expected 4"),
    "awq version": (awq, setting(version="gemv"), "is 'gemv', expected gemm"),
    "awq zeros": (awq, without("qzeros"), "there is no tensor 'layers.0.proj.qzeros'"),
    "fp8 static": (fp8, setting(activation_scheme="static"), "activation_scheme is 'static', expected dynamic"),
    "fp8 of floats": (fp8, setting(modules_to_not_convert=["layers.0"]), "'layers.0.proj.weight_scale_inv' has scales, but the module is in modules_to_not_convert"),
    "fp8 fnuz": (fp8, setting(fmt="e4m3fnuz"), "is 'e4m3fnuz', expected e4m3"),
    "fp8 blocks": (fp8, setting(weight_block_size=[32, 16]), r"has shape \[4, 6\], expected \[2, 6\]"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_checkpoint_that_disagrees_with_itself(name: str, tmp_path: Path) -> None:
    make, change, message = BAD[name]
    path, _ = make(tmp_path)
    tensors = load_file(path / "model.safetensors")
    config = json.loads((path / "config.json").read_text())["quantization_config"]
    change(tensors, config)
    write(path, tensors, config)
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(path)


def test_files_that_are_no_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no such file or folder"):
        read_checkpoint(tmp_path / "none")
    with pytest.raises(CheckpointError, match=r"has no .safetensors file"):
        read_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no header")
    with pytest.raises(CheckpointError, match=r"model.safetensors: .* no safetensors file"):
        read_checkpoint(tmp_path)
    gptq(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config.json: the config is no JSON"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"qweight' of int32 is a quantised weight, but the config does not say how"):
        read_checkpoint(tmp_path)


HEADS = {"block_count": 2, "attention__head_count": 4, "attention__head_count_kv": 2}


def of_llama(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows as llama.cpp stores those of q and k: of each head, the first of both halves, then the second, and so on."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def test_gguf_by_the_names_of_transformers(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    values = {name: random.standard_normal((rows, 64)).astype(np.float32) for name, rows in (("q", 32), ("k", 16), ("v", 16))}
    bias = random.standard_normal(32).astype(np.float32)
    quant = gguf.GGMLQuantizationType.Q8_0

    def bytes_of(x: np.ndarray) -> tuple[np.ndarray, str]:
        return gguf.quants.quantize(x, quant), "Q8_0"

    tensors: dict[str, tuple[np.ndarray, str | None]] = {
        "blk.1.attn_q.weight": bytes_of(of_llama(values["q"], 4)),
        "blk.1.attn_q.bias": (of_llama(bias, 4), None),
        "blk.1.attn_k.weight": bytes_of(of_llama(values["k"], 2)),
        "blk.1.attn_v.weight": bytes_of(values["v"]),
        "token_embd.weight": (np.ones((5, 64), np.float32), None),
        "output_norm.weight": (np.full(64, 3, np.float32), None),
    }
    checkpoint = read_checkpoint(gguf_file(tmp_path / "m.gguf", tensors, **HEADS))
    for letter, rows in values.items():
        found = checkpoint.get(f"model.layers.1.self_attn.{letter}_proj.weight")
        expected = gguf.quants.dequantize(gguf.quants.quantize(rows, quant), quant)
        np.testing.assert_array_equal(found.values(), expected, err_msg=letter)  # type: ignore[union-attr]
    np.testing.assert_array_equal(checkpoint.get("model.layers.1.self_attn.q_proj.bias"), bias)  # type: ignore[arg-type]
    assert checkpoint.get("lm_head.weight") is checkpoint.plain["token_embd.weight"]
    assert checkpoint.get("model.layers.2.self_attn.q_proj.weight") is None and checkpoint.get("other") is None
    stored = checkpoint.get("blk.1.attn_q.weight")
    np.testing.assert_array_equal(stored.values()[1], found_row(values["q"], 4))  # type: ignore[union-attr]
    gemma = read_checkpoint(gguf_file(tmp_path / "g.gguf", {"output_norm.weight": tensors["output_norm.weight"]}, "gemma2", **HEADS))
    assert (gemma.get("model.norm.weight") == 2).all()  # type: ignore[union-attr]
    assert read_checkpoint(gguf_file(tmp_path / "b.gguf", {}, "bloom", **HEADS)).of_model is None
    odd = read_checkpoint(gguf_file(tmp_path / "o.gguf", {"blk.0.attn_k.weight": (np.ones((6, 64), np.float32), None)}, **HEADS))
    with pytest.raises(CheckpointError, match=r"'blk.0.attn_k.weight' has 6 rows, which 2 heads do not share in pairs"):
        odd.get("model.layers.0.self_attn.k_proj.weight")


def found_row(rows: np.ndarray, heads: int) -> np.ndarray:
    """The second row as GGUF stores it: the first of the second half of the first head, rounded."""
    quant = gguf.GGMLQuantizationType.Q8_0
    return gguf.quants.dequantize(gguf.quants.quantize(of_llama(rows, heads), quant), quant)[1]


@pytest.mark.parametrize("kind", ("Q4_1", "Q6_K"))
def test_gguf_of_experts(kind: str, tmp_path: Path) -> None:
    """Experts one by one, all of them, and the two halves of a first layer together, as a model reads them."""
    rows, columns = 6, 256
    parts = {name: gguf_blocks(kind, 3 * rows, columns) for name in ("gate", "up")}
    tensors: dict[str, tuple[np.ndarray, str | None]] = {
        f"blk.0.ffn_{name}_exps.weight": (data.reshape(3, rows, -1), kind) for name, data in parts.items()
    }
    checkpoint = read_checkpoint(gguf_file(tmp_path / "m.gguf", tensors, "qwen3moe", block_count=1))
    quant = gguf.GGMLQuantizationType[kind]
    gate, up = (gguf.quants.dequantize(parts[n], quant).reshape(3, rows, columns) for n in ("gate", "up"))
    np.testing.assert_array_equal(checkpoint.weights["blk.0.ffn_gate_exps.weight"].values(), gate)
    base = "model.layers.0.mlp.experts"
    np.testing.assert_array_equal(checkpoint.get(f"{base}.2.up_proj.weight").values(), up[2])  # type: ignore[union-attr]
    assert checkpoint.get(f"{base}.3.up_proj.weight") is None
    both = checkpoint.get(f"{base}.gate_up_proj")
    np.testing.assert_array_equal(both.values(), np.concatenate([gate, up], 1))  # type: ignore[union-attr]

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate_up_proj = torch.nn.Parameter(torch.zeros(3, 2 * rows, columns))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.gate_up_proj.mT

    x = torch.randn(3, 2, columns)
    imported = from_torch(Layer().eval(), (x,))
    done = use_checkpoint(imported.module, imported.constants, checkpoint, names=lambda name: f"{base}.{name}")
    assert done.stored == ["gate_up_proj"]
    got = evaluate_graph(imported.graph, {imported.inputs.tensors[0].name: x.numpy()}, imported.constants, {})
    found = next(iter(got.values()))
    np.testing.assert_allclose(found, (x @ torch.from_numpy(np.concatenate([gate, up], 1)).mT).numpy(), rtol=1e-4, atol=1e-3)


def test_damaged_gguf(tmp_path: Path) -> None:
    path = gguf_file(tmp_path / "m.gguf", {"w": (gguf_blocks("Q4_K", 2, 256), "Q4_K")})
    whole = path.read_bytes()
    for size in (0, 3, 20, 60, len(whole) - 40):
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match=r"m.gguf: is no GGUF file, or a damaged one"):
            read_checkpoint(path)
    nan = gguf_blocks("Q4_K", 2, 256)
    nan[1, 0:2] = np.array([np.nan], np.float16).view(np.uint8)
    path = gguf_file(tmp_path / "n.gguf", {"w": (nan, "Q4_K")})
    with pytest.raises(CheckpointError, match=r"n.gguf: tensor 'w' has a scale.scale at \[1, 0\] that is not finite"):
        read_checkpoint(path)
    tq = gguf.quants.quantize(np.ones((2, 256), np.float32), gguf.GGMLQuantizationType.TQ1_0)
    path = gguf_file(tmp_path / "t.gguf", {"w": (tq, "TQ1_0")})
    with pytest.raises(CheckpointError, match=r"tensor 'w' has type TQ1_0, expected one of Q4_0"):
        read_checkpoint(path)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`ait import --checkpoint` writes the stored arrays beside a text that reads them; the text compiles."""
    monkeypatch.chdir(tmp_path)
    path, weight = awq(tmp_path)
    (tmp_path / "build.py").write_text(
        "import torch\n\n\ndef build():\n    inner = torch.nn.ModuleDict({'proj': torch.nn.Linear(64, 24)})\n"
        "    class Model(torch.nn.Module):\n        def __init__(self):\n            super().__init__()\n"
        "            self.layers = torch.nn.ModuleList([inner])\n"
        "        def forward(self, x):\n            return self.layers[0]['proj'](x)\n"
        "    return Model().eval(), (torch.zeros(2, 64),)\n"
    )
    assert main(["import", "build.py:build", "-o", "m.mlir", "--checkpoint", str(path)]) == 1
    assert "param 'layers.0.proj.bias' is not in the checkpoint" in capsys.readouterr().err
    assert main(["import", "build.py:build", "-o", "m.mlir", "--checkpoint", str(path), "--keep", "*.bias"]) == 0
    assert "of them 1 as stored; 1 kept" in capsys.readouterr().out
    assert "ait.dequantize" in (tmp_path / "m.mlir").read_text()
    found = load_file(tmp_path / "m.safetensors")
    assert {"numbers", "scale", "zero"} == {n.rpartition(".")[2] for n in found} - {"bias"}
    assert main(["compile", "m.mlir", "--weights", "m.safetensors", "--to", "selected"]) == 0
    assert weight.shape == (24, 64)


def test_compile_takes_a_checkpoint(tmp_path: Path) -> None:
    path, _ = gptq(tmp_path, moved=True)
    weight, x = in_f32(path), torch.randn(2, 96)
    compiled = ait_mlir.compile(Layers(24, 96, F32).eval(), (x,), checkpoint=path)
    torch.testing.assert_close(compiled(x), x @ weight.T)


def test_a_model_that_does_not_fit(tmp_path: Path) -> None:
    path, _ = awq(tmp_path)
    checkpoint = read_checkpoint(path)
    imported = from_torch(Layers(8, 8, F32).eval(), (torch.zeros(1, 8),))
    with pytest.raises(CheckpointError, match=r"tensor 'layers.0.proj.weight' has shape \[24, 64\], but the model's param 'layers.0.proj.weight' has shape \[8, 8\]"):
        use_checkpoint(imported.module, imported.constants, checkpoint)
    with pytest.raises(CheckpointError, match=r"the model's param 'layers.0.proj.weight' is not in the checkpoint, under the name 'other'"):
        use_checkpoint(imported.module, imported.constants, checkpoint, names=lambda _: "other")
