"""Convolutions, as products whose rows are gathered from the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.dtypes import is_byte
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Expr, Scope, const, product
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import LARGEST, Matrix, Problem, epilogue_functor
from ait_mlir.lowering.kernels.gemm import SIMT_RATE
from ait_mlir.lowering.kernels.loops import ONE, ZERO, braces, broadcast_strides, collapse, nest

MAX_OPERANDS = 16
GATHERING_RATE = 25e9
"""Operations a second on the CPU if each strip of rows is gathered element by element."""
SIMT_COLUMNS = 64
"""Columns of a tile of `gpu/conv_simt.cuh`; all belong to one group."""
MOST_LINE_TAPS, MOST_LINE_STEP = 9, 2
"""The largest window along the last dim whose code has no loop over it."""


def problem(op: ConvOp, ins: Sequence[Arg], outs: Sequence[Arg]) -> Problem:
    """The product of all groups with these buffers: a row for each place of the window, all channels as columns.

    Places become batches where the strides of a result or an epilogue operand prevent merging them into one dim.
    """
    out, *further = outs
    shape, w, beside = out.type.dims, ins[1], [*ins[2:], *further]
    extras = [broadcast_strides(e, shape) for e in beside]
    loops = collapse(nest(shape[:-1], [out.strides[:-1], *(e[:-1] for e in extras)]), scope_of(op))
    rows, outer = loops[-1], loops[:-1]

    def matrix(arg: Arg, position: int, column: Expr) -> Matrix:
        return Matrix(arg, rows.strides[position], column, tuple(loop.strides[position] for loop in outer))

    depth = product(w.type.dims[1:])
    along = weight_steps(w.type, w.strides, scope_of(op))
    assert along is not None, "accepts was asked"
    matrices = [matrix(arg, 1 + i, extras[i][-1]) for i, arg in enumerate(beside)]
    return Problem(
        rows.size,
        shape[-1],
        depth,
        tuple(loop.size for loop in outer),
        Matrix(ins[0], ZERO, ONE, ()),  # addressed by `input_cpp`
        Matrix(w, along, w.strides[0], ()),
        matrix(out, 0, out.strides[-1]),
        tuple(matrices[: len(ins) - 2]),
        tuple(matrices[len(ins) - 2 :]),
    )


def weight_steps(t: TensorType, strides: Strides, scope: Scope) -> Expr | None:
    """The stride along the merged window of a result channel; None if its dims cannot merge into one."""
    loops = collapse(nest(t.dims[1:], [strides[1:]]), scope)
    return loops[0].strides[0] if len(loops) == 1 else None


def input_cpp(op: ConvOp, x: Arg, cpp_dims: Mapping[str, str]) -> str:
    """`ait::ConvInput<ait::half, 2, false>{input0, {...}, ...}`"""
    places, depth = tensor_type(op.output).dims[1:-1], tensor_type(op.weight).dims[-1]
    rank = op.spatial
    numbers = (op.kernel(), op.strides(), op.dilations(), op.pads()[:rank])
    fields = [
        x.name,
        braces(x.strides, cpp_dims),
        braces(x.type.dims[1:-1], cpp_dims),
        depth.cpp(cpp_dims),
        braces(places, cpp_dims),
        *(braces(map(const, each), cpp_dims) for each in numbers),
        const(op.num_groups()).cpp(cpp_dims),
    ]
    kind = f"{element_type(x.type.element_type)}, {rank}, {str(op.is_transposed()).lower()}"
    return f"ait::ConvInput<{kind}>{{{', '.join(fields)}}}"


def call_conv(
    launch: Launch[ConvOp],
    header: str,
    template: str,
    more: str = "",
    packed: bool = False,
    solved: Problem | None = None,
) -> Emission:
    """The call of one of our templates. `{epilogue}` in `template` is replaced by the functor; `more` is appended to
    the arguments. The problem is that of `problem`, or another form of it.

    A `packed` weight is passed as the pointer to its panels.
    """
    op, place, dims = launch.op, launch.place, launch.dims
    p = solved or problem(op, launch.ins, launch.outs)
    definition, functor = epilogue_functor(op, place)
    arguments = ", ".join(
        (
            f"ctx, {p.shape_cpp(place, dims)}",
            input_cpp(op, launch.ins[0], dims),
            f"{p.b.arg.name if packed else p.b.cpp(place, dims)}, {p.d.cpp(place, dims, const=False)}",
            p.extras_cpp(place, dims) + more,
        )
    )
    called = template.replace("{epilogue}", functor)
    call = f"return ait::{place}::{called}({arguments});\n"
    return Emission(("ait/math.h", launch.header(header)), definition, call)


def is_depthwise(op: ConvOp) -> bool:
    """Whether each channel of the result is computed from a single channel of the input."""
    groups = op.num_groups()
    return groups > 1 and all(tensor_type(v).dims[-1].as_int() == groups for v in (op.x, op.output))


def is_counted(op: ConvOp) -> bool:
    """Whether templates can count the places, channels and elements of a window, and take all operands."""
    scope, result = scope_of(op), tensor_type(op.output)
    sizes = (product(result.dims[:-1]), op.extents().k, result.dims[-1])
    return len(op.operands) <= MAX_OPERANDS and all(scope.bounds(size)[1] <= LARGEST for size in sizes)


def _filling(op: ConvOp) -> float:
    """The ratio of columns that the tiles on a GPU compute to the columns of a group."""
    if op.num_groups() == 1 or is_depthwise(op):
        return 1.0
    columns = max(1, op.extents().n.evaluate(estimate_env(scope_of(op))))
    return -(-columns // SIMT_COLUMNS) * SIMT_COLUMNS / columns


class ConvKernel(Kernel[ConvOp]):
    """Our own convolution, with any epilogue: vectors on the CPU, plain arithmetic on a GPU."""

    name = "conv"
    one_instance = True
    ops = (ConvOp,)
    depthwise: ClassVar[bool] = False
    """Whether it computes depthwise convolutions, and nothing else."""

    def matches(self, op: ConvOp, target: Target) -> bool:
        if is_byte(tensor_type(op.x).element_type):
            return target.is_gpu and not self.depthwise and is_counted(op)
        return is_depthwise(op) == self.depthwise and is_counted(op)

    def seconds(self, op: ConvOp, target: Target) -> float:
        env = estimate_env(scope_of(op))
        if not target.is_gpu:  # the zeros of a transposed convolution are gathered, too
            products = tensor_type(op.output).num_elements() * op.extents().k
            return target.launch_seconds + 2 * products.evaluate(env) / GATHERING_RATE
        rate = SIMT_RATE[element_bytes(tensor_type(op.x))] / 2
        return target.launch_seconds + op.flops().evaluate(env) * _filling(op) / rate

    def terms(self, op: ConvOp, config: Config, target: Target) -> Terms:
        scope = scope_of(op)
        rate = SIMT_RATE[element_bytes(tensor_type(op.x))] / 2 if target.is_gpu else GATHERING_RATE
        work = {
            "products": op.flops().evaluate(estimate_env(scope)) * (_filling(op) if target.is_gpu else 1) / rate,
            "bytes": bytes_moved(op, scope) / target.bandwidth,
        }
        kind = "depthwise " if is_depthwise(op) else ""
        return Terms({"start": target.launch_seconds}, work, kind + str(tensor_type(op.x).element_type))

    def accepts(self, op: ConvOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position != 1 or weight_steps(tensor_type(op.weight), strides, scope) is not None

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        name = "conv_simt" if launch.target.is_gpu else "conv"
        return call_conv(launch, name, f"{name}<{{epilogue}}>")


class DepthwiseConv(ConvKernel):
    """Depthwise convolutions. Channels of x lie side by side, because they are loaded several at once: an image in
    channels-first order is copied."""

    depthwise = True

    def accepts(self, op: ConvOp, position: int, strides: Strides, scope: Scope) -> bool:
        if position != 0:
            return super().accepts(op, position, strides, scope)
        x = tensor_type(op.x)
        piece = 16 // element_bytes(x) if scope.divisible(x.dims[-1], 16 // element_bytes(x)) else 1
        return strides[-1].as_int() == 1 and all(scope.divisible(s, piece) for s in strides[:-1])

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        if not launch.target.is_gpu:
            return call_conv(launch, "conv_depthwise", "conv_depthwise<{epilogue}>")
        early = ", true" if launch.ins[1].constant else ""
        return call_conv(launch, "conv_depthwise", f"conv_depthwise<{line_window(launch.op)}, {{epilogue}}>", early)


def line_window(op: ConvOp) -> str:
    """The size and stride of the window along the last dim, as template arguments; "0, 1" for the general code."""
    taps, step, dilation = op.kernel()[-1], op.strides()[-1], op.dilations()[-1]
    fits = taps <= MOST_LINE_TAPS and step <= MOST_LINE_STEP and dilation == 1 and not op.is_transposed()
    return f"{taps}, {step}" if fits else "0, 1"


KERNELS = (ConvKernel(), DepthwiseConv())
