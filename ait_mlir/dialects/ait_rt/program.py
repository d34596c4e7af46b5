"""Kernels, and the program that launches them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.base import AitOp, ResultTypes, check_expressions, check_name
from ait_mlir.dialects.ait.ranks import Part, check_ranks
from ait_mlir.dialects.ait.syntax import (
    INT,
    STRING,
    SYMBOL,
    Group,
    Operand,
    Operands,
    Prop,
    Syntax,
    parse_dim_in_parens,
)
from ait_mlir.dialects.ait.types import DimsAttr, ShapeAttr, TensorType, scope_of
from ait_mlir.dialects.ait_rt.buffers import ConstantOp, DestinationOp, InputOp, check_writable
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, Scope

MAX_STREAMS = 16
"""The most streams of a program; the caller of a run provides stream 0."""


def _parse_dims(parser: Parser) -> DimsAttr:
    if parser.parse_optional_keyword("dims") is None:
        return DimsAttr(Scope.parse(""))
    return DimsAttr.parse_braces(parser)


def _print_dims(printer: Printer, dims: DimsAttr) -> None:
    if dims.data.dims:
        printer.print_string(f" dims {{{dims.data}}}")


@irdl_op_definition
class KernelOp(AitOp):
    """The computation of a launch as an op on tensors, and its provider. Launches of the same computation share a
    kernel.

    ```mlir
    ait_rt.kernel @relu_0 "native" {} (%a: !ait.tensor<batch x 768 x f16>) dims {batch = 1 to 64} {
      %0 = ait.relu %a : !ait.tensor<batch x 768 x f16>
      ait_rt.return %0 : !ait.tensor<batch x 768 x f16>
    }
    ```
    """

    name = "ait_rt.kernel"

    sym_name = prop_def(StringAttr)
    provider = prop_def(StringAttr)
    config = prop_def(DictionaryAttr)
    dims = prop_def(DimsAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, name: str, provider: str, config: DictionaryAttr, dims: Scope, body: Region) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "provider": StringAttr(provider),
                "config": config,
                "dims": DimsAttr(dims),
            },
            regions=[body],
        )

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def scope(self) -> Scope:
        return self.dims.data

    def compute_op(self) -> Operation:
        """The `ait` op that the kernel computes."""
        op = self.block.first_op
        assert op is not None
        return op

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        provider = StringAttr(parser.parse_str_literal())
        config = DictionaryAttr(parser.parse_optional_attr_dict())
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        dims = _parse_dims(parser)
        body = parser.parse_region(arguments)
        return cls.create(
            properties={"sym_name": name, "provider": provider, "config": config, "dims": dims}, regions=[body]
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" ")
        printer.print_string_literal(self.provider.data)
        printer.print_string(" ")
        printer.print_attr_dict(self.config.data)
        printer.print_string(" (")
        printer.print_list(self.block.args, printer.print_block_argument)
        printer.print_string(")")
        _print_dims(printer, self.dims)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    def verify_(self) -> None:
        ops = list(self.block.ops)
        if len(ops) != 2 or not isinstance(ops[1], ReturnOp):
            raise self.fail(f"@{self.sym_name.data} must hold one op and ait_rt.return, it holds {len(ops)} ops")
        if list(ops[0].operands) != list(self.block.args):
            raise self.fail(f"the op of @{self.sym_name.data} must take the kernel's arguments in order")
        if list(ops[1].operands) != list(ops[0].results):
            raise self.fail(f"@{self.sym_name.data} must return the results of its op in order")

    def infer_result_types(self) -> ResultTypes:
        return []


@irdl_op_definition
class ReturnOp(AitOp):
    """End a kernel with its results.

    ```mlir
    ait_rt.return %0 : !ait.tensor<batch x 768 x f16>
    ```
    """

    name = "ait_rt.return"
    TAKES_STORED: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (Operands(),)
    OPERAND_TYPES: ClassVar[str] = "values"

    values = var_operand_def(TensorType)
    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[values])

    def infer_result_types(self) -> ResultTypes:
        return []


@irdl_op_definition
class ProgramOp(AitOp):
    """Buffers and launches in order; `arena` is the size in bytes of the memory that allocations share.

    With `streams if recorded`, only a run that is recorded into a graph uses several streams. Other runs launch all
    kernels on stream 0, in the order of the text, and need no events.

    ```mlir
    ait_rt.program @ffn dims {batch = 1 to 64} arena (batch * 6144) {
    }
    ait_rt.program @branches arena (6144) streams if recorded {
    }
    ```

    `ranks` are those of the graph: the program runs once on each rank, on its pieces of the tensors.
    """

    name = "ait_rt.program"

    sym_name = prop_def(StringAttr)
    dims = prop_def(DimsAttr)
    arena = prop_def(ShapeAttr)
    streams_if_recorded = opt_prop_def(UnitAttr)
    ranks = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def __init__(self, name: str, dims: Scope, arena: Expr, body: Region) -> None:
        super().__init__(
            properties={"sym_name": StringAttr(name), "dims": DimsAttr(dims), "arena": ShapeAttr((arena,))},
            regions=[body],
        )

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def scope(self) -> Scope:
        return self.dims.data

    @property
    def arena_size(self) -> Expr:
        return self.arena.data[0]

    def all_ops(self) -> Iterator[Operation]:
        """All ops of the program, including the ops in nested regions, in the order of the text."""
        return self.body.walk()

    def inputs(self) -> list[InputOp]:
        return [op for op in self.block.ops if isinstance(op, InputOp)]

    def outputs(self) -> list[DestinationOp]:
        return [op for op in self.block.ops if isinstance(op, DestinationOp)]

    def constants(self) -> list[ConstantOp]:
        return [op for op in self.all_ops() if isinstance(op, ConstantOp)]

    def launches(self) -> list[LaunchOp]:
        return [op for op in self.all_ops() if isinstance(op, LaunchOp)]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        dims = _parse_dims(parser)
        parser.parse_keyword("arena")
        arena = ShapeAttr((parse_dim_in_parens(parser),))
        properties: dict[str, Attribute] = {"sym_name": name, "dims": dims, "arena": arena}
        if parser.parse_optional_keyword("streams") is not None:
            parser.parse_keyword("if")
            parser.parse_keyword("recorded")
            properties["streams_if_recorded"] = UnitAttr()
        if parser.parse_optional_keyword("ranks") is not None:
            properties["ranks"] = DictionaryAttr(parser.parse_optional_attr_dict())
        body = parser.parse_region()
        if not body.blocks:
            body.add_block(Block())
        return cls.create(properties=properties, regions=[body])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        _print_dims(printer, self.dims)
        when = "" if self.streams_if_recorded is None else "streams if recorded "
        printer.print_string(f" arena ({self.arena_size}) {when}")
        if self.ranks is not None:
            printer.print_string("ranks ")
            printer.print_attr_dict(self.ranks.data)
            printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        check_name(self, "program", self.sym_name.data)
        if len(self.arena.data) != 1:
            raise VerifyException(f"the arena has {len(self.arena.data)} sizes, expected one")
        check_expressions(self, self.scope, (self.arena_size,), "the arena")
        for kind in (InputOp, DestinationOp):
            seen: set[str] = set()
            for op in self.block.ops:
                if isinstance(op, kind):
                    check_name(self, "buffer", op.buffer_name.data)
                    if op.buffer_name.data in seen:
                        raise self.fail(f"two buffers of one kind are named {op.buffer_name.data!r}")
                    seen.add(op.buffer_name.data)
        self.check_donated()
        check_ranks(self, self.named_tensors())

    def named_tensors(self) -> Iterator[tuple[Part, str, TensorType]]:
        """The callers' tensors and the params, by part and name."""
        for op in (*self.inputs(), *self.outputs()):
            part: Part = "inputs" if isinstance(op, InputOp) else "outputs"
            yield part, op.buffer_name.data, TensorType.get(op.dims, op.buffer_type.element_type)
        for constant in self.constants():
            for name, dims in constant.param_dims():
                yield "params", name, TensorType.get(dims, constant.buffer_type.element_type)

    def check_donated(self) -> None:
        """Raise unless exactly one output is in place of each donated input."""
        for op in self.inputs():
            if op.is_state:
                takers = [use.operation for use in op.buffer.uses if isinstance(use.operation, DestinationOp)]
                if len(takers) != 1:
                    name, count = op.buffer_name.data, len(takers)
                    raise self.fail(f"input {name!r} is donated, and {count} outputs take its place, expected 1")

    def infer_result_types(self) -> ResultTypes:
        return []


@irdl_op_definition
class LaunchOp(AitOp):
    """Run a kernel on buffers: `ins` are its arguments, `outs` receive its results, `workspace` is scratch memory or
    empty. Launches on one stream run one after the other; the caller of a run provides stream 0. Launches on different
    streams may overlap unless events order them (`ait_rt.record`, `ait_rt.wait`). Loops are on stream 0.

    `masked "count" by %n`: the kernel reads the value of the bound dim `count` from `%n` in device memory, so the host
    does not wait for it. Grid and buffers have the size for the largest value.

    ```mlir
    ait_rt.launch @relu_0 ins(%x) outs(%y) workspace() stream 0
    ait_rt.launch @relu_1 ins(%y) outs(%z) workspace() masked "count" by %n stream 0
    ```
    """

    name = "ait_rt.launch"
    SYNTAX: ClassVar[Syntax] = (
        Prop("kernel", SYMBOL, ""),
        Group("ins", "ins"),
        Group("outs", "outs"),
        Group("workspace", "workspace"),
        Prop("masked", STRING, optional=True),
        Operand("count", "by", optional=True),
        Prop("stream", INT),
    )
    SEGMENTED: ClassVar[bool] = True

    ins = var_operand_def(BufferType)
    outs = var_operand_def(BufferType)
    workspace = var_operand_def(BufferType)
    count = opt_operand_def(BufferType)
    kernel = prop_def(FlatSymbolRefAttrConstr)
    masked = opt_prop_def(StringAttr)
    stream = prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self, kernel: str, ins: Sequence[SSAValue], outs: Sequence[SSAValue], workspace: Sequence[SSAValue] = ()
    ) -> None:
        super().__init__(
            operands=[ins, outs, workspace, []],
            properties={"kernel": SymbolRefAttr(kernel), "stream": IntegerAttr(0, i64)},
        )

    @property
    def kernel_name(self) -> str:
        return self.kernel.root_reference.data

    @property
    def on(self) -> int:
        """The number of the launch's stream."""
        return self.stream.value.data

    def mask(self, dim: str, count: SSAValue) -> None:
        """Let the kernel read the value of a bound dim from `count`."""
        sizes = [len(self.ins), len(self.outs), len(self.workspace), 1]
        self.operands = [*self.ins, *self.outs, *self.workspace, count]
        self.properties |= {"masked": StringAttr(dim), "operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)}

    def verify_(self) -> None:
        if not 0 <= self.on < MAX_STREAMS:
            raise self.fail(f"stream {self.on}, expected a number from 0 to {MAX_STREAMS - 1}")
        program = program_around(self)
        if self.on != 0 and self.parent_op() is not program:
            raise self.fail(f"stream {self.on} in a loop, the launches of which are all on stream 0")
        module = None if program is None else program.parent_op()
        if module is None:
            return
        kernel = kernel_named(self.kernel_name, module) if module.has_trait(SymbolTable) else None
        if kernel is None:
            raise self.fail(f"no kernel @{self.kernel_name} in this module")
        for what, values, types in (
            ("in", self.ins, kernel.block.arg_types),
            ("out", self.outs, kernel.compute_op().result_types),
        ):
            if len(values) != len(types):
                raise self.fail(f"@{self.kernel_name} has {len(types)} {what}s, the launch gives {len(values)}")
            for i, (value, t) in enumerate(zip(values, types, strict=True)):
                found = value.type
                if not isinstance(found, BufferType) or found.tensor() != t:
                    raise self.fail(f"{what} {i} of @{self.kernel_name} is {t}, the launch gives {found}")
        for value in (*self.outs, *self.workspace):
            check_writable(self, value)
        self.check_mask()
        if program is not None:
            self.check_ranges(kernel, program.scope)

    def check_mask(self) -> None:
        """Raise unless `masked` and `by` name a bound dim and an i64 number."""
        if (self.masked is None) != (self.count is None):
            raise self.fail("'masked \"DIM\"' and 'by %n' belong together: which dim, and where its value lies")
        if self.masked is None or self.count is None:
            return
        name, t = self.masked.data, self.count.type
        if not isinstance(t, BufferType) or t.rank or t.element_type != i64:
            raise self.fail(f"the value of {name!r} is a number of type i64, got {t}")
        if name not in {d.name for d in scope_of(self).bound}:
            raise self.fail(f"{name!r} is no dim that an op binds; declare it as '{name} = 0 to MOST bound'")

    def check_ranges(self, kernel: KernelOp, scope: Scope) -> None:
        """Raise unless the kernel's dims cover all values that the program's dims may have."""
        for d in kernel.scope.dims:
            if d.name not in scope:
                raise self.fail(f"@{self.kernel_name} needs dim {d.name!r}, which the program does not declare")
            low, high = scope[d.name].lo, scope[d.name].hi
            if low < d.lo or high > d.hi:
                raise self.fail(
                    f"@{self.kernel_name} is for {d.name} = {d.lo} to {d.hi}, the program has {low} to {high}"
                )

    def infer_result_types(self) -> ResultTypes:
        return []


def kernel_named(name: str, module: Operation) -> KernelOp | None:
    """The kernel of this name in a module, or None; much faster than `SymbolTable.lookup_symbol`."""
    for op in module.regions[0].block.ops:
        symbol = op.properties.get("sym_name") if isinstance(op, KernelOp) else None
        if isinstance(symbol, StringAttr) and symbol.data == name:
            return cast(KernelOp, op)
    return None


def program_around(op: Operation) -> ProgramOp | None:
    """The program that contains an op, directly or in loops; None outside of a program."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, ProgramOp):
        parent = parent.parent_op()
    return parent


OPS = (KernelOp, ReturnOp, ProgramOp, LaunchOp)
