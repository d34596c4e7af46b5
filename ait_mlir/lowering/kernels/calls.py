"""The arguments of library calls, as in the structs of `runtime/include/ait/*_service.h`, and their C++.

Each class has fields of its struct under the same names; a field that is None or left out stays 0 or null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

from ait_mlir.dims import Expr
from ait_mlir.lowering.kernels.base import Emission, Launch

Size = Expr | int
Strides3 = tuple[Expr, ...]
"""All strides but the last, which is 1."""


@dataclass(frozen=True, kw_only=True)
class GemmMatrix:
    """`ait_gemm_operand_v2` and `ait_gemm_result_v2`: strides of rows and batches in elements; `data` is a variable,
    `dtype` an enumerator."""

    data: str
    dtype: str
    transposed: int | None = None
    ld: Expr
    batch: Expr | None = None


@dataclass(frozen=True, kw_only=True)
class GemmCall:
    """`ait_gemm_v2`; `bias` and `algorithm` are C++ pointers, `alpha` and `beta` C++ numbers."""

    batch: Size
    m: Expr
    n: Expr
    k: Expr
    a: GemmMatrix
    b: GemmMatrix
    c: GemmMatrix | None
    d: GemmMatrix
    bias: str | None
    bias_dtype: str | None
    epilogue: int
    alpha: str
    beta: str
    algorithm: str | None
    workspace: str
    workspace_bytes: Size
    precision: str | None = None


@dataclass(frozen=True, kw_only=True)
class AttentionCall:
    """`ait_attention_v1`; tensors are variables, `dtype` is an enumerator, `scale` is a C++ number."""

    dtype: str
    causal: int
    algo: int
    batch: Expr
    heads: Expr
    groups: Expr
    rows: Expr
    cols: Expr
    depth: Expr
    width: Expr
    window: int
    strides_q: Strides3
    strides_k: Strides3
    strides_v: Strides3
    strides_o: Strides3
    q: str
    k: str
    v: str
    o: str
    scale: str
    workspace: str
    workspace_bytes: Size


@dataclass(frozen=True, kw_only=True)
class ConvCall:
    """`ait_conv_v1`; tensors are variables, `dtype` and `activation` enumerators."""

    dtype: str
    activation: str
    algo: int
    groups: int
    batch: Expr
    in_height: Expr
    in_width: Expr
    in_channels: Expr
    out_height: Expr
    out_width: Expr
    out_channels: Expr
    kernel: tuple[Size, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pad_before: tuple[int, ...]
    pad_after: tuple[int, ...]
    strides_x: Strides3
    strides_y: Strides3
    strides_residual: Strides3 | None
    x: str
    w: str
    bias: str | None
    residual: str | None
    y: str
    workspace: str
    workspace_bytes: Size
    precision: str | None = None


@dataclass(frozen=True, kw_only=True)
class CollectiveCall:
    """`ait_collective_v1`; `group` is a C++ initializer, tensors are variables, `kind`, `join` and `dtype`
    enumerators."""

    group: str
    kind: str
    join: str | None = None
    dtype: str
    root: int = 0
    rows: Expr
    count: Expr
    out_rows: Expr | None = None
    out_count: Expr | None = None
    data: str
    result: str
    workspace: str
    key: str


@dataclass(frozen=True, kw_only=True)
class PermuteCall:
    """`ait_permute_v1`; `group` is a C++ initializer, `pairs`, `data` and `result` are variables."""

    group: str
    num_pairs: int
    pairs: str
    data: str
    result: str
    bytes: Expr
    key: str


Call = GemmCall | AttentionCall | ConvCall | CollectiveCall | PermuteCall
STRUCTS: dict[type[Call], tuple[str, str]] = {
    GemmCall: ("gemm", "ait_gemm_v2"),
    AttentionCall: ("attention", "ait_attention_v1"),
    ConvCall: ("conv", "ait_conv_v1"),
    CollectiveCall: ("collective", "ait_collective_v1"),
    PermuteCall: ("permute", "ait_permute_v1"),
}
"""For each class of calls, the runtime's service and its struct of arguments."""


def call_service(call: Call, launch: Launch[Any], before: str = "") -> Emission:
    """The code that calls a service of the runtime library; `before` are statements that `call` refers to."""
    service, _ = STRUCTS[type(call)]
    lines = [*([before] if before else []), *arguments(call, launch), f"return ait::library_{service}(ctx, args);\n"]
    return Emission((f"ait/{service}_service.h", "ait/types.h"), "", "\n".join(lines))


def arguments(call: Call, launch: Launch[Any]) -> list[str]:
    """The statements that make the C++ variable `args` of a call."""
    _, struct = STRUCTS[type(call)]
    values = ((name, launch.cpp(v) if isinstance(v, Expr) else v) for name, v in assigned(call))
    return [f"{struct} args = {{}};", *(f"args.{name} = {value};" for name, value in values)]


def assigned(call: object, prefix: str = "") -> Iterator[tuple[str, Size | str]]:
    """The fields of a call that are set, by their C++ names (`a.ld`, `stride[1]`), with their values."""
    for field in fields(cast(Any, call)):
        name, value = prefix + field.name, getattr(call, field.name)
        if is_dataclass(value):
            yield from assigned(value, f"{name}.")
        elif isinstance(value, tuple):
            yield from ((f"{name}[{i}]", v) for i, v in enumerate(cast("tuple[Size, ...]", value)))
        elif value is not None:
            yield name, value
