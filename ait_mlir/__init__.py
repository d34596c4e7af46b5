"""A neural-network inference compiler whose every step can be read, tested and replayed as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ait_mlir import hooks
from ait_mlir.version import __version__

if TYPE_CHECKING:
    from ait_mlir.host.kernel_libraries import add_kernel_library
    from ait_mlir.importers.onnx.compiled import load_onnx
    from ait_mlir.importers.quantized import quantize
    from ait_mlir.importers.torch.compiled import compile

__all__ = ["__version__", "add_kernel_library", "compile", "load_onnx", "quantize"]


def __getattr__(name: str) -> object:
    if name == "compile":  # PyTorch and the compiler are loaded by who compiles
        from ait_mlir.importers.torch.compiled import compile

        return compile
    if name == "quantize":
        from ait_mlir.importers.quantized import quantize

        return quantize
    if name == "load_onnx":
        from ait_mlir.importers.onnx.compiled import load_onnx

        return load_onnx
    if name == "add_kernel_library":
        from ait_mlir.host.kernel_libraries import add_kernel_library

        return add_kernel_library
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _fold_value(fold: Any, data: Mapping[str, Any], target: Any) -> Any:
    from ait_mlir.driver import value_at_load

    return value_at_load(fold, data, target)


def _documented_graph(tensors: Sequence[Any], optimize: bool, fold: bool) -> list[Any]:
    from ait_mlir.compiler.transform.documented_graph import documented_graph

    return documented_graph(tensors, optimize, fold)


def _operator_source(operator: Any) -> str:
    from ait_mlir.frontend.source import source_of

    return source_of(operator)


def _write_profiler(operator: Any, workdir: str | None, strategy: object) -> None:
    from ait_mlir.frontend.source import write_profiler

    write_profiler(operator, workdir, strategy)


def _profile_operator(operator: Any, workdir: str, devices: Sequence[int] | None, strategy: object) -> None:
    from ait_mlir.compiler.transform.profile import profile_operator

    profile_operator(operator, workdir, devices, strategy)


def _module_html(module: Any) -> str:
    from ait_mlir.tools.language.html import module_html

    return module_html(module)


hooks.fold_value = _fold_value
hooks.operator_source = _operator_source
hooks.write_profiler = _write_profiler
hooks.profile_operator = _profile_operator
hooks.documented_graph = _documented_graph
hooks.module_html = _module_html
