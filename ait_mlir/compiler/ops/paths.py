"""The operators that AITemplate's modules define, and modules of these names.

An operator is imported from `ops`, from `ops.FAMILY` and from `ops.FAMILY.MODULE`. A module has the name of its
operator unless `MODULES` names it. The modules hold names only, so they are made from the tables, not from files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ait_mlir.frontend import ops
from ait_mlir.name_modules import name_module

FAMILIES: dict[str, str] = {
    "attention": "flash_attention mem_eff_attention",
    "b2b_bmm": "CausalType classic_b2b_bmm fmha_style_b2b_bmm grouped_classic_b2b_bmm grouped_fmha_style_b2b_bmm",
    "common": "elementwise clamp FuncEnum fused_elementwise int_elementwise getitem tuple_construct list_construct "
    "reshape flatten squeeze unsqueeze make_jagged tanh cos sin sign abs log log1p exp sqrt max min sigmoid leaky_relu "
    "hardtanh relu silu nan_to_num clamp_nan_to_num pow gelu fast_gelu softplus elu softsign floor_div celu floor "
    "reciprocal",
    "conv": "conv2d conv2d_bias conv2d_bias_add conv2d_bias_add_hardswish conv2d_bias_add_relu "
    "conv2d_bias_few_channels conv2d_bias_hardswish conv2d_bias_hardswish_few_channels conv2d_bias_relu "
    "conv2d_bias_relu_few_channels conv2d_bias_sigmoid conv2d_depthwise conv2d_depthwise_bias conv2d_groups conv3d "
    "conv3d_bias depthwise_conv3d transposed_conv2d transposed_conv2d_bias transposed_conv2d_bias_relu",
    "embedding": "bert_embeddings",
    "gemm_epilogue_vistor": "bmm_rcr_softmax dual_bmm_rrr_div dual_gemm_rcr_fast_gelu dual_gemm_rcr_silu "
    "gemm_rcr_bias_softmax gemm_rcr_softmax",
    "gemm_special": "batched_dense_vec_jagged_2d_mul bmm_rcr_n1 bmm_rrr_k1_tanh gemm_rrr_small_nk",
    "gemm_universal": "bmm_rcr_permute bmm_rrr_permute bmm_softmax_bmm bmm_softmax_bmm_permute bmm_ccr bmm_rrr bmm_crr "
    "bmm_rcr bmm_ccc bmm_rrc bmm_crc bmm_rcc bmm_crr_add bmm_rcr_add bmm_ccr_add bmm_rrr_add bmm_crc_add bmm_rcc_add "
    "bmm_ccc_add bmm_rrc_add gemm_rcr gemm_rcr_bias gemm_rcr_bias_add gemm_rcr_bias_add_add gemm_rcr_bias_add_add_relu "
    "gemm_rcr_bias_add_relu gemm_rcr_bias_fast_gelu gemm_rcr_bias_gelu gemm_rcr_bias_hardswish gemm_rcr_bias_mul "
    "gemm_rcr_bias_mul_add gemm_rcr_bias_mul_tanh gemm_rcr_bias_permute gemm_rcr_bias_relu gemm_rcr_bias_sigmoid "
    "gemm_rcr_bias_sigmoid_mul gemm_rcr_bias_sigmoid_mul_tanh gemm_rcr_bias_swish gemm_rcr_bias_tanh "
    "gemm_rcr_fast_gelu gemm_rcr_permute gemm_rcr_permute_elup1 gemm_rrr gemm_rrr_bias gemm_rrr_bias_permute "
    "gemm_rrr_permute group_gemm_rcr group_gemm_rcr_bias group_gemm_rcr_bias_relu group_gemm_rcr_bias_sigmoid "
    "perm021fc_ccr perm021fc_ccr_bias perm021fc_ccr_bias_permute perm021fc_crc perm021fc_crc_bias perm102_bmm_rcr "
    "perm102_bmm_rcr_bias perm102_bmm_rrr perm102_bmm_rrr_bias",
    "groupnorm": "group_norm group_norm_swish",
    "jagged": "jagged_lengths_to_offsets jagged_lengths_to_presences",
    "layernorm": "batch_layernorm_sigmoid_mul group_layernorm group_layernorm_sigmoid_mul layernorm "
    "layernorm_sigmoid_mul",
    "padding": "ndhwc3to8 nhwc3to4 nhwc3to8 pad_last_dim",
    "pool": "avg_pool2d max_pool2d",
    "reduce": "reduce_max reduce_mean reduce_min reduce_sum var vector_norm",
    "softmax": "softmax",
    "tensor": "argmax batch_gather cast chunk concatenate concatenate_tanh dynamic_slice expand full gather identity "
    "index_select jagged_to_padded_dense masked_select padded_dense_to_jagged permute permute021 permute0213 "
    "permute102 permute210 ge le gt lt eq ne size slice_reshape_scatter slice_scatter split topk transpose where",
    "upsample": "upsampling2d upsampling2d_add",
    "vision_ops": "",
    "vision_ops.nms": "batched_nms efficient_nms nms",
    "vision_ops.roi_ops": "multi_level_roi_align roi_align",
}
"""The operators of each family."""

MODULES: dict[str, str] = {
    "b2b_bmm.b2b_bmm_base": "CausalType",
    "common.elementwise": "elementwise clamp",
    "common.epilogue": "FuncEnum",
    "common.math": "tanh cos sin sign abs log log1p exp sqrt max min sigmoid leaky_relu hardtanh relu silu nan_to_num "
    "clamp_nan_to_num pow gelu fast_gelu softplus elu softsign floor_div celu floor reciprocal",
    "common.python_ops": "getitem tuple_construct list_construct",
    "common.view_ops": "reshape flatten squeeze unsqueeze make_jagged",
    "gemm_universal.bmm_xxx": "bmm_ccr bmm_rrr bmm_crr bmm_rcr bmm_ccc bmm_rrc bmm_crc bmm_rcc",
    "gemm_universal.bmm_xxx_add": "bmm_crr_add bmm_rcr_add bmm_ccr_add bmm_rrr_add bmm_crc_add bmm_rcc_add bmm_ccc_add "
    "bmm_rrc_add",
    "groupnorm.groupnorm": "group_norm group_norm_swish",
    "padding.nhwc_pad": "nhwc3to4 nhwc3to8",
    "reduce.reduce_common": "",
    "tensor.relational": "ge le gt lt eq ne",
}
"""Modules that do not have the name of their operator."""


CONSTANTS: dict[str, dict[str, int]] = {"tensor.dynamic_slice": {"MAX_INT32": (1 << 31) - 1}}
"""Numbers that scripts import with an operator: the end of a slice that reaches the end of its dim."""


def make_modules(package: str) -> None:
    """Enter the modules of the tables below `package` in `sys.modules`."""
    for path, names in all_modules().items():
        name_module(f"{package}.{path}", {name: getattr(ops, name) for name in names} | CONSTANTS.get(path, {}))


def all_modules() -> Mapping[str, Sequence[str]]:
    """The operators by the path of each module, families before the modules in them."""
    found = {family: names.split() for family, names in FAMILIES.items()}
    named = {name for names in MODULES.values() for name in names.split()}
    for family, names in list(found.items()):
        found |= {f"{family}.{name}": [name] for name in names if name not in named}
    return found | {path: names.split() for path, names in MODULES.items()}
