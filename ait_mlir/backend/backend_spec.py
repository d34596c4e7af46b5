"""The names that a target gives to types, streams and libraries, for the templates of operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ait_mlir.frontend.errors import BuildError

_COMMON = {"float32": "float", "float": "float", "float64": "double", "bool": "bool"} | {
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int": "int32_t",
    "int64": "int64_t",
}


@dataclass(frozen=True)
class BackendSpec:
    """A target as templates see it: `{{prefix}}Stream_t` is the type of its streams."""

    backend_name: str
    prefix: str
    index_type: str = "int64_t"
    stream: str = ""
    cub: str = ""
    TYPES: ClassVar[dict[str, str]] = {}

    def dtype_to_backend_type(self, dtype: str) -> str:
        """The C++ type of a dtype: `half` for `float16`; `BuildError` for an unknown dtype."""
        types = _COMMON | self.TYPES
        if dtype not in types:
            raise BuildError(
                f"{self.backend_name} has no type for {dtype!r}; expected one of {', '.join(sorted(types))}"
            )
        return types[dtype]


@dataclass(frozen=True)
class CUDASpec(BackendSpec):
    """CUDA: `cudaStream_t`, `half`, `__nv_bfloat16`."""

    backend_name: str = "cuda"
    prefix: str = "cuda"
    stream: str = field(default="cudaStream_t")
    cub: str = "cub"
    TYPES: ClassVar[dict[str, str]] = {"float16": "half", "bfloat16": "__nv_bfloat16"}


@dataclass(frozen=True)
class ROCMSpec(BackendSpec):
    """ROCm: `hipStream_t`, `half`, `hip_bfloat16`."""

    backend_name: str = "rocm"
    prefix: str = "hip"
    stream: str = field(default="hipStream_t")
    cub: str = "hipcub"
    TYPES: ClassVar[dict[str, str]] = {"float16": "half", "bfloat16": "hip_bfloat16"}


@dataclass(frozen=True)
class CPUSpec(BackendSpec):
    """The CPU: `cpuStream_t` is a null pointer, `ait::half` has two bytes."""

    backend_name: str = "cpu"
    prefix: str = "cpu"
    stream: str = field(default="cpuStream_t")
    TYPES: ClassVar[dict[str, str]] = {"float16": "ait::half", "bfloat16": "ait::bfloat16"}


__all__ = ["BackendSpec", "CPUSpec", "CUDASpec", "ROCMSpec"]
