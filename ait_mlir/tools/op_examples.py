"""Examples of each op, from which `ait inspect --ops` finds element types and kernels; and the ops' other names.

tests/test_specs.py fails for an op without an example, and for kernels or element types that no example covers.
"""

from __future__ import annotations

import re

from xdsl.ir import Operation

from ait_mlir.dialects.ait import AIT
from ait_mlir.dialects.ait.dtypes import BY_MLIR, compute_type
from ait_mlir.dialects.ait.elementwise import ElementwiseOp
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.source import SourceError

ELEMENT_TYPES = (
    "f16", "bf16", "f32", "f64", "i1", "i8", "ui8", "i16", "i32", "i64", "f8E4M3FN", "f8E5M2",
    "f8E8M0FNU", "i4", "ui4",
)  # fmt: skip
_DIMS = ("b = 1 to 64", "s = 1 to 512", "count = 0 to b*s bound", "words = jagged(s, b, 0 to 7)")

EXAMPLES: dict[str, tuple[str, ...]] = {
    "adaptive_pool": (
        "mean %a : b x s x 11 x 16 x T -> b x 7 x 4 x 16 x T",
        "max %a : b x s x 11 x 16 x T -> b x 7 x 4 x 16 x T",
    ),
    "all_gather": ('%a dim 1 over ["tp"] of <["tp"=2]> : b x s x T -> b x (2*s) x T',),
    "all_reduce": ('sum %a over ["tp"] of <["tp"=2]> : b x s x T -> b x s x T',),
    "all_slice": ('%a dim 1 over ["tp"] of <["tp"=2]> : b x 24 x T -> b x 12 x T',),
    "all_to_all": ('%a split 1 concat 0 over ["tp"] of <["tp"=2]> : b x 24 x T -> (2*b) x 12 x T',),
    "argmax": ("%a dim 1 : b x s x T -> b x i64",),
    "attention": (
        "%a, %b, %c scale 0.125 : b x 12 x s x 64 x T; b x 12 x s x 64 x T; b x 12 x s x 64 x T -> b x 12 x s x 64 x T",
        "%a, %b, %c scale 0.125 value_scale 0.5"
        " : b x 12 x s x 64 x f8E4M3FN; b x 12 x s x 64 x f8E4M3FN; b x 12 x s x 64 x f8E4M3FN -> b x 12 x s x 64 x T",
    ),
    "bmm": (
        "rcr %a, %b : b x s x 64 x T; b x 128 x 64 x T -> b x s x 128 x T",
        "rcr %a, %b : b x s x 64 x T; b x 128 x 64 x T -> b x s x 128 x i32",
        "rcr %a, %b : b x s x 64 x T; b x 128 x 64 x T -> b x s x 128 x f32",
    ),
    "bitcast": tuple(f"%a : b x T -> b x {t}" for t in ("i32", "f32", "i64", "f64")),
    "broadcast": ('%a root 0 over ["tp"] of <["tp"=2]> : b x s x T -> b x s x T',),
    "cast": ("%a : b x T -> b x f32",),
    "clamp": ("%a min 0.0 max 1.0 : b x T -> b x T", "%a min 0 max 1 : b x T -> b x T"),
    "collective_permute": ('%a [0 -> 1, 1 -> 0] over ["tp"] of <["tp"=2]> : b x s x T -> b x s x T',),
    "compare": ("eq %a, %b : b x T; b x T -> b x i1",),
    "concat": ("%a, %b dim 1 : b x s x T; b x 2 x T -> b x (s + 2) x T",),
    "conv": (
        "%a, %b pad [1, 1] : b x 14 x 14 x 64 x T; param 64 x 3 x 3 x 64 x T -> b x 14 x 14 x 64 x T",
        "%a, %b pad [1, 1] : b x 14 x 14 x 8 x T; 16 x 3 x 3 x 8 x T -> b x 14 x 14 x 16 x T",
        "%a, %b pad [1, 1] : b x 14 x 14 x 64 x T; param 64 x 3 x 3 x 64 x T -> b x 14 x 14 x 64 x i32",
        "%a, %b pad [1, 1] groups 16 : b x 14 x 14 x 128 x T; 128 x 3 x 3 x 8 x T -> b x 14 x 14 x 128 x T",
    ),
    "copies": ("%a, %b : b x s x T; b x 24 x T -> b x s x T; b x 24 x T",),
    "cumulative": ("sum %a dim 1 : b x s x T -> b x s x T",),
    "dequantize": (
        "%a scale %b : b x 768 x T; f32 -> b x 768 x f16",
        "%a scale %b : b x 768 x i8; f32 -> b x 768 x T",
    ),
    "embedding": ("%a, %b : 100 x 24 x T; b x s x i64 -> b x s x 24 x T",),
    "embedding_bag": ("sum %a, %b, %c : 100 x 24 x T; s x i64; b x i64 -> b x 24 x T",),
    "expand": ("%a : s x 1 x T -> b x s x 8 x T",),
    "fused_elementwise": (
        "(%a) { ^bb0(%x: S): %y = ait.add %x, %x : S %z = ait.abs %y : S ait.yield %z : S } : b x T -> b x T",
    ),
    "gated_gemm": (
        "rcr %a, %b epilogue() { ^bb0(%x: S, %up: S): %y = ait.mul %x, %up : S ait.yield %y : S }"
        " : s x 512 x T; 1024 x 512 x T -> s x 512 x T",
    ),
    "gather": ("%a at(%b) dims [0] kept [1] : 100 x 24 x T; s x 1 x i64 -> s x 24 x T",),
    "gemm": (
        "rcr %a, %b : s x 512 x T; param 1024 x 512 x T -> s x 1024 x T",
        "rcr %a, %b : s x 501 x T; 1024 x 501 x T -> s x 1024 x T",
        "rcr %a, %b : s x 512 x T; param 1024 x 512 x T -> s x 1024 x i32",
        "rcr %a, %b : s x 512 x T; param 1024 x 512 x T -> s x 1024 x f32",
    ),
    "grid_sample": ("linear zeros %a, %b : b x s x 7 x 16 x T; b x 3 x s x 2 x T -> b x 3 x s x 16 x T",),
    "group_norm": ("%a dim 3 groups 4 eps 1e-05 : b x 14 x 14 x 64 x T -> b x 14 x 14 x 64 x T",),
    "grouped_embedding": ("%a, %b, %c, %d : 9 x 24 x T; b x i64; 9 x 24 x T; b x i64 -> b x 24 x T; b x 24 x T",),
    "grouped_gemm": (
        "rcr %a, %b, %c, %d : b x 32 x T; 24 x 32 x T; s x 64 x T; 40 x 64 x T -> b x 24 x T; s x 40 x T",
    ),
    "grouped_norm": ("layer %a, %b eps 1e-05 : b x 24 x T; b x 40 x T -> b x 24 x T; b x 40 x T",),
    "histogram": ("%a bins 8 : b x s x T -> 8 x i64",),
    "jagged_to_padded": (
        "%a offsets(%b) value 0.0 : words x 16 x T; (b + 1) x i32 -> b x 7 x 16 x T",
        "%a offsets(%b) value 0 : words x 16 x T; (b + 1) x i32 -> b x 7 x 16 x T",
    ),
    "jagged_vector_product": (
        "%a, %b offsets(%c) : b x 2 x 7 x T; words x 2 x 16 x T; (b + 1) x i32 -> b x 2 x 16 x T",
    ),
    "kth_value": ("%a k [s ceildiv 2] dim 1 : b x s x T -> b x T; b x i64",),
    "layer_norm": ("%a axes 1 eps 1e-05 : b x s x 768 x T -> b x s x 768 x T",),
    "loops": (
        "(%a) for (d0 = b, d1 = 16) { ^bb0(%t: !ait.tensor<b x s x 16 x T>): %m = ait.fold max for (k0 = s) {"
        " %v = ait.at %t[d0, k0, d1] : S ait.yield %v : S } : S ait.yield %m : S } : b x s x 16 x T -> b x 16 x T",
        "(%a) for (d0 = 64, d1 = b) { ^bb0(%t: !ait.tensor<b x 64 x T>): %v = ait.at %t[d1, d0] : S ait.yield %v : S }"
        " : b x 64 x T -> 64 x b x T",
    ),
    "make_jagged": ("%a offsets(%b) : s x 5 x T; (b + 1) x i32 -> words x 5 x T",),
    "masked_select": ("%a, %b : b x s x T; b x s x i1 -> count x T; i64",),
    "nms": ("%a iou 0.5 : s x 4 x T -> s x i1",),
    "order": ("%a sizes [100] : s x T -> s x i32; s x i32",),
    "overlap_add": ("%a stride [2, 2] before [1, 1] : b x 3 x 4 x 4 x s x 5 x T -> b x 3 x (2*s) x 10 x T",),
    "pad": ("constant %a before [0, 2] : b x s x T -> b x (s + 4) x T",),
    "padded_to_jagged": ("%a offsets(%b) : b x 7 x 16 x T; (b + 1) x i32 -> words x 16 x T",),
    "permute": ("%a [1, 0, 2] : b x s x 24 x T -> s x b x 24 x T",),
    "pool": ("max %a window [2, 2] stride [2, 2] : b x 14 x 14 x 16 x T -> b x 7 x 7 x 16 x T",),
    "ragged_attention": (
        "%a, %b, %c columns %d scale 0.125"
        " : b x 12 x s x 64 x T; b x 12 x s x 64 x T; b x 12 x s x 64 x T; b x i32 -> b x 12 x s x 64 x T",
    ),
    "ragged_gemm": ("%a, %b to %c : s x 64 x T; 8 x 64 x 32 x T; 8 x i32 -> s x 32 x T",),
    "scaled_gemm": (
        "%a by %b rows %c columns %d group 128 block 128"
        " : s x 256 x f8E4M3FN; 384 x 256 x f8E4M3FN; s x 2 x f32; 3 x 2 x f32 -> s x 384 x f32",
    ),
    "stored_gemm": (
        "%a by %b scale %c group 64 : s x 128 x T; param 32 x 128 x i8; 32 x 2 x f16 -> s x 32 x T",
        "%a by %b scale %c zero %d group 32 : s x 64 x T; 32 x 32 x ui8; 32 x 2 x f32; 32 x 2 x ui8 -> s x 32 x T",
    ),
    "recurrence": (
        "%a init(%b) with(%c) { ^bb0(%g: S, %x: S, %h: S): %s = ait.add %g, %x : S %t = ait.tanh %s : S"
        " ait.yield %t, %t : S, S } : 64 x 64 x T; b x 64 x T; s x b x 64 x T -> b x 64 x T; s x b x 64 x T",
    ),
    "reduce": ("sum %a dims [1] : b x s x T -> b x T", "max %a dims [1] : b x s x T -> b x T"),
    "reduced_norm": (
        '%a add %b scale %c axes 1 eps 1e-05 over ["tp"] of <["tp"=2]> : '
        "b x 64 x T; b x 64 x T; 64 x T -> b x 64 x T; b x 64 x T",
    ),
    "reduce_scatter": ('sum %a dim 1 over ["tp"] of <["tp"=2]> : b x 24 x T -> b x 12 x T',),
    "reshape": ("%a : b x s x 8 x T -> b x (8*s) x T",),
    "quantize": (
        "%a scale %b : b x 768 x f32; f32 -> b x 768 x T",
        "%a scale %b : b x 768 x T; f32 -> b x 768 x i8",
    ),
    "resize": ("nearest %a : b x s x 7 x 16 x T -> b x (2*s) x 14 x 16 x T",),
    "rms_norm": ("%a axes 1 eps 1e-05 : b x s x 768 x T -> b x s x 768 x T",),
    "roi_align": ("%a rois %b scales [0.5] sampling 2 : 1 x s x s x 16 x T; b x 5 x T -> b x 3 x 2 x 16 x T",),
    "rotated_gemm": (
        "%a, %b cosines %c sines %d heads 3 size 64"
        " : b x s x 512 x T; 512 x 512 x T; b x s x 32 x T; b x s x 32 x T -> b x s x 512 x T",
    ),
    "scatter": (
        "set %a, %b at(%c) dims [0] kept [1] : 100 x 24 x T; s x 24 x T; s x 1 x i64 -> 100 x 24 x T",
        "add %a, %b at(%c) dims [0] kept [1] : 100 x 24 x T; s x 24 x T; s x 1 x i64 -> 100 x 24 x T",
    ),
    "scatter_loops": (
        "add %a dims [0] kept [1] order %b, %c of(%d) for (d0 = s, d1 = 24) { ^bb0(%t: !ait.tensor<s x 24 x T>):"
        " %v = ait.at %t[d0, d1] : S ait.yield %v : S } : 100 x 24 x T; s x i32; s x i32; s x 24 x T -> 100 x 24 x T",
    ),
    "search_sorted": ("%a, %b : s x T; b x 9 x T -> b x 9 x i64",),
    "segment_loops": (
        "add %a dims [0] kept [1] order %b, %c of(%d) for (d0 = s, d1 = 24) { ^bb0(%t: !ait.tensor<s x 24 x T>):"
        " %v = ait.at %t[d0, d1] : S ait.yield %v : S } : 100 x 24 x T; s x i32; s x i32; s x 24 x T -> 100 x 24 x T",
    ),
    "slice": ("%a offsets [0, 4] : b x (s + 4) x T -> b x s x T",),
    "softmax": ("%a dim 1 : b x s x T -> b x s x T",),
    "sort": ("%a dim 1 : b x s x T -> b x s x T; b x s x i64",),
    "split": ("%a dim 1 : b x 24 x T -> b x 8 x T; b x 16 x T",),
    "topk": ("%a k 3 : b x 24 x T -> b x 3 x T; b x 3 x i64",),
    "unpack": ("%a : b x s x ui8 -> b x (2*s) x i4",),
    "update_slice": ("%a, %b at %c dim 1 : b x 9 x T; b x 1 x T; i64 -> b x 9 x T",),
    "where": ("%a, %b, %c : b x i1; b x T; b x T -> b x T",),
}
"""By op without `ait.`: its text on operands `%a, %b, ...`, and the types of operands and results. `T` is any element
type, `S` its compute type in a region; `param` marks a weight. Elementwise ops on operands of one type are not listed.
"""

NAMES: dict[str, str] = {
    "add": "elementwise full fused_elementwise",
    "argmax": "argmax",
    "attention": "bmm_softmax_bmm bmm_softmax_bmm_permute mem_eff_attention",
    "bmm": (
        "bmm_ccc bmm_ccc_add bmm_ccr bmm_ccr_add bmm_crc bmm_crc_add bmm_crr bmm_crr_add bmm_rcc bmm_rcc_add "
        "bmm_rcr bmm_rcr_add bmm_rcr_n1 bmm_rcr_permute bmm_rcr_softmax bmm_rrc bmm_rrc_add bmm_rrr "
        "bmm_rrr_add bmm_rrr_permute classic_b2b_bmm dual_bmm_rrr_div fmha_style_b2b_bmm perm021fc_ccr "
        "perm021fc_ccr_bias perm021fc_ccr_bias_permute perm021fc_crc perm021fc_crc_bias perm102_bmm_rcr "
        "perm102_bmm_rcr_bias perm102_bmm_rrr perm102_bmm_rrr_bias"
    ),
    "cast": "cast",
    "clamp": "clamp",
    "compare": "eq ge gt le lt ne",
    "concat": "concatenate list_construct tuple_construct",
    "conv": (
        "conv2d conv2d_bias conv2d_bias_add conv2d_bias_add_hardswish conv2d_bias_add_relu "
        "conv2d_bias_few_channels conv2d_bias_hardswish conv2d_bias_hardswish_few_channels conv2d_bias_relu "
        "conv2d_bias_relu_few_channels conv2d_bias_sigmoid conv2d_depthwise conv2d_depthwise_bias "
        "conv2d_groups conv3d conv3d_bias depthwise_conv3d transposed_conv2d transposed_conv2d_bias "
        "transposed_conv2d_bias_relu"
    ),
    "cumulative": "jagged_lengths_to_offsets",
    "embedding": "bert_embeddings",
    "expand": "expand",
    "gather": "batch_gather gather index_select",
    "gemm": (
        "dual_gemm_rcr_fast_gelu dual_gemm_rcr_silu gemm_rcr gemm_rcr_bias gemm_rcr_bias_add "
        "gemm_rcr_bias_add_add gemm_rcr_bias_add_add_relu gemm_rcr_bias_add_relu gemm_rcr_bias_fast_gelu "
        "gemm_rcr_bias_gelu gemm_rcr_bias_hardswish gemm_rcr_bias_mul gemm_rcr_bias_mul_add "
        "gemm_rcr_bias_mul_tanh gemm_rcr_bias_permute gemm_rcr_bias_relu gemm_rcr_bias_sigmoid "
        "gemm_rcr_bias_sigmoid_mul gemm_rcr_bias_sigmoid_mul_tanh gemm_rcr_bias_softmax gemm_rcr_bias_swish "
        "gemm_rcr_bias_tanh gemm_rcr_fast_gelu gemm_rcr_permute gemm_rcr_permute_elup1 gemm_rcr_softmax "
        "gemm_rrr gemm_rrr_bias gemm_rrr_bias_permute gemm_rrr_permute gemm_rrr_small_nk"
    ),
    "group_norm": "group_norm group_norm_swish",
    "grouped_gemm": "group_gemm_rcr group_gemm_rcr_bias group_gemm_rcr_bias_relu group_gemm_rcr_bias_sigmoid",
    "jagged_to_padded": "grouped_classic_b2b_bmm grouped_fmha_style_b2b_bmm jagged_to_padded_dense",
    "jagged_vector_product": "batched_dense_vec_jagged_2d_mul",
    "layer_norm": (
        "batch_layernorm_sigmoid_mul group_layernorm group_layernorm_sigmoid_mul layernorm layernorm_sigmoid_mul"
    ),
    "make_jagged": "make_jagged",
    "masked_select": "masked_select",
    "mul": "bmm_rrr_k1_tanh",
    "nms": "batched_nms",
    "pad": "ndhwc3to8 nhwc3to4 nhwc3to8 pad_last_dim",
    "padded_to_jagged": "padded_dense_to_jagged",
    "permute": "permute permute021 permute0213 permute102 permute210 transpose",
    "pool": "avg_pool2d max_pool2d",
    "ragged_attention": "flash_attention",
    "reduce": "reduce_max reduce_mean reduce_min reduce_sum var vector_norm",
    "reshape": ("flatten getitem identity int_elementwise jagged_lengths_to_presences reshape size squeeze unsqueeze"),
    "resize": "upsampling2d upsampling2d_add",
    "roi_align": "multi_level_roi_align roi_align",
    "slice": "dynamic_slice slice_reshape_scatter slice_scatter",
    "softmax": "softmax",
    "sort": "efficient_nms nms",
    "split": "chunk split",
    "tanh": "concatenate_tanh",
    "topk": "topk",
    "where": "where",
}
"""By op: the operators of AITemplate that become this op, or several ops of which it is the heaviest."""

NO_KERNEL = {
    "graph": "it holds ops",
    "output": "a name for a value",
    "param": "data of the model",
    "constant": "data of the model",
    "yield": "the end of a region",
    "call_ffi": "its kernel is a function of the library that it names",
    "scan": "it is no launch: its steps are, each by a kernel of its own",
    "at": "it stands in the region of ait.loops",
    "fold": "it stands in the region of ait.loops",
    "index": "it stands in the region of ait.loops",
}
"""Ops without a kernel of ours, with the reason."""


def examples(op: str, t: str) -> list[Operation]:
    """The examples of an op that are valid at an element type."""
    found: list[Operation] = []
    for text in EXAMPLES.get(op) or _elementwise(op):
        try:
            module = parse_text(context(), _graph(op, text, t))
        except SourceError:
            continue
        found += [inner for inner in module.walk() if inner.name == f"ait.{op}"][:1]
    return found


def _elementwise(op: str) -> tuple[str, ...]:
    """The example of an elementwise op."""
    (found,) = (known for known in AIT.operations if known.name == f"ait.{op}")
    if not issubclass(found, ElementwiseOp):
        return ()
    count = len(found.OPERAND_NAMES)
    return (f"{', '.join(f'%{name}' for name in 'abc'[:count])} : {'; '.join(['b x T'] * count)} -> b x T",)


def _graph(op: str, text: str, t: str) -> str:
    """The text of a graph that holds an example."""
    body, types = text.rsplit(" : ", 1)
    operands, results = (side.split("; ") for side in types.split(" -> "))
    params: list[str] = []
    inputs = ["%dims: !ait.tensor<b x s x i8>"]
    for name, x in zip("abcdefgh", operands, strict=False):
        if x.startswith("param "):
            params.append(f'%{name} = ait.param "{name}" : !ait.tensor<{x.removeprefix("param ")}>')
        else:
            inputs.append(f"%{name}: !ait.tensor<{x}>")
    results = [f"!ait.tensor<{x}>" for x in results]
    dims = [dim for dim in _DIMS if dim.split()[0] in ("b", "s") or dim.split()[0] in types]
    lines = [
        f"ait.graph @example({', '.join(inputs)}) dims {{{', '.join(dims)}}} {{",
        *params,
        f"{', '.join(f'%r{i}' for i in range(len(results)))} = ait.{op} {body} : {', '.join(results)}",
        *(f'ait.output "r{i}" %r{i} : {x}' for i, x in enumerate(results)),
        "}",
    ]
    return re.sub(r"\bS\b", str(compute_type(BY_MLIR[t].ir)), re.sub(r"\bT\b", t, "\n".join(lines)))
