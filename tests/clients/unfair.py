"""Tests of clients that cannot pass, with the reason: no document describes what they ask for, or a machine has no such device."""

from __future__ import annotations

import re

INTERNALS = "asks for functions of the original that no document names"
UNFAIR: dict[str, tuple[tuple[str, str], ...]] = {
    "aitemplate": (
        (r"/benchmark/", "measures times and compares nothing"),
        (r"backend/test_(build_cache|profiler)\.py", INTERNALS),
        (r"_profiler_cache\.py", "reads the database of profiled kernels and its log, which no document describes"),
        (r"backend/test_(codegen_output_\w+|fused_elementwise_backend)\.py", "compares the text of generated CUDA code"),
        (r"backend/test_gen_standalone\.py", "builds a program of the original's sources"),
        (r"test_compilation_failure\.py", "damages the templates of the original"),
        (r"test_tensor_accessor\.py|test_transform_toposort\.py", INTERNALS),
    ),
    "cudnn": (
        (r"/fe_api/", "kernels of their own beside the graph API, most for SM100"),
        (r"test_sm(90|100)_", "kernels of their own beside the graph API"),
        (r"test_cudnn_sdpa_op\.py", "reads the private caches of an operator"),
        (r"fp4|fp8|low_precision|block_scale|and_quantization", "floats of 8 and 4 bits, which the page lists as refused"),
        (r"_bwd_|backward|bprop|_bwd\b|test_wgrads|drelu_dadd_dbn|drelu_dbn", "gradients, which the page lists as refused"),
        (r"::test_repro\b", "repeats a case that a person gives"),
        (r"^cpu .*test_conv3d_bias_leaky_relu", "PyTorch's results on a CPU lie in another order in memory"),
        (r"^cpu .*test_conv_reduction", "PyTorch's autocast on a CPU does not compute in f32"),
    ),
    "notebooks": (
        (r"backward", "gradients, which the page lists as refused"),
        (r"^cpu .*30_batchnorm", "PyTorch's batch norm on a CPU takes no statistics of several dims"),
    ),
}
"""For each suite regular expressions of `TARGET FILE::CLASS::METHOD`, and the reason."""
UNFAIR_ERRORS: tuple[tuple[str, str], ...] = (
    (r"not implemented for '(?:Half|BFloat16)'", "PyTorch has no such function on a CPU"),
    (r"'HostCuda' object has no attribute", "needs a card: CUDA graphs and the like"),
    (r"FP8|FP4|E4M3|E5M2|E8M0", "floats of 8 and 4 bits, which the page lists as refused"),
    (r"No module named '(?!ait_mlir)", "needs another package"),
    (r"(?:has no attribute|cannot import name) '_(?!attrs')\w", "asks for a private name"),
    (r"graph mode is not there on target cpu", "needs a card: CUDA graphs and the like"),
    (r"dropout belongs to training", "dropout, which the page lists as refused"),
    (r"use_alibi_mask needs a causal mask", "ALiBi without a causal mask, which the page lists as refused"),
    (r"has no gradient|gradients are not computed", "gradients, which the page lists as refused"),
)
"""Regular expressions of the exception that ended a test, and the reason."""
DOCUMENTED: tuple[tuple[str, str, str], ...] = (
    (
        r"test_run_fails_with_unbound_constants|test_constant_folding_with_update|set_many_constants|async_fold_constants",
        r"\d of \d+ differ",
        "a chain of f16 operators is rounded once",
    ),
    (r"test_bmm_alpha", r"\b19[0-2] of 192 differ", "(x @ w + d) * a is not a * (x @ w) + d"),
    (r"^cpu .*test_power_bfloat16", r"relative difference: 0\.0", "PyTorch's pow of a CPU rounds the exponent to bf16"),
    (r"mem_eff_attention", r"difference: nan", "rows without keys are 0, not NaN"),
    (r"^cpu .*matrix_multiplication|^cpu .*matmul", r"Mismatched elements: [1-9] /", "PyTorch's f16 products of a CPU are rounded more"),
)
"""Numbers that differ as a document says, or because PyTorch's are further from float64: regular expressions of `TARGET
NAME` and of the failure, and the difference."""


def unfair(suite: str, target: str, name: str) -> str | None:
    """Why a test cannot be expected to pass on a target, by its name; None if it can."""
    return next((why for pattern, why in UNFAIR[suite] if re.search(pattern, f"{target} {name}")), None)


def unfair_error(reason: str) -> str | None:
    """Why a test cannot be expected to pass, by the exception that ended it; None if it can."""
    return next((why for pattern, why in UNFAIR_ERRORS if re.search(pattern, reason)), None)


def documented(target: str, name: str, reason: str) -> str | None:
    """The documented difference that makes the numbers of a test differ; None if there is none."""
    found = (why for names, reasons, why in DOCUMENTED if re.search(names, f"{target} {name}") and re.search(reasons, reason))
    return next(found, None)
