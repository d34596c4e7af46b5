"""Group norm with the channels at any dim: statistics of units, then a mean and a factor for each channel, then one
pass over all elements.

A unit is a group if its elements are contiguous in memory, as with channels first; otherwise it is a channel.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import f64

from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.norm import GroupNormOp
from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Expr, Scope, const, floordiv
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.loops import ZERO, Loop, broadcast_strides, collapse, nest, operand, pack, sizes
from ait_mlir.lowering.regions import functor, identity_functor

# As benchmarks/group_norms.py measures them on an H200.
WAIT_SECONDS = 1e-6
"""Seconds that a launch waits for the previous launch, in addition to the launch itself."""
SHARE_OF_BANDWIDTH = 0.6
LAUNCHES = 3
"""Launches of a group norm on a GPU; each waits for the previous launch."""


class GroupNormKernel(Kernel[GroupNormOp]):
    """`ait.group_norm`, any strides of the input and of the epilogue's operands."""

    name = "group_norm"
    ops = (GroupNormOp,)

    def seconds(self, op: GroupNormOp, target: Target) -> float:
        scope = scope_of(op)
        t = tensor_type(op.input)
        again = t.num_elements().evaluate(estimate_env(scope)) * element_bytes(t)
        moved = (bytes_moved(op, scope) + again) / target.bandwidth
        if not target.is_gpu:
            return target.launch_seconds + moved
        return LAUNCHES * (target.launch_seconds + WAIT_SECONDS) + moved / SHARE_OF_BANDWIDTH

    def accepts(self, op: GroupNormOp, position: int, strides: Strides, scope: Scope) -> bool:
        factor = 1 <= position < len(op.own_operands)
        return not factor or is_contiguous(tensor_type(op.operands[position]).dims, strides, scope)

    def between(self, op: GroupNormOp, config: Config, target: Target) -> tuple[TensorType, ...]:
        """Statistics of the units, at most one for each channel; mean and factor for each channel and batch."""
        t = tensor_type(op.input)
        element = compute_type(t.element_type)
        channels = t.dims[0] * t.dims[op.dim.value.data]
        # on a GPU count, mean and squares of each part (reduce_split.cuh), else mean and variance of each unit
        numbers = (channels + const(1024 * 128)) * 3 if target.is_gpu else channels * 2
        return (TensorType.get([numbers], element), TensorType.get([2, channels], element))

    def emit(self, launch: Launch[GroupNormOp]) -> tuple[Emission, ...]:
        u, (found, factors), (x, *_) = _Units.of(launch), launch.between, launch.ins
        null = f"static_cast<const {element_type(x.type.element_type)}*>(nullptr)"
        scale = launch.ins[1].name if launch.op.scale is not None else null
        eps = launch.number(launch.op.eps, f64)
        group = f"{launch.cpp(u.groups, u.per_group, u.channels)}, {scale}, {eps}, {factors.name}"
        if launch.target.is_gpu:
            given = f"ctx, {u.sizes}, {u.operand}, "
            return (
                launch.call("reduce_split", f"reduce_parts<ait::Var, {u.template}>({given}{found.name})"),
                launch.call("group_norm", f"group_factors<{u.template}>({given}{found.name}, {group})"),
                self._apply(launch, factors),
            )
        units = u.batch * u.groups * u.per_group
        statistics = [
            launch.call(
                "reduce",
                f"reduce<ait::{kind}, {u.template}>(ctx, {u.sizes}, {u.operand}, "
                f"ait::operand<ait::Inner::strided>({found.name} + {launch.cpp(offset)}, {u.result}), 0.0)",
            )
            for kind, offset in (("Mean", ZERO), ("Var", units))
        ]
        call = f"group_factors(ctx, {launch.cpp(u.batch)}, {found.name}, {group})"
        return (*statistics, launch.call("group_norm", call), self._apply(launch, factors))

    def _apply(self, launch: Launch[GroupNormOp], factors: Arg) -> Emission:
        """The epilogue of (x - mean) * factor + bias, with a mean and a factor for each channel of each batch."""
        op, (x, *_), (y,) = launch.op, launch.ins, launch.outs
        shape, axis = y.type.dims, op.dim.value.data
        channels = shape[axis]
        steps = [ZERO] * len(shape)
        steps[0], steps[axis] = channels, const(1)
        biases = launch.ins[len(op.own_operands) - 1 : len(op.own_operands)] if op.bias is not None else ()
        along = [const(int(a == axis)) for a in range(len(shape))]
        extras = launch.ins[len(op.own_operands) :]
        strides = [
            x.strides,
            steps,
            steps,
            *(along for _ in biases),
            *(broadcast_strides(a, shape) for a in extras),
            y.strides,
        ]
        loops = collapse(nest(shape, strides), launch.scope)
        second = Arg(f"({factors.name} + {launch.cpp(shape[0] * channels)})", factors.type, factors.strides)
        ins = [x, Arg(factors.name, factors.type, factors.strides), second, *biases, *extras]
        name = "epilogue_@ID@"
        element = x.type.element_type
        stored = [y.type.element_type] if launch.target.is_gpu else []
        definition = functor(op.epilogue, name, stored) if op.epilogue.blocks else identity_functor(element, name)
        bias, plus = (", A bias", " + bias") if biases else ("", "")
        definition += (
            "struct normed_@ID@ {\n"
            "  template <class A, class... Rest>\n"
            f"  static AIT_FN void apply(A x, A mean, A factor{bias}, Rest&&... rest) {{\n"
            f"    {name}::apply((x - mean) * factor{plus}, rest...);\n  }}\n}};\n"
        )
        inputs, outputs = pack(ins, loops, 0, launch.dims), pack([y], loops, len(ins), launch.dims)
        call = f"map<normed_@ID@>(ctx, {sizes(loops, launch.dims)}, {inputs}, {outputs})"
        return launch.call("map", call, definition)


@dataclass(frozen=True)
class _Units:
    """The units of a group norm: their number, and the arguments for the templates of reductions."""

    batch: Expr
    groups: Expr
    per_group: Expr
    """The number of units in a group."""
    channels: Expr
    """The number of channels in a unit."""
    template: str
    sizes: str
    operand: str
    result: str
    """The C++ strides of a tensor with one number for each unit."""

    @staticmethod
    def of(launch: Launch[GroupNormOp]) -> _Units:
        op, x, scope, dims = launch.op, launch.ins[0], launch.scope, launch.dims
        shape, axis = x.type.dims, op.dim.value.data
        groups, total = const(op.groups.value.data), shape[axis]
        size = floordiv(total, op.groups.value.data)
        places = [Loop(shape[a], (x.strides[a], ZERO)) for a in range(1, len(shape)) if a != axis]
        whole = collapse([Loop(size, (x.strides[axis], ZERO)), *places], scope)
        first = len(whole) == 1 and whole[0].strides[0].as_int() == 1
        per_group, step = (const(1), x.strides[axis] * size) if first else (size, x.strides[axis])
        units = groups * per_group
        kept = collapse([Loop(shape[0], (x.strides[0], units)), Loop(units, (step, const(1)))], scope)
        reduced = collapse(whole if first else places or [Loop(const(1), (ZERO, ZERO))], scope)
        if len(reduced) == 1 and reduced[0].size.as_int() == 1:
            reduced = [Loop(const(1), (ZERO, ZERO))]
        nested = [*kept, *reduced]
        columns = reduced[-1].strides[0].as_int() != 1 and kept[-1].strides[0].as_int() == 1
        steps = [k.strides[1] for k in kept] + [ZERO] * len(reduced)
        return _Units(
            shape[0],
            groups,
            per_group,
            size if first else const(1),
            f"{len(kept)}, {'true' if columns else 'false'}",
            sizes(nested, dims),
            operand(x.name, nested, 0, dims),
            "{" + ", ".join(s.cpp(dims) for s in steps) + "}",
        )


KERNELS = (GroupNormKernel(),)
