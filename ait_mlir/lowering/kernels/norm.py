"""Ops that reduce over each row and keep its shape: softmax, layer_norm and rms_norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import f64
from xdsl.ir import Operation

from ait_mlir.dialects.ait.norm import LayerNormOp, NormOp, RmsNormOp, SoftmaxOp
from ait_mlir.dialects.ait.types import TensorType, scope_of
from ait_mlir.dims import Expr, Scope, product
from ait_mlir.lowering.cpp import element_type, literal
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Strides, Target, bytes_moved, is_row_major
from ait_mlir.lowering.kernels.loops import broadcast_strides, collapse, nest, operand, single, sizes
from ait_mlir.lowering.regions import functor, identity_functor


def _header(target: Target) -> str:
    return "ait/kernels/gpu/row.cuh" if target.is_gpu else "ait/kernels/cpu/row.h"


def _row_template(row: Sequence[Expr], scope: Scope) -> tuple[int, int, int]:
    """Bounds of the row's length, and the largest of 8, 4, 2, 1 proved to divide it."""
    length = product(row)
    low, high = scope.bounds(length)
    step = next(n for n in (8, 4, 2, 1) if n == 1 or scope.divisible(length, n))
    return max(int(low), 0), int(high), step


class SoftmaxKernel(Kernel):
    """`ait.softmax` over any dim."""

    provider = "native"
    name = "softmax"

    def matches(self, op: Operation, target: Target) -> bool:
        return isinstance(op, SoftmaxOp)

    def heuristic(self, op: Operation, target: Target) -> float:
        return target.launch_seconds + bytes_moved(op, scope_of(op)) / target.bandwidth

    def accepts(self, op: Operation, position: int, strides: Strides, scope: Scope) -> bool:
        return strides[-1].as_int() == 1

    def emit(
        self,
        op: Operation,
        ins: Sequence[Arg],
        outs: Sequence[Arg],
        cpp_dims: Mapping[str, str],
        config: Mapping[str, int],
        target: Target,
    ) -> Emission:
        axis = cast(SoftmaxOp, op).dim.value.data
        scope = scope_of(op)
        loops = nest(outs[0].type.dims, [ins[0].strides, outs[0].strides])
        row = loops.pop(axis)
        nested = [*collapse(loops or [single(2)], scope), row]
        place = "gpu" if target.is_gpu else "cpu"
        low, high, step = _row_template([row.size], scope)
        template = f"<{low}, {high}, {step}>" if target.is_gpu else ""
        return Emission(
            (_header(target),),
            "",
            f"return ait::{place}::softmax{template}(ctx, {sizes(nested, cpp_dims)}, "
            f"{operand(ins[0].name, nested, 0, cpp_dims)}, {operand(outs[0].name, nested, 1, cpp_dims)});\n",
        )


class NormKernel(Kernel):
    """A norm, with a prologue that may keep further results."""

    provider = "native"
    op_class: ClassVar[type[NormOp]]

    def matches(self, op: Operation, target: Target) -> bool:
        return isinstance(op, self.op_class)

    def heuristic(self, op: Operation, target: Target) -> float:
        return target.launch_seconds + bytes_moved(op, scope_of(op)) / target.bandwidth

    def accepts(self, op: Operation, position: int, strides: Strides, scope: Scope) -> bool:
        norm = cast(NormOp, op)
        values = (*op.operands, *op.results)
        if position in _factor_positions(norm):
            return is_row_major(cast(TensorType, values[position].type).dims, strides, scope)
        return not strides or strides[-1].as_int() == 1

    def emit(
        self,
        op: Operation,
        ins: Sequence[Arg],
        outs: Sequence[Arg],
        cpp_dims: Mapping[str, str],
        config: Mapping[str, int],
        target: Target,
    ) -> Emission:
        norm = cast(NormOp, op)
        scope = scope_of(op)
        shape, axes = outs[0].type.dims, norm.axes.value.data
        factors = _factor_positions(norm)
        streams = [a for i, a in enumerate(ins) if i not in factors]
        strides = [broadcast_strides(a, shape) for a in streams] + [a.strides for a in outs]
        loops = nest(shape, strides)
        outer = collapse(loops[: len(loops) - axes] or [single(len(strides))], scope)
        row = collapse(loops[len(loops) - axes :], scope)
        nested = [*outer, *row]
        packs = [
            ", ".join(operand(a.name, nested, first + i, cpp_dims) for i, a in enumerate(args))
            for first, args in ((0, streams), (len(streams), outs))
        ]
        name = "norm_@ID@"
        element = ins[0].type.element_type
        has_prologue = bool(norm.prologue.blocks)
        place = "gpu" if target.is_gpu else "cpu"
        low, high, step = _row_template([loop.size for loop in row], scope)
        constant = "true" if all(ins[i].constant for i in factors) else "false"
        template = f"{name}, {len(row)}" + (f", {low}, {high}, {step}, {constant}" if target.is_gpu else "")
        scale, bias = _factor_names(norm, ins)
        return Emission(
            (_header(target),),
            functor(norm.prologue, name) if has_prologue else identity_functor(element, name),
            f"return ait::{place}::{self.name}<{template}>(ctx, {sizes(nested, cpp_dims)}, "
            f"ait::pack({packs[0]}), ait::pack({packs[1]}), "
            f"{scale}, {bias}, {literal(norm.eps.value.data, f64)});\n",
        )


class LayerNormKernel(NormKernel):
    """`ait.layer_norm`."""

    name = "layer_norm"
    op_class = LayerNormOp


class RmsNormKernel(NormKernel):
    """`ait.rms_norm`."""

    name = "rms_norm"
    op_class = RmsNormOp


def _factor_positions(norm: NormOp) -> tuple[int, ...]:
    """Where scale and bias stand among the operands."""
    return tuple(range(1, 1 + (norm.scale is not None) + (norm.bias is not None)))


def _factor_names(norm: NormOp, ins: Sequence[Arg]) -> tuple[str, str]:
    null = f"static_cast<const {element_type(ins[0].type.element_type)}*>(nullptr)"
    names = [ins[i].name for i in _factor_positions(norm)]
    scale = names.pop(0) if norm.scale is not None else null
    return scale, names[0] if norm.bias is not None else null


KERNELS = (SoftmaxKernel(), LayerNormKernel(), RmsNormKernel())
