"""Print a planned program as C++: one file for the program, one for each kernel, by the templates of `templates/`.

Identifiers are made here (`v12`, `d0`, `k_gemm_rcr_bias_1a2b3c4d`); names from the IR appear only as escaped strings
in tables and as filtered text in comments. A kernel's function is named after its own text, so that equal kernels of
different models share one object in the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import SymbolTable

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait.types import Shape, TensorType, shape_text, tensor_type
from ait_mlir.dialects.ait_rt.buffers import (
    AllocOp,
    ConstantOp,
    CopyOp,
    DestinationOp,
    InputOp,
    ViewOp,
    contiguous_strides,
)
from ait_mlir.dialects.ait_rt.loop import LoopOp
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, const
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.choices import RANGES, Config, Step, between_bytes, config_of, read_ranges, steps_of
from ait_mlir.lowering.cpp import CppText, identifier
from ait_mlir.lowering.kernels import Arg, Emission, Kernel, Target, kernel_of
from ait_mlir.lowering.kernels.base import element_bytes, row_major
from ait_mlir.lowering.statements import (
    Alloc,
    Argument,
    Branch,
    Call,
    Function,
    Given,
    Launch,
    Loop,
    Statement,
    View,
)
from ait_mlir.lowering.tables import Literal, program_tables
from ait_mlir.lowering.template import render

SUFFIX = {"cpu": ".cc", "cuda": ".cu", "rocm": ".hip"}


@dataclass
class Source:
    """The C++ of one program: file name to text, and the literals that its constants hold."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    literals: dict[str, Literal] = field(default_factory=dict[str, Literal])


def emit_program(module: ModuleOp, program: ProgramOp, target: Target, entry: str = "ait_model_get") -> Source:
    """Print a planned program; raises `PassError` for what is not planned or lowered.

    `entry` is the function that returns the table of the model. Programs with different entries may be one source file.
    """
    return _ProgramPrinter(module, program, target, entry).run()


@dataclass(frozen=True)
class _Call:
    """A call of a kernel function: which operands of the launch it takes, -1 being the result of the call before, from
    the byte in `starts` on.

    `between`: its result goes to the workspace, for the next call; `scratch` is the offset of its own workspace.
    """

    function: str
    sources: tuple[int, ...]
    starts: tuple[Expr, ...]
    between: bool = False
    scratch: Expr | None = None

    def at(self, ins: Sequence[str], outs: Sequence[str], workspace: str) -> Call:
        """The call on buffers of these names."""
        places = zip(self.sources, self.starts, strict=True)
        operands = [Argument(ins[s]) if s >= 0 else Argument(workspace, start) for s, start in places]
        results = [workspace] if self.between else outs
        scratch = Argument(workspace, self.scratch)
        return Call(self.function, (*operands, *(Argument(name) for name in results), scratch))


@dataclass(frozen=True)
class _Calls:
    """The calls of a launch, one list for each range of an axis."""

    ways: list[list[_Call]]
    axis: Expr | None = None
    upto: tuple[int, ...] = ()


def _part(whole: Arg | None, value: SSAValue) -> Arg:
    """What a launch leaves for the next one, or the part of it that `value` is."""
    assert whole is not None
    return replace(whole, type=tensor_type(value))


class _ProgramPrinter:
    def __init__(self, module: ModuleOp, program: ProgramOp, target: Target, entry: str) -> None:
        self.module, self.program, self.target, self.entry = module, program, target, entry
        self.scope = program.scope
        self.tables = program_tables(program)
        self.dims = {d.name: f"d{i}" for i, d in enumerate(self.scope.dims)}
        self.steps: dict[str, str] = {}  # the C++ variables of the loops around
        self.names: dict[SSAValue, str] = {}
        self.kernels: dict[object, _Calls] = {}
        self.functions: dict[Function, None] = {}
        self.statements: list[Statement] = []
        self.source = Source()

    def run(self) -> Source:
        self.print_ops(self.program.block)
        self.source.literals = self.tables.literals
        self.source.files["program.cc"] = self.program_file()
        return self.source

    def print_ops(self, block: Block) -> None:
        """Add the statements of a block."""
        for op in block.ops:
            if isinstance(op, InputOp):
                taker = self.tables.taker(op)
                given = ("input", self.tables.inputs.index(op)) if taker is None else ("output", taker)
                self.statements.append(Given(given[0], self.define(op.buffer), given[1], op.buffer_name.data))
            elif isinstance(op, DestinationOp):
                if op.in_place_of is None:
                    place = self.tables.outputs.index(op)
                    self.statements.append(Given("output", self.define(op.buffer), place, op.buffer_name.data))
            elif isinstance(op, ConstantOp):
                what = ", ".join(op.param_names()) or "literal"
                self.statements.append(Given("constant", self.define(op.buffer), self.tables.offset_of(op), what))
            elif isinstance(op, AllocOp):
                if op.at is None:
                    raise PassError("an allocation has no place yet; run the pass 'plan-memory' first", op)
                what = shape_text(op.buffer_type.dims)
                self.statements.append(Alloc(self.define(op.buffer), op.at, what))
            elif isinstance(op, ViewOp):
                self.view(op)
            elif isinstance(op, LaunchOp):
                self.launch(op)
            elif isinstance(op, LoopOp):
                self.loop(op)
            elif isinstance(op, CopyOp):
                raise PassError("a copy is left; run the pass 'lower-copies' first", op)

    def loop(self, op: LoopOp) -> None:
        outside, self.statements = self.statements, []
        self.steps[op.step] = step = f"i{len(self.steps)}"
        self.print_ops(op.block)
        body = self.print_statements()
        del self.steps[op.step]
        self.statements = outside
        self.statements.append(Loop(f"{op.step} = 0 to {op.count} - 1", step, op.count, body))

    def print_statements(self) -> CppText:
        return render(
            "statements.j2",
            statements=self.statements,
            dims={**self.dims, **self.steps},
            kernel_dims=list(self.dims.values()),
        )

    def define(self, value: SSAValue) -> str:
        """A new name for a buffer."""
        name = self.names[value] = f"v{len(self.names)}"
        return name

    def view(self, op: ViewOp) -> None:
        offset = op.offset.data[0] * BY_IR[op.buffer_type.element_type].bytes
        base = self.names[op.source]
        what = f"{shape_text(op.buffer_type.dims)} strides {shape_text(op.strides.data)}"
        self.statements.append(View(self.define(op.buffer), base, offset, what))

    def launch(self, op: LaunchOp) -> None:
        kernel = SymbolTable.lookup_symbol(self.module, op.kernel_name)
        assert isinstance(kernel, KernelOp)
        key = (op.kernel_name, tuple((strides(v), is_constant(v)) for v in (*op.ins, *op.outs)))
        calls = self.kernels.get(key)
        if calls is None:
            calls = self.kernels[key] = self.calls(kernel, op)
        workspace = self.names[op.workspace[0]] if op.workspace else "nullptr"
        ins, outs = [self.names[v] for v in op.ins], [self.names[v] for v in op.outs]
        branches = [
            Branch(tuple(call.at(ins, outs, workspace) for call in way), upto)
            for way, upto in zip(calls.ways, (*calls.upto, None), strict=True)
        ]
        self.statements.append(Launch(describe(kernel), branches, calls.axis))

    def calls(self, kernel: KernelOp, launch: LaunchOp) -> _Calls:
        """Write the files of a kernel for the strides of this launch; returns how its functions are called."""
        op, config = kernel.compute_op(), kernel.config
        ins = [Arg(f"a{i}", _tensor(v), strides(v), is_constant(v)) for i, v in enumerate(launch.ins)]
        outs = [Arg(f"o{i}", _tensor(v), strides(v)) for i, v in enumerate(launch.outs)]
        what = describe(kernel)
        try:
            if kernel.provider.data != RANGES:
                chosen = kernel_of(kernel.provider.data, op, self.target)
                function = self.function(op, what, chosen, config_of(config), ins, outs)
                return _Calls([[_Call(function, tuple(range(len(ins))), (const(0),) * len(ins))]])
            choice = read_ranges(config)
            ways = [self.way(steps_of(op, way, self.target), what, ins, outs) for way in choice.ways]
        except ValueError as e:
            raise PassError(f"@{kernel.sym_name.data}: {e}", launch) from e
        assert choice.axis is not None
        return _Calls(ways, choice.axis if len(ways) > 1 else None, choice.upto)

    def way(self, steps: Sequence[Step], what: str, ins: Sequence[Arg], outs: Sequence[Arg]) -> list[_Call]:
        """The functions of one of several ways to run a kernel."""
        calls: list[_Call] = []
        between: Arg | None = None
        scratch = between_bytes(steps) if len(steps) > 1 else None
        for i, step in enumerate(steps):
            mine = [
                replace(ins[s] if s >= 0 else _part(between, v), name=f"a{j}")
                for j, (s, v) in enumerate(zip(step.sources, step.op.operands, strict=True))
            ]
            last = i == len(steps) - 1
            t = cast(TensorType, step.op.results[0].type)
            results = list(outs) if last else [Arg("o0", t, row_major(t.dims))]
            between = results[0]
            function = self.function(step.op, what, step.kernel, step.config, mine, results)
            starts = tuple(
                start * element_bytes(tensor_type(v)) for start, v in zip(step.starts, step.op.operands, strict=True)
            )
            calls.append(_Call(function, step.sources, starts, not last, scratch))
        return calls

    def function(
        self, op: Operation, what: str, chosen: Kernel, config: Config, ins: Sequence[Arg], outs: Sequence[Arg]
    ) -> str:
        """Write the file of one function; returns its name."""
        emission = chosen.emit(op, ins, outs, self.dims, config, self.target)
        text, name = kernel_file(derived_name(op), what, emission, ins, outs, self.dims)
        host_only = all("/gpu/" not in i for i in emission.includes)
        self.source.files[name + (".cc" if host_only else SUFFIX[self.target.kind])] = text
        self.functions[Function(name, len(ins), len(outs))] = None
        return name

    def program_file(self) -> str:
        text = render(
            "program.j2",
            **self.tables.values(),
            title=f"Program {self.program.sym_name.data} for {self.target.kind} ({self.target.arch}).",
            functions=self.functions,
            namespace="" if self.entry == "ait_model_get" else f"{self.entry}_code",
            dims=self.dims,
            arena=self.program.arena_size,
            name=self.program.sym_name.data,
            target=self.target.kind,
            statements=self.print_statements(),
            entry=self.entry,
        )
        return str(text)


def strides(value: SSAValue) -> Shape:
    """The strides of a buffer in elements."""
    if isinstance(value.owner, ViewOp):
        return value.owner.strides.data
    return contiguous_strides(cast(BufferType, value.type).dims)


def is_constant(value: SSAValue) -> bool:
    """Whether a buffer lies in the constants, which nothing writes."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return isinstance(value.owner, ConstantOp)


def _tensor(value: SSAValue) -> TensorType:
    return cast(BufferType, value.type).tensor()


def describe(kernel: KernelOp) -> str:
    """One line that says what a kernel computes: name, provider, shapes."""
    op = kernel.compute_op()
    ins = " ".join(shape_text(cast(TensorType, t).dims) for t in op.operand_types)
    outs = " ".join(shape_text(cast(TensorType, t).dims) for t in op.result_types)
    return f"{derived_name(op)} ({kernel.provider.data}): {ins} -> {outs}"


def kernel_file(
    name: str, what: str, emission: Emission, ins: Sequence[Arg], outs: Sequence[Arg], dims: Mapping[str, str]
) -> tuple[str, str]:
    """The text of a kernel's file and the name of its function."""
    math = ("ait/math.h",) if emission.definitions else ()  # what regions are made of
    text = render(
        "kernel.j2",
        what=what,
        headers=list(dict.fromkeys(("ait/context.h", "ait/dims.h", "ait/types.h", *math, *emission.includes))),
        definitions=CppText(emission.definitions),
        function=CppText("@FN@"),
        ins=ins,
        outs=outs,
        dims=dims,
        body=CppText(emission.body),
    )
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    function = identifier(f"k_{name}_{digest}")
    return text.replace("@FN@", function).replace("@ID@", f"_{digest}"), function
