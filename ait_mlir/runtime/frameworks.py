"""The frameworks of a caller's tensors: results are made in the framework of the inputs.

PyTorch, CuPy and JAX are recognised by the types of the tensors, so no framework is imported that the caller lacks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from ait_mlir.runtime.data import is_torch, torch_module

_MODULES = {"cupy": "cupy", "jax": "jax", "jaxlib": "jax"}


def framework_of(values: Iterable[Any]) -> str:
    """ "torch", "cupy" or "jax": the first of them, in this order, that has one of the tensors; else "numpy"."""
    found: set[str] = set()
    for value in values:
        if is_torch(value):
            return "torch"
        found.add(_MODULES.get(type(value).__module__.partition(".")[0], "numpy"))
    return next((name for name in ("cupy", "jax") if name in found), "numpy")


def is_jax(value: object) -> bool:
    """Whether `value` is a JAX array, which nobody may write."""
    return "jax" in sys.modules and framework_of([value]) == "jax"


def in_framework(framework: str, buffer: Any) -> Any:
    """A NumPy array or a tensor of the runtime library as a tensor of `framework`, on the same device.

    It shares the memory, except where JAX wants a copy. JAX narrows 64-bit types unless `jax_enable_x64` is set.
    """
    if framework == "cupy":
        return sys.modules["cupy"].from_dlpack(buffer)
    if framework == "jax":
        jax: Any = sys.modules["jax"]
        return jax.numpy.asarray(buffer) if isinstance(buffer, np.ndarray) else jax.dlpack.from_dlpack(buffer)
    return buffer


def wait_for(framework: str, values: Iterable[Any]) -> None:
    """Wait until JAX has computed these tensors: it has no streams that a caller could name."""
    if framework == "jax":
        for value in values:
            if is_jax(value):
                value.block_until_ready()


def stream_of(framework: str, device: int) -> int:
    """The address of the current stream of a framework on a GPU; 0 where it has none."""
    if framework == "torch":
        torch = torch_module()
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # takes a tenth of the time, where PyTorch has it
        return int(torch.cuda.current_stream(device).cuda_stream if raw is None else raw(device))
    if framework == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return 0
