"""Prints a planned program as C++: one file for the program and one for each kernel, by the templates in `templates/`.

Identifiers are made here (`buffer12`, `dim0`, `k_gemm_rcr_bias_1a2b3c4d`); names from the IR appear only as escaped
strings in tables and as filtered text in comments. A kernel's function is named after its own text, so that equal
kernels of different models share one object in the cache.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Block, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait.strided import contiguous_strides
from ait_mlir.dialects.ait.types import Shape, TensorType, shape_text, tensor_type
from ait_mlir.dialects.ait_rt.buffers import (
    AllocOp,
    ConstantOp,
    CopyOp,
    DestinationOp,
    InputOp,
    ReadDimOp,
    ViewOp,
)
from ait_mlir.dialects.ait_rt.loop import LoopOp
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp, kernel_named
from ait_mlir.dialects.ait_rt.streams import EventOp, RecordOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, Fields, Noted
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.candidates import Step
from ait_mlir.lowering.choices import Buffer, Selected, step_results
from ait_mlir.lowering.cpp import CppText, dim_variable
from ait_mlir.lowering.kernels import Arg, Emission, Kernel, Launch, Target
from ait_mlir.lowering.kernels.amounts import element_bytes
from ait_mlir.lowering.layout import laid_out
from ait_mlir.lowering.sizes import can_be_large, large_sizes
from ait_mlir.lowering.sources import Source, kernel_text, sizes_header
from ait_mlir.lowering.statements import (
    Alloc,
    Argument,
    Branch,
    Call,
    Function,
    Given,
    LaunchCalls,
    Loop,
    OnEvent,
    Part,
    ReadDim,
    Shown,
    Statement,
    View,
    buffers_used,
    has_streams,
    needed,
    parts_of,
    streams_of,
)
from ait_mlir.lowering.tables import program_tables
from ait_mlir.lowering.template import render

SUFFIX = {"cpu": ".cc", "cuda": ".cu", "rocm": ".hip"}


def emit_program(
    module: ModuleOp,
    program: ProgramOp,
    target: Target,
    entry: str = "ait_model_get",
    inspected: bool = False,
    copies: bool = False,
) -> Source:
    """Print a planned program; raises `PassError` if it is not planned or has ops that are not lowered.

    `entry` is the function that returns the table of the model. An `inspected` program shows the results of launches to
    the observer of a run. Programs with different entries may be one source file. With `copies`, a program for a GPU
    can copy the caller's tensors whose layout differs from the kernels' expectations.
    """
    return _ProgramPrinter(module, program, target, entry, inspected, copies).run()


@dataclass(frozen=True)
class _Call:
    """A call of a kernel function. `ins` are numbers of the launch's operands, or offsets in the workspace; `results`
    are offsets in the workspace, None for the launch's results; `rest` are the offsets of buffers between launches of
    one kernel and of scratch memory."""

    function: str
    ins: tuple[int | Expr, ...]
    results: tuple[Expr, ...] | None
    rest: tuple[Expr, ...]

    def at(self, ins: Sequence[str], outs: Sequence[str], workspace: str) -> Call:
        """The call on buffers of these names."""
        operands = [Argument(ins[s]) if isinstance(s, int) else Argument(workspace, s) for s in self.ins]
        own = [Argument(name) for name in outs] if self.results is None else _places(workspace, self.results)
        return Call(self.function, (*operands, *own, *_places(workspace, self.rest)))


def _places(workspace: str, starts: Sequence[Expr]) -> list[Argument]:
    return [Argument(workspace, None if start.as_int() == 0 else start) for start in starts]


@dataclass(frozen=True)
class _Calls:
    """The calls of a launch, one list for each range of an axis."""

    candidates: list[list[_Call]]
    axis: Expr | None = None
    upto: tuple[int, ...] = ()


class _ProgramPrinter:
    def __init__(
        self, module: ModuleOp, program: ProgramOp, target: Target, entry: str, inspected: bool, copies: bool
    ) -> None:
        self.module, self.program, self.target, self.entry = module, program, target, entry
        self.scope = program.scope
        self.tables = program_tables(program)
        self.dims = Noted({d.name: dim_variable(i) for i, d in enumerate(self.scope.dims)})
        self.steps: dict[str, str] = {}  # the C++ variables of the loops around
        self.names: dict[SSAValue, str] = {}
        self.counts: Counter[str] = Counter()
        self.kernels: dict[object, _Calls] = {}
        self.functions: dict[Function, None] = {}
        self.statements: list[Statement] = []
        self.launches: list[str] = []
        self.inspected = inspected
        elements = {BY_IR[op.buffer_type.element_type].bytes for op in self.tables.tensors}
        self.copied = sorted(elements) if copies and target.is_gpu else []
        self.source = Source()

    def run(self) -> Source:
        self.print_ops(self.program.block)
        self.source.literals = self.tables.literals
        self.source.files["program.cc"] = self.program_file()
        for size in self.copied:
            text = render("copy_tensor.j2", bytes=size)
            self.source.files[f"copy_tensor_{size}{SUFFIX[self.target.kind]}"] = str(text)
        return self.source

    def print_ops(self, block: Block) -> None:
        """Add the statements of a block."""
        for op in block.ops:
            if isinstance(op, InputOp):
                taker = self.tables.taker(op)
                kind, place = ("input", self.tables.inputs.index(op)) if taker is None else ("output", taker)
                self.statements.append(Given(kind, self.define(op.buffer, kind, place), place, op.buffer_name.data))
            elif isinstance(op, DestinationOp):
                if op.in_place_of is None:
                    place = self.tables.outputs.index(op)
                    self.statements.append(
                        Given("output", self.define(op.buffer, "output", place), place, op.buffer_name.data)
                    )
            elif isinstance(op, ConstantOp):
                self.statements.append(self.constant(op))
            elif isinstance(op, AllocOp):
                if op.at is None:
                    raise PassError("an allocation has no place yet; run the pass 'plan-memory' first", op)
                what = shape_text(op.buffer_type.dims)
                self.statements.append(Alloc(self.define(op.buffer, "buffer"), op.at, what))
            elif isinstance(op, ViewOp):
                self.view(op)
            elif isinstance(op, LaunchOp):
                self.launch(op)
            elif isinstance(op, ReadDimOp):
                self.read_dim(op)
            elif isinstance(op, EventOp):
                if self.target.is_gpu:  # the launches of a CPU run in the order of the text
                    function = "record" if isinstance(op, RecordOp) else "wait"
                    self.statements.append(OnEvent(function, op.number, op.on))
            elif isinstance(op, LoopOp):
                self.loop(op)
            elif isinstance(op, CopyOp):
                raise PassError("a copy is left; run the pass 'lower-copies' first", op)

    def loop(self, op: LoopOp) -> None:
        outside, self.statements = self.statements, []
        self.steps[op.step] = step = f"step{len(self.steps)}"
        self.print_ops(op.block)
        body, uses = self.print_statements(self.statements), buffers_used(self.statements)
        del self.steps[op.step]
        self.statements = outside
        self.statements.append(Loop(f"{op.step} = 0 to {op.count} - 1", step, op.count, body, uses))

    def print_statements(self, statements: Sequence[Statement]) -> CppText:
        return render(
            "statements.j2",
            statements=needed(statements),
            dims={**self.dims, **self.steps},
            kernel_dims=list(self.dims.values()),
        )

    def constant(self, op: ConstantOp) -> Given:
        what = ", ".join(op.param_names()) or "literal"
        return Given(
            "constant", self.define(op.buffer, "constant"), self.tables.offset_of(op), what, self.tables.bound_as(op)
        )

    def define(self, value: SSAValue, kind: str, number: int | None = None) -> str:
        """A new name for a buffer: `input0`, `constant2`; by default with the next number of its kind."""
        if number is None:
            number = self.counts[kind]
            self.counts[kind] += 1
        name = self.names[value] = f"{kind}{number}"
        return name

    def view(self, op: ViewOp) -> None:
        offset = op.offset.data[0] * BY_IR[op.buffer_type.element_type].bytes
        base = self.names[op.source]
        what = f"{shape_text(op.buffer_type.dims)} strides {shape_text(op.strides.data)}"
        self.statements.append(View(self.define(op.buffer, "view"), base, offset, what))

    def read_dim(self, op: ReadDimOp) -> None:
        name = op.dim.data
        place, suffix = ("gpu", ".cuh") if self.target.is_gpu else ("cpu", ".h")
        code = Emission(
            (f"ait/kernels/{place}/read_dim{suffix}",), "", f"return ait::{place}::read_dim(ctx, input0, output0);\n"
        )
        number = TensorType.get((), i64)
        arguments = [Arg("input0", number, ())], [Arg("output0", number, ())]
        what = "The value of a dim that a launch has bound."
        kernel = kernel_text("read_dim", what, code, *arguments, self.dims)
        self.source.add(kernel, SUFFIX[self.target.kind])
        self.functions[Function(kernel.name, 1, 1)] = None
        index = list(self.dims).index(name)
        self.statements.append(ReadDim(kernel.name, self.names[op.source], index, name))

    def launch(self, op: LaunchOp) -> None:
        kernel = kernel_named(op.kernel_name, self.module)
        assert kernel is not None
        masked = None if op.masked is None else op.masked.data
        buffers = tuple((strides(v), is_constant(v), self.is_unread(v)) for v in (*op.ins, *op.outs))
        key = (op.kernel_name, masked, buffers)
        calls = self.kernels.get(key)
        if calls is None:
            calls = self.kernels[key] = self.calls(kernel, op)
        workspace = self.names[op.workspace[0]] if op.workspace else "nullptr"
        ins = [self.names[v] for v in (*op.ins, *([] if op.count is None else [op.count]))]
        outs = [self.names[v] for v in op.outs]
        branches = [
            Branch(tuple(call.at(ins, outs, workspace) for call in candidate), upto)
            for candidate, upto in zip(calls.candidates, (*calls.upto, None), strict=True)
        ]
        self.launches.append(describe(kernel) + (f", stream {op.on}" if op.on and self.target.is_gpu else ""))
        self.statements.append(
            LaunchCalls(
                self.launches[-1],
                len(self.launches) - 1,
                branches,
                calls.axis,
                self.shown(op.outs) if self.inspected else (),
                op.on if self.target.is_gpu else 0,
            )
        )

    def is_unread(self, buffer: SSAValue) -> bool:
        """Whether a buffer has no reader but perhaps the launch that it belongs to; an inspected program shows it."""
        return not self.inspected and isinstance(buffer.owner, AllocOp) and len(list(buffer.uses)) == 1

    def shown(self, outs: Sequence[SSAValue]) -> list[Shown]:
        """The results of a launch that are contiguous and whose sizes are known before the run."""
        bound = {d.name for d in self.scope.dims if d.upper is not None}
        found: list[Shown] = []
        for i, value in enumerate(outs):
            t = _tensor(value)
            elements = t.num_elements()
            if strides(value) == contiguous_strides(t.dims) and not elements.symbols & bound:
                found.append(Shown(i, self.names[value], BY_IR[t.element_type].enumerator, elements))
        return found

    def calls(self, kernel: KernelOp, launch: LaunchOp) -> _Calls:
        """Write the files of a kernel for the strides of this launch; returns the calls of its functions."""
        op, config = kernel.compute_op(), kernel.config
        ins = [Arg(f"input{i}", _tensor(v), strides(v), is_constant(v)) for i, v in enumerate(launch.ins)]
        outs = [Arg(f"output{i}", _tensor(v), strides(v), unread=self.is_unread(v)) for i, v in enumerate(launch.outs)]
        what = describe(kernel)
        self.dims.noted_for = f"a launch of {what}"
        try:
            selected = Selected.of(kernel.provider.data, config, op, self.target)
            masked = None if launch.masked is None else launch.masked.data
            calls = [self.candidate(selected, steps, what, ins, outs, masked) for steps in selected.candidates]
        except ValueError as e:
            raise PassError(f"@{kernel.sym_name.data}: {e}", launch) from e
        choice = selected.choice
        if choice.axis is not None:
            self.dims.note(choice.axis)
        return _Calls(calls, choice.axis if len(calls) > 1 else None, choice.upto)

    def candidate(
        self,
        selected: Selected,
        steps: Sequence[Step],
        what: str,
        ins: Sequence[Arg],
        outs: Sequence[Arg],
        masked: str | None,
    ) -> list[_Call]:
        """Write the functions of one candidate to run a kernel; returns their calls.

        The value of a `masked` dim is the argument after the operands of the launch.
        """
        calls: list[_Call] = []
        buffers = step_results(steps)
        made: list[list[Buffer]] = []
        """The buffers of each step's results in the workspace."""
        for step in steps:
            mine: list[Arg] = []
            places: list[int | Expr] = []
            for i, (source, value) in enumerate(zip(step.sources, step.op.operands, strict=True)):
                if source.step is None:
                    mine.append(replace(ins[source.index], name=f"input{i}"))
                    places.append(source.index)
                else:
                    whole, t = made[source.step][source.index], tensor_type(value)
                    mine.append(Arg(f"input{i}", t, contiguous_strides(whole.type.dims)))
                    places.append(whole.offset + source.start * element_bytes(t))
            here, buffers = buffers[: len(step.op.results)], buffers[len(step.op.results) :]
            made.append(here)
            between, scratch = selected.beside(step, steps)
            launch = Launch(
                step.op,
                mine,
                _row_major_args("output", here) or outs,
                self.dims,
                step.config,
                self.target,
                _row_major_args("between", between),
                masked,
            )
            if masked is not None:
                places.append(len(ins))
            results = tuple(b.offset for b in here) or None
            rest = (*(b.offset for b in between), scratch)
            for start in (*places, *(results or ()), *rest):
                if isinstance(start, Expr):
                    self.dims.note(start)
            calls += [_Call(f, tuple(places), results, rest) for f in self.write_functions(step.kernel, launch, what)]
        return calls

    def write_functions(self, kernel: Kernel[Any], launch: Launch[Any], what: str) -> list[str]:
        """Write the files of the functions of a kernel; returns their names."""
        if kernel.one_instance and self.target.is_gpu:
            return self.write_instance(kernel, launch)
        emitted = kernel.emit(launch)
        ins = [*launch.ins, *([] if launch.masked is None else [Arg("n", TensorType.get((), i64), ())])]
        results = [*launch.outs, *launch.between]
        names: list[str] = []
        for emission in (emitted,) if isinstance(emitted, Emission) else emitted:
            called = derived_name(launch.op)
            function = kernel_text(called, what, emission, ins, results, self.dims, kernel.one_instance)
            host_only = all("/gpu/" not in i for i in emission.includes)
            self.source.add(function, ".cc" if host_only else SUFFIX[self.target.kind])
            self.functions[Function(function.name, len(ins), len(results))] = None
            names.append(function.name)
        return names

    def write_instance(self, kernel: Kernel[Any], launch: Launch[Any]) -> list[str]:
        """Write the files of functions that read sizes from a struct, so that all sizes share their code; returns the
        names of the program's functions that call them with the sizes of this launch."""
        assert launch.masked is None, f"{kernel.name} reads no dim from device memory"
        fields = Fields(self.dims, "sizes")
        emitted = kernel.emit(replace(launch, dims=fields))
        results = [*launch.outs, *launch.between]
        for e in fields.exprs.values():
            self.dims.note(e)
        called = derived_name(launch.op)
        names: list[str] = []
        for emission in (emitted,) if isinstance(emitted, Emission) else emitted:
            what = f"{called} ({kernel.provider})"
            used = dict.fromkeys(re.findall(r"\bsizes\.(\w+)", emission.body))
            sizes = tuple((name, fields.exprs[name]) for name in used)
            struct = sizes_header(used)
            text = kernel_text(called, what, emission, launch.ins, results, self.dims, sizes=struct)
            self.source.add(text, SUFFIX[self.target.kind])
            calls = [f for f in self.functions if f.instance == text.name]
            function = next((f for f in calls if f.sizes == sizes), None)
            if function is None:
                name = f"{text.name}_{len(calls)}"
                function = Function(name, len(launch.ins), len(results), text.name, struct.name, sizes)
                self.functions[function] = None
            names.append(function.name)
        return names

    def program_file(self) -> str:
        parts = parts_of(self.statements)
        names = ["run"] if len(parts) == 1 else [f"{('run', 'wait')[i % 2]}_{i // 2}" for i in range(len(parts))]
        large = large_sizes(self.program, dict(self.dims.exprs))
        numbers = self.numbers() | {"too_large": [size.expr for size in large]}
        places = {name: i for i, name in enumerate(self.dims)}
        places_in_run = {cpp: i for i, cpp in enumerate(self.dims.values())}
        text = render(
            "program.j2",
            **self.tables.values(),
            large_sizes=large,
            checked=[name for name, exprs in self.numbers().items() if can_be_large(self.scope, exprs)],
            dims_of={
                function: {name: i for name, i in places.items() if any(name in e.symbols for e in exprs)}
                for function, exprs in numbers.items()
            },
            kernels=list({f.instance or f.name: f for f in self.functions}.values()),
            size_headers=sorted({f"{f.sizes_type}.h" for f in self.functions if f.sizes_type is not None}),
            title=f"Program {self.program.sym_name.data} for {self.target.kind} ({self.target.arch}).",
            functions=self.functions,
            namespace="" if self.entry == "ait_model_get" else f"{self.entry}_code",
            dims=self.dims,
            arena=self.program.arena_size,
            name=self.program.sym_name.data,
            target=self.target.kind,
            launches=self.launches,
            parts=[
                Part(name, self.print_statements(part), places_in_run, streams_of(part), has_streams(part))
                for name, part in zip(names, parts, strict=True)
            ],
            runs=names[::2],
            waits=names[1::2],
            has_streams=any(has_streams(part) for part in parts),
            streams_if_recorded=self.program.streams_if_recorded is not None,
            ends_with_wait=len(parts) % 2 == 0,
            entry=self.entry,
            copied=self.copied,
        )
        return str(laid_out(text))

    def numbers(self) -> dict[str, list[Expr]]:
        """The numbers that the program's functions compute from dims."""
        uppers = [d.upper for d in self.scope.bound if d.upper is not None]
        tensors = self.tables.tensors
        return {
            "shapes": [e for op in tensors for e in op.dims],
            "strides": [e for op in tensors for e in op.seen().strides],
            "arena": [self.program.arena_size],
            "bounds": uppers,
        }


def strides(value: SSAValue) -> Shape:
    """The strides of a buffer in elements."""
    if isinstance(value.owner, ViewOp):
        return value.owner.strides.data
    return contiguous_strides(cast(BufferType, value.type).dims)


def is_constant(value: SSAValue) -> bool:
    """Whether a buffer is part of the constants, which a run never writes."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return isinstance(value.owner, ConstantOp)


def _row_major_args(prefix: str, buffers: Sequence[Buffer]) -> list[Arg]:
    """Buffers in the workspace as arguments of a kernel function."""
    return [Arg(f"{prefix}{i}", b.type, contiguous_strides(b.type.dims)) for i, b in enumerate(buffers)]


def _tensor(value: SSAValue) -> TensorType:
    return cast(BufferType, value.type).tensor()


def describe(kernel: KernelOp) -> str:
    """One line that describes a kernel: name, provider, shapes."""
    op = kernel.compute_op()
    ins = " ".join(shape_text(cast(TensorType, t).dims) for t in op.operand_types)
    outs = " ".join(shape_text(cast(TensorType, t).dims) for t in op.result_types)
    return f"{derived_name(op)} ({kernel.provider.data}): {ins} -> {outs}"
