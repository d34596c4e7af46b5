"""Collectives on a CPU: the runtime library's service "ranks" passes the data, and kernels join and order them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Attribute

from ait_mlir.dialects.ait.collective import (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    BroadcastOp,
    CollectiveOp,
    ReduceScatterOp,
)
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.dims import Expr, const, product
from ait_mlir.lowering.cpp import element_type, numbers
from ait_mlir.lowering.kernels.amounts import element_bytes
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Target

JOINS = {"sum": "ait::Sum", "max": "ait::Max"}
"""The classes of `ait/kernels/reduction.h`."""


class CollectiveKernel(Kernel[CollectiveOp]):
    """Any collective on row-major tensors."""

    name = "collective"
    ops: ClassVar = (CollectiveOp,)
    row_major = True
    alone = True

    def matches(self, op: CollectiveOp, target: Target) -> bool:
        return not target.is_gpu

    def workspace(self, op: CollectiveOp, config: Config) -> Expr:
        size = tensor_type(op.input).byte_size()
        match op:
            case AllReduceOp() | BroadcastOp() | AllGatherOp():
                return size * op.members()
            case ReduceScatterOp() | AllToAllOp():
                return size * 2
            case _:
                return const(0)

    def emit(self, launch: Launch[CollectiveOp]) -> Emission:
        op, x, y = launch.op, launch.ins[0], launch.outs[0]
        t = x.type
        size = const(element_bytes(t))

        def rows(dims: Shape, axis: int) -> tuple[Expr, Expr]:
            """The rows before a dim, and the elements of one row."""
            return product(dims[:axis]), product(dims[axis:])

        function, template, scratch = op.name.removeprefix("ait."), "", True
        given: tuple[Expr, ...]
        match op:
            case AllReduceOp():
                template, given = _joined(op.kind.data, t.element_type), (t.num_elements(),)
            case AllGatherOp():
                before, row = rows(t.dims, op.dim.value.data)
                given = (before, row * size)
            case ReduceScatterOp():
                template, given = _joined(op.kind.data, t.element_type), rows(y.type.dims, op.dim.value.data)
            case AllToAllOp():
                cut = _with(t.dims, op.split.value.data, y.type.dims, op.concat.value.data)
                before, row = rows(cut, op.split.value.data)
                after, part = rows(cut, op.concat.value.data)
                given = (before, row * size, after, part * size)
            case BroadcastOp():
                given = (t.byte_size(), const(op.root.value.data))
            case AllSliceOp():
                before, row = rows(y.type.dims, op.dim.value.data)
                given, scratch = (before, row * size), False
            case _:
                raise AssertionError(f"no function for {op.name}")
        group = f"ait::cpu::{_group(op)}"
        arguments = ", ".join([launch.cpp(*given), x.name, y.name, *(["workspace"] if scratch else [])])
        return launch.call("collective", f"{function}{template}(ctx, {group}, {arguments})")


def _joined(kind: str, element: Attribute) -> str:
    return f"<{JOINS[kind]}, {element_type(compute_type(element))}>"


def _with(dims: Shape, split: int, result: Shape, concat: int) -> Shape:
    """The shape of one piece of an exchange: the operand's with the split dim of the result."""
    part = result[split] if split != concat else dims[split]
    return (*dims[:split], part, *dims[split + 1 :])


def _group(op: CollectiveOp) -> str:
    """The group of an op in C++, with a key of what it computes."""
    mesh, axes = op.ranks(), op.group_axes()
    sizes = dict(mesh.axes)
    steps: Sequence[int] = [mesh.extent(mesh.names[mesh.names.index(axis) + 1 :]) for axis in axes]
    key = int.from_bytes(hashlib.sha256(str(op).encode()).digest()[:8])
    fields = f"{mesh.size}, {{{numbers(sizes[axis] for axis in axes)}}}, {{{numbers(steps)}}}, {key}ull"
    return f"Group<{len(axes)}>{{{fields}}}"


KERNELS = (CollectiveKernel(),)
