"""Ops that reduce over each row and keep its shape: softmax, layer_norm and rms_norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import f64

from ait_mlir.dialects.ait.norm import LayerNormOp, NormOp, RmsNormOp, SoftmaxOp
from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Expr, Scope, product
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.loops import broadcast_strides, collapse, nest, operand, pack, single, sizes
from ait_mlir.lowering.regions import functor, identity_functor


def row_template(row: Sequence[Expr], scope: Scope) -> tuple[int, int, int]:
    """Bounds of the row's length, and the largest of 8, 4, 2, 1 proved to divide it."""
    length = product(row)
    low, high = scope.bounds(length)
    step = next(n for n in (8, 4, 2, 1) if n == 1 or scope.divisible(length, n))
    return max(int(low), 0), int(high), step


ACROSS = 14.6
"""The slowdown of a softmax over a dim that is not the last, on an H200: 933 us for 256 x 1,024 x 256 in f16."""
ROW_RATE = 23e9
"""Bytes per second that one block moves of a long row, on an H200: 347 us for 16 rows of 2 million in f16."""


SHORT_ROW = 32
"""Elements of a row that a CPU computes in more time than it moves them in."""
ROW_SECONDS = 40e-9
"""Seconds of a short row on a core: 176 us for 2,664 softmaxes of 19 elements, 686 us for 18,600 norms of 4."""


def row_seconds(op: SoftmaxOp | NormOp, axes: int, target: Target) -> float:
    """The seconds on a CPU of short rows, which are the last `axes` dims, in addition to the time of their bytes."""
    dims, env = tensor_type(op.operands[0]).dims, estimate_env(scope_of(op))
    rows, length = (product(part).evaluate(env) for part in (dims[: len(dims) - axes], dims[len(dims) - axes :]))
    return 0.0 if target.is_gpu or length > SHORT_ROW else ROW_SECONDS * rows


class SoftmaxKernel(Kernel[SoftmaxOp]):
    """`ait.softmax` over any dim."""

    name = "softmax"
    ops = (SoftmaxOp,)

    def seconds(self, op: SoftmaxOp, target: Target) -> float:
        return super().seconds(op, target) + row_seconds(op, 1, target)

    def slowdown(self, op: SoftmaxOp, target: Target) -> float:
        if not target.is_gpu:
            return 1.0
        dims, axis = tensor_type(op.operands[0]).dims, op.dim.value.data
        env = estimate_env(scope_of(op))
        outer, inner = (product(part).evaluate(env) for part in (dims[:axis], dims[axis + 1 :]))
        return max(ACROSS if inner > 1 else 1.0, target.bandwidth / (max(1, outer * inner) * ROW_RATE))

    def accepts(self, op: SoftmaxOp, position: int, strides: Strides, scope: Scope) -> bool:
        return strides[-1].as_int() == 1

    def emit(self, launch: Launch[SoftmaxOp]) -> Emission:
        (x,), (y,), scope, dims = launch.ins, launch.outs, launch.scope, launch.dims
        loops = nest(y.type.dims, [x.strides, y.strides])
        row = loops.pop(launch.op.dim.value.data)
        nested = [*collapse(loops or [single(2)], scope), row]
        low, high, step = row_template([row.size], scope)
        template = f"<{low}, {high}, {step}>" if launch.target.is_gpu else ""
        operands = f"{operand(x.name, nested, 0, dims)}, {operand(y.name, nested, 1, dims)}"
        return launch.call("row", f"softmax{template}(ctx, {sizes(nested, dims)}, {operands})")


class NormKernel(Kernel[NormOp]):
    """A norm, with a prologue that may keep further results, and an epilogue."""

    def seconds(self, op: NormOp, target: Target) -> float:
        return super().seconds(op, target) + row_seconds(op, op.axes.value.data, target)

    def accepts(self, op: NormOp, position: int, strides: Strides, scope: Scope) -> bool:
        values = (*op.operands, *op.results)
        if position in _factor_positions(op):
            return is_contiguous(cast(TensorType, values[position].type).dims, strides, scope)
        return not strides or strides[-1].as_int() == 1

    def emit(self, launch: Launch[NormOp]) -> Emission:
        norm, ins, outs, scope, dims = launch.op, launch.ins, launch.outs, launch.scope, launch.dims
        shape, axes = outs[0].type.dims, norm.axes.value.data
        factors = _factor_positions(norm)
        own = len(norm.own_operands)
        streams, extras = [a for i, a in enumerate(ins[:own]) if i not in factors], ins[own:]
        strides = [broadcast_strides(a, shape) for a in streams] + [a.strides for a in outs]
        strides += [broadcast_strides(a, shape) for a in extras]
        loops = nest(shape, strides)
        outer = collapse(loops[: len(loops) - axes] or [single(len(strides))], scope)
        row = collapse(loops[len(loops) - axes :], scope)
        nested = [*outer, *row]
        firsts = (0, len(streams), len(streams) + len(outs))
        packs = [pack(args, nested, n, dims) for n, args in zip(firsts, (streams, outs, extras), strict=True)]
        name = "norm_@ID@"
        element = ins[0].type.element_type
        low, high, step = row_template([loop.size for loop in row], scope)
        constant = "true" if all(ins[i].constant for i in factors) else "false"
        template = f"{name}, {len(row)}" + (f", {low}, {high}, {step}, {constant}" if launch.target.is_gpu else "")
        scale, bias = _factor_names(norm, ins)
        definitions = functor(norm.prologue, name) if norm.prologue.blocks else identity_functor(element, name)
        finish = ""
        if norm.epilogue.blocks:
            stored = [outs[0].type.element_type] if launch.target.is_gpu else []
            template, finish = f"{template}, epilogue_@ID@", f", {packs[2]}"
            definitions += functor(norm.epilogue, "epilogue_@ID@", stored)
        return launch.call(
            "row",
            f"{self.name}<{template}>(ctx, {sizes(nested, dims)}, {packs[0]}, {packs[1]}, "
            f"{scale}, {bias}, {self.eps(launch)}{finish})",
            definitions,
        )

    def eps(self, launch: Launch[NormOp]) -> str:
        """The template's argument `eps`; a negative number means a lower bound of the mean of squares."""
        number = launch.number(launch.op.eps, f64)
        return f"-({number})" if isinstance(launch.op, RmsNormOp) and launch.op.bounded is not None else number


class LayerNormKernel(NormKernel):
    """`ait.layer_norm`."""

    name = "layer_norm"
    ops = (LayerNormOp,)


class RmsNormKernel(NormKernel):
    """`ait.rms_norm`."""

    name = "rms_norm"
    ops = (RmsNormOp,)


def _factor_positions(norm: NormOp) -> tuple[int, ...]:
    """The operand positions of scale and bias."""
    return tuple(range(1, 1 + (norm.scale is not None) + (norm.bias is not None)))


def _factor_names(norm: NormOp, ins: Sequence[Arg]) -> tuple[str, str]:
    null = f"static_cast<const {element_type(ins[0].type.element_type)}*>(nullptr)"
    names = [ins[i].name for i in _factor_positions(norm)]
    scale = names.pop(0) if norm.scale is not None else null
    return scale, names[0] if norm.bias is not None else null


KERNELS = (SoftmaxKernel(), LayerNormKernel(), RmsNormKernel())
