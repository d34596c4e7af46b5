"""A report of a planned program, from its IR: its launches with their bytes and operations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import ShapedType
from ait_mlir.dialects.ait_rt.buffers import AllocOp, ConstantOp, DestinationOp, InputOp, ReadDimOp, ViewOp
from ait_mlir.dialects.ait_rt.loop import loops_around, program_ops
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp
from ait_mlir.dims import sym
from ait_mlir.lowering.module_target import target_of
from ait_mlir.passes.launch_cost import share_of_floor

_CONFIG_WIDTH = 40


@dataclass(frozen=True)
class Launch:
    """One launch: the derived name of its op, its kernel, shapes, bytes read and written, operations, and stream."""

    op: str
    kernel: str
    shapes: str
    read: int
    written: int
    flops: int
    stream: int = 0
    share: float | None = None
    """The floor of its work over the estimated time of its kernel, both at the largest hints; None without an
    estimate."""


@dataclass(frozen=True)
class Report:
    """The launches of a program at some dims.

    `floor` is the minimum traffic of any plan with these launches: every constant, input and intermediate buffer read
    once, every intermediate and output written once.
    """

    launches: tuple[Launch, ...]
    floor: int
    arena: int
    constants: int
    waits: tuple[str, ...] = ()
    """The dims that the host waits for."""
    streams_if_recorded: bool = False
    """Whether plain runs use one stream."""

    @property
    def bytes(self) -> int:
        """Bytes read and written by all launches."""
        return sum(launch.read + launch.written for launch in self.launches)

    @property
    def streams(self) -> int:
        """The number of streams of the launches."""
        return len({launch.stream for launch in self.launches})

    @property
    def flops(self) -> int:
        """Operations of all launches."""
        return sum(launch.flops for launch in self.launches)


def report(module: ModuleOp, program: ProgramOp, dims: Mapping[str, int]) -> Report:
    """The report of a planned program at these dims; a dim that a launch binds has its bound as value."""
    dims = {d.name: program.scope.upper(sym(d.name)).evaluate(dims) for d in program.scope.bound} | dict(dims)
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    launches = [op for op in program_ops(program.block) if isinstance(op, LaunchOp)]
    target = target_of(module)
    shares = {name: share_of_floor(kernels[name], target) for name in {op.kernel_name for op in launches}}
    counted = tuple(
        replace(launch, share=shares[op.kernel_name])
        for op in launches
        for launch in [_count(op, kernels[op.kernel_name], dims)] * _steps_around(op, dims)
    )
    partly = _read_in_part(launches, kernels, dims)
    floor = 0
    for op in program_ops(program.block):
        if not isinstance(op, AllocOp | ConstantOp | InputOp | DestinationOp):
            continue
        if isinstance(op, DestinationOp) and op.in_place_of is not None:
            continue  # it is an input
        size = _bytes(op.buffer.type, dims)
        is_scratch = isinstance(op, AllocOp) and all(
            _only_workspace(use.operation, op.buffer) for use in op.buffer.uses
        )
        if is_scratch:
            continue
        floor += 2 * size * _steps_around(op, dims) if isinstance(op, AllocOp) else partly.get(op.buffer, size)
    constants = sum(_bytes(op.buffer.type, dims) for op in program.block.ops if isinstance(op, ConstantOp))
    waits = tuple(op.dim.data for op in program.all_ops() if isinstance(op, ReadDimOp))
    if_recorded = program.streams_if_recorded is not None
    return Report(counted, floor, program.arena_size.evaluate(dims), constants, waits, if_recorded)


def _steps_around(op: Operation, dims: Mapping[str, int]) -> int:
    """The number of times that an op runs: the product of the lengths of the loops around it."""
    return math.prod(loop.count.evaluate(dims) for loop in loops_around(op))


def _count(launch: LaunchOp, kernel: KernelOp, dims: Mapping[str, int]) -> Launch:
    op = _computed(kernel)
    written = sum(op.bytes_written(i).evaluate(dims) for i in range(len(op.results)))
    read = sum(_bytes_read(op, launch, value, dims) for value in dict.fromkeys(launch.ins))
    shapes = ", ".join(_shape(v.type, dims) for v in launch.ins)
    shapes += " -> " + ", ".join(_shape(v.type, dims) for v in launch.outs)
    config = ", ".join(
        f"{key} = {value.value.data if isinstance(value, IntegerAttr) else value}"
        for key, value in cast("dict[str, Attribute]", kernel.config.data).items()
    )
    config = config if len(config) <= _CONFIG_WIDTH else config[: config.rindex(",", 0, _CONFIG_WIDTH)] + ", ..."
    provider = kernel.provider.data + (f" {{{config}}}" if config else "")
    return Launch(derived_name(op), provider, shapes, read, written, op.flops().evaluate(dims), launch.on)


def _bytes_read(op: Cost, launch: LaunchOp, value: SSAValue, dims: Mapping[str, int]) -> int:
    """The bytes that a launch reads of one of its buffers."""
    return op.bytes_read(list(launch.ins).index(value)).evaluate(dims)


def _read_in_part(
    launches: Sequence[LaunchOp], kernels: Mapping[str, KernelOp], dims: Mapping[str, int]
) -> dict[SSAValue, int]:
    """The bytes read of each buffer that is only partly read, such as the table of an embedding."""
    found: dict[SSAValue, int] = {}
    for launch in launches:
        op = _computed(kernels[launch.kernel_name])
        for value in launch.ins:
            read, root = _bytes_read(op, launch, value, dims), _root(value)
            if read < _bytes(value.type, dims) and all(use.operation is launch for use in root.uses):
                found[root] = min(_bytes(root.type, dims), read)
    return found


def _computed(kernel: KernelOp) -> Cost:
    op = kernel.compute_op()
    assert isinstance(op, Cost), f"{op.name} does not say what it costs"
    return op


def _only_workspace(op: Operation, buffer: SSAValue) -> bool:
    return isinstance(op, LaunchOp) and buffer in op.workspace


def _root(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value


def _bytes(type_: object, dims: Mapping[str, int]) -> int:
    return cast(ShapedType, type_).byte_size().evaluate(dims)


def _shape(type_: object, dims: Mapping[str, int]) -> str:
    return "x".join(str(dim.evaluate(dims)) for dim in cast(ShapedType, type_).dims) or "scalar"


def table(rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows as text in columns; the first row is the header, and columns in `right` are aligned right."""
    rows = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(rows[0]), "  ".join("-" * w for w in widths), *(line(row) for row in rows[1:])])
