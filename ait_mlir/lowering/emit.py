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
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.traits import SymbolTable

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait.types import Shape, TensorType, shape_text
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
from ait_mlir.lowering.cpp import comment
from ait_mlir.lowering.kernels import Arg, Emission, Target, kernel_of
from ait_mlir.lowering.tables import Literal, ProgramTables, program_tables

SUFFIX = {"cpu": ".cc", "cuda": ".cu", "rocm": ".hip"}


@dataclass
class Source:
    """The C++ of one program: file name to text, and the literals that its constants hold."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    literals: dict[str, Literal] = field(default_factory=dict[str, Literal])


def emit_program(module: ModuleOp, program: ProgramOp, target: Target) -> Source:
    """Print a planned program; raises `PassError` for what is not planned or lowered."""
    return _ProgramPrinter(module, program, target).run()


class _ProgramPrinter:
    def __init__(self, module: ModuleOp, program: ProgramOp, target: Target) -> None:
        self.module, self.program, self.target = module, program, target
        self.scope = program.scope
        self.dims = {d.name: f"d{i}" for i, d in enumerate(self.scope.dims)}
        self.names: dict[SSAValue, str] = {}
        self.kernels: dict[object, str] = {}
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
        function = self.kernels.get(key)
        if function is None:
            function = self.kernels[key] = self.kernel(kernel, op)
        arguments = [self.names[v] for v in (*op.ins, *op.outs)]
        arguments.append(self.names[op.workspace[0]] if op.workspace else "nullptr")
        arguments += self.dims.values()
        self.lines.append("")
        self.lines.append(comment(describe(kernel)))
        self.lines.append(f"if (int32_t status = {function}(ctx, {', '.join(arguments)})) return status;")

    def kernel(self, kernel: KernelOp, launch: LaunchOp) -> str:
        """Write the file of a kernel for the strides of this launch; returns the name of its function."""
        op = kernel.compute_op()
        ins = [Arg(f"a{i}", _tensor(v), strides(v), is_constant(v)) for i, v in enumerate(launch.ins)]
        outs = [Arg(f"o{i}", _tensor(v), strides(v)) for i, v in enumerate(launch.outs)]
        config = {k: v.value.data for k, v in kernel.config.data.items() if isinstance(v, IntegerAttr)}
        try:
            chosen = kernel_of(kernel.provider.data, op, self.target)
            emission = chosen.emit(op, ins, outs, self.dims, config, self.target)
        except ValueError as e:
            raise PassError(f"@{kernel.sym_name.data}: {e}", launch) from e
        text, name, declaration = kernel_file(derived_name(op), describe(kernel), emission, ins, outs, self.dims)
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
        return f"""{comment(f"Program {self.program.sym_name.data} for {self.target.kind} ({self.target.arch}).")}
#include "ait/context.h"
#include "ait/dims.h"
#include "ait/model_abi.h"

{"".join(self.declarations)}
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

extern "C" const ait_model_v1* ait_model_get() {{ return &kModel; }}
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
