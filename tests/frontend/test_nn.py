"""Layers against torch, with the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ait_mlir.frontend import BuildError, IntVar, Tensor, nn, ops
from benchmarks.peers import bert as peer
from examples.models.bert import BertConfig, BertEncoder, BertModel
from tests.frontend.support import evaluate, graph_of

SMALL = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 16,
}


def make_input(*last, dtype: str = "float64", name: str = "x") -> Tensor:
    batch, seq = IntVar([1, 4], name="batch"), IntVar([1, 16], name="seq")
    return Tensor(shape=[batch, seq, *last], dtype=dtype, name=name, is_input=True)


def weights_of(module: nn.Module, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(p.tensor().type.static_shape()) for name, p in module.named_parameters()}


def run(module: nn.Module, weights: dict[str, np.ndarray], x: np.ndarray, *extras: np.ndarray) -> np.ndarray:
    module.name_parameter_tensor(separator=".")
    tensors = [make_input(a.shape[-1], name=f"x{i}") for i, a in enumerate([x, *extras])]
    inputs = {f"x{i}": a for i, a in enumerate([x, *extras])}
    (got,) = evaluate(module(*tensors), inputs, weights, batch=x.shape[0], seq=x.shape[1])
    return got


@pytest.mark.parametrize(
    "specialization, function",
    [
        (None, lambda y: y),
        ("relu", torch.relu),
        ("gelu", F.gelu),
        ("fast_gelu", lambda y: F.gelu(y, approximate="tanh")),
        ("add", lambda y, d: y + d),
        ("add_relu", lambda y, d: torch.relu(y + d)),
        ("mul", lambda y, d: y * d),
    ],
)
def test_linear(specialization, function):
    layer = nn.Linear(6, 5, specialization=specialization, dtype="float64")
    weights = weights_of(layer)
    rng = np.random.default_rng(1)
    x, d = rng.standard_normal((2, 3, 6)), rng.standard_normal((2, 3, 5))
    extras = [d] if specialization in ("add", "add_relu", "mul") else []
    y = torch.from_numpy(x @ weights["weight"].T + weights["bias"])
    want = function(y, *map(torch.from_numpy, extras))
    np.testing.assert_allclose(run(layer, weights, x, *extras), want.numpy(), rtol=1e-10, atol=1e-12)


def test_linear_without_bias_and_bad_specializations():
    layer = nn.Linear(6, 5, bias=False, dtype="float64")
    weights = weights_of(layer)
    assert list(weights) == ["weight"]
    x = np.random.default_rng(1).standard_normal((2, 3, 6))
    np.testing.assert_allclose(run(layer, weights, x), x @ weights["weight"].T, rtol=1e-10)
    with pytest.raises(BuildError, match="gemm_rcr_bias_cube"):
        nn.Linear(6, 5, specialization="cube")


def test_multihead_attention():
    layer = nn.MultiheadAttention(12, num_heads=3, qkv_bias=True, dtype="float64")
    weights = weights_of(layer)
    rng = np.random.default_rng(1)
    x, residual = rng.standard_normal((2, 5, 12)), rng.standard_normal((2, 5, 12))
    want, _ = F.multi_head_attention_forward(
        torch.from_numpy(x).transpose(0, 1), *[torch.from_numpy(x).transpose(0, 1)] * 2, 12, 3,
        torch.from_numpy(weights["qkv.weight"]), torch.from_numpy(weights["qkv.bias"]), None, None, False, 0.0,
        torch.from_numpy(weights["proj.weight"]), torch.from_numpy(weights["proj.bias"]), training=False,
    )  # fmt: skip
    want = want.transpose(0, 1) + torch.from_numpy(residual)
    np.testing.assert_allclose(run(layer, weights, x, residual), want.numpy(), rtol=1e-8, atol=1e-10)
    with pytest.raises(BuildError, match="5 heads do not divide dim 12"):
        nn.MultiheadAttention(12, num_heads=5)


def test_multihead_attention_takes_the_sizes_of_aitemplate():
    layer = nn.MultiheadAttention(12, 2, 5, 3, has_residual=False, use_mem_eff=True)
    assert [name for name, _ in layer.named_parameters()] == ["qkv.weight", "proj.weight", "proj.bias"]
    with pytest.raises(BuildError, match="mask_seq is not supported"):
        nn.MultiheadAttention(12, 2, 5, 3, mask_seq=1)


@pytest.mark.parametrize("has_residual", [True, False])
def test_cross_attention(has_residual):
    layer = nn.CrossAttention(12, 5, 5, 3, qkv_bias=True, has_residual=has_residual, dtype="float64")
    weights = weights_of(layer)
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((2, length, 12)) for length in (5, 5, 5))
    residual = [rng.standard_normal((2, 5, 12))] if has_residual else []
    parts = [
        torch.from_numpy(x @ weights[f"proj_{n}.weight"].T + weights[f"proj_{n}.bias"]).unflatten(2, (3, 4))
        for n, x in zip("qkv", (q, k, v), strict=True)
    ]
    made = F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in parts)).transpose(1, 2).flatten(2).numpy()
    want = made @ weights["proj.weight"].T + weights["proj.bias"] + sum(residual)
    np.testing.assert_allclose(run(layer, weights, q, k, v, *residual), want, rtol=1e-8, atol=1e-10)
    with pytest.raises(BuildError, match="CrossAttention: 5 heads do not divide dim 12"):
        nn.CrossAttention(12, 5, 7, 5)


def test_views_as_layers():
    x = Tensor(shape=[2, 3, 4], name="x", is_input=True)
    assert nn.Reshape()(x, [-1, 6]).shape() == nn.View()(x, [4, 6]).shape() == [4, 6]
    assert nn.Flatten(1)(x).shape() == [2, 12] and nn.Flatten()(x).shape() == [24]


def test_names_of_parameters():
    model = nn.Sequential(nn.Linear(4, 4), nn.Identity(), nn.Dropout(0.1), nn.LayerNorm(4))
    names = ["0.weight", "0.bias", "3.weight", "3.bias"]
    assert [name for name, _ in model.named_parameters()] == names
    model.name_parameter_tensor()
    assert [p.tensor().name for p in model.parameters()] == ["0_weight", "0_bias", "3_weight", "3_bias"]
    model.name_parameter_tensor(prefix="top.", separator=".")
    assert [p.tensor().name for p in model.parameters()] == ["top." + name for name in names]
    assert len(model) == 4
    assert isinstance(model[3], nn.LayerNorm)


def test_parameters_can_bring_their_data():
    parameter = nn.Parameter([2, 2], "float32", name="w", value=np.eye(2, dtype=np.float32))
    assert parameter.value() is not None
    assert "w" in repr(parameter)
    with pytest.raises(BuildError, match="dtype did not match: expected float32, got float64"):
        nn.Parameter([2, 2], "float32", value=np.eye(2))


@pytest.mark.parametrize("batch, seq", [(1, 1), (2, 7), (4, 16)])
def test_bert_model_answers_like_torch(batch, seq):
    theirs = peer.randomize(peer.BertModel(peer.BertConfig(**SMALL))).double().eval()
    ours = BertModel(BertConfig(**SMALL, dtype="float64"))
    weights = {name: value.numpy() for name, value in theirs.state_dict().items()}
    assert [name for name, _ in ours.named_parameters()] == list(weights)
    ours.name_parameter_tensor(separator=".")
    ids = [make_input(dtype="int64", name=name) for name in ("input_ids", "token_type_ids", "position_ids")]
    rng = np.random.default_rng(0)
    values = [rng.integers(0, high, (batch, seq)) for high in (50, 2, 16)]
    inputs = dict(zip(("input_ids", "token_type_ids", "position_ids"), values, strict=True))
    (got,) = evaluate(ours(*ids), inputs, weights, batch=batch, seq=seq)
    with torch.inference_mode():
        want = theirs(*map(torch.from_numpy, values))
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-10)


def test_bert_base_builds_quickly():
    x = make_input(768, dtype="float16")
    graph = graph_of(BertEncoder(BertConfig())(x))
    assert len(graph.params()) == 12 * 16
    assert [str(d) for d in graph.outputs()[0].value.type.dims] == ["batch", "seq", "768"]


POOLS = {
    "MaxPool2d": (2,),
    "AvgPool2d": (3, 2, 1, True, False),
    "AdaptiveAvgPool2d": (3,),
    "AdaptiveMaxPool2d": ((2, 4),),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools_are_those_of_torch(name):
    x = np.random.default_rng(0).standard_normal((2, 7, 5, 3))
    given = Tensor(shape=list(x.shape), dtype="float64", name="x", is_input=True)
    (got,) = evaluate(getattr(nn, name)(*POOLS[name])(given), {"x": x})
    want = getattr(torch.nn, name)(*POOLS[name])(torch.from_numpy(x).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    np.testing.assert_allclose(got, want.numpy())


def test_upsampling_is_that_of_torch():
    x = np.random.default_rng(0).standard_normal((2, 4, 5, 3))
    given = Tensor(shape=list(x.shape), dtype="float64", name="x", is_input=True)
    linear, nearest = nn.Upsampling2d(1.5, "bilinear"), nn.Upsampling2dAdd(1.0, "nearest")
    got = evaluate(linear(nearest(given, given)), {"x": x})[0]
    want = torch.nn.Upsample(scale_factor=1.5, mode="bilinear")(torch.from_numpy(2 * x).permute(0, 3, 1, 2))
    np.testing.assert_allclose(got, want.permute(0, 2, 3, 1).numpy())


def test_layers_of_detectors():
    x = np.random.default_rng(0).standard_normal((1, 16, 16, 3))
    rois = np.array([[0.0, 2, 2, 9, 9], [0, 1, 3, 12, 9]])
    given = Tensor(shape=list(x.shape), dtype="float64", name="x", is_input=True)
    regions = Tensor(shape=[2, 5], dtype="float64", name="r", is_input=True)
    padded = nn.Nhwc3to8()(given)
    one = nn.RoiAlign(2, 3, 2, 0.25, False, True)(padded, regions)
    coarse = [ops.dynamic_slice()(padded, [None] * 4, [None, n, n, None]) for n in (8, 4, 2)]
    several = nn.FPNRoiAlign(2, 3, 2, 0.25, False, True, (64, 64))(padded, *coarse, regions)
    first, second = evaluate([one, several], {"x": x, "r": rois})
    assert first.shape == (2, 3, 3, 8) and not first[..., 3:].any() and first[..., :3].any()
    np.testing.assert_array_equal(first, second)
    volume = Tensor(shape=[1, 2, 2, 2, 3], dtype="float64", name="v", is_input=True)
    (wide,) = evaluate(nn.Ndhwc3to8()(volume), {"v": x[:, :2, :4, :].reshape(1, 2, 2, 2, -1)[..., :3]})
    assert wide.shape == (1, 2, 2, 2, 8) and not wide[..., 3:].any()


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_as_a_layer(approximate):
    x = np.random.default_rng(0).standard_normal((2, 3, 8))
    np.testing.assert_allclose(
        run(nn.GELU(approximate), {}, x), F.gelu(torch.from_numpy(x), approximate=approximate).numpy(), rtol=1e-9
    )
    with pytest.raises(BuildError, match='approximate is "none" or "tanh"'):
        nn.GELU("sigmoid")


def test_gated_layers_of_t5():
    layers = nn.T5DenseGatedGeluDense(8, 12, dtype="float64")
    w = weights_of(layers)
    assert {n: a.shape for n, a in w.items()} == {"wi_0.weight": (12, 8), "wi_1.weight": (12, 8), "wo.weight": (8, 12)}
    x = np.random.default_rng(0).standard_normal((2, 3, 8))
    gate = F.gelu(torch.from_numpy(x @ w["wi_0.weight"].T), approximate="tanh").numpy()
    np.testing.assert_allclose(run(layers, w, x), gate * (x @ w["wi_1.weight"].T) @ w["wo.weight"].T, rtol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "stride", "pad"), [((1, 3, 3), (1, 2, 2), (0, 1, 1)), ((3, 2, 3), 2, 1), (2, None, 0)]
)
def test_max_pool_of_three_dims(kernel, stride, pad):
    from ait_mlir.frontend.nn.pool3d import MaxPool3d

    assert MaxPool3d is nn.MaxPool3d
    x = np.random.default_rng(0).standard_normal((2, 4, 6, 7, 3))
    tensor = Tensor(shape=[IntVar([1, 4], name="batch"), 4, 6, 7, 3], dtype="float64", name="x", is_input=True)
    (got,) = evaluate(MaxPool3d(kernel, stride, pad)(tensor), {"x": x}, {}, batch=2)
    want = F.max_pool3d(torch.from_numpy(x).permute(0, 4, 1, 2, 3), kernel, stride, pad).permute(0, 2, 3, 4, 1)
    np.testing.assert_array_equal(got, want.numpy())


def test_max_pool_of_three_dims_says_what_it_takes():
    with pytest.raises(BuildError, match=r"x is \[N, D, H, W, C\]"):
        nn.MaxPool3d(2)(make_input(4, 4))
    with pytest.raises(BuildError, match="kernel_size is a number, or one for each of D, H and W"):
        nn.MaxPool3d((2, 2))
