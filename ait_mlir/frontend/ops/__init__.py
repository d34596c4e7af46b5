"""The operators of the builder, under their documented names: `ops.gemm_rcr_bias()(x, weight, bias)`."""

from __future__ import annotations

from ait_mlir.frontend.ops.attention import attention, mem_eff_attention
from ait_mlir.frontend.ops.constant import full
from ait_mlir.frontend.ops.conv import (
    conv2d,
    conv2d_bias,
    conv2d_bias_add,
    conv2d_bias_add_hardswish,
    conv2d_bias_add_relu,
    conv2d_bias_hardswish,
    conv2d_bias_relu,
    conv2d_bias_sigmoid,
)
from ait_mlir.frontend.ops.cumulative import cummax, cummin, cumprod, cumsum, logcumsumexp
from ait_mlir.frontend.ops.elementwise import (
    FuncEnum,
    cast,
    clamp,
    elementwise,
    eq,
    ge,
    gt,
    int_elementwise,
    le,
    lt,
    ne,
    where,
)
from ait_mlir.frontend.ops.gemm import (
    bmm_ccc,
    bmm_ccc_add,
    bmm_ccr,
    bmm_ccr_add,
    bmm_crc,
    bmm_crc_add,
    bmm_crr,
    bmm_crr_add,
    bmm_rcc,
    bmm_rcc_add,
    bmm_rcr,
    bmm_rcr_add,
    bmm_rrc,
    bmm_rrc_add,
    bmm_rrr,
    bmm_rrr_add,
    dual_gemm_rcr_fast_gelu,
    dual_gemm_rcr_silu,
    gemm_rcr,
    gemm_rcr_bias,
    gemm_rcr_bias_add,
    gemm_rcr_bias_add_add,
    gemm_rcr_bias_add_add_relu,
    gemm_rcr_bias_add_relu,
    gemm_rcr_bias_fast_gelu,
    gemm_rcr_bias_gelu,
    gemm_rcr_bias_hardswish,
    gemm_rcr_bias_mul,
    gemm_rcr_bias_mul_add,
    gemm_rcr_bias_mul_tanh,
    gemm_rcr_bias_relu,
    gemm_rcr_bias_sigmoid,
    gemm_rcr_bias_sigmoid_mul,
    gemm_rcr_bias_sigmoid_mul_tanh,
    gemm_rcr_bias_swish,
    gemm_rcr_bias_tanh,
    gemm_rcr_fast_gelu,
    gemm_rrr,
    gemm_rrr_bias,
)
from ait_mlir.frontend.ops.index import bert_embeddings, embedding, index_select, masked_select, update_slice
from ait_mlir.frontend.ops.norm import group_norm, group_norm_swish, layernorm, rms_norm, softmax
from ait_mlir.frontend.ops.order import argsort, histogram, search_sorted, sort
from ait_mlir.frontend.ops.permuted import (
    bmm_rcr_permute,
    bmm_rrr_permute,
    gemm_rcr_bias_permute,
    gemm_rcr_permute,
    gemm_rcr_permute_elup1,
    gemm_rrr_bias_permute,
    gemm_rrr_permute,
)
from ait_mlir.frontend.ops.pool import adaptive_avg_pool2d, adaptive_max_pool2d, avg_pool2d, max_pool2d
from ait_mlir.frontend.ops.reduce import (
    argmax,
    argmin,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_sum,
    topk,
    var,
    vector_norm,
)
from ait_mlir.frontend.ops.rotary import rotary_embedding
from ait_mlir.frontend.ops.scan import scan
from ait_mlir.frontend.ops.view import (
    chunk,
    concatenate,
    dynamic_slice,
    expand,
    flatten,
    getitem,
    identity,
    permute,
    permute021,
    permute0213,
    permute102,
    permute210,
    reshape,
    size,
    split,
    squeeze,
    transpose,
    unsqueeze,
)

__all__ = [
    "FuncEnum", "adaptive_avg_pool2d", "adaptive_max_pool2d", "argmax", "argmin", "argsort", "attention", "avg_pool2d",
    "bert_embeddings", "bmm_ccc", "bmm_ccc_add", "bmm_ccr", "bmm_ccr_add", "bmm_crc", "bmm_crc_add", "bmm_crr",
    "bmm_crr_add", "bmm_rcc", "bmm_rcc_add", "bmm_rcr", "bmm_rcr_add", "bmm_rcr_permute", "bmm_rrc", "bmm_rrc_add",
    "bmm_rrr", "bmm_rrr_add", "bmm_rrr_permute", "cast", "chunk", "clamp", "concatenate", "conv2d", "conv2d_bias",
    "conv2d_bias_add", "conv2d_bias_add_hardswish", "conv2d_bias_add_relu", "conv2d_bias_hardswish", "conv2d_bias_relu",
    "conv2d_bias_sigmoid", "cummax", "cummin", "cumprod", "cumsum", "dual_gemm_rcr_fast_gelu", "dual_gemm_rcr_silu",
    "dynamic_slice", "elementwise", "embedding", "eq", "expand", "flatten", "full", "ge", "gemm_rcr", "gemm_rcr_bias",
    "gemm_rcr_bias_add", "gemm_rcr_bias_add_add", "gemm_rcr_bias_add_add_relu", "gemm_rcr_bias_add_relu",
    "gemm_rcr_bias_fast_gelu", "gemm_rcr_bias_gelu", "gemm_rcr_bias_hardswish", "gemm_rcr_bias_mul",
    "gemm_rcr_bias_mul_add", "gemm_rcr_bias_mul_tanh", "gemm_rcr_bias_permute", "gemm_rcr_bias_relu",
    "gemm_rcr_bias_sigmoid", "gemm_rcr_bias_sigmoid_mul", "gemm_rcr_bias_sigmoid_mul_tanh", "gemm_rcr_bias_swish",
    "gemm_rcr_bias_tanh", "gemm_rcr_fast_gelu", "gemm_rcr_permute", "gemm_rcr_permute_elup1", "gemm_rrr",
    "gemm_rrr_bias", "gemm_rrr_bias_permute", "gemm_rrr_permute", "getitem", "group_norm", "group_norm_swish", "gt",
    "histogram", "identity", "index_select", "int_elementwise", "layernorm", "le", "logcumsumexp", "lt",
    "masked_select", "max_pool2d", "mem_eff_attention", "ne", "permute", "permute021", "permute0213", "permute102",
    "permute210", "reduce_max", "reduce_mean", "reduce_min", "reduce_sum", "reshape", "rms_norm", "rotary_embedding",
    "scan", "search_sorted", "size", "softmax", "sort", "split", "squeeze", "topk", "transpose", "unsqueeze",
    "update_slice", "var", "vector_norm", "where",
]  # fmt: skip
