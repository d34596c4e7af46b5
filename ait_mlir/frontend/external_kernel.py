"""The kernel of an operator with its own templates: renders its source and its call, and calls it."""

# `_attrs` is the documented name.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import ast
import hashlib
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from xdsl.ir import Block

from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, Scope
from ait_mlir.frontend.external import ExternalOp, symbols_of
from ait_mlir.frontend.intvar import IntImm, IntVar, IntVarAttrs, Symbols
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.registry import functions_of, get
from ait_mlir.frontend.target import Target as CurrentTarget
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.lowering.authored import located, template_line
from ait_mlir.lowering.cpp import identifier
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Launch, Strides, Target
from ait_mlir.outside import OperatorError, message_of

PACKAGE = str(Path(__file__).parents[1])


class TemplateKernel(Kernel[ExternalOp]):
    """Runs an operator by the functions that are registered for the target."""

    provider = "outside"
    ops = (ExternalOp,)

    def __init__(self, op_class: type[ExternalOp], operator: str) -> None:
        self.op_class, self.operator = op_class, operator
        self.name = identifier(operator)  # pyright: ignore[reportAttributeAccessIssue]

    def targets(self) -> list[str]:
        return sorted({key.partition(".")[0] for key in functions_of(self.operator)})

    def matches(self, op: ExternalOp, target: Target) -> bool:
        return isinstance(op, self.op_class) and bool(functions_of(self.operator, target.kind))

    def accepts(self, op: ExternalOp, position: int, strides: Strides, scope: Scope) -> bool:
        value = (*op.operands, *op.results)[position]
        return is_contiguous(tensor_type(value).dims, strides, scope)

    def emit(self, launch: Launch[ExternalOp]) -> Emission:
        op, kind = launch.op, launch.target.kind
        symbols = symbols_of(launch.scope)
        operator = op.instance()
        ins = [CppTensor(f"in{i}", a, symbols) for i, a in enumerate(launch.ins)]
        outs = [CppTensor(f"out{i}", a, symbols) for i, a in enumerate(launch.outs)]
        operator.inputs, operator.outputs = ins, outs
        operator._attrs["name"] = function = f"{self.operator}_{_digest(launch)}"
        functions = functions_of(self.operator, kind)
        if type(operator).gen_function is Operator.gen_function:
            raise OperatorError(f"the class of {self.operator} has no gen_function, which returns its source")
        with CurrentTarget(kind, launch.target.arch):
            source = _text("gen_function", operator.gen_function)
            declaration = _text("func_decl", lambda: get(f"{kind}.{self.operator}.func_decl")(operator._attrs))
            call = _text("func_call", lambda: get(f"{kind}.{self.operator}.func_call")(operator._attrs, indent="  "))
        if function not in source:
            raise OperatorError(
                f"{kind}.{self.operator}.gen_function does not define the function {function}; it has to have the name "
                'func_attrs["name"]'
            )
        file = next((f.__code__.co_filename for f in functions.values() if hasattr(f, "__code__")), "")
        variables = ["[[maybe_unused]] auto stream = ait::external::stream(ctx);"]
        for tensor in (*ins, *outs):
            variables.append(f"[[maybe_unused]] auto* {tensor.name} = ait::external::pointer({tensor.arg.name});")
            for dim, expr in zip(tensor.cpp_dims, tensor.type.dims, strict=True):
                variables.append(f"[[maybe_unused]] int64_t {dim} = {launch.cpp(expr)};")
        if sizes := [a.type.num_elements() for a in launch.outs if not launch.scope.le(1, a.type.num_elements())]:
            variables.append(f"if ({' && '.join(f'({launch.cpp(e)}) == 0' for e in sizes)}) return 0;")
        body = "\n".join([*variables, "return ait::call_operator(ctx, [&](auto&&) {", located(call, file), "});\n"])
        includes = ("ait/external.h", *(("ait/gpu/gpu.h",) if launch.target.is_gpu else ()))
        return Emission(includes, "", body, f"{located(source, file)}\n{declaration}\n")


class CppTensor(Tensor):
    """A tensor for the functions of the registry: the names of the tensor and of its dims are C++ variables."""

    def __init__(self, name: str, arg: Arg, symbols: Symbols) -> None:
        self._attach(Block(arg_types=[arg.type]).args[0], symbols)
        self.name, self.arg = name, arg
        self.cpp_dims = [f"{name}_dim_{axis}" for axis in range(arg.type.rank)]

    def shape(self) -> list[IntVar]:
        return [_named(e, self.symbols, n) for e, n in zip(self.type.dims, self.cpp_dims, strict=True)]


class _CppDim(IntVar):
    cpp: str

    @property
    def name(self) -> str | None:
        return self.cpp


class _CppSize(_CppDim, IntImm):
    pass


def _named(expr: Expr, symbols: Symbols, name: str) -> IntVar:
    dim = object.__new__(_CppDim if expr.as_int() is None else _CppSize)
    dim.expr, dim.cpp = expr, name
    dim.symbols = IntVar.of(expr, symbols).symbols
    dim._attrs = IntVarAttrs(dim)
    return dim


def _digest(launch: Launch[ExternalOp]) -> str:
    """A digest that distinguishes the functions of an operator in one library."""
    op = launch.op
    parts = [op.name, launch.target.kind, *(f"{a.type} {a.strides}" for a in (*launch.ins, *launch.outs))]
    parts += [*map(str, op.properties.items()), *map(str, launch.dims.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


# ** rendering, and its errors **


def _text(what: str, function: Callable[[], Any]) -> str:
    """The text that an author's function returns; `OperatorError` with the line of the template if it fails."""
    try:
        text = function()
    except OperatorError:
        raise
    except Exception as error:
        raise OperatorError(f"{_place(error)}: {what} failed: {message_of(error)}") from error
    if not isinstance(text, str):
        raise OperatorError(f"{what} returned {text!r}; expected a string of C++")
    return text


def _place(error: BaseException) -> str:
    """The line of the template that failed, or else of the function."""
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [
        (frame, line)
        for frame, line in frames
        if not frame.f_code.co_filename.startswith(PACKAGE)
        and "/jinja2/" not in frame.f_code.co_filename
        and frame.f_code.co_filename != "<template>"
    ]
    if not own:
        return "the operator"
    frame, line = own[-1]
    file = frame.f_code.co_filename
    if (inside := template_line(error)) is None:
        return f"{file}:{line}"
    rendered = next((f.f_locals.get("self") for f, _ in frames if "/jinja2/" in f.f_code.co_filename), None)
    names = [name for name, value in {**frame.f_globals, **frame.f_locals}.items() if value is rendered]
    start = _start_of(file, names)
    return f"{file}:{line}: line {inside} of the template" if start is None else f"{file}:{start + inside - 1}"


def _start_of(file: str, names: Sequence[str]) -> int | None:
    """The line at which the text of a template starts: the string in the assignment to one of these names."""
    try:
        module = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets):
            for inner in ast.walk(node.value):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    return inner.lineno
    return None
