"""Collectives. On a CPU the service "ranks" of the runtime library passes the data, and kernels join and order them. On
a GPU the service "collective" calls NCCL or RCCL. The service "permute" sends from one rank to another on both."""

from __future__ import annotations

import hashlib
from typing import ClassVar

from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute

from ait_mlir.dialects.ait.collective import (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    BroadcastOp,
    CollectiveOp,
    CollectivePermuteOp,
    ReducedNormOp,
    ReduceScatterOp,
)
from ait_mlir.dialects.ait.dtypes import BY_IR, compute_type
from ait_mlir.dialects.ait.types import Shape, scope_of, tensor_type
from ait_mlir.dims import Expr, const, product
from ait_mlir.lowering.cpp import element_type, numbers
from ait_mlir.lowering.kernels.amounts import element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Target
from ait_mlir.lowering.kernels.calls import CollectiveCall, PermuteCall, arguments, call_service
from ait_mlir.lowering.links import MOST_PEERS, WITH_PEERS, collective_seconds, has_room, whole_bytes

PLAIN = (AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, BroadcastOp, CollectivePermuteOp, AllSliceOp)
"""Collectives with one operand."""
JOINS = {"sum": "ait::Sum", "prod": "ait::Prod", "max": "ait::Max", "min": "ait::Min"}
"""The classes of `ait/kernels/reduction.h`."""
ADDED = ("f16", "bf16", "f32", "f64", "i8", "i32", "i64", "ui8")
"""The element types in which NCCL adds; it moves elements of every type."""


class CollectiveKernel(Kernel[CollectiveOp]):
    """Any collective on row-major tensors."""

    name = "collective"
    ops: ClassVar = PLAIN
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
        if isinstance(op, CollectivePermuteOp):
            return _permute(op, launch)
        t = x.type
        size = const(element_bytes(t))

        function, template, scratch = op.name.removeprefix("ait."), "", True
        given: tuple[Expr, ...]
        match op:
            case AllReduceOp():
                template, given = _joined(op.kind.data, t.element_type), (t.num_elements(),)
            case AllGatherOp():
                before, row = _rows(t.dims, op.dim.value.data)
                given = (before, row * size)
            case ReduceScatterOp():
                template, given = _joined(op.kind.data, t.element_type), _rows(y.type.dims, op.dim.value.data)
            case AllToAllOp():
                cut = _with(t.dims, op.split.value.data, y.type.dims, op.concat.value.data)
                before, row = _rows(cut, op.split.value.data)
                after, part = _rows(cut, op.concat.value.data)
                given = (before, row * size, after, part * size)
            case BroadcastOp():
                given = (t.byte_size(), const(op.root.value.data))
            case AllSliceOp():
                before, row = _rows(y.type.dims, op.dim.value.data)
                given, scratch = (before, row * size), False
            case _:
                raise AssertionError(f"no function for {op.name}")
        group = f"ait::cpu::{_group(op)}"
        arguments = ", ".join([launch.cpp(*given), x.name, y.name, *(["workspace"] if scratch else [])])
        return launch.call("collective", f"{function}{template}(ctx, {group}, {arguments})")


class LibraryCollective(Kernel[CollectiveOp]):
    """Any collective of GPUs on row-major tensors, by NCCL or RCCL, which round after each addition."""

    provider = "nccl"
    name = "collective"
    ops: ClassVar = PLAIN
    row_major = True
    alone = True
    gpu_only = True

    def matches(self, op: CollectiveOp, target: Target) -> bool:
        joins = isinstance(op, AllReduceOp | ReduceScatterOp)
        return target.is_gpu and not (joins and str(tensor_type(op.input).element_type) not in ADDED)

    def suits(self, op: CollectiveOp) -> bool:
        return False  # one process cannot time it

    def seconds(self, op: CollectiveOp, target: Target) -> float:
        return collective_seconds(op, whole_bytes(op, estimate_env(scope_of(op))))

    def workspace(self, op: CollectiveOp, config: Config) -> Expr:
        size = tensor_type(op.input).byte_size()
        match op:
            case AllGatherOp():
                return size * op.members()
            case ReduceScatterOp() | AllToAllOp():
                return size * 2
            case _:
                return const(0)

    def emit(self, launch: Launch[CollectiveOp]) -> Emission:
        if isinstance(launch.op, CollectivePermuteOp):
            return _permute(launch.op, launch)
        call, before = _library_call(launch)
        return call_service(call, launch, before)


class PeerAllReduce(Kernel[AllReduceOp]):
    """An all-reduce of CUDA cards that write into each other's memory, in one launch; it rounds once.

    It calls NCCL for tensors that the memory has no room for, and for cards that do not reach each other.
    """

    provider = "peers"
    name = "all_reduce"
    ops: ClassVar = (AllReduceOp,)
    row_major = True
    alone = True
    gpu_only = True

    def matches(self, op: AllReduceOp, target: Target) -> bool:
        known = str(tensor_type(op.input).element_type) in ADDED
        return target.kind == "cuda" and target.peer_memory and known and 1 < op.members() <= MOST_PEERS

    def suits(self, op: AllReduceOp) -> bool:
        return False  # one process cannot time it

    def seconds(self, op: AllReduceOp, target: Target) -> float:
        return _peer_seconds(op)

    def emit(self, launch: Launch[AllReduceOp]) -> Emission:
        x, y = launch.ins[0], launch.outs[0]
        call, before = _library_call(launch)
        join = _joined(launch.op.kind.data, x.type.element_type)
        run = f"return ait::gpu::all_reduce_peers{join}(ctx, args, {x.name}, {y.name});\n"
        lines = [before, *arguments(call, launch), run]
        return Emission((launch.header("peers"), "ait/types.h"), "", "\n".join(lines))


class PeerNorm(Kernel[ReducedNormOp]):
    """A sum over CUDA cards that write into each other's memory, a residual and a norm, in one launch.

    Where the memory has no room or cards do not reach each other, it calls NCCL, and then the kernel of norms.
    """

    provider = "peers"
    name = "reduced_norm"
    ops: ClassVar = (ReducedNormOp,)
    row_major = True
    alone = True
    gpu_only = True

    def matches(self, op: ReducedNormOp, target: Target) -> bool:
        return joins_norms(op, target)

    def suits(self, op: ReducedNormOp) -> bool:
        return False  # one process cannot time it

    def seconds(self, op: ReducedNormOp, target: Target) -> float:
        return _peer_seconds(op) + super().seconds(op, target) - target.launch_seconds

    def workspace(self, op: ReducedNormOp, config: Config) -> Expr:
        return tensor_type(op.input).byte_size()

    def emit(self, launch: Launch[ReducedNormOp]) -> Emission:
        op, t = launch.op, launch.ins[0].type
        call, before = _library_call(launch)
        names = [arg.name for arg in launch.ins[2:]]
        null = f"static_cast<const {element_type(t.element_type)}*>(nullptr)"
        scale = names.pop(0) if op.scale is not None else null
        bias = names.pop(0) if op.bias is not None else null
        trailing = op.trailing.value.data
        length = product(t.dims[len(t.dims) - trailing :]).as_int()
        rows = launch.cpp(product(t.dims[: len(t.dims) - trailing]))
        centred = "true" if op.centred is not None else "false"
        factors = f"{scale}, {bias}, {launch.number(op.eps, f64)}"
        tensors = f"{launch.ins[0].name}, {launch.ins[1].name}, {factors}, {launch.outs[0].name}, {launch.outs[1].name}"
        run = f"return ait::gpu::reduced_norm_peers<{length}, {centred}>(ctx, args, {rows}, {tensors}, workspace);\n"
        return Emission((launch.header("peers"), "ait/types.h"), "", "\n".join([before, *arguments(call, launch), run]))


MOST_OF_ROW = 2048
"""The most chunks of 16 bytes of a row that a block holds."""


def joins_norms(op: ReducedNormOp, target: Target) -> bool:
    """Whether the kernel of sums and norms in one launch can run an op: rows have one length, in whole chunks of 16
    bytes, and a block holds one."""
    t = tensor_type(op.input)
    length = product(t.dims[t.rank - op.trailing.value.data :]).as_int()
    if target.kind != "cuda" or not target.peer_memory or not 1 < op.members() <= MOST_PEERS or length is None:
        return False
    row = length * element_bytes(t)
    return str(t.element_type) in ("f16", "bf16", "f32") and row % 16 == 0 and 0 < row <= 16 * MOST_OF_ROW


def _peer_seconds(op: AllReduceOp | ReducedNormOp) -> float:
    """The estimated seconds of the exchange: by NCCL, and a bit more, for tensors that the memory has no room for."""
    whole = whole_bytes(op, estimate_env(scope_of(op)))
    return (1.0 if has_room(op, whole) else 1.01) * collective_seconds(op, whole, WITH_PEERS)


def _library_call(
    launch: Launch[CollectiveOp] | Launch[AllReduceOp] | Launch[ReducedNormOp],
) -> tuple[CollectiveCall, str]:
    """The call of the library, and the statements that it refers to."""
    op, x, y = launch.op, launch.ins[0], launch.outs[0]
    t, result = x.type, y.type
    rows, count = const(1), t.num_elements()
    out: tuple[Expr | None, Expr | None] = (None, None)
    match op:
        case AllGatherOp():
            rows, count = _rows(t.dims, op.dim.value.data)
        case ReduceScatterOp() | AllSliceOp():
            rows, count = _rows(result.dims, op.dim.value.data)
        case AllToAllOp():
            cut = _with(t.dims, op.split.value.data, result.dims, op.concat.value.data)
            rows, count = _rows(cut, op.split.value.data)
            out = _rows(cut, op.concat.value.data)
        case _:
            pass
    sizes, steps = _sizes_and_steps(op)
    joins = "AIT_JOIN_SUM" if isinstance(op, ReducedNormOp) else None
    call = CollectiveCall(
        group=_group_of_call(op, len(sizes)),
        kind="AIT_ALL_REDUCE" if joins else f"AIT_{op.name.removeprefix('ait.').upper()}",
        join=f"AIT_JOIN_{op.kind.data.upper()}" if isinstance(op, AllReduceOp | ReduceScatterOp) else joins,
        dtype=BY_IR[t.element_type].enumerator,
        root=op.root.value.data if isinstance(op, BroadcastOp) else 0,
        rows=rows,
        count=count,
        out_rows=out[0],
        out_count=out[1],
        data=x.name,
        result="workspace" if joins else y.name,
        workspace="workspace",
        key=_key(op),
    )
    return call, _arrays(sizes, steps)


def _permute(op: CollectivePermuteOp, launch: Launch[CollectiveOp]) -> Emission:
    """The call that sends and receives."""
    x, messages = launch.ins[0], op.messages()
    sizes, steps = _sizes_and_steps(op)
    call = PermuteCall(
        group=_group_of_call(op, len(sizes)),
        num_pairs=len(messages),
        pairs="pairs",
        data=x.name,
        result=launch.outs[0].name,
        bytes=x.type.byte_size(),
        key=_key(op),
    )
    pairs = numbers([member for pair in messages for member in pair])
    return call_service(call, launch, f"{_arrays(sizes, steps)}\nconst int64_t pairs[] = {{{pairs}}};")


def _group_of_call(op: CollectiveOp, axes: int) -> str:
    """The group of an op as an argument of a service; its arrays are `_arrays`."""
    return f"{{{op.ranks().size}, {axes}, sizes, steps}}"


def _arrays(sizes: list[int], steps: list[int]) -> str:
    return f"const int64_t sizes[] = {{{numbers(sizes)}}}, steps[] = {{{numbers(steps)}}};"


def _rows(dims: Shape, axis: int) -> tuple[Expr, Expr]:
    """The rows before a dim, and the elements of one row."""
    return product(dims[:axis]), product(dims[axis:])


def _joined(kind: str, element: Attribute) -> str:
    return f"<{JOINS[kind]}, {element_type(compute_type(element))}>"


def _with(dims: Shape, split: int, result: Shape, concat: int) -> Shape:
    """The shape of one piece of an exchange: the operand's with the split dim of the result."""
    part = result[split] if split != concat else dims[split]
    return (*dims[:split], part, *dims[split + 1 :])


def _sizes_and_steps(op: CollectiveOp) -> tuple[list[int], list[int]]:
    """For each axis of a group the number of ranks, and the distance of neighbours."""
    mesh, axes = op.ranks(), op.group_axes()
    sizes = dict(mesh.axes)
    return [sizes[axis] for axis in axes], [mesh.extent(mesh.names[mesh.names.index(axis) + 1 :]) for axis in axes]


def _key(op: CollectiveOp) -> str:
    """A number in C++ that is the same for the same computation."""
    return f"{int.from_bytes(hashlib.sha256(str(op).encode()).digest()[:8])}ull"


def _group(op: CollectiveOp) -> str:
    """The group of an op in C++, with a key of what it computes."""
    sizes, steps = _sizes_and_steps(op)
    fields = f"{op.ranks().size}, {{{numbers(sizes)}}}, {{{numbers(steps)}}}, {_key(op)}"
    return f"Group<{len(sizes)}>{{{fields}}}"


KERNELS = (CollectiveKernel(), PeerAllReduce(), PeerNorm(), LibraryCollective())
