"""Scaled dot-product attention: its inputs, attributes and shapes, and the checks of unsupported cases."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from ait_mlir.graph.enums import FLOATS, attention_implementation, data_type, diagonal_alignment
from ait_mlir.graph.errors import GraphError
from ait_mlir.graph.layout import in_order_of
from ait_mlir.graph.nodes import Node, Operation, Shapes
from ait_mlir.graph.operations.sdpa_lowering import BITS, BLOCK, STATISTICS, band_of, lower, lower_scores, most_columns

_INTEGERS = (data_type.INT32, data_type.INT64)


def _infer(node: Node) -> Shapes:
    q, k, v = (node.dims(n) for n in ("q", "k", "v"))
    for name, dims in (("q", q), ("k", k), ("v", v)):
        if len(dims) != 4:
            raise node.wrong(f"{node.inputs[name].label} has dims {list(dims)}, expected [batch, heads, length, size]")
    paged = node.has("paged_attention_k_table")
    pairs = [("k", 3, k[3], "q", 3, q[3])]
    if not paged:
        pairs += [(n, 0, d[0], "q", 0, q[0]) for n, d in (("k", k), ("v", v))]
        pairs.append(("v", 2, v[2], "k", 2, k[2]))
    for name, axis, found, whose, other_axis, expected in pairs:
        if found != expected:
            raise node.wrong(
                f"dim {axis} of {node.inputs[name].label} is {found}, but dim {other_axis} of "
                f"{node.inputs[whose].label} is {expected}"
            )
    for name, heads in (("k", k[1]), ("v", v[1])):
        if heads == 0 or q[1] % heads:
            raise node.wrong(
                f"{node.inputs['q'].label} has {q[1]} heads, which the {heads} heads of {name} do not divide"
            )
    _check_lengths(node, q)
    if node.has("scores"):
        _check_changed(node, (*q[:3], most_columns(node)))
    dims = (*q[:3], v[3])
    stats = ((*q[:3], 1), None)
    return {"O": (dims, in_order_of(dims, node.strides("q"))), **dict.fromkeys(STATISTICS, stats)}


def _check_changed(node: Node, scores: Sequence[int]) -> None:
    if node.dims("scores") != tuple(scores):
        raise node.wrong(
            f"score_mod returned {node.inputs['scores'].label} with dims {list(node.dims('scores'))}, expected those "
            f"of the scores, {list(scores)}"
        )


def _check_lengths(node: Node, q: Sequence[int]) -> None:
    batch = q[0]
    for name in ("paged_attention_k_table", "paged_attention_v_table"):
        if node.has(name):
            dims = node.dims(name)
            if len(dims) != 4 or dims[0] != batch or dims[1] != 1 or dims[3] != 1:
                raise node.wrong(f"{node.inputs[name].label} has dims {list(dims)}, expected [{batch}, 1, pages, 1]")
    columns = most_columns(node)
    shapes = {
        "seq_len_q": ((batch, 1, 1, 1), (batch,)),
        "seq_len_kv": ((batch, 1, 1, 1), (batch,)),
        "cu_seq_len_q": ((batch + 1, 1, 1, 1), (batch + 1,)),
        "cu_seq_len_kv": ((batch + 1, 1, 1, 1), (batch + 1,)),
        "sink_token": ((1, q[1], 1, 1),),
    }
    for name, expected in shapes.items():
        if node.has(name) and node.dims(name) not in expected:
            raise node.wrong(
                f"{node.inputs[name].label} has dims {list(node.dims(name))}, expected {list(expected[0])}"
            )
    if node.has("bias"):
        bias, scores = node.dims("bias"), (*q[:3], columns)
        if len(bias) != 4 or any(n not in (1, m) for n, m in zip(bias, scores, strict=True)):
            raise node.wrong(
                f"{node.inputs['bias'].label} has dims {list(bias)}, which do not broadcast to the scores "
                f"{list(scores)}"
            )
    if node.has("block_mask"):
        rows, groups = -(-q[2] // BLOCK), -(-columns // (BLOCK * BITS))
        expected = (batch, q[1], rows, groups)
        if node.dims("block_mask") != expected:
            raise node.wrong(
                f"{node.inputs['block_mask'].label} has dims {list(node.dims('block_mask'))}, expected "
                f"{list(expected)}: a bit for each {BLOCK} rows and {BLOCK} columns"
            )


def _check(node: Node) -> None:
    if node["dropout"] is not None:
        if not _is_zero(node["dropout"]):
            raise node.unsupported("dropout belongs to training, which has no kernel here: leave it out, or give 0")
        node.attributes["dropout"] = None
    if node["rng_dump"] is not None:
        raise node.unsupported("rng_dump belongs to training, which has no kernel here: leave it out")
    for name in _REFUSED:
        if node[name] is not None and node[name] is not False:
            raise node.unsupported(f"{name} has no kernel here: leave it out")
    if node["implementation"] not in (None, *attention_implementation):
        raise node.wrong(f"implementation is {node['implementation']!r}, expected a cudnn.attention_implementation")
    dtypes = {n: node.inputs[n].dtype for n in ("q", "k", "v")}
    for name, dtype in dtypes.items():
        if dtype not in FLOATS:
            raise node.unsupported(f"{node.inputs[name].label} has data type {dtype.name}; attention is of floats")
        if dtype is not dtypes["q"]:
            raise node.wrong(f"{node.inputs[name].label} is {dtype.name}, but q is {dtypes['q'].name}")
    if node.has("bias") and node.inputs["bias"].dtype not in FLOATS:
        bias = node.inputs["bias"]
        raise node.unsupported(
            f"{bias.label} has data type {bias.dtype.name}; a bias is added to the scores: give floats, -inf where a "
            "mask is false"
        )
    if node.has("block_mask") and node.inputs["block_mask"].dtype is not data_type.UINT8:
        mask = node.inputs["block_mask"]
        raise node.wrong(f"{mask.label} is {mask.dtype.name}, expected UINT8: 8 blocks of columns in a byte")
    for name in _LENGTHS:
        if node.has(name) and node.inputs[name].dtype not in _INTEGERS:
            raise node.wrong(f"{node.inputs[name].label} is {node.inputs[name].dtype.name}, expected INT32 or INT64")
    for side in ("q", "kv"):
        if node.has(f"seq_len_{side}") and node.has(f"cu_seq_len_{side}"):
            raise node.wrong(f"seq_len_{side} and cu_seq_len_{side} cannot both be given")
    given = [side for side in ("q", "kv") if node.has(f"seq_len_{side}") or node.has(f"cu_seq_len_{side}")]
    if node["use_padding_mask"] and len(given) < 2:
        raise node.wrong("use_padding_mask needs seq_len_q and seq_len_kv")
    if given and not node["use_padding_mask"]:
        raise node.wrong(f"seq_len_{given[0]} is given, but use_padding_mask is not set")
    if node.has("paged_attention_k_table") != node.has("paged_attention_v_table"):
        raise node.wrong("paged_attention_k_table and paged_attention_v_table are given together, or neither is")
    if node.has("paged_attention_k_table") and not node["use_padding_mask"] and not node.has("scores"):
        raise node.wrong("pages need use_padding_mask with seq_len_q and seq_len_kv")
    if node["use_alibi_mask"] and band_of(node).right != 0:
        raise node.unsupported("use_alibi_mask needs a causal mask: use_causal_mask or diagonal_band_right_bound=0")
    band_of(node)
    scale: Any = node["attn_scale"]
    if scale is not None and (isinstance(scale, bool) or not math.isfinite(scale)):
        raise node.wrong(f"attn_scale is {scale!r}, expected a finite number")


def _takes_number(node: Node) -> bool:
    """Whether the scale can be an argument of the code; the outputs score_max and score_sum_exp need a constant."""
    stored = node.outputs.keys() & {"score_max", "score_sum_exp"}
    return not stored and node.compute_float() is data_type.FLOAT


def _present(node: Node) -> Sequence[str]:
    stats = node["generate_stats"]
    if stats is None:
        stats = node["is_inference"] is False
    return ("O", "Stats") if stats else ("O",)


_LENGTHS = (
    *("seq_len_q", "seq_len_kv", "cu_seq_len_q", "cu_seq_len_kv"),
    *("paged_attention_k_table", "paged_attention_v_table"),
)
_REFUSED = ("score_mod_bprop", "kv_mask", "softmax_precision", "attn_scale_prefolded")


def _is_zero(dropout: object) -> bool:
    """Whether a dropout, (probability, seed, offset), changes nothing."""
    if not isinstance(dropout, list | tuple):
        return False
    probability = cast("Sequence[object]", dropout)[0] if dropout else None
    return isinstance(probability, int | float) and probability == 0


# ** scores that nodes change **


def _expand(graph: Any, name: str, values: dict[str, Any]) -> Any:
    """With `score_mod` a node of the scaled scores, the nodes that the function adds, and a node of the rest."""
    change = values.pop("score_mod", None)
    if change is None:
        return None
    if not _takes_two(change):
        raise GraphError(
            f"node '{name}' (sdpa): score_mod is {change!r}, expected a function of a graph and the scores"
        )
    of_scores = (*SCORES.tensors, *SCORES.attributes, "compute_data_type")
    given = {key: values.get(key) for key in of_scores if key in values}
    if not values.get("use_padding_mask"):
        values |= dict.fromkeys(_LENGTHS[:4])  # the function may read them
    scores = graph.add_node(SCORES, (), {**given, "name": f"{name}::scores"})
    changed = change(graph, scores)
    if getattr(changed, "graph", None) is not graph:
        raise GraphError(f"node '{name}' (sdpa): score_mod returned {changed!r}, expected a tensor of {graph.origin}")
    return graph.add_node(CHANGED, (), {**values, "attn_scale": None, "scores": changed, "name": name})


def _takes_two(function: Any) -> bool:
    """Whether a value is a function that two positional arguments can call."""
    try:
        inspect.signature(function).bind(None, None)
    except ValueError:  # a function of C without a signature
        return callable(function)
    except TypeError:
        return False
    return True


def _infer_scores(node: Node) -> Shapes:
    return {"OUT_0": ((*node.dims("q")[:3], most_columns(node)), None)}


def _check_scores(node: Node) -> None:
    node.outputs["OUT_0"].dtype = node.compute_float()


SCORES = Operation(
    "sdpa_scores",
    ("q", "k", "paged_attention_k_table"),
    ("OUT_0",),
    _infer_scores,
    lower_scores,
    optional=("paged_attention_k_table",),
    attributes={"attn_scale": None, "paged_attention_max_seq_len_kv": None},
    check=_check_scores,
    fixed=lambda node: [node.dims("q")[1], node.dims("q")[3], node.dims("k")[1]],
    doc="attn_scale * q @ k^T, as score_mod gets it.",
)

OPERATIONS = (
    Operation(
        "sdpa",
        ("q", "k", "v", "bias", "block_mask", *_LENGTHS, "sink_token"),
        ("O", "Stats"),
        _infer,
        lower,
        optional=("bias", "block_mask", *_LENGTHS, "sink_token"),
        attributes={
            "is_inference": None,
            "attn_scale": None,
            "use_alibi_mask": False,
            "use_padding_mask": False,
            "use_causal_mask": False,
            "use_causal_mask_bottom_right": False,
            "sliding_window_length": None,
            "diagonal_alignment": diagonal_alignment.TOP_LEFT,
            "diagonal_band_left_bound": None,
            "diagonal_band_right_bound": None,
            "dropout": None,
            "rng_dump": None,
            "paged_attention_max_seq_len_kv": None,
            "max_total_seq_len_q": None,
            "max_total_seq_len_kv": None,
            "generate_stats": None,
            "implementation": None,
            "unfuse_fma": False,
            "stats_use_log2": False,
            "score_mod": None,
            **dict.fromkeys(_REFUSED),
        },
        flags=("is_inference", "generate_stats"),
        counts=("paged_attention_max_seq_len_kv", "max_total_seq_len_q", "max_total_seq_len_kv"),
        adopted=("score_max", "score_sum_exp"),
        present=_present,
        check=_check,
        fixed=lambda node: [
            *(node.dims("q")[1], node.dims("q")[3], node.dims("k")[1], node.dims("v")[1], node.dims("v")[3]),
            *(node.dims("block_mask")[3:] if node.has("block_mask") else ()),
        ],
        takes_number=_takes_number,
        expand=_expand,
        doc="softmax(attn_scale * q @ k^T + bias) @ v, q [B, H, S, D], k [B, G, L, D], v [B, G, L, E]; G divides H. "
        "Stats is the logarithm of the sum of the exponentials of each row, -inf where a row sees no column.",
    ),
)
(_SDPA,) = OPERATIONS
CHANGED = replace(
    _SDPA, tensors=(*_SDPA.tensors, "scores"), optional=(*_SDPA.optional, "scores"), expand=None, takes_number=None
)
"""Attention with given scores, scaled and changed."""
