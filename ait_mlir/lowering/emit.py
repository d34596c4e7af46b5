"""Print a planned program as C++: one file for the program, one for each kernel.

Identifiers are made here (`v12`, `d0`, `k_gemm_rcr_bias_1a2b3c4d`); names from the IR appear only as escaped strings
in tables and
filtered text in comments. A kernel's function is named after its own text, so that equal kernels of different models
share one
object in the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
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
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.choices import RANGES, Config, Step, between_bytes, config_of, read_ranges, steps_of
from ait_mlir.lowering.cpp import comment
from ait_mlir.lowering.kernels import Arg, Emission, Kernel, Target, kernel_of
from ait_mlir.lowering.kernels.base import element_bytes, row_major
from ait_mlir.lowering.tables import Literal, ProgramTables, program_tables

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

    `result` says where its result goes unless that is the launch's; `scratch` is the offset of its own workspace.
    """

    function: str
    sources: tuple[int, ...]
    starts: tuple[str, ...]
    result: str | None
    scratch: str | None

    def text(self, ins: Sequence[str], outs: Sequence[str], workspace: str, dims: Mapping[str, str]) -> str:
        places = zip(self.sources, self.starts, strict=True)
        arguments = ["ctx", *(ins[s] if s >= 0 else f"{workspace} + {start}" for s, start in places)]
        arguments += outs if self.result is None else [workspace]
        arguments.append(workspace if self.scratch is None else f"{workspace} + {self.scratch}")
        return f"if (int32_t status = {self.function}({', '.join([*arguments, *dims.values()])})) return status;"


@dataclass(frozen=True)
class _Calls:
    """The calls of a launch, one list for each range of an axis."""

    ways: list[list[_Call]]
    axis: str = ""
    upto: tuple[int, ...] = ()

    def head(self, i: int) -> str | None:
        """The head of the block that runs way i; None when it is the only one."""
        if len(self.ways) == 1:
            return None
        start = "" if i == 0 else "else "
        return f"{start}if ({self.axis} <= {self.upto[i]}) {{" if i < len(self.upto) else f"{start}{{"


def _part(whole: Arg | None, value: SSAValue) -> Arg:
    """What a launch leaves for the next one, or the part of it that `value` is."""
    assert whole is not None
    return replace(whole, type=tensor_type(value))


class _ProgramPrinter:
    def __init__(self, module: ModuleOp, program: ProgramOp, target: Target, entry: str) -> None:
        self.module, self.program, self.target, self.entry = module, program, target, entry
        self.scope = program.scope
        self.dims = {d.name: f"d{i}" for i, d in enumerate(self.scope.dims)}
        self.names: dict[SSAValue, str] = {}
        self.kernels: dict[object, _Calls] = {}
        self.declarations: list[str] = []
        self.lines: list[str] = []
        self.source = Source()

    def run(self) -> Source:
        tables = program_tables(self.program, self.dims)
        for op in self.program.block.ops:
            if isinstance(op, InputOp):
                taker = tables.taker(op)
                where = f"r->inputs[{tables.inputs.index(op)}]" if taker is None else f"r->outputs[{taker}]"
                self.define(op.buffer, where, op.buffer_name.data, const=taker is None)
            elif isinstance(op, DestinationOp) and op.in_place_of is None:
                self.define(op.buffer, f"r->outputs[{tables.outputs.index(op)}]", op.buffer_name.data)
            elif isinstance(op, ConstantOp):
                where = f"constants + {tables.offset_of(op)}"
                self.define(op.buffer, where, ", ".join(op.param_names()) or "literal", const=True)
            elif isinstance(op, AllocOp):
                if op.at is None:
                    raise PassError("an allocation has no place yet; run the pass 'plan-memory' first", op)
                self.define(op.buffer, f"arena + {op.at.cpp(self.dims)}", shape_text(op.buffer_type.dims))
            elif isinstance(op, ViewOp):
                self.view(op)
            elif isinstance(op, LaunchOp):
                self.launch(op)
            elif isinstance(op, CopyOp):
                raise PassError("a copy is left; run the pass 'lower-copies' first", op)
        self.source.literals = tables.literals
        # The program is host code: the host compiler builds it for every target.
        self.source.files["program.cc"] = self.program_file(tables)
        return self.source

    def define(self, value: SSAValue, where: str, what: str, const: bool = False) -> None:
        name = self.names[value] = f"v{len(self.names)}"
        kind = "const char*" if const else "char*"
        cast_ = f"static_cast<{kind}>({where})" if where.startswith("r->") else where
        self.lines.append(f"[[maybe_unused]] {kind} {name} = {cast_};  {comment(what)}")

    def view(self, op: ViewOp) -> None:
        offset = op.offset.data[0] * BY_IR[op.buffer_type.element_type].bytes
        base = self.names[op.source]
        name = self.names[op.buffer] = f"v{len(self.names)}"
        strides = shape_text(op.strides.data)
        self.lines.append(
            f"[[maybe_unused]] auto* {name} = {base} + {offset.cpp(self.dims)};  "
            + comment(f"{shape_text(op.buffer_type.dims)} strides {strides}")
        )

    def launch(self, op: LaunchOp) -> None:
        kernel = SymbolTable.lookup_symbol(self.module, op.kernel_name)
        assert isinstance(kernel, KernelOp)
        key = (op.kernel_name, tuple((strides(v), is_constant(v)) for v in (*op.ins, *op.outs)))
        calls = self.kernels.get(key)
        if calls is None:
            calls = self.kernels[key] = self.calls(kernel, op)
        workspace = self.names[op.workspace[0]] if op.workspace else "nullptr"
        values = [self.names[v] for v in op.ins], [self.names[v] for v in op.outs]
        self.lines += ["", comment(describe(kernel))]
        for i, way in enumerate(calls.ways):
            body = [call.text(*values, workspace, self.dims) for call in way]
            head = calls.head(i)
            self.lines += body if head is None else [head, *("  " + line for line in body), "}"]

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
                return _Calls([[_Call(function, tuple(range(len(ins))), ("0",) * len(ins), None, None)]])
            choice = read_ranges(config)
            ways = [self.way(steps_of(op, way, self.target), what, ins, outs) for way in choice.ways]
        except ValueError as e:
            raise PassError(f"@{kernel.sym_name.data}: {e}", launch) from e
        assert choice.axis is not None
        return _Calls(ways, choice.axis.cpp(self.dims), choice.upto)

    def way(self, steps: Sequence[Step], what: str, ins: Sequence[Arg], outs: Sequence[Arg]) -> list[_Call]:
        """The functions of one of several ways to run a kernel."""
        calls: list[_Call] = []
        between: Arg | None = None
        scratch = between_bytes(steps).cpp(self.dims) if len(steps) > 1 else None
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
                (start * element_bytes(tensor_type(v))).cpp(self.dims)
                for start, v in zip(step.starts, step.op.operands, strict=True)
            )
            calls.append(_Call(function, step.sources, starts, None if last else "ws", scratch))
        return calls

    def function(
        self, op: Operation, what: str, chosen: Kernel, config: Config, ins: Sequence[Arg], outs: Sequence[Arg]
    ) -> str:
        """Write the file of one function; returns its name."""
        emission = chosen.emit(op, ins, outs, self.dims, config, self.target)
        text, name, declaration = kernel_file(derived_name(op), what, emission, ins, outs, self.dims)
        host_only = all("/gpu/" not in i for i in emission.includes)
        self.source.files[name + (".cc" if host_only else SUFFIX[self.target.kind])] = text
        self.declarations.append(declaration)
        return name

    def program_file(self, tables: ProgramTables) -> str:
        dims = [
            f"[[maybe_unused]] const int64_t {v} = r->dims[{i}];  {comment(n)}"
            for i, (n, v) in enumerate(self.dims.items())
        ]
        body = "\n".join("  " + line if line else "" for line in [*dims, *self.lines])
        inside = "" if self.entry == "ait_model_get" else f"{self.entry}_code"
        return f"""{comment(f"Program {self.program.sym_name.data} for {self.target.kind} ({self.target.arch}).")}
#include "ait/context.h"
#include "ait/dims.h"
#include "ait/model_abi.h"

{"".join(dict.fromkeys(self.declarations))}
{f"namespace {inside} {{" if inside else ""}
namespace {{

{tables.text(self.dims, self.program.arena_size, self.program.sym_name.data, self.target.kind)}
int32_t run(const ait_run_v1* r) {{
  [[maybe_unused]] const ait::Context ctx{{r->stream, r->services}};
  [[maybe_unused]] char* const arena = static_cast<char*>(r->arena);
  [[maybe_unused]] const char* const constants = static_cast<const char*>(r->constants);
{body}
  return 0;
}}

{tables.model()}
}}  // namespace

extern "C" const ait_model_v1* {self.entry}() {{ return &kModel; }}
{"}" if inside else ""}
"""


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
) -> tuple[str, str, str]:
    """The text of a kernel's file, the name of its function and its declaration."""
    parameters = [f"[[maybe_unused]] const void* {a.name}_" for a in ins]
    parameters += [f"[[maybe_unused]] void* {o.name}_" for o in outs] + ["[[maybe_unused]] void* ws"]
    parameters += [f"[[maybe_unused]] int64_t {d}" for d in dims.values()]
    plain = ["const void*"] * len(ins) + ["void*"] * (len(outs) + 1) + ["int64_t"] * len(dims)
    casts = [_typed(a, "const ") for a in ins] + [_typed(o, "") for o in outs]
    math = ("ait/math.h",) if emission.definitions else ()  # what regions are made of
    headers = dict.fromkeys(("ait/context.h", "ait/dims.h", "ait/types.h", *math, *emission.includes))
    includes = "".join(f'#include "{header}"\n' for header in headers)
    lines = "\n".join("  " + line if line else "" for line in [*casts, *emission.body.rstrip("\n").split("\n")])
    text = f"""{comment(what)}
{includes}
namespace {{
{emission.definitions}
}}  // namespace

extern "C" int32_t @FN@([[maybe_unused]] const ait::Context& ctx, {", ".join(parameters)}) {{
{lines}
}}
"""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    function = f"k_{name}_{digest}"
    declaration = f'extern "C" int32_t {function}(const ait::Context&, {", ".join(plain)});\n'
    return text.replace("@FN@", function).replace("@ID@", f"_{digest}"), function, declaration


def _typed(arg: Arg, const: str) -> str:
    cpp = BY_IR[arg.type.element_type].cpp
    return f"[[maybe_unused]] {const}{cpp}* {arg.name} = static_cast<{const}{cpp}*>({arg.name}_);  " + comment(
        arg.type.body_text()
    )
