"""What is wrong with a graph: an exception of a documented class that names the node and the tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import ait_mlir.graph as cudnn
from ait_mlir.graph.operations import OPERATIONS
from tests.graph.bad_input import INT32, Graph, NotSupported, new, product, raises


def test_dims_of_a_product_disagree():
    g = new()
    product(g, (4, 8), (7, 2)).set_output(True)
    with raises(Graph, "node 'mm' (matmul)", "A sums over 8", "tensor 'a'", "but B over 7", "tensor 'b'"):
        g.validate()


def test_batches_of_a_product_disagree():
    g = new()
    product(g, (2, 4, 8), (3, 8, 2)).set_output(True)
    with raises(Graph, "node 'mm'", "batch dims", "[2, 4, 8]", "[3, 8, 2]"):
        g.validate()


def test_inputs_do_not_broadcast():
    g = new()
    g.add(g.tensor([4, 3], name="a"), g.tensor([4, 2], name="b"), name="sum").set_output(True)
    with raises(Graph, "node 'sum' (add)", "do not broadcast", "tensor 'a' [4, 3]", "tensor 'b' [4, 2]"):
        g.validate()


def test_dims_and_strides_of_different_number():
    with raises(Graph, "tensor 'a'", "dims [4, 3]", "strides [1]"):
        new().tensor([4, 3], [1], name="a")


def test_tensor_that_no_address_reaches():
    g = new()
    g.relu(g.tensor([2**20, 2**30], name="x")).set_output(True)
    with raises(NotSupported, "tensor 'x'", "2^48 bytes"):
        g.validate()


def test_a_tensor_that_is_to_be_reordered():
    x = new().tensor([4], name="x")
    with raises(NotSupported, "tensor 'x'", "reordered", "only NONE"):
        x.set_reordering_type(cudnn.tensor_reordering.F8_128x4)


@pytest.mark.parametrize("dims", [[4, -1], [4, "x"], 4, [4, 1.5], [True, 2]])
def test_dims_that_are_no_numbers(dims: Any):
    with raises(Graph, "the dims of tensor 'a'", "whole numbers"):
        new().tensor(dims, name="a")


def test_output_with_other_dims_than_its_node_computes():
    g = new()
    g.relu(g.tensor([4, 3]), name="act").set_output(True).set_dim([4, 4])
    with raises(Graph, "node 'act' (relu)", "tensor 'act::OUT_0'", "[4, 4]", "[4, 3]"):
        g.validate()


def test_output_with_a_stride_of_0():
    g = new()
    g.relu(g.tensor([4, 3])).set_output(True).set_name("y").set_stride([0, 1])
    g.validate()
    with raises(NotSupported, "tensor 'y'", "stride of 0"):
        g.build_operation_graph()


def test_graph_without_output():
    g = new()
    g.relu(g.tensor([4, 3]), name="act")
    with raises(Graph, "no output", "set_output(True)", "act::OUT_0"):
        g.validate()


def test_graph_without_node():
    with raises(Graph, "no node"):
        new().validate()


def test_cycle():
    g = new()
    first = g.relu(g.tensor([4, 3]), name="first")
    second = g.neg(first, name="second").set_output(True)
    g.nodes[0].inputs["input"] = second
    with raises(Graph, "cycle", "'first'", "'second'"):
        g.validate()


def test_uid_twice():
    g = new()
    x = g.tensor([4, 3], name="x").set_uid(7)
    g.relu(x, name="act").set_output(True).set_uid(7)
    with raises(Graph, "tensor 'x' (UID 7)", "tensor 'act::OUT_0' (UID 7)", "the same UID 7"):
        g.validate()


@pytest.mark.parametrize("uid", ["1", 1.5, None, True])
def test_uid_that_is_no_number(uid: Any):
    with raises(Graph, "the UID of tensor 'x'", repr(uid)):
        new().tensor([1], name="x").set_uid(uid)


NAMES: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda g: g.tensor([4], name=3),
    "output": lambda g: g.relu(g.tensor([4]), name="act").set_name(3),
    "node": lambda g: g.relu(g.tensor([4]), name=3),
}


@pytest.mark.parametrize("what", NAMES)
def test_name_that_is_no_text(what: str):
    with raises(Graph, "the name of", "3, expected text"):
        NAMES[what](new())


def test_virtual_input():
    g = new()
    g.relu(g.tensor([4], name="x").set_is_virtual(True)).set_output(True)
    with raises(Graph, "tensor 'x' is virtual", "no node computes it"):
        g.validate()


@pytest.mark.parametrize("offset", [3, "o"])
def test_ragged_offset_that_is_no_tensor(offset: Any):
    with raises(Graph, "ragged offset of tensor 'x'", repr(offset)):
        new().tensor([2, 4, 8, 16], name="x").set_ragged_offset(offset)


def test_ragged_offset_of_another_graph():
    other = new().tensor([3, 1, 1, 1], name="offsets")
    with raises(Graph, "ragged offset of tensor 'x'", "tensor 'offsets' of graph 'g'", "not of graph 'g'"):
        new().tensor([2, 4, 8, 16], name="x").set_ragged_offset(other)


@pytest.mark.parametrize("multiplier", [0, -1, "x", 1.5])
def test_ragged_offset_multiplier(multiplier: Any):
    with raises(Graph, "ragged offset multiplier of tensor 'x'"):
        new().tensor([4], name="x").set_ragged_offset_multiplier(multiplier)


@pytest.mark.parametrize(
    ("dtype", "number"), [("UINT8", 256), ("UINT8", -1), ("INT8", 1.5), ("INT32", 2**40), ("INT32", float("nan"))]
)
def test_constant_that_its_data_type_does_not_have(dtype: str, number: float):
    g = new()
    scalar = g.tensor_scalar(number, name="alpha").set_data_type(cudnn.data_type[dtype])
    g.mul(g.tensor([4]), scalar).set_output(True)
    with raises(Graph, "tensor 'alpha'", repr(number), "whole number", dtype):
        g.validate()


def test_scalar_that_is_no_number():
    with raises(Graph, "tensor 'alpha'", "expected a number", "'x'"):
        new().tensor_scalar("x", name="alpha")


def test_tensor_of_another_graph():
    other = new().tensor([4], name="x")
    with raises(Graph, "node 'act'", "tensor 'x' of graph 'g'"):
        new().relu(other, name="act")


def test_no_tensor():
    with raises(Graph, "node 'act'", "input is no tensor"):
        new().relu("x", name="act")


def test_input_as_output():
    g = new()
    g.relu(g.tensor([4], name="x").set_output(True)).set_output(True)
    with raises(Graph, "tensor 'x' is an input"):
        g.validate()


def test_data_type_that_is_not_set():
    g = cudnn.pygraph()
    g.relu(g.tensor([4], name="x"), name="act").set_output(True)
    with raises(Graph, "tensor 'x' has no data type", "io_data_type"):
        g.validate()


def test_name_that_is_no_data_type():
    with raises(Graph, "tensor 'x'", "'float17' is no data type"):
        new().tensor([4], data_type="float17", name="x")


@pytest.mark.parametrize("dtype", ["FP8_E4M3", "FP4_E2M1", "INT8x4", "INT4"])
def test_data_type_without_kernels(dtype: str):
    g = new()
    g.relu(g.tensor([4], data_type=cudnn.data_type[dtype], name="x")).set_output(True)
    with raises(NotSupported, "tensor 'x'", dtype, "HALF"):
        g.validate()


def test_product_of_integers():
    g = new()
    product(g, data_type=INT32).set_output(True)
    with raises(NotSupported, "node 'mm' (matmul)", "tensor 'a'", "INT32"):
        g.validate()


@pytest.mark.parametrize(
    "name", ["sdpa_backward", "conv_dgrad", "layernorm_backward", "sdpa_fp8", "gdn", "mamba2_bwd", "rope_backward"]
)
def test_operation_that_is_refused(name: str):
    with raises(NotSupported, f"node 'n' ({name})"):
        getattr(new(), name)(name="n")


def heads(g: Any) -> dict[str, Any]:
    return {n: g.tensor([2, 4, 8, 16], name=n) for n in "qkv"}


SDPA: dict[str, tuple[type[Exception], tuple[str, ...], Callable[[Any], dict[str, Any]]]] = {
    "dropout": (NotSupported, ("dropout",), lambda g: {"dropout": (0.1, g.tensor([1]), g.tensor([1]))}),
    "dims of a block mask": (
        Graph,
        ("tensor 'blocks' has dims [2, 4, 8, 8], expected [2, 4, 1, 1]",),
        lambda g: {"block_mask": g.tensor([2, 4, 8, 8], data_type=cudnn.data_type.UINT8, name="blocks")},
    ),
    "type of a block mask": (
        Graph,
        ("tensor 'blocks' is FLOAT, expected UINT8",),
        lambda g: {"block_mask": g.tensor([2, 4, 1, 1], name="blocks")},
    ),
    "no lengths": (Graph, ("seq_len_q and seq_len_kv",), lambda g: {"use_padding_mask": True}),
    "lengths without padding": (
        Graph,
        ("seq_len_q", "use_padding_mask"),
        lambda g: {"seq_len_q": g.tensor([2, 1, 1, 1], data_type=INT32)},
    ),
    "both masks": (
        Graph,
        ("use_causal_mask", "cannot both"),
        lambda g: {"use_causal_mask": True, "use_causal_mask_bottom_right": True},
    ),
    "left bound of 0": (Graph, ("left bound is 0",), lambda g: {"diagonal_band_left_bound": 0}),
    "alibi without causal": (NotSupported, ("use_alibi_mask",), lambda g: {"use_alibi_mask": True}),
    "bias": (Graph, ("tensor 'bias'", "[3, 1, 8, 8]"), lambda g: {"bias": g.tensor([3, 1, 8, 8], name="bias")}),
    "score_mod_bprop": (NotSupported, ("score_mod_bprop",), lambda g: {"score_mod_bprop": lambda graph, score: score}),
    "rng_dump": (NotSupported, ("rng_dump",), lambda g: {"rng_dump": g.tensor([2, 1, 1, 8])}),
    "kv_mask": (NotSupported, ("kv_mask",), lambda g: {"kv_mask": g.tensor([2, 1, 1, 8])}),
    "scale": (Graph, ("attn_scale",), lambda g: {"attn_scale": float("nan")}),
    "mask in place of a bias": (
        NotSupported,
        ("tensor 'bias'", "BOOLEAN", "-inf"),
        lambda g: {"bias": g.tensor([1, 1, 8, 8], data_type=cudnn.data_type.BOOLEAN, name="bias")},
    ),
    "one table": (
        Graph,
        ("paged_attention_k_table", "together"),
        lambda g: {"paged_attention_k_table": g.tensor([2, 1, 4, 1], data_type=INT32)},
    ),
}


@pytest.mark.parametrize("name", SDPA)
def test_attention(name: str):
    kind, words, options = SDPA[name]
    g = new()
    o, _ = g.sdpa(**heads(g), **options(g), name="att")
    o.set_output(True)
    with raises(kind, "node 'att' (sdpa)", *words):
        g.validate()


def test_numbers_beyond_floats():
    g = new()
    with raises(Graph, "node 'att' (sdpa): attn_scale is beyond the range of floats"):
        g.sdpa(**heads(g), attn_scale=10**400, name="att")
    with raises(Graph, "(relu): lower_clip is beyond the range of floats"):
        g.relu(g.tensor([2, 3]), lower_clip=-(10**400))


FAR = 2**70


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda g: g.tensor([2, 3], stride=[FAR, 1], name="x"), "the strides of tensor 'x' are"),
        (lambda g: g.tensor([FAR, 3], name="x"), "the dims of tensor 'x' are"),
        (lambda g: g.tensor([2, 3], name="x", uid=FAR), "the UID of tensor 'x' is"),
        (lambda g: g.tensor([2, 3], name="x", uid=-FAR), "the UID of tensor 'x' is"),
        (lambda g: g.tensor([2], name="x", ragged_offset_multiplier=FAR), "the ragged offset multiplier of tensor 'x'"),
        (lambda g: g.tensor([2], name="x", alignment_value="y"), "alignment_value of tensor 'x'"),
        (lambda g: g.tensor([2], name="x").set_alignment(1.5), "the alignment of tensor 'x'"),
        (lambda g: g.tensor([2], name="x").set_uid("y"), "the UID of tensor 'x'"),
        (lambda g: g.relu(g.tensor([2, 3]), name="act").set_stride([FAR, 1]), "the strides of tensor 'act::OUT_0'"),
        (lambda g: g.sdpa(**heads(g), max_total_seq_len_q=-1, name="att"), "node 'att' (sdpa): max_total_seq_len_q"),
        (lambda g: g.relu(g.tensor([2]), name=torch.zeros(2)), "the name of a node (relu)"),
        (lambda g: g.relu(g.tensor([2]), name=()), "the name of a node (relu)"),
    ],
)
def test_numbers_and_names_of_other_kinds(make: Any, words: str):
    with raises(Graph, words, "expected"):
        make(new())


@pytest.mark.parametrize("stride", [2**62, 2**63 - 1, 2**41])
@pytest.mark.parametrize("is_output", [False, True])
def test_strides_beyond_memory(stride: int, is_output: bool):
    g = new()
    x = g.tensor([2, 3], name="x") if is_output else g.tensor([2, 3], [stride, 1], name="x")
    y = g.relu(x, name="act").set_output(True)
    if is_output:
        y.set_stride([stride, 1])
    with raises(NotSupported, "tensor 'act::OUT_0'" if is_output else "tensor 'x'", f"strides [{stride}, 1]", "2^40"):
        g.validate()


FLAGS: dict[str, Callable[[Any, Any], Any]] = {
    **{
        name: lambda g, value, name=name: g.sdpa(**heads(g), **{name: value}, name="n")
        for name in ("use_causal_mask", "use_causal_mask_bottom_right", "use_padding_mask", "use_alibi_mask",
                     "generate_stats", "is_inference", "unfuse_fma", "stats_use_log2")
    },
    "use_stats": lambda g, value: g.softmax(g.tensor([2, 3]), use_stats=value, name="n"),
    "generate_index": lambda g, value: g.resample(
        g.tensor([1, 2, 4, 4]), mode=cudnn.resample_mode.MAXPOOL, window=[2, 2], generate_index=value, name="n"
    ),
    "is_pass_by_value": lambda g, value: g.tensor([1], is_pass_by_value=value, name="n"),
    "is_virtual": lambda g, value: g.tensor([1], is_virtual=value, name="n"),
    "set_is_pass_by_value": lambda g, value: g.tensor([1], name="n").set_is_pass_by_value(value),
    "set_dynamic_shape_enabled": lambda g, value: g.set_dynamic_shape_enabled(value),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAGS)
def test_flags(name: str):
    for value in ("yes", [True], np.array([True, False])):
        with raises(Graph, name, "takes True or False"):
            FLAGS[name](new(), value)
    for value in (None, 0, np.False_, torch.tensor(False)):
        FLAGS[name](new(), value)


def test_every_operation_declares_its_flags():
    """An argument that is used as True or False is checked: its default says so, or `flags` names it."""
    known = {name for operation in OPERATIONS.values() for name in operation.flags}
    known |= {name for op in OPERATIONS.values() for name, value in op.attributes.items() if isinstance(value, bool)}
    assert {name for name in known if name not in FLAGS} == set()
    odd = {n for op in OPERATIONS.values() for n in op.attributes if n.startswith(("use_", "is_", "generate_"))}
    assert odd <= known


@pytest.mark.parametrize("dims", [[2, 4, 8, 4], [2, 4, 1, 8], [2, 4, 8]])
def test_score_mod_with_other_dims(dims: list[int]):
    g = new()
    o, _ = g.sdpa(**heads(g), score_mod=lambda graph, scores: graph.tensor(dims, name="other"), name="att")
    o.set_output(True)
    with raises(Graph, "node 'att' (sdpa): score_mod returned tensor 'other'", f"{dims}", "the scores, [2, 4, 8, 8]"):
        g.validate()


@pytest.mark.parametrize(
    "options", [{"padding": np.array([1, 1])}, {"pre_padding": (1, 1), "post_padding": torch.tensor([1, 1])}]
)
def test_pads_are_any_list_of_integers(options: dict[str, Any]):
    g = new()
    y = g.conv_fprop(image=g.tensor([1, 4, 8, 8]), weight=g.tensor([4, 4, 3, 3]), **options)
    assert y.get_dim() == [1, 4, 8, 8]


def test_heads_of_attention_do_not_divide():
    g = new()
    q, k, v = g.tensor([2, 4, 8, 16], name="q"), g.tensor([2, 3, 8, 16]), g.tensor([2, 3, 8, 16])
    g.sdpa(q, k, v, name="att")[0].set_output(True)
    with raises(Graph, "node 'att'", "tensor 'q' has 4 heads", "3 heads"):
        g.validate()


@pytest.mark.parametrize(
    ("change", "words"), [("tanh", "score_mod is 'tanh'"), (lambda graph, scores: None, "score_mod returned None")]
)
def test_score_mod_that_is_none(change: Any, words: str):
    g = new()
    with raises(Graph, "node 'att' (sdpa)", words):
        g.sdpa(**heads(g), score_mod=change, name="att")


WRONG: dict[str, tuple[type[Exception], tuple[str, ...], Callable[[Any, Any], Any]]] = {
    "slices": (Graph, ("(slice)", "one Python slice"), lambda g, x: g.slice(x, [slice(0, 1)])),
    "permutation": (Graph, ("(transpose)", "[0, 0, 1]"), lambda g, x: g.transpose(x, permutation=[0, 0, 1])),
    "angles": (
        Graph,
        ("(rope)", "tensor 'angles' has dims [4, 6], expected [4, 8]", "8 elements"),
        lambda g, x: g.rope(g.tensor([4, 8]), g.tensor([4, 6], name="angles")),
    ),
    "odd rope_dim": (
        Graph,
        ("(rope)", "3 elements"),
        lambda g, x: g.rope(g.tensor([4, 8]), g.tensor([4, 3]), rope_dim=3),
    ),
    "peer_stats": (
        NotSupported,
        ("(batchnorm)", "peer_stats"),
        lambda g, x: g.batchnorm(
            input=x,
            scale=g.tensor([1, 3, 1]),
            bias=g.tensor([1, 3, 1]),
            epsilon=g.tensor_scalar(1e-5),
            peer_stats=[g.tensor([1, 3, 1])],
        )[0],
    ),
    "running statistics": (
        Graph,
        ("(batchnorm)", "given together"),
        lambda g, x: g.batchnorm(
            input=x,
            scale=g.tensor([1, 3, 1]),
            bias=g.tensor([1, 3, 1]),
            in_running_mean=g.tensor([1, 3, 1]),
            epsilon=g.tensor_scalar(1e-5),
        )[0],
    ),
    "step of a slice": (Graph, ("(slice)", "step cannot be zero"), lambda g, x: g.slice(x, [slice(0, 1, 0)] * 3)),
    "bound of a slice": (Graph, ("(slice)", "'a'", "integers"), lambda g, x: g.slice(x, [slice("a", 1)] * 3)),
    "slope": (Graph, ("(relu)", "negative_slope is 'x'"), lambda g, x: g.relu(x, negative_slope="x")),
    "beta": (Graph, ("(swish)", "swish_beta is nan"), lambda g, x: g.swish(x, swish_beta=float("nan"))),
    "compute type": (
        NotSupported,
        ("(relu)", "compute_data_type", "FP8_E4M3"),
        lambda g, x: g.relu(x, compute_data_type=cudnn.data_type.FP8_E4M3),
    ),
    "name of a mode": (
        Graph,
        ("(conv_fprop)", "convolution_mode is 'CONVOLUTION'", "cudnn.convolution_mode"),
        lambda g, x: g.conv_fprop(g.tensor([1, 4, 5, 5]), g.tensor([2, 4, 3, 3]), convolution_mode="CONVOLUTION"),
    ),
    "rows of a norm": (
        Graph,
        ("(layernorm)", "tensor 'row' has dims [8]"),
        lambda g, x: norm(g, g.tensor([8], name="row")),
    ),
    "channels of statistics": (
        Graph,
        ("(genstats)", "tensor 'row' has dims [8]"),
        lambda g, x: g.genstats(g.tensor([8], name="row"))[0],
    ),
    "axis": (Graph, ("(gen_index)", "axis is 3"), lambda g, x: g.gen_index(x, axis=3)),
    "concatenate": (
        Graph,
        ("(concatenate)", "tensor 'other'", "[4, 3, 6]"),
        lambda g, x: g.concatenate([x, g.tensor([4, 3, 6], name="other")], axis=1),
    ),
    "in place": (NotSupported, ("in_place_index",), lambda g, x: g.concatenate([x], axis=0, in_place_index=0)),
    "reshape": (Graph, ("(reshape)", "[7]", "has 60"), lambda g, x: g.reshape(x).set_dim([7])),
    "reshape without dims": (Graph, ("(reshape)", "no dims", "set_dim"), lambda g, x: g.reshape(x)),
    "reduction": (
        Graph,
        ("(reduction)", "[2, 3, 5]"),
        lambda g, x: g.reduction(x, mode=cudnn.reduction_mode.ADD).set_dim([2, 3, 5]),
    ),
    "reduction mode": (NotSupported, ("(reduction)", "mode is 'ADD'"), lambda g, x: g.reduction(x, mode="ADD")),
    "pads": (
        Graph,
        ("(conv_fprop)", "padding is [1]"),
        lambda g, x: g.conv_fprop(g.tensor([1, 4, 5, 5]), g.tensor([2, 4, 3, 3]), padding=[1]),
    ),
    "stride beyond 31 bits": (
        Graph,
        ("(conv_fprop)", "stride is [2147483648, 1]", "below 2^31"),
        lambda g, x: g.conv_fprop(g.tensor([1, 4, 5, 5]), g.tensor([2, 4, 3, 3]), stride=[1 << 31, 1]),
    ),
    "channels": (
        Graph,
        ("(conv_fprop)", "tensor 'image' has 4 channels", "tensor 'taps' is for 3"),
        lambda g, x: g.conv_fprop(g.tensor([1, 4, 5, 5], name="image"), g.tensor([2, 3, 3, 3], name="taps")),
    ),
    "window": (
        Graph,
        ("(conv_fprop)", "reaches over 7"),
        lambda g, x: g.conv_fprop(g.tensor([1, 4, 5, 5]), g.tensor([2, 4, 7, 7])),
    ),
    "pool": (
        NotSupported,
        ("(resample)", "BILINEAR"),
        lambda g, x: g.resample(x, mode=cudnn.resample_mode.BILINEAR, window=[1]),
    ),
    "scale of a norm": (
        Graph,
        ("(layernorm)", "tensor 'gain'", "[1, 2, 5]"),
        lambda g, x: norm(g, x, g.tensor([1, 2, 5], name="gain")),
    ),
    "group offset": (
        NotSupported,
        ("(reduction)", "group_offset"),
        lambda g, x: g.reduction(x, g.tensor([3]), mode=cudnn.reduction_mode.ADD, out_dims=[4, 1, 5]),
    ),
    "epsilon in memory": (
        NotSupported,
        ("(layernorm)", "tensor 'eps'", "set_is_pass_by_value"),
        lambda g, x: norm(g, x, g.tensor([1, 1, 5]), g.tensor([1, 1, 1], name="eps")),
    ),
    "phase": (NotSupported, ("(layernorm)", "norm_forward_phase"), lambda g, x: norm(g, x, phase="INFERENCE")),
}


def norm(g: Any, x: Any, scale: Any = None, eps: Any = 1e-5, phase: Any = cudnn.norm_forward_phase.INFERENCE) -> Any:
    return g.layernorm(norm_forward_phase=phase, input=x, scale=scale, epsilon=eps)[0]


@pytest.mark.parametrize("name", WRONG)
def test_operation(name: str):
    kind, words, make = WRONG[name]
    g = new()
    make(g, g.tensor([4, 3, 5], name="x")).set_output(True)
    with raises(kind, *words):
        g.validate()


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda g, x: g.relu(x, slope=1), "'slope'"),
        (lambda g, x: g.add(x), "'b'"),
        (lambda g, x: g.add(x, x, a=x), "twice"),
        (lambda g, x: g.gen_index(x), "'axis'"),
        (lambda g, x: g.concatenate(x, axis=0), "a list of tensors"),
    ],
)
def test_arguments(call: Callable[[Any, Any], Any], word: str):
    g = new()
    with raises(Graph, word):
        call(g, g.tensor([4]))
