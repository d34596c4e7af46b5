"""Loops of launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import irdl_op_definition, prop_def, region_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator

from ait_mlir.dialects.ait.base import AitOp, ResultTypes, check_expressions
from ait_mlir.dialects.ait.operands import parse_operands_in_parens, resolve
from ait_mlir.dialects.ait.syntax import parse_dim_in_parens
from ait_mlir.dialects.ait.types import Induction, InductionAttr, scope_of
from ait_mlir.dialects.ait_rt.buffers import AllocOp, ConstantOp, NamedBufferOp
from ait_mlir.dialects.ait_rt.program import KernelOp, ProgramOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import DimError, Expr, check_name


@irdl_op_definition
class LoopOp(AitOp):
    """Run launches once for each value of an induction dim, from 0 on, in order.

    Offsets of the views in it may use the induction dim; shapes may not. An allocation in it is empty at the start of a
    step. `carry` lists the outer allocations that pass values from one step to the next. Other buffers from outside are
    only read, or each step writes its own part. The length is a dim expression, so the host knows it before the run.

    ```mlir
    ait_rt.loop step to (seq) carry(%c) {
      %x0 = ait_rt.view %x offset (step*768) strides [768, 1] : !ait_rt.buffer<1 x 768 x f16>
    }
    ```
    """

    name = "ait_rt.loop"

    carry = var_operand_def(BufferType)
    induction = prop_def(InductionAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, name: str, count: Expr, carry: Sequence[SSAValue], body: Region) -> None:
        super().__init__(
            operands=[carry], properties={"induction": InductionAttr(Induction(name, count))}, regions=[body]
        )

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def step(self) -> str:
        """The name of the induction dim."""
        return self.induction.data.name

    @property
    def count(self) -> Expr:
        """The number of steps."""
        return self.induction.data.count

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_identifier("the name of the induction dim")
        parser.parse_keyword("to")
        count = parse_dim_in_parens(parser)
        carry: list[SSAValue] = []
        if parser.parse_optional_keyword("carry") is not None:
            carry = [resolve(parser, o) for o in parse_operands_in_parens(parser)]
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region()
        if not body.blocks:
            body.add_block(Block())
        return cls.create(
            operands=carry,
            properties={"induction": InductionAttr(Induction(name, count))},
            attributes=dict(attributes.data) if attributes is not None else {},
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.step} to ({self.count})")
        if self.carry:
            printer.print_string(" carry(")
            printer.print_list(self.carry, printer.print_ssa_value)
            printer.print_string(")")
        if self.attributes:
            printer.print_string(" attributes")
            printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        scope = scope_of(self.parent_op())
        try:
            check_name(self.step)
        except DimError as error:
            raise self.fail(str(error)) from None
        if self.step in scope:
            raise self.fail(f"the induction dim {self.step!r} is declared around the loop; give it another name")
        check_expressions(self, scope, (self.count,), "the length")
        if not scope.le(0, self.count):
            raise self.fail(f"the length {self.count} is not proved to be at least 0")
        for value in self.carry:
            if not isinstance(value.owner, AllocOp):
                raise self.fail("carries values between steps in allocations only")
        for op in self.block.ops:
            if isinstance(op, ConstantOp | NamedBufferOp | KernelOp | ProgramOp):
                raise self.fail(f"holds {op.name}, which stands outside of loops")
            for result in op.results:
                t = result.type
                if isinstance(t, BufferType) and any(self.step in e.symbols for e in t.dims):
                    raise self.fail(f"{t} has a dim that changes from step to step")

    def infer_result_types(self) -> ResultTypes:
        return []


def program_ops(block: Block) -> Iterator[Operation]:
    """The ops of a program's block in order, and after each loop the ops in it."""
    for op in block.ops:
        yield op
        if isinstance(op, LoopOp):
            yield from program_ops(op.block)


def loops_around(op: Operation) -> list[LoopOp]:
    """The loops that an op is in, outermost first."""
    found: list[LoopOp] = []
    parent = op.parent_op()
    while isinstance(parent, LoopOp):
        found.append(parent)
        parent = parent.parent_op()
    return found[::-1]


OPS = (LoopOp,)
