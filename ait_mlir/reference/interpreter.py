"""Runs an `ait_rt.program` over real bytes: errors of aliasing, ordering and unwritten memory show without a device.

The reference semantics of the `ait` ops in a kernel run the kernel. By default floats are stored rounded to their
element type, as on hardware; with ``exact=True`` buffers hold float64 at the offsets of their elements, so that a
program can be compared almost exactly with its graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.dialects.ait.numbers import literal_values
from ait_mlir.dialects.ait.ranks import ALONE, Ranks, ranks_of
from ait_mlir.dialects.ait.traits import InPlace, UpdatesOperand
from ait_mlir.dialects.ait.types import ShapedType
from ait_mlir.dialects.ait_rt.buffers import (
    AllocOp,
    ConstantOp,
    CopyOp,
    DestinationOp,
    InputOp,
    NamedBufferOp,
    ReadDimOp,
    ViewOp,
)
from ait_mlir.dialects.ait_rt.loop import LoopOp
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp
from ait_mlir.dialects.ait_rt.streams import EventOp
from ait_mlir.dims import DimError, Scope, sym
from ait_mlir.reference.core import (
    Array,
    DType,
    Evaluation,
    EvaluationError,
    piece,
    run_together,
    storage_dtype,
    value_dtype,
)
from ait_mlir.reference.graph import joined_outputs
from ait_mlir.reference.memory import Memory, View


@dataclass
class Run:
    """The state of one run: dims, memory, the view of each buffer value, and the reads of unwritten elements."""

    dims: Mapping[str, int]
    inputs: Mapping[str, Array]
    params: Mapping[str, Array]
    exact: bool
    arena: Memory
    kernels: Mapping[str, KernelOp]
    ranks: Ranks = ALONE
    rank: int = 0
    owners: int = 0
    """The number of buffers made so far; an allocation in a loop makes a new buffer in each step."""
    views: dict[SSAValue, View] = field(default_factory=dict[SSAValue, View])
    outputs: dict[str, View] = field(default_factory=dict[str, View])
    taken: set[str] = field(default_factory=set[str])
    """The outputs that overwrite an input."""
    stray: list[str] = field(default_factory=list[str])

    def shape(self, type_: Attribute) -> tuple[int, ...]:
        return tuple(dim.evaluate(self.dims) for dim in cast(ShapedType, type_).dims)

    def dtypes(self, type_: Attribute) -> tuple[DType, DType]:
        """Return the dtype in which the program stores a buffer's elements, and the dtype that holds them here."""
        element_type = cast(ShapedType, type_).element_type
        storage = storage_dtype(element_type)
        return storage, value_dtype(element_type) if self.exact else storage

    def bytes_of(self, type_: Attribute) -> int:
        return count(self.shape(type_)) * self.dtypes(type_)[0].itemsize

    def place(self, op: Operation, name: str, memory: Memory, offset: int = 0, held: DType | None = None) -> View:
        """Return the row-major view of a new buffer at a byte offset of a memory."""
        value = op.results[0]
        storage, usual = self.dtypes(value.type)
        shape = self.shape(value.type)
        end = offset + self.bytes_of(value.type)
        self.owners += 1
        view = View(name, memory, self.owners, offset, end, offset, shape, row_major(shape), storage, held or usual)
        self.views[value] = view
        return view

    def hold(self, op: Operation, name: str, array: Array) -> View:
        """Return a read-only buffer that holds an array: in its own dtype in exact mode, else in its storage dtype."""
        value = op.results[0]
        storage, _ = self.dtypes(value.type)
        shape = self.shape(value.type)
        if array.shape != shape:
            raise EvaluationError(f"{name} has shape {array.shape}, expected {shape}: {value.type}")
        if not self.exact or array.dtype.kind != "f" or array.dtype.itemsize % storage.itemsize:
            array = array.astype(storage)
        return self.place(op, name, Memory.constant(name, array, storage), held=array.dtype)

    def read(self, view: View, reader: str) -> Array:
        array, stray = view.read()
        if stray:
            self.stray.append(
                f"{reader} reads {stray} of {view.size} elements of {view.name} that were never written or were "
                "overwritten through another buffer"
            )
        return array

    def run(self, op: Operation) -> None:
        """Run one op of the program."""
        match op:
            case InputOp():
                name = op.buffer_name.data
                if name not in self.inputs:
                    raise EvaluationError(f"no value for input {name!r}")
                if op.strides is not None:
                    memory = Memory.fresh(f"input {name!r}", self.bytes_of(op.results[0].type), self.exact)
                    view = self.seen(op, self.place(op, memory.name, memory))
                    if (array := piece(self, "inputs", name, self.inputs[name])).shape != view.shape:
                        raise EvaluationError(f"input {name!r} has shape {array.shape}, expected {view.shape}")
                    view.write(array)
                    return
                view = self.hold(op, f"input {name!r}", piece(self, "inputs", name, self.inputs[name]))
                if op.is_state:
                    memory = Memory.fresh(view.name, self.bytes_of(op.results[0].type), self.exact)
                    self.place(op, view.name, memory).write(view.values())
            case DestinationOp():
                name = op.buffer_name.data
                if op.in_place_of is not None:
                    self.outputs[name] = self.views[op.in_place_of]
                    self.taken.add(name)
                    return
                memory = Memory.fresh(f"output {name!r}", self.bytes_of(op.results[0].type), self.exact)
                self.outputs[name] = self.seen(op, self.place(op, f"output {name!r}", memory))
            case ConstantOp():
                self.hold(op, "a constant", self.constant(op))
            case AllocOp():
                name = f"buffer %{op.results[0].name_hint or len(self.views)}"
                memory, at = self.arena, op.at
                if at is None:
                    memory, offset = Memory.fresh("memory of its own", self.bytes_of(op.results[0].type), self.exact), 0
                else:
                    offset = at.evaluate(self.dims)
                self.place(op, name, memory, offset)
            case ViewOp():
                source = self.views[op.source]
                strides = tuple(stride.evaluate(self.dims) for stride in op.strides.data)
                offset = source.offset + op.offset.data[0].evaluate(self.dims) * source.storage.itemsize
                self.views[op.results[0]] = replace(
                    source,
                    name=f"a view of {source.name}",
                    offset=offset,
                    shape=self.shape(op.results[0].type),
                    strides=strides,
                )
            case ReadDimOp():
                self.bind(op.dim.data, self.number(op.source, "ait_rt.read_dim"))
            case CopyOp():
                self.views[op.target].write(self.read(self.views[op.source], "a copy"))
            case LaunchOp() if op.masked is not None and op.count is not None:
                outside = self.dims, self.views, self.outputs
                self.bind(op.masked.data, self.number(op.count, f"the mask of @{op.kernel_name}"))
                self.launch(op)
                self.dims, self.views, self.outputs = outside
            case LaunchOp():
                self.launch(op)
            case LoopOp():
                self.loop(op)
            case EventOp():
                pass  # the ops come in an order that the events allow
            case _:
                raise EvaluationError(f"the interpreter does not know {op.name}")

    def seen(self, op: NamedBufferOp, whole: View) -> View:
        """The caller's tensor in the memory of an input or output."""
        if op.strides is None:
            return whole
        dims, strides = (tuple(e.evaluate(self.dims) for e in part) for part in (op.dims, op.strides.data))
        return replace(whole, shape=dims, strides=strides)

    def number(self, source: SSAValue, reader: str) -> int:
        return int(self.read(self.views[source], reader))

    def bind(self, name: str, number: int) -> None:
        """Set a dim, and give the buffers whose shapes contain it their actual shapes."""
        self.dims = {**self.dims, name: number}
        self.views = dict(self.views)
        for value, view in self.views.items():
            owner, dims = value.owner, cast(ShapedType, value.type).dims
            declared = owner.strides.data if isinstance(owner, ViewOp) else ()
            if any(name in e.symbols for e in (*dims, *declared)):
                shape = self.shape(value.type)
                strides = tuple(e.evaluate(self.dims) for e in declared) if declared else row_major(shape)
                self.views[value] = replace(view, shape=shape, strides=strides)
        self.outputs = {
            output.buffer_name.data: self.seen(output, self.views[value])
            for value in self.views
            if isinstance(output := value.owner, DestinationOp)
        } | {name: view for name, view in self.outputs.items() if name in self.taken}

    def loop(self, op: LoopOp) -> None:
        """Run the ops of a loop once for each step; each step makes its allocations anew."""
        outside = self.dims
        for step in range(op.count.evaluate(outside)):
            self.dims = {**outside, op.step: step}
            for inner in op.block.ops:
                self.run(inner)
        self.dims = outside

    def constant(self, op: ConstantOp) -> Array:
        """Return the array of a constant: joined params, or a literal."""
        type_ = op.results[0].type
        names = op.param_names()
        if not names:
            values = np.array(literal_values(cast(Attribute, op.value))).astype(self.dtypes(type_)[0])
            shape = self.shape(type_)
            return np.broadcast_to(values.reshape(-1)[0], shape) if values.size == 1 else values.reshape(shape)
        for name in names:
            if name not in self.params:
                raise EvaluationError(f"no value for parameter {name!r}")
        arrays = [piece(self, "params", name, self.params[name]) for name in names]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def launch(self, op: LaunchOp) -> None:
        """Run a kernel: read its operands, evaluate its body, store its results."""
        launch_together([self], op)

    def operands(self, op: LaunchOp, kernel: KernelOp) -> dict[SSAValue, Array]:
        """Read the operands of a kernel, and spoil its workspace."""
        ins, outs = [self.views[v] for v in op.ins], [self.views[v] for v in op.outs]
        scratch = [self.views[v] for v in op.workspace]
        check_places(kernel, ins, outs, scratch)
        env: dict[SSAValue, Array] = {}
        for i, (argument, view) in enumerate(zip(kernel.block.args, ins, strict=True)):
            array = self.read(view, f"operand {i} of @{op.kernel_name}")
            env[argument] = array.astype(value_dtype(cast(ShapedType, argument.type).element_type), copy=False)
        for view in scratch:
            view.clobber()
        return env

    def store(self, op: LaunchOp, results: Sequence[Array]) -> None:
        """Store the results of a kernel."""
        for view, array in zip([self.views[v] for v in op.outs], results, strict=True):
            if array.shape != view.shape:  # of a dim that the kernel binds: the leading elements of the largest buffer
                view = replace(view, shape=array.shape, strides=row_major(array.shape))
            with np.errstate(all="ignore"):
                view.write(array)


def launch_together(runs: Sequence[Run], op: LaunchOp) -> None:
    """Run a kernel on several ranks, which meet in a collective."""
    kernel = runs[0].kernels.get(op.kernel_name)
    if kernel is None:
        raise EvaluationError(f"no kernel @{op.kernel_name}")
    evaluations = [Evaluation(run.dims, run.params, ranks=run.ranks, rank=run.rank) for run in runs]
    results = run_together(evaluations, kernel.block.ops, [run.operands(op, kernel) for run in runs])
    for run, found in zip(runs, results, strict=True):
        run.store(op, found)


def count(shape: Sequence[int]) -> int:
    """Return the number of elements of a shape."""
    return int(np.prod(shape, dtype=np.int64))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous array."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def check_places(kernel: KernelOp, ins: list[View], outs: list[View], scratch: list[View]) -> None:
    """Raise if a launch writes to memory that it reads, or twice to the same memory.

    An elementwise kernel may write exactly over one of its operands; a kernel that updates operand 0 must do so.
    """
    in_place = isinstance(kernel.compute_op(), InPlace)
    name = kernel.sym_name.data
    written = [*outs, *scratch]
    if isinstance(kernel.compute_op(), UpdatesOperand):
        if not outs[0].same_place(ins[0]):
            raise EvaluationError(f"@{name} updates operand 0, {ins[0].name}, but writes {outs[0].name}")
        ins = ins[1:]
    for i, target in enumerate(written):
        for source in ins:
            if target.overlaps(source) and not (in_place and i < len(outs) and target.same_place(source)):
                raise EvaluationError(f"@{name} writes {target.name} over its operand {source.name}")
        for other in written[:i]:
            if target.overlaps(other):
                raise EvaluationError(f"@{name} writes two results to one place: {target.name} and {other.name}")


def unread(scope: Scope, dims: Mapping[str, int]) -> dict[str, int]:
    """The values, before the run, of dims that launches bind: their upper bounds, for which buffers are allocated."""
    return {d.name: scope.upper(sym(d.name)).evaluate(dims) for d in scope.bound}


def run_program(
    module: ModuleOp,
    program: Operation,
    inputs: Mapping[str, Array],
    params: Mapping[str, Array],
    dims: Mapping[str, int],
    exact: bool = False,
    strict: bool = False,
    order: Sequence[Operation] | None = None,
) -> dict[str, Array]:
    """Return the outputs of an `ait_rt.program` by name, in their storage dtype, or float64 for every float in exact
    mode.

    Elements that are read before they are written, or after another buffer has overwritten their bytes, are NaN; with
    `strict`, or if they are integers, the read is an `EvaluationError`. So are views outside of their buffer or the
    arena, a launch that writes memory it reads (unless it reads each element only for the same element of the result),
    and a missing input or parameter. `order` lists the program's ops in another order of execution.

    A program with ranks runs on all of them, as a graph does (`evaluate_graph`).
    """
    program = cast(ProgramOp, program)
    ranks = ranks_of(program)
    kernels = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, KernelOp)}
    try:
        size, dims = program.arena_size.evaluate(dims), dict(dims) | unread(program.scope, dims)
        runs = [
            Run(dims, inputs, params, exact, Memory.fresh("the arena", size, exact), kernels, ranks, rank)
            for rank in range(ranks.mesh.size)
        ]
        for op in program.block.ops if order is None else order:
            if isinstance(op, LaunchOp) and op.masked is None:
                launch_together(runs, op)
            else:
                for run in runs:
                    run.run(op)
        outputs = [
            {name: run.read(view, f"the caller, of output {name!r},") for name, view in run.outputs.items()}
            for run in runs
        ]
    except DimError as e:
        raise EvaluationError(str(e)) from None
    if strict and (stray := [text for run in runs for text in run.stray]):
        raise EvaluationError("; ".join(dict.fromkeys(stray)))
    return joined_outputs(ranks, outputs)
