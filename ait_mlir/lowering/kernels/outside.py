"""Kernels of operators from outside of the package: the author's C++, and the code that calls it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.foreign import CallFfiOp
from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.outside import fields, python_values
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.errors import InputError
from ait_mlir.host.kernel_libraries import KernelLibrary, add_kernel_library, find_kernel_library
from ait_mlir.lowering.authored import Cpp, Ffi, call_comment, cpp_value
from ait_mlir.lowering.cpp import element_type, identifier
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.foreign import ForeignKernel
from ait_mlir.outside import OperatorError, row_of, rows

SourceT = TypeVar("SourceT", Cpp, Ffi)


class OutsideKernel(Kernel[Any], Generic[SourceT]):
    """Base of the kernels of operators from outside: each runs one operator on one kind of target."""

    provider = "outside"
    ops = (AitOp,)

    def __init__(self, op_class: type[AitOp], kind: str, source: SourceT) -> None:
        self.op_class, self.kind, self.source = op_class, kind, source
        self.name = identifier(op_class.name.replace(".", "_"))  # pyright: ignore[reportAttributeAccessIssue]

    def targets(self) -> list[str]:
        return [self.kind]

    def matches(self, op: AitOp, target: Target) -> bool:
        return isinstance(op, self.op_class) and target.kind == self.kind

    def accepts(self, op: AitOp, position: int, strides: Strides, scope: Scope) -> bool:
        value = (*op.operands, *op.results)[position]
        return self.source.strided or is_contiguous(tensor_type(value).dims, strides, scope)


class CppKernel(OutsideKernel[Cpp]):
    """Runs an operator from outside by a function of its author's C++."""

    def workspace(self, op: AitOp, config: Config) -> Expr:
        if self.source.workspace is None:
            return const(0)
        size = self.source.workspace(op)
        return const(size) if isinstance(size, int) else size

    def emit(self, launch: Launch[AitOp]) -> Emission:
        op = launch.op
        operands = list(launch.ins)
        arguments = ["ctx"]
        for _, values, _ in fields(op):
            arguments += [tensor(operands.pop(0), launch, constant=True) for _ in values] or ["nullptr"]
        arguments += [tensor(out, launch, constant=False) for out in launch.outs]
        for value in python_values(op).values():
            dims = [v for v in cast("list[object]", value) if isinstance(v, Expr)] if isinstance(value, list) else []
            arguments.append(_dims(dims, launch) if dims else cpp_value(value))
        if self.source.workspace is not None:
            arguments.append("workspace")
        function = identifier(self.source.function or op.name.rpartition(".")[2])
        text = self.source.render(variables(op, launch.target))
        if not re.search(rf"\b{function}\b", text):
            raise OperatorError(
                f"{self.source.place}: the kernel has no function {function!r}; call it so, or name it: "
                f"{type(self.source).__name__}(..., function='NAME')"
            )
        includes = ("ait/operator.h", "ait/math.h", *(("ait/gpu/gpu.h",) if launch.target.is_gpu else ()))
        call = ", ".join(arguments)
        return Emission(
            includes,
            "",
            f"{call_comment(op, launch.target.kind)}\n"
            f"return ait::call_operator(ctx, [&](const auto& ctx) {{ return {function}({call}); }});\n",
            text,
        )


class FfiKernel(OutsideKernel[Ffi]):
    """Runs an operator from outside by a function on tvm-ffi, as `ait.call_ffi` does."""

    alone = True

    def kernel_library(self) -> KernelLibrary | None:
        """The library of the function; `OperatorError` if it is missing or has no such function."""
        source = self.source
        if source.library is None:
            return None
        try:
            if source.path is not None:
                add_kernel_library(source.library, source.path)
            library = find_kernel_library(source.library)
        except InputError as error:
            raise OperatorError(f"the kernel of {self.op_class.name} for {self.kind}: {error}") from error
        if source.function not in library.functions:
            raise OperatorError(
                f"the kernel of {self.op_class.name} for {self.kind}: {library.path} has no function "
                f"{source.function!r}; it has {', '.join(library.functions)}"
            )
        return library

    def emit(self, launch: Launch[AitOp]) -> Emission:
        op, library = launch.op, self.kernel_library()
        arguments: list[Any] = []
        for _, values, _ in fields(op):
            arguments += values or [None]
        for name, value in python_values(op).items():
            if isinstance(value, list):
                raise OperatorError(f"{op.name}: a function on tvm-ffi cannot be given the list {name}")
            arguments.append(value)
        call = CallFfiOp.make(self.source.library, self.source.function, arguments, op.result_types)
        if library is not None:
            call.properties["sha256"] = StringAttr(library.sha256)
        try:
            return FOREIGN.emit(cast("Launch[CallFfiOp]", replace(launch, op=call)))
        finally:
            call.drop_all_references()


FOREIGN = ForeignKernel()


def called_library(op: Operation, target: Target) -> KernelLibrary | None:
    """The kernel library that an operator from outside calls on this target; None if its kernel calls none."""
    found = [k for k in kernels_from_outside(type(op)) if isinstance(k, FfiKernel) and k.kind == target.kind]
    return found[0].kernel_library() if found else None


def tensor(arg: Arg, launch: Launch[Any], constant: bool) -> str:
    """A buffer as an `ait::Tensor`."""
    t = arg.type
    kind = f"{'const ' if constant else ''}{element_type(t.element_type)}"
    return f"ait::Tensor<{kind}, {t.rank}>{{{arg.name}, {{{launch.cpp(*t.dims)}}}, {{{launch.cpp(*arg.strides)}}}}}"


def _dims(dims: Sequence[Expr], launch: Launch[Any]) -> str:
    return f"std::array<int64_t, {len(dims)}>{{{launch.cpp(*dims)}}}"


class TensorValue:
    """The value of a template's variable for an operand or result, with `dtype`, `rank` and `shape`."""

    def __init__(self, value: SSAValue) -> None:
        t = tensor_type(value)
        self.dtype, self.rank = str(element_type(t.element_type)), t.rank
        self.shape = [dim.as_int() for dim in t.dims]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise OperatorError(f"a tensor has dtype, rank and shape, but no {name}")


def variables(op: AitOp, target: Target) -> dict[str, Any]:
    """The variables of a template: operands, results and properties by name, and the target."""
    found: dict[str, Any] = {"target": target.kind, "arch": target.arch}
    for name, values, several in fields(op):
        made = [TensorValue(value) for value in values]
        found[name] = made if several else made[0] if made else None
    for (name, _), value in zip(type(op).get_irdl_definition().results, op.results, strict=False):
        found[name] = TensorValue(value)
    return found | python_values(op)


def advice(op: Operation, target: Target) -> str | None:
    """The advice of an error message about an operator from outside without a kernel; None for other ops."""
    if (row := row_of(type(op))) is None:
        return None
    kinds = [kind for kernel in row.kernels for kind in kernel.targets()]
    has = f"it has kernels for {', '.join(kinds)}" if kinds else "it has no kernels"
    return f"{has}; add one for {target.kind} to its definition at {row.place}"


def kernels_from_outside(op_class: type[Operation]) -> tuple[Kernel[Any], ...]:
    """The kernels of an operator from outside; none for other ops."""
    row = rows().get(op_class.name)
    return row.kernels if row is not None and row.op is op_class else ()
