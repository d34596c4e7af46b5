"""Calls of functions of kernel libraries on tvm-ffi."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from ait_mlir.dialects.ait.base import PureOp, ResultTypes, check_expressions, check_name
from ait_mlir.dialects.ait.numbers import number_text, parse_number
from ait_mlir.dialects.ait.syntax import DIM, STRING, SYMBOL, Body, Flag, Prop, Syntax, parse_dim_in_parens
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import ShapeAttr, scope_of
from ait_mlir.dims import Expr

OPERAND = UnitAttr()
"""Stands for the next operand in `arguments`."""
RESULT = SymbolRefAttr("result")
"""Stands for the buffer of the next result."""
NONE = SymbolRefAttr("none")
"""Stands for an argument that is left out."""
SIZE = SymbolRefAttr("size")
"""Stands for the next number of `sizes`."""
WORKSPACE = SymbolRefAttr("workspace")
"""Stands for the workspace."""

Scalar: TypeAlias = Expr | int | float | bool | str | None
"""An argument that is not a tensor. An `Expr` is passed as its integer value in a run."""

_LIBRARY = re.compile(r"[A-Za-z_][A-Za-z0-9_.$-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_OWN_FUNCTIONS = ("ffi.", "testing.", "runtime.")
"""Prefixes of functions that tvm-ffi and programs on it register for themselves; some load files or take addresses."""


def refused_function(library: str | None, function: str) -> str | None:
    """The reason why a program may not call a function of the process; None if it may, and for a library's function."""
    if library is not None or not function.startswith(_OWN_FUNCTIONS):
        return None
    return (
        f"function {function!r} is one of tvm-ffi's own, which programs may not call: "
        "register a function of yours (tvm_ffi.register_global_func) under another name"
    )


@irdl_op_definition
class CallFfiOp(Cost, PureOp):
    """Call a function of a kernel library on tvm-ffi, which writes its results into tensors that it gets as arguments.

    The function gets its arguments in the order of the text, then a tensor for each result, then the workspace. Words
    in the list change this order: `result` stands for the tensor of the next result, `workspace` for the workspace. An
    argument is a tensor, `none`, `true`, `false`, a number, a text, or a dim expression in parentheses, which is passed
    as an integer. `workspace (BYTES)` asks for scratch memory, passed as a tensor of u8. Operands are row-major; with
    `strided` the function reads strides, and they may have any.

    `@NAME` is a library, which the compiler finds by name and records by the hash of its file (`sha256`). Without a
    library the function is one that the process has registered. Its results must depend only on its arguments, and it
    must return nothing. It runs on the stream that `TVMFFIEnvGetStream` returns.

    ```mlir
    %y = ait.call_ffi @my_kernels "scale"(%x, none, 0.5) : !ait.tensor<batch x 768 x f16>
    %z = ait.call_ffi @my_kernels "norm"(result, %x, 1e-06, workspace) workspace (4*b) : !ait.tensor<b x 8 x f16>
    ```
    """

    name = "ait.call_ffi"
    TAKES_STORED: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (
        Prop("workspace", DIM, optional=True),
        Flag("strided"),
        Prop("sha256", STRING, optional=True),
    )

    inputs = var_operand_def(Attribute)
    library = opt_prop_def(SymbolRefAttr)
    function = prop_def(StringAttr)
    arguments = prop_def(ArrayAttr)
    sizes = opt_prop_def(ShapeAttr)
    workspace = opt_prop_def(ShapeAttr)
    strided = opt_prop_def(UnitAttr)
    sha256 = opt_prop_def(StringAttr)
    outputs = var_result_def(Attribute)

    @classmethod
    def make(
        cls,
        library: str | None,
        function: str,
        arguments: Sequence[SSAValue | Scalar | Attribute],
        result_types: Sequence[Attribute],
        *,
        workspace: Expr | None = None,
        strided: bool = False,
    ) -> CallFfiOp:
        """The call of a function with values, scalars, `RESULT` and `WORKSPACE`."""
        return cls.create(
            operands=[a for a in arguments if isinstance(a, SSAValue)],
            result_types=result_types,
            properties=call_properties(library, function, arguments, workspace, strided),
        )

    @property
    def library_name(self) -> str | None:
        """The name of the library; None for a function that the process has registered."""
        return None if self.library is None else self.library.root_reference.data

    @property
    def workspace_bytes(self) -> Expr | None:
        return None if self.workspace is None else self.workspace.data[0]

    def all_arguments(self) -> list[Attribute]:
        """All arguments of the function in order, including results and workspace that the text leaves out."""
        given = list(self.arguments.data)
        if RESULT not in given:
            given += [RESULT] * len(self.results)
        if self.workspace is not None and WORKSPACE not in given:
            given.append(WORKSPACE)
        return given

    def infer_result_types(self) -> ResultTypes:
        for i, value in enumerate(self.operands):
            self.expect_tensor(value, f"operand {i}")
        if not self.results:
            raise self.fail(
                "has no results; the function writes its results into tensors, whose types follow the colon"
            )
        for i, value in enumerate(self.results):
            self.expect_tensor(value, f"result {i}")
        check_name(self, "function", self.function.data)
        if not self.function.data:
            raise self.fail("the function needs a name")
        if (reason := refused_function(self.library_name, self.function.data)) is not None:
            raise self.fail(reason)
        if self.library_name is not None and not _LIBRARY.fullmatch(self.library_name):
            raise self.fail(f"library {self.library_name!r}: expected letters, digits, '_', '.', '-' and '$'")
        if self.sha256 is not None and not _SHA256.fullmatch(self.sha256.data):
            raise self.fail(f"sha256 is {self.sha256.data!r}, expected 64 hexadecimal digits")
        if self.sha256 is not None and self.library is None:
            raise self.fail("sha256 is that of a library, but the function is one that the process has registered")
        self._check_arguments()
        return self.result_types

    def _check_arguments(self) -> None:
        scope = scope_of(self)
        counts: dict[Attribute, int] = dict.fromkeys((OPERAND, RESULT, SIZE, WORKSPACE), 0)
        sizes = () if self.sizes is None else self.sizes.data
        check_expressions(self, scope, sizes, "an argument")
        for i, a in enumerate(self.arguments.data):
            if a in counts:
                counts[a] += 1
            elif isinstance(a, StringAttr):
                check_name(self, f"argument {i}", a.data)
            elif a != NONE and not isinstance(a, IntegerAttr | FloatAttr):
                raise self.fail(
                    f"argument {i} is {a}, expected an operand, none, a number, a text, or a dim expression"
                )
        if counts[OPERAND] != len(self.operands):
            raise self.fail(f"has {len(self.operands)} operands, but its arguments name {counts[OPERAND]}")
        if counts[SIZE] != len(sizes):
            raise self.fail(f"has {len(sizes)} sizes, but its arguments name {counts[SIZE]}")
        if counts[RESULT] not in (0, len(self.results)):
            raise self.fail(
                f"has {len(self.results)} results, but 'result' stands {counts[RESULT]} times in its arguments: "
                "name each one, or none, to pass them after the other arguments"
            )
        if counts[WORKSPACE] > (0 if self.workspace is None else 1):
            raise self.fail(
                f"'workspace' stands {counts[WORKSPACE]} times in its arguments; expected it once at most, and "
                "'workspace (BYTES)' after them"
            )
        if self.workspace is not None:
            check_expressions(self, scope, self.workspace.data, "the workspace")
            if not scope.le(0, self.workspace.data[0]):
                raise self.fail(f"the workspace, {self.workspace.data[0]} bytes, is not proved to be at least 0")

    @classmethod
    def parse_body(cls, parser: Parser, body: Body) -> None:
        if (symbol := parser.parse_optional_symbol_name()) is not None:
            body.properties["library"] = SymbolRefAttr(symbol.data)
        body.properties["function"] = StringAttr(parser.parse_str_literal(" for the name of a function"))
        sizes: list[Expr] = []
        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: _parse_argument(parser, body, sizes)
        )
        body.segments.append(len(body.operands))
        body.properties["arguments"] = ArrayAttr(arguments)
        if sizes:
            body.properties["sizes"] = ShapeAttr(tuple(sizes))
        super().parse_body(parser, body)

    def print_body(self, printer: Printer) -> None:
        if self.library is not None:
            printer.print_string(" ")
            SYMBOL.print(printer, self.library)
        printer.print_string(" ")
        printer.print_string_literal(self.function.data)
        printer.print_string("(")
        operands, sizes = iter(self.operands), iter(() if self.sizes is None else self.sizes.data)
        for i, a in enumerate(self.arguments.data):
            printer.print_string(", " if i else "")
            if a == OPERAND:
                printer.print_ssa_value(next(operands))
            elif a == SIZE:
                printer.print_string(f"({next(sizes)})")
            else:
                _print_argument(printer, a)
        printer.print_string(")")
        super().print_body(printer)


_WORDS: dict[str, Attribute] = {
    "none": NONE,
    "true": BoolAttr.from_bool(True),
    "false": BoolAttr.from_bool(False),
    "result": RESULT,
    "workspace": WORKSPACE,
}


def _parse_argument(parser: Parser, body: Body, sizes: list[Expr]) -> Attribute:
    start = parser.pos
    if (operand := parser.parse_optional_unresolved_operand()) is not None:
        body.operands.append(operand)
        return OPERAND
    if (text := parser.parse_optional_str_literal()) is not None:
        return StringAttr(text)
    if parser.lexer.input.content[start : start + 1] == "(":
        sizes.append(parse_dim_in_parens(parser))
        return SIZE
    for word, attribute in _WORDS.items():
        if parser.parse_optional_keyword(word) is not None:
            return attribute
    number = parse_number(parser)
    return IntegerAttr(number, i64) if isinstance(number, int) else FloatAttr(number, f64)


def _print_argument(printer: Printer, a: Attribute) -> None:
    for word, attribute in _WORDS.items():
        if a == attribute:
            printer.print_string(word)
            return
    if isinstance(a, StringAttr):
        printer.print_string_literal(a.data)
    elif isinstance(a, IntegerAttr):
        printer.print_string(str(a.value.data))
    elif isinstance(a, FloatAttr):
        printer.print_string(number_text(a.value.data))


def call_properties(
    library: str | None,
    function: str,
    arguments: Sequence[SSAValue | Scalar | Attribute],
    workspace: Expr | None,
    strided: bool,
) -> dict[str, Attribute]:
    """The properties of a `CallFfiOp`."""
    found: dict[str, Attribute] = {
        "function": StringAttr(function),
        "arguments": ArrayAttr([argument(a) for a in arguments]),
    }
    if library is not None:
        found["library"] = SymbolRefAttr(library)
    if sizes := tuple(a for a in arguments if isinstance(a, Expr)):
        found["sizes"] = ShapeAttr(sizes)
    if workspace is not None:
        found["workspace"] = ShapeAttr((workspace,))
    if strided:
        found["strided"] = UnitAttr()
    return found


def argument(value: SSAValue | Scalar | Attribute) -> Attribute:
    """The attribute of an argument; `ValueError` for a value that cannot be an argument."""
    if isinstance(value, SSAValue):
        return OPERAND
    if isinstance(value, Attribute):
        return value
    if value is None:
        return NONE
    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise ValueError(f"the integer {value} is beyond 64 bits")
        return IntegerAttr(value, i64)
    return SIZE


def is_bool(a: Attribute) -> bool:
    """Whether a scalar argument is `true` or `false`."""
    return a in (_WORDS["true"], _WORDS["false"])


OPS = (CallFfiOp,)
