"""Methods of cuDNN's graph without a kernel here: a call raises an error with the method's name."""

from __future__ import annotations

_BACKWARD = "gradients are not computed: the compiler is for inference"
_STATE = "linear attention has no kernel here"
_NARROW = "the kernels have no 4-bit and 8-bit floats"

REFUSED: dict[str, str] = {
    **dict.fromkeys(
        (
            *("conv_dgrad", "conv_wgrad", "sdpa_backward", "layernorm_backward", "rmsnorm_backward"),
            *("instancenorm_backward", "batchnorm_backward", "adalayernorm_backward", "rope_backward"),
            *("relu_backward", "leaky_relu_backward", "elu_backward", "gelu_backward", "gelu_approx_tanh_backward"),
            *("sigmoid_backward", "softplus_backward", "swish_backward", "tanh_backward", "moe_grouped_matmul_bwd"),
        ),
        _BACKWARD,
    ),
    **dict.fromkeys(
        (
            *("sdpa_fp8", "sdpa_fp8_backward", "sdpa_mxfp8", "sdpa_mxfp8_backward"),
            *("block_scale_quantize", "block_scale_dequantize"),
        ),
        _NARROW,
    ),
    **dict.fromkeys(
        (
            f"{name}{suffix}"
            for name in ("gdn", "gdn2", "gdp", "kda", "mamba2")
            for suffix in ("", "_bwd", "_summary", "_summary_bwd")
        ),
        _STATE,
    ),
}
"""The name of each method and the reason."""
