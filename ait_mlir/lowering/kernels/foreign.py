"""Calls of functions of kernel libraries: the runtime library makes them through tvm-ffi."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, f64
from xdsl.ir import Attribute

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.foreign import OPERAND, RESULT, SIZE, WORKSPACE, CallFfiOp, is_bool
from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.lowering.cpp import cstr, literal
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides

_UINT, _BYTE = 1, 8
"""DLPack's type code of a workspace, unsigned integer, and its bits."""


class ForeignKernel(Kernel[CallFfiOp]):
    """`ait.call_ffi`. Operands and results are row-major, unless the function reads strides."""

    name = "call_ffi"
    ops = (CallFfiOp,)
    alone = True

    def accepts(self, op: CallFfiOp, position: int, strides: Strides, scope: Scope) -> bool:
        dims = tensor_type((*op.operands, *op.results)[position]).dims
        return op.strided is not None or is_contiguous(dims, strides, scope)

    def workspace(self, op: CallFfiOp, config: Config) -> Expr:
        return const(0) if op.workspace_bytes is None else op.workspace_bytes

    def emit(self, launch: Launch[CallFfiOp]) -> Emission:
        op = launch.op
        arrays, values = _arguments(launch)
        name = f"kernel_library:{_text(op.sha256)}:{op.library_name or ''}:{op.function.data}"
        return Emission(
            ("ait/ffi_service.h",),
            f"ait::Callee callee_@ID@{{{cstr(name)}}};\n",
            "".join(f"const int64_t {name}[] = {{{sizes}}};\n" for name, sizes in arrays.items())
            + f"const ait_ffi_value_v1 values[] = {{{', '.join(values)}}};\n"
            + "return ait::call_ffi(ctx, callee_@ID@, values);\n",
        )


def _text(attribute: StringAttr | None) -> str:
    return "" if attribute is None else attribute.data


def _arguments(launch: Launch[CallFfiOp]) -> tuple[dict[str, str], list[str]]:
    """Shapes and strides as C++ arrays by name, and the arguments in C++."""
    op = launch.op
    arrays: dict[str, str] = {}
    operands, results = iter(launch.ins), iter(launch.outs)
    sizes = iter(() if op.sizes is None else op.sizes.data)

    def tensor(a: Arg) -> str:
        d = BY_IR[a.type.element_type]
        places = ("nullptr", "nullptr")
        if a.type.rank:
            places = f"shape_{a.name}", f"strides_{a.name}"
            arrays.update(zip(places, (launch.cpp(*a.type.dims), launch.cpp(*a.strides)), strict=True))
        return f"ait::ffi_tensor({a.name}, {d.dlpack}, {8 * d.bytes}, {a.type.rank}, {', '.join(places)})"

    def scratch(size: Expr) -> str:
        arrays.update(shape_workspace=launch.cpp(size), strides_workspace="1")
        return f"ait::ffi_tensor(workspace, {_UINT}, {_BYTE}, 1, shape_workspace, strides_workspace)"

    values: list[str] = []
    for a in op.all_arguments():
        if a == OPERAND:
            values.append(tensor(next(operands)))
        elif a == RESULT:
            values.append(tensor(next(results)))
        elif a == SIZE:
            values.append(f"ait::ffi_int({launch.cpp(next(sizes))})")
        elif a == WORKSPACE and op.workspace_bytes is not None:
            values.append(scratch(op.workspace_bytes))
        else:
            values.append(_scalar(a))
    return arrays, values


def _scalar(a: Attribute) -> str:
    if isinstance(a, StringAttr):
        return f"ait::ffi_string({cstr(a.data)})"
    if isinstance(a, FloatAttr):
        return f"ait::ffi_float({literal(a.value.data, f64)})"
    if is_bool(a):
        return f"ait::ffi_bool({a})"
    if isinstance(a, IntegerAttr):
        return f"ait::ffi_int({_integer(a.value.data)})"
    return "ait::ffi_none()"


def _integer(value: int) -> str:
    """A 64-bit integer in C++; the smallest has no literal and becomes `INT64_MIN`."""
    return f"INT64_C({value})" if value > -(1 << 63) else "INT64_MIN"


KERNELS = (ForeignKernel(),)
