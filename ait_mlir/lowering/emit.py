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
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
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
from ait_mlir.dims import Expr
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.choices import Selected, step_results
from ait_mlir.lowering.cpp import comment
from ait_mlir.lowering.fragments import Step
from ait_mlir.lowering.kernels import Arg, Emission, Kernel, Launch, Target
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
    """A call of a kernel function: what it takes of the operands of the launch, by number, or of the workspace, from
    a byte on that is C++ text; its results in the workspace, unless they are the launch's; and what else it has there.
    """

    function: str
    ins: tuple[int | str, ...]
    results: tuple[str, ...] | None
    rest: tuple[str, ...]
    """What passes between launches of the same kernel, and its scratch memory."""

    def text(self, ins: Sequence[str], outs: Sequence[str], workspace: str, dims: Mapping[str, str]) -> str:
        arguments = ["ctx", *(ins[s] if isinstance(s, int) else f"{workspace} + {s}" for s in self.ins)]
        arguments += outs if self.results is None else [_at(workspace, start) for start in self.results]
        arguments += [_at(workspace, start) for start in self.rest]
        return f"if (int32_t status = {self.function}({', '.join([*arguments, *dims.values()])})) return status;"


def _at(workspace: str, start: str) -> str:
    return workspace if start == "0" else f"{workspace} + {start}"


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
                self.define(op.buffer, f"r->inputs[{tables.inputs.index(op)}]", op.buffer_name.data, const=True)
            elif isinstance(op, DestinationOp):
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
            selected = Selected.of(kernel.provider.data, config, op, self.target)
            ways = [self.way(selected, way, what, ins, outs) for way in selected.ways]
        except ValueError as e:
            raise PassError(f"@{kernel.sym_name.data}: {e}", launch) from e
        axis, upto = selected.choice.axis, selected.choice.upto
        return _Calls(ways, axis.cpp(self.dims) if axis is not None else "", upto)

    def way(
        self, selected: Selected, steps: Sequence[Step], what: str, ins: Sequence[Arg], outs: Sequence[Arg]
    ) -> list[_Call]:
        """The functions of one of the ways to run a kernel, and how they are called."""
        calls: list[_Call] = []
        buffers = step_results(steps)
        made: list[list[tuple[Arg, Expr]]] = []
        """By step, its results as arguments and where they are in the workspace."""
        for i, step in enumerate(steps):
            mine: list[Arg] = []
            places: list[int | str] = []
            for j, (source, value) in enumerate(zip(step.sources, step.op.operands, strict=True)):
                whole, offset = (ins[source.index], None) if source.step is None else made[source.step][source.index]
                t = whole.type if offset is None else tensor_type(value)
                mine.append(replace(whole, name=f"a{j}", type=t))
                start = source.start * element_bytes(t)
                places.append(source.index if offset is None else (offset + start).cpp(self.dims))
            here, buffers = buffers[: len(step.op.results)], buffers[len(step.op.results) :]
            made.append([(_arg(f"o{j}", b.type), b.offset) for j, b in enumerate(here)])
            last = i == len(steps) - 1
            results = list(outs) if last else [arg for arg, _ in made[-1]]
            between, scratch = selected.beside(step, steps)
            launch = Launch(
                step.op,
                mine,
                results,
                self.dims,
                step.config,
                self.target,
                [_arg(f"b{j}", buffer.type) for j, buffer in enumerate(between)],
            )
            rest = tuple(e.cpp(self.dims) for e in (*(b.offset for b in between), scratch))
            kept = None if last else tuple(offset.cpp(self.dims) for _, offset in made[-1])
            calls += [_Call(f, tuple(places), kept, rest) for f in self.functions(step.kernel, launch, what)]
        return calls

    def functions(self, kernel: Kernel[Any], launch: Launch[Any], what: str) -> list[str]:
        """Write the files of the functions of a kernel; returns their names."""
        emitted = kernel.emit(launch)
        names: list[str] = []
        for emission in (emitted,) if isinstance(emitted, Emission) else emitted:
            results = [*launch.outs, *launch.between]
            text, name, declaration = kernel_file(
                derived_name(launch.op), what, emission, launch.ins, results, self.dims
            )
            host_only = all("/gpu/" not in i for i in emission.includes)
            self.source.files[name + (".cc" if host_only else SUFFIX[self.target.kind])] = text
            self.declarations.append(declaration)
            names.append(name)
        return names

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


def _arg(name: str, t: TensorType) -> Arg:
    """A row-major buffer in the workspace."""
    return Arg(name, t, row_major(t.dims))


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
