"""The text of operands and of the types after the colon."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from ait_mlir.errors import Fix, fixing

_NEAR = 200
"""So many values above an unknown one are compared with its name."""


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """`%a, %b` without parentheses."""
    return (
        parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        or []
    )


def parse_operands_in_parens(parser: Parser) -> list[UnresolvedOperand]:
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)


def print_operands(printer: Printer, operands: Sequence[SSAValue]) -> None:
    if operands:
        printer.print_string(" ")
        printer.print_list(operands, printer.print_ssa_value)


def resolve(parser: Parser, operand: UnresolvedOperand) -> SSAValue:
    """The value of an operand; an error if it is not defined above."""
    values = parser.ssa_values.get(operand.operand_name)
    if values is None:
        above = list(parser.ssa_values)[-_NEAR:]
        near = difflib.get_close_matches(operand.operand_name, above, 1)
        hint = f"; did you mean %{near[0]}?" if near else ""
        near = near or above[:-3:-1]
        with fixing(*(Fix(f"write %{name}", f"%{name}") for name in near)):
            parser.raise_error(f"%{operand.operand_name} is not defined above this op{hint}", operand.span)
    if operand.index >= len(values):
        parser.raise_error(f"%{operand.operand_name} has {len(values)} results, no #{operand.index}", operand.span)
    return values[operand.index]


def parse_signature(parser: Parser) -> tuple[Sequence[Attribute] | None, Sequence[Attribute]]:
    """`: R, R` or `: (T, T) -> R` or nothing: operand types if given, and result types."""
    if parser.parse_optional_punctuation(":") is None:
        return None, ()
    if parser.parse_optional_punctuation("(") is None:
        results = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if parser.parse_optional_punctuation("->") is not None:
            at = parser.pos - len("->")
            parser.raise_error(
                "types of operands need parentheses: write `: (OPERANDS) -> RESULT`, or `: RESULT` alone", at, at + 2
            )
        return None, results
    operand_types: list[Attribute] = []
    if parser.parse_optional_punctuation(")") is None:
        operand_types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        parser.parse_punctuation(")")
    parser.parse_punctuation("->")
    if parser.parse_optional_punctuation("(") is None:
        return operand_types, parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    results = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return operand_types, results
