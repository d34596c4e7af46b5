"""The enumerations of the graph API, spelled as in cuDNN's Python package."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Any

from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute

from ait_mlir.dialects.ait.dtypes import BY_IR, ui8
from ait_mlir.graph.errors import GraphError, cudnnGraphNotSupportedError


def _names(name: str, *members: str) -> Any:
    return Enum(name, list(members), module=__name__)


class data_type(Enum):
    """Element types. The kernels support the first nine; a graph with another type is not supported."""

    HALF = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT = "float32"
    DOUBLE = "float64"
    BOOLEAN = "bool"
    INT8 = "int8"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    INT4 = "int4"
    INT8x4 = "int8x4"
    INT8x32 = "int8x32"
    UINT8x4 = "uint8x4"
    FP8_E4M3 = "float8_e4m3fn"
    FP8_E5M2 = "float8_e5m2"
    FP8_E5M3 = "float8_e5m3"
    FP8_E8M0 = "float8_e8m0fnu"
    FP4_E2M1 = "float4_e2m1fn_x2"
    FAST_FLOAT_FOR_FP8 = "fast_float_for_fp8"
    NOT_SET = ""


class heur_mode(Enum):
    """The heuristic that makes the plans of a graph."""

    A = "estimate"
    """Plans in the order of the compiler's estimates."""
    B = "measured"
    """The plan with the fastest kernels on this machine; they are timed now unless their times are known."""
    FALLBACK = "fallback"
    """The plan of our own kernels in their first configuration."""
    OPENSOURCE = "opensource"
    """The same as A: all of our kernels are open source."""


class build_plan_policy(Enum):
    """The plans that `build_plans` builds: the first that can be built, or all."""

    HEURISTICS_CHOICE = "heuristics_choice"
    ALL = "all"


class numerical_note(Enum):
    """The numerical properties of a plan."""

    TENSOR_CORE = "tensor_core"
    DOWN_CONVERT_INPUTS = "down_convert_inputs"
    REDUCED_PRECISION_REDUCTION = "reduced_precision_reduction"
    FFT = "fft"
    NONDETERMINISTIC = "nondeterministic"
    WINOGRAD = "winograd"
    WINOGRAD_TILE_4x4 = "winograd_4x4"
    WINOGRAD_TILE_6x6 = "winograd_6x6"
    WINOGRAD_TILE_13x13 = "winograd_13x13"
    STRICT_NAN_PROP = "strict_nan_prop"


class behavior_note(Enum):
    """The requirements of a plan when it is built or run."""

    RUNTIME_COMPILATION = "runtime_compilation"
    REQUIRES_FILTER_INT8x32_REORDER = "requires_filter_reorder"
    REQUIRES_BIAS_INT8x32_REORDER = "requires_bias_reorder"
    SUPPORTS_CUDA_GRAPH_NATIVE_API = "supports_cuda_graph"
    CUBLASLT_DEPENDENCY = "cublaslt"


norm_forward_phase = _names("norm_forward_phase", "INFERENCE", "TRAINING", "NOT_SET")
tensor_reordering = _names("tensor_reordering", "NONE", "F16x16", "INT8x32", "F8_128x4")
convolution_mode = _names("convolution_mode", "CROSS_CORRELATION", "CONVOLUTION")
reduction_mode = _names(
    "reduction_mode", "ADD", "AMAX", "AVG", "MAX", "MIN", "MUL", "MUL_NO_ZEROS", "NORM1", "NORM2", "NOT_SET"
)
reshape_mode = _names("reshape_mode", "VIEW_ONLY", "LOGICAL")
diagonal_alignment = _names("diagonal_alignment", "TOP_LEFT", "BOTTOM_RIGHT")
attention_implementation = _names("attention_implementation", "AUTO", "COMPOSITE", "UNIFIED")
scalar_type = _names("scalar_type", "COMPILE_TIME_CONST", "RUNTIME_PARAM")
cuda_graph_retention = _names("cuda_graph_retention", "NONE", "PER_GRAPH")
resample_mode = _names(
    "resample_mode", "MAXPOOL", "AVGPOOL_INCLUDE_PADDING", "AVGPOOL_EXCLUDE_PADDING", "NEAREST", "BILINEAR"
)
moe_grouped_matmul_mode = _names("moe_grouped_matmul_mode", "NONE", "GATHER", "SCATTER", "COMBINE")
knob_type = _names(
    "knob_type",
    *("NOT_SET", "SWIZZLE", "TILE_SIZE", "EDGE", "MULTIPLY", "SPLIT_K_BUF", "TILEK", "STAGES", "REDUCTION_MODE"),
    *("SPLIT_K_SLC", "IDX_MODE", "SPECFILT", "KERNEL_CFG", "WORKSPACE", "TILE_CGA_M", "TILE_CGA_N", "BLOCK_SIZE"),
    *("OCCUPANCY", "ARRAY_SIZE_PER_THREAD", "SPLIT_COLS", "TILE_ROWS", "TILE_COLS", "LOAD_SIZE", "CTA_COUNT"),
    *("STREAM_K", "SPLIT_P_SLC", "TILE_M", "TILE_N", "WARP_SPEC_CFG"),
)
NodeType = _names(
    "NodeType",
    *("MATMUL", "CONV_FPROP", "POINTWISE", "REDUCTION", "SOFTMAX", "RESAMPLE", "GENSTATS", "LAYERNORM", "RMSNORM"),
    *("ADALAYERNORM", "INSTANCENORM", "BATCHNORM", "BATCHNORM_INFERENCE", "SDPA", "RESHAPE", "SLICE", "TRANSPOSE"),
    *("CONCATENATE", "ROPE", "MOE_GROUPED_MATMUL"),
)
padding_mode = _names("padding_mode", "ZERO_PAD", "NEG_INF_PAD", "EDGE_VAL_PAD")

IR_TYPES: dict[data_type, Attribute] = {
    data_type.HALF: f16,
    data_type.BFLOAT16: bf16,
    data_type.FLOAT: f32,
    data_type.DOUBLE: f64,
    data_type.BOOLEAN: i1,
    data_type.INT8: i8,
    data_type.UINT8: ui8,
    data_type.INT32: i32,
    data_type.INT64: i64,
}
"""The element types that kernels have."""

FLOATS = (data_type.HALF, data_type.BFLOAT16, data_type.FLOAT, data_type.DOUBLE)
SMALL = (data_type.INT8, data_type.UINT8)
"""The integers that products and convolutions multiply."""
_BY_NAME: dict[str, data_type] = {d.value: d for d in data_type if d is not data_type.NOT_SET}


def ir_type(dtype: data_type, where: str) -> Attribute:
    """The element type of the IR; `cudnnGraphNotSupportedError` for a data type that no kernel has."""
    if dtype not in IR_TYPES:
        known = ", ".join(d.name for d in IR_TYPES)
        raise cudnnGraphNotSupportedError(f"{where} has data type {dtype.name}; the kernels compute with {known}")
    return IR_TYPES[dtype]


def item_bytes(dtype: data_type) -> int:
    """Bytes of an element."""
    return BY_IR[IR_TYPES[dtype]].bytes


def as_data_type(value: object, where: str) -> data_type:
    """The data type for a `data_type`, a dtype of PyTorch or NumPy, or a name such as "float16"; None is NOT_SET."""
    if value is None:
        return data_type.NOT_SET
    if isinstance(value, data_type):
        return value
    name = getattr(value, "name", None) if not isinstance(value, type) else value.__name__
    if not isinstance(name, str):
        torch = sys.modules.get("torch")
        name = str(value).removeprefix("torch.") if torch is not None and isinstance(value, torch.dtype) else str(value)
    if name not in _BY_NAME:
        raise GraphError(f"{where}: {value!r} is no data type; expected one of cudnn.data_type, such as HALF")
    return _BY_NAME[name]
