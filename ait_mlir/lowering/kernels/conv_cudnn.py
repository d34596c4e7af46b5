"""Convolutions of f16, bf16 and f32 on cuDNN, which the runtime library loads when a model first asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.calls import ConvCall, call_service
from ait_mlir.lowering.kernels.contraction import library_epilogue, library_precision
from ait_mlir.lowering.kernels.conv import is_depthwise

__all__ = ["KERNELS", "CudnnConv"]

T = TypeVar("T")

MAX_PLANS = 6
WORKSPACE = 32 << 20
SECONDS, RATE = 6e-6, 400e12
"""Seconds of a call, and operations per second: a guess, because cuDNN is chosen only by measurement or by name."""
ACTIVATIONS = {
    None: "AIT_ACTIVATION_NONE",
    "ait.relu": "AIT_ACTIVATION_RELU",
    "ait.fast_gelu": "AIT_ACTIVATION_FAST_GELU",
}


def _piece(op: ConvOp) -> int:
    """Elements in 16 bytes. The channels and every stride but the last must be multiples of it."""
    return 16 // element_bytes(tensor_type(op.x))


class CudnnConv(Kernel[ConvOp]):
    """cuDNN's convolution over one or two dims, in any number of groups, with bias, residual and activation. x,
    residual and result may have strides. A line is an image of one row.

    The first run of each shape makes a plan and keeps it. Chosen only by measurement or by name: without a card
    selection cannot know whether cuDNN will be installed.
    """

    provider = "cudnn"
    name = "conv"
    ops = (ConvOp,)
    only_timed = True
    alone = True

    def matches(self, op: ConvOp, target: Target) -> bool:
        kind, scope = tensor_type(op.x).element_type, scope_of(op)
        channels = (tensor_type(op.x).dims[-1], tensor_type(op.output).dims[-1])
        return (
            target.kind == "cuda"
            and isinstance(kind, Float16Type | BFloat16Type | Float32Type)
            and tensor_type(op.output).element_type == kind
            and op.spatial <= 2
            and not op.is_transposed()
            and all(scope.positive(c) and scope.divisible(c, _piece(op)) for c in channels)
            and library_epilogue(op) is not None
            and not (isinstance(kind, BFloat16Type) and is_depthwise(op))  # cuDNN 9.19 has no engine for it
        )

    def configs(self, op: ConvOp, target: Target) -> list[dict[str, int]]:
        return [{"algo": i} for i in range(MAX_PLANS)]

    def seconds(self, op: ConvOp, target: Target) -> float:
        scope = scope_of(op)
        busy = op.flops().evaluate(estimate_env(scope)) / RATE
        return SECONDS + max(busy, bytes_moved(op, scope) / target.bandwidth)

    def accepts(self, op: ConvOp, position: int, strides: Strides, scope: Scope) -> bool:
        value = [*op.operands, *op.results][position]
        if position in (0, len(op.operands)) or tensor_type(value).rank == 2 + op.spatial:
            return strides[-1].as_int() == 1 and all(scope.divisible(s, _piece(op)) for s in strides[:-1])
        return is_contiguous(tensor_type(value).dims, strides, scope)

    def workspace(self, op: ConvOp, config: Config) -> Expr:
        return const(WORKSPACE)

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        op, (x, w), (y,) = launch.op, launch.ins[:2], launch.outs
        found = library_epilogue(op)
        assert found is not None
        bias, residual = (None if i is None else launch.ins[i] for i in (found.bias, found.residual))
        rank, (batch, *sizes, in_channels), (_, *places, out_channels) = op.spatial, x.type.dims, y.type.dims
        (in_height, in_width), (out_height, out_width) = _rows(sizes, const(1)), _rows(places, const(1))
        pads = op.pads()
        call = ConvCall(
            dtype=BY_IR[x.type.element_type].enumerator,
            activation=ACTIVATIONS[found.activation],
            algo=launch.config.get("algo", 0),
            groups=op.num_groups(),
            batch=batch,
            in_height=in_height,
            in_width=in_width,
            in_channels=in_channels,
            out_height=out_height,
            out_width=out_width,
            out_channels=out_channels,
            kernel=_rows(op.kernel(), 1),
            stride=_rows(op.strides(), 1),
            dilation=_rows(op.dilations(), 1),
            pad_before=_rows(pads[:rank], 0),
            pad_after=_rows(pads[rank:], 0),
            strides_x=_steps(x),
            strides_y=_steps(y),
            strides_residual=None if residual is None else _steps(residual),
            x=x.name,
            w=w.name,
            bias=None if bias is None else bias.name,
            residual=None if residual is None else residual.name,
            y=y.name,
            workspace="workspace",
            workspace_bytes=WORKSPACE,
            precision=library_precision(op, launch.target),
        )
        return call_service(call, launch)


def _rows(numbers: Sequence[T], one: T) -> tuple[T, T]:
    """Numbers along height and width; `one` is the number along a height of one row."""
    height, width = numbers if len(numbers) == 2 else (one, *numbers)
    return height, width


def _steps(x: Arg) -> Strides:
    """The strides of batch, height and width; from the only row of a line, there is no next one."""
    batch, *steps, _ = x.strides
    return batch, *_rows(steps, batch)


KERNELS = (CudnnConv(),)
