"""A neural-network inference compiler whose every step can be read, tested and replayed as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ait_mlir.host.kernel_libraries import add_kernel_library
    from ait_mlir.importers.torch.compiled import compile

__all__ = ["__version__", "add_kernel_library", "compile"]


def __getattr__(name: str) -> object:
    if name == "compile":  # PyTorch and the compiler are loaded by who compiles
        from ait_mlir.importers.torch.compiled import compile

        return compile
    if name == "add_kernel_library":
        from ait_mlir.host.kernel_libraries import add_kernel_library

        return add_kernel_library
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
