"""Layers that AITemplate has for single models: proposals, attention written out, embeddings."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ait_mlir.frontend import BuildError, IntVar, Tensor, nn
from tests.frontend.support import evaluate

RNG = np.random.default_rng(0)


def given(name: str, *shape, dtype: str = "float64") -> Tensor:
    return Tensor(shape=list(shape), dtype=dtype, name=name, is_input=True)


def weights_of(module: nn.Module) -> dict[str, np.ndarray]:
    module.name_parameter_tensor(separator=".")
    return {name: RNG.standard_normal(p.tensor().type.static_shape()) for name, p in module.named_parameters()}


# ** proposals **


def test_anchors():
    boxes = nn.proposal.generate_anchors(ratios=(0.5, 2), scales=(8, 16))
    wide, high = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    np.testing.assert_allclose(wide * high, [64, 64, 256, 256])
    np.testing.assert_allclose(high / wide, [0.5, 2, 0.5, 2])
    shifted = nn.proposal.generate_shifted_anchors(17, 33, 16, (8,), (1,), 2, "float32")
    assert shifted.shape == (2 * 2 * 3, 4) and shifted.dtype == np.float32
    np.testing.assert_array_equal(shifted[:6], shifted[6:])  # each image has the same
    np.testing.assert_array_equal(shifted[:6, :2] + 4, [[0, 0], [16, 0], [32, 0], [0, 16], [16, 16], [32, 16]])


def moved(deltas: np.ndarray, anchors: np.ndarray, height: float, width: float) -> np.ndarray:
    size = anchors[:, 2:] - anchors[:, :2]
    centre = anchors[:, :2] + size / 2 + deltas[:, :2] * size
    half = size * np.exp(deltas[:, 2:]) / 2
    return np.clip(np.hstack([centre - half, centre + half]), 0, [width, height, width, height])


OPTIONS = {"clip_box": True, "rpn_pre_nms_top_n": 20, "rpn_post_nms_top_n": 3, "dtype": "float64"}


def test_boxes_are_moved_anchors():
    layer = nn.Proposal((24, 40), 8, (8, 16), (1, 2), nms_on=False, batch_size=2, **OPTIONS)
    deltas = RNG.standard_normal((2, 3, 5, 16)) * 0.5
    (found,) = evaluate(layer(given("d", 2, 3, 5, 16)), {"d": deltas}, {"anchors": layer._anchors})
    np.testing.assert_allclose(found, moved(deltas.reshape(-1, 4), layer._anchors, 24, 40))
    free = nn.Proposal((24, 40), 8, (8, 16), (1, 2), **OPTIONS | {"clip_box": False, "nms_on": False, "level": 3})
    (found,) = evaluate(free(given("d", 1, 3, 5, 16)), {"d": deltas[:1]}, {"anchors_3": free._anchors})
    sides = deltas[0].reshape(-1, 4), free._anchors
    np.testing.assert_allclose(np.clip(found, 0, [40, 24, 40, 24]), moved(*sides, 24, 40), atol=1e-12)
    assert found.min() < 0  # the first anchors reach out of the image


def test_the_best_boxes_of_each_image():
    layer = nn.Proposal((24, 40), 8, (8,), (1,), batch_size=2, iou_threshold=0.1, **OPTIONS)
    deltas = np.zeros((2, 3, 5, 4))
    scores = np.stack([np.arange(15.0), np.arange(15.0)[::-1]]).reshape(2, 3, 5, 1)
    regions, boxes = evaluate(
        list(layer(given("d", 2, 3, 5, 4), given("s", 2, 3, 5, 1))),
        {"d": deltas, "s": scores},
        {"anchors": layer._anchors},
    )
    assert regions.shape == (6, 5) and boxes.shape == (6, 4)
    np.testing.assert_array_equal(regions[:, 0], [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(regions[:, 1:], boxes)
    all_boxes = moved(deltas.reshape(-1, 4), layer._anchors, 24, 40)
    np.testing.assert_array_equal(boxes[:3], all_boxes[14:11:-1])  # they do not overlap: by scores alone
    np.testing.assert_array_equal(boxes[3:], all_boxes[15:18])


def test_proposals_from_several_levels():
    sizes = {"feat_strides": (8, 16), "scales": ((8,), (16,)), "ratios": (1,)}
    layer = nn.FPNProposal((32, 32), nms_on=False, **sizes, **OPTIONS)
    deltas = [RNG.standard_normal((1, n, n, 4)) for n in (4, 2)]
    params = {f"anchors_{i}": data for i, data in enumerate(layer._anchors, 2)}
    inputs = dict(zip(("d0", "d1"), deltas, strict=True))
    tensors = [given(name, *data.shape) for name, data in inputs.items()]
    for found, delta, anchors in zip(evaluate(layer(tensors), inputs, params), deltas, layer._anchors, strict=True):
        np.testing.assert_allclose(found, moved(delta.reshape(-1, 4), anchors, 32, 32))
    best = nn.FPNProposal((32, 32), **sizes, **OPTIONS)
    tensors = [given(name, *data.shape) for name, data in inputs.items()]
    regions, boxes = evaluate(list(best(tensors, given("s", 20))), inputs | {"s": np.arange(20.0)}, params)
    assert regions.shape == (3, 5) and boxes.shape == (1, 3, 4) and not regions[:, 0].any()
    np.testing.assert_array_equal(regions[:, 1:], boxes[0])


def test_wrong_proposals():
    layer = nn.Proposal((24, 40), 8, (8,), (1,))
    with pytest.raises(BuildError, match="nms_on needs the scores"):
        layer(given("d", 1, 3, 5, 4, dtype="float16"))
    with pytest.raises(BuildError, match="nms_on is for one image, not 2"):
        nn.FPNProposal((24, 40), batch_size=2)
    with pytest.raises(BuildError, match="1 predictions for 5 levels"):
        nn.FPNProposal((24, 40), nms_on=False)([given("d", 1, 3, 5, 4, dtype="float16")])


# ** attention **


def torch_attention(q, k, v, heads: int, mask=None) -> torch.Tensor:
    q, k, v = (torch.from_numpy(t).unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_written_out(causal: bool):
    batch, seq = IntVar([1, 4], name="batch"), 5
    mask = np.triu(np.full((1, seq, seq), -np.inf), 1)
    layer = nn.VanillaMultiheadAttention(
        12, -1, seq, 3, True, causal=causal, attn_mask=given("m", 1, seq, seq) if causal else None, dtype="float64"
    )
    weights = weights_of(layer)
    x, d = RNG.standard_normal((2, 2, seq, 12))
    inputs = {"x": x, "d": d, **({"m": mask} if causal else {})}
    (found,) = evaluate(layer(given("x", batch, seq, 12), given("d", batch, seq, 12)), inputs, weights, batch=2)
    q, k, v = np.split(x @ weights["qkv.weight"].T + weights["qkv.bias"], 3, axis=-1)
    attended = torch_attention(q, k, v, 3, torch.from_numpy(mask[0]) if causal else None).numpy()
    np.testing.assert_allclose(found, attended @ weights["proj.weight"].T + weights["proj.bias"] + d, atol=1e-9)


def test_cross_attention_written_out():
    layer = nn.VanillaCrossAttention(8, 3, 5, 2, has_residual=False, dtype="float64")
    weights = weights_of(layer)
    q, k, v = RNG.standard_normal((2, 3, 8)), RNG.standard_normal((2, 5, 8)), RNG.standard_normal((2, 5, 8))
    inputs = {"q": q, "k": k, "v": v}
    (found,) = evaluate(layer(*(given(n, *t.shape) for n, t in inputs.items())), inputs, weights)
    parts = [t @ weights[f"proj_{n}.weight"].T for n, t in inputs.items()]
    want = torch_attention(*parts, 2).numpy() @ weights["proj.weight"].T + weights["proj.bias"]
    np.testing.assert_allclose(found, want, atol=1e-9)


def test_packed_sequences():
    layer = nn.FlashAttention(2, 4)
    (name,) = weights_of(layer)
    x = RNG.standard_normal((6, 3, 2, 8))
    (found,) = evaluate(layer(given("x", 6, 3, 2, 8)), {"x": x}, {name: np.array([0, 2, 6], np.int32)})
    for part in (slice(0, 2), slice(2, 6)):
        q, k, v = (x[None, part, i].reshape(1, -1, 16) for i in range(3))
        np.testing.assert_allclose(found[part].reshape(1, -1, 16), torch_attention(q, k, v, 2).numpy(), atol=1e-9)


def test_wrong_attention():
    with pytest.raises(BuildError, match=r"causal and attn_mask, .* belong together"):
        nn.VanillaMultiheadAttention(8, causal=True)
    with pytest.raises(BuildError, match=r"causal and attn_mask, .* belong together"):
        nn.VanillaMultiheadAttention(8, attn_mask=given("m", 1, 4, 4))
    x = given("x", 2, 4, 8, dtype="float16")
    with pytest.raises(BuildError, match="VanillaCrossAttention: causal is not supported"):
        nn.VanillaCrossAttention(8, 4, 4, 2, causal=True)(x, x, x, x)
    q = given("q", 2, 4, 2, IntVar([1, 8], name="size"))
    with pytest.raises(BuildError, match="give the scale, because the size of a head is size"):
        nn.vanilla_attention(q, q, q)


# ** embeddings, import paths **


def test_embeddings_of_bert():
    layer = nn.BertEmbeddings(6, 20, 10, 2, 1e-5, 0.0, "float64")
    weights = weights_of(layer)
    ids = {name: RNG.integers(0, 2, (2, 4)) for name in ("words", "types", "places")}
    tensors = [given(name, 2, 4, dtype="int64") for name in ids]
    (found,) = evaluate(layer(*tensors), ids, weights)
    tables = ("word_embeddings", "token_type_embeddings", "position_embeddings")
    total = sum(weights[f"{table}.weight"][i] for table, i in zip(tables, ids.values(), strict=True))
    norm = [torch.from_numpy(weights[f"LayerNorm.{name}"]) for name in ("weight", "bias")]
    np.testing.assert_allclose(found, F.layer_norm(torch.from_numpy(total), (6,), *norm).numpy(), atol=1e-9)
    with pytest.raises(BuildError, match=r"hidden_dropout_prob is 0.1, .* it must be 0"):
        nn.BertEmbeddings(6, 20, 10, 2, 1e-5, 0.1)


def test_import_paths():
    for path, names in {
        "proposal": "Proposal",
        "fpn_proposal": "FPNProposal",
        "vanilla_attention": "vanilla_attention VanillaMultiheadAttention VanillaCrossAttention",
        "attention": "FlashAttention MultiheadAttention CrossAttention",
        "embedding": "BertEmbeddings Embedding",
    }.items():
        module = importlib.import_module(f"ait_mlir.frontend.nn.{path}")
        for name in names.split():
            assert getattr(module, name) is getattr(nn, name)
    assert callable(nn.vanilla_attention)
