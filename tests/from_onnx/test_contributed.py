"""Operators of `com.microsoft` beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
onnxruntime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from ait_mlir.importers.onnx import backend  # noqa: E402
from tests.from_onnx import suite  # noqa: E402

helper = onnx.helper
RNG = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def check(
    op: str, inputs: list[Any], results: int = 1, last: Any = np.float32, some: int = 3, **attributes: Any
) -> None:
    """The first `some` results beside those of onnxruntime; the last one has elements of the type `last`."""
    names = [f"x{i}" if v is not None else "" for i, v in enumerate(inputs)]
    given = {n: v for n, v in zip(names, inputs, strict=True) if v is not None}
    outputs = [f"y{i}" for i in range(results)]
    node = helper.make_node(op, names, outputs, domain="com.microsoft", **attributes)
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in given.items()
    ]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]

    types = [np.float32] * (results - 1) + [last]
    kinds = [
        helper.make_tensor_value_info(o, helper.np_dtype_to_tensor_dtype(np.dtype(t)), ["a"])
        for o, t in zip(outputs, types, strict=True)
    ]
    graph = helper.make_graph([node], "g", values, kinds)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = session.run(None, given)
    found = backend.Rep(model, "cpu", suite.by_reference).run([*given.values()])
    for a, b in zip(found[:some], expected[:some], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


SIZE = 16
TABLES = [floats(16, SIZE // 2), floats(16, SIZE // 2)]
GROUPED: dict[str, dict[str, Any]] = {
    "plain": {},
    "packed": {"packed": True},
    "past": {"past": 5, "rows": 1},
    "window": {"local_window_size": 3},
    "window of a cache": {"past": 5, "rows": 1, "local_window_size": 3},
    "rotary": {"do_rotary": 1},
    "interleaved": {"do_rotary": 1, "rotary_interleaved": 1, "past": 5, "rows": 1},
    "several rows": {"past": 5, "rows": 3, "batch": 1, "do_rotary": 1},
    "softcap": {"softcap": 2.0, "past": 5, "rows": 1},
    "smooth": {"smooth_softmax": 1},
    "scale": {"scale": 0.7},
}


@pytest.mark.parametrize("name", GROUPED)
def test_attention_of_groups(name: str) -> None:
    attributes = dict(GROUPED[name])
    past, rows, batch = attributes.pop("past", 0), attributes.pop("rows", 4), attributes.pop("batch", 2)
    q, k, v = (floats(batch, rows, heads * SIZE) for heads in (4, 2, 2))
    first = [np.concatenate([q, k, v], 2), None, None] if attributes.pop("packed", False) else [q, k, v]
    cache = [floats(batch, 2, past, SIZE), floats(batch, 2, past, SIZE)] if past else [None, None]
    lengths, whole = np.full(batch, past + rows - 1, np.int32), np.array(past + rows, np.int32)
    tables = TABLES if attributes.get("do_rotary") else []
    inputs = [*first, *cache, lengths, whole, *tables]
    check("GroupQueryAttention", inputs, 3, num_heads=4, kv_num_heads=2, **attributes)


def test_sequences_of_a_cache_have_their_own_lengths() -> None:
    q, k, v = (floats(3, 1, heads * SIZE) for heads in (4, 2, 2))
    cache = [floats(3, 2, 5, SIZE), floats(3, 2, 5, SIZE)]
    inputs = [q, k, v, *cache, np.array([5, 2, 3], np.int32), np.array(6, np.int32), *TABLES]
    check("GroupQueryAttention", inputs, 3, some=1, num_heads=4, kv_num_heads=2, do_rotary=1)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embeddings(interleaved: int) -> None:
    at = np.array([[3, 1, 0], [7, 8, 9]])
    check("RotaryEmbedding", [floats(2, 3, 2 * SIZE), at, *TABLES], interleaved=interleaved)
    check("RotaryEmbedding", [floats(2, 4, 3, SIZE), np.array([2]), *TABLES], interleaved=interleaved)


def test_attention_of_several_heads() -> None:
    q, k, v = floats(2, 3, 16), floats(2, 5, 16), floats(2, 5, 8)
    check("MultiHeadAttention", [q, k, v, floats(40)], num_heads=2)
    check("MultiHeadAttention", [q, k, v, None, None, floats(2, 2, 3, 5)], num_heads=2, scale=0.3)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    check("MultiHeadAttention", [q, k, v, None, mask], num_heads=2)
    check("MultiHeadAttention", [q, floats(2, 3, 16), floats(2, 3, 16)], num_heads=2, unidirectional=1)


def test_attention_with_its_projection() -> None:
    x, weight, bias = floats(2, 4, 6), floats(6, 48), floats(48)
    check("Attention", [x, weight, bias], num_heads=2)
    check("Attention", [x, weight, bias], num_heads=2, unidirectional=1)
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1]], np.int32)
    check("Attention", [x, weight, bias, mask], num_heads=2)
    check("Attention", [x, floats(6, 40), floats(40)], num_heads=2, qkv_hidden_sizes=[16, 16, 8])


def test_embeddings_of_bert() -> None:
    ids, kinds = np.array([[1, 4, 2], [0, 3, 3]], np.int32), np.array([[0, 0, 1], [0, 1, 1]], np.int32)
    tables = [floats(5, 8), floats(6, 8), floats(2, 8), floats(8), floats(8)]
    check("EmbedLayerNormalization", [ids, kinds, *tables], 2, np.int32, epsilon=1e-5)
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    check("EmbedLayerNormalization", [ids, kinds, *tables, mask], 2, np.int32, epsilon=1e-5)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("second", [0, 1])
def test_products_with_transposed_operands(first: int, second: int) -> None:
    """transBatch moves the first dim behind the batch; trans swaps the last two."""
    a = floats(3, 2, 4) if first else floats(2, 3, 4)
    b = floats(2, 5, 4) if second else floats(2, 4, 5)
    check("FusedMatMul", [a, b], transBatchA=first, transB=second, alpha=0.5)


def test_columns_of_packed_weights_have_any_block() -> None:
    packed = RNG.integers(0, 256, (6, 2, 8)).astype(np.uint8)
    blocks = np.array([i % 2 for i in range(32)], np.int32)
    inputs = [floats(3, 32), packed, floats(12), None, blocks]
    check("MatMulNBits", inputs, N=6, K=32, bits=4, block_size=16)
