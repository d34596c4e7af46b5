"""Which kernels can run which op: each family registers its own, in the order in which they are preferred on a tie."""

from __future__ import annotations

from xdsl.ir import Operation

from ait_mlir.lowering.kernels import (
    attention,
    attention_cudnn,
    attention_hopper,
    attention_split,
    elementwise,
    gemm,
    gemm_hopper,
    gemm_mfma,
    gemm_packed,
    gemm_stream,
    index,
    norm,
    reduce,
    view,
)
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Target

__all__ = ["ALGORITHM_KEYS", "PROVIDERS", "Arg", "Emission", "Kernel", "Target", "kernel_of", "kernels_for"]

PROVIDERS: tuple[Kernel, ...] = (
    *elementwise.KERNELS,
    *view.KERNELS,
    *index.KERNELS,
    *norm.KERNELS,
    *reduce.KERNELS,
    *gemm.KERNELS,
    *gemm_hopper.KERNELS,
    *gemm_stream.KERNELS,
    *gemm_mfma.KERNELS,
    *gemm_packed.KERNELS,
    *attention_hopper.KERNELS,
    *attention_split.KERNELS,
    *attention.KERNELS,
    *attention_cudnn.KERNELS,
)

ALGORITHM_KEYS = {kernel.provider: kernel.algorithm_keys for kernel in PROVIDERS if kernel.algorithm_keys}
"""By provider, the keys of a configuration that name an algorithm of its library."""


def kernels_for(op: Operation, target: Target) -> list[Kernel]:
    """The kernels that can run `op` as one launch."""
    return [kernel for kernel in PROVIDERS if kernel.matches(op, target)]


def kernel_of(provider: str, op: Operation, target: Target) -> Kernel:
    """The kernel of `provider` that runs `op`; `ValueError` when it has none."""
    for kernel in PROVIDERS:
        if kernel.provider == provider and kernel.matches(op, target):
            return kernel
    others = sorted({kernel.provider for kernel in kernels_for(op, target)})
    raise ValueError(
        f"provider '{provider}' has no kernel for {op.name} on {target.kind} with these types; "
        f"{'providers that have one: ' + ', '.join(others) if others else 'no provider has one'}"
    )
