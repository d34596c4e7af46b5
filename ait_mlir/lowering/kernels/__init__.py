"""The table of kernels: each family registers its kernels. On a tie the earlier kernel is preferred."""

from __future__ import annotations

from functools import cache
from typing import Any

from xdsl.ir import Operation

from ait_mlir.families import modules
from ait_mlir.lowering.kernels import attention_cuts, contraction_cuts
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Launch, NamesAlgorithms, Target
from ait_mlir.lowering.kernels.cuts import Cut
from ait_mlir.lowering.kernels.outside import kernels_from_outside

__all__ = [
    "ALGORITHM_KEYS",
    "CUTS",
    "PROVIDERS",
    "Arg",
    "Cut",
    "Emission",
    "Kernel",
    "Launch",
    "Target",
    "cuts_of",
    "kernel_of",
    "kernels_for",
    "kernels_of_class",
]

MODULES = (
    "generated", "generated_boxes", "scatter_loops",
    "elementwise",
    "view",
    "index",
    "jagged",
    "norm", "group_norm", "group_norm_cluster",
    "reduce",
    "conv", "conv_hopper", "conv_patch", "conv_grouped", "conv_planes", "conv_mma", "conv_packed", "conv_winograd",
    "conv_bytes", "conv_cudnn",
    "pad",
    "detection",
    "pool",
    "resize",
    "cumulative",
    "recurrence",
    "sorting",
    "gemm_cublaslt", "gemm", "gemm_hopper", "gemm_padded", "gemm_rotated", "gemm_stream", "gemm_mfma", "gemm_packed",
    "gemm_stored", "gemm_scaled",
    "grouped",
    "attention_hopper", "attention_split", "attention", "attention_cudnn",
    "attention_ragged", "attention_ragged_hopper",
    "collective",
    "foreign",
)  # fmt: skip
"""The modules of kernels; a family may have several. Kernels of earlier modules are preferred on a tie."""

PROVIDERS: tuple[Kernel[Any], ...] = tuple(kernel for file in modules(__name__, MODULES) for kernel in file.KERNELS)

CUTS: tuple[Cut[Any], ...] = (*contraction_cuts.CUTS, *attention_cuts.CUTS)
"""The cuts of all families: a cut replaces one op by several ops."""

ALGORITHM_KEYS = {kernel.provider: kernel.algorithm_keys for kernel in PROVIDERS if isinstance(kernel, NamesAlgorithms)}
"""By provider, the keys of a configuration that name an algorithm of its library."""


@cache
def kernels_of_class(op_class: type[Operation]) -> tuple[Kernel[Any], ...]:
    """The kernels that may run ops of a class; kernels of operators from outside come first."""
    own = tuple(kernel for kernel in PROVIDERS if issubclass(op_class, kernel.ops))
    return (*kernels_from_outside(op_class), *own)


@cache
def cuts_of(op_class: type[Operation]) -> tuple[Cut[Any], ...]:
    """The ways to cut ops of a class."""
    return tuple(cut for cut in CUTS if issubclass(op_class, cut.ops))


def kernels_for(op: Operation, target: Target) -> list[Kernel[Any]]:
    """The kernels that can run `op`."""
    return [kernel for kernel in kernels_of_class(type(op)) if kernel.matches(op, target)]


def kernel_of(provider: str, op: Operation, target: Target) -> Kernel[Any]:
    """The kernel of `provider` that runs `op`; `ValueError` when it has none."""
    for kernel in kernels_of_class(type(op)):
        if kernel.provider == provider and kernel.matches(op, target):
            return kernel
    others = sorted({kernel.provider for kernel in kernels_for(op, target)})
    raise ValueError(
        f"provider '{provider}' has no kernel for {op.name} on {target.kind} with these types; "
        f"{'providers that have one: ' + ', '.join(others) if others else 'no provider has one'}"
    )
