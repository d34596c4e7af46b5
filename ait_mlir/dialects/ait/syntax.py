"""The text of an op's body: a table of clauses, which the parser and the printer both use.

```python
SYNTAX = (Word("kind", KINDS), Operands(), Prop("dims", INTS), Prop("correction", INT, optional=True))
```
reads and prints `var %x dims [1, 2] correction 1`. A clause reads its part into a `Body` and prints it from the op,
after a space. An absent part prints nothing.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, SymbolRefAttr, UnitAttr, f64, i64
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.numbers import (
    literal_attr,
    number_attr,
    number_text,
    parse_literal,
    parse_number,
    parse_number_attr,
    print_literal,
)
from ait_mlir.dialects.ait.operands import parse_operands, parse_operands_in_parens, print_operands
from ait_mlir.dialects.ait.types import ShapeAttr, as_shape, parse_dims, scan_to, shape_text
from ait_mlir.dims import Expr
from ait_mlir.errors import Fix, fixing


@dataclass
class Body:
    """The parsed parts of an op, before its types are known."""

    op: str = "the op"
    """The op's name, for errors."""
    operands: list[UnresolvedOperand] = field(default_factory=list[UnresolvedOperand])
    properties: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    regions: list[Region] = field(default_factory=list[Region])
    segments: list[int] = field(default_factory=list[int])
    """The number of operands of each clause with operands."""

    def add_operands(self, operands: Sequence[UnresolvedOperand]) -> None:
        self.operands += operands
        self.segments.append(len(operands))


class Clause(ABC):
    """One part of a body."""

    @abstractmethod
    def parse(self, parser: Parser, body: Body) -> None:
        """Read the clause; errors point at the wrong text."""

    @abstractmethod
    def print(self, printer: Printer, op: Operation) -> None:
        """Print the clause in the form that `parse` reads."""

    def make(self, value: Any) -> Attribute | None:
        """The property of this clause from a Python value; None if the value leaves it out."""
        raise TypeError(f"{type(self).__name__} makes no property of {value!r}")


Syntax: TypeAlias = tuple[Clause, ...]
"""The clauses of a body, in order."""


def _parse_keyword(parser: Parser, keyword: str, optional: bool, body: Body) -> bool:
    """Parse the words of a keyword; returns whether an optional keyword is present."""
    first, *others = keyword.split()
    if parser.parse_optional_keyword(first) is None:
        if not optional:
            parser.raise_error(f"{body.op}: expected '{keyword}'")
        return False
    for word in others:
        parser.parse_keyword(word)
    return True


# ** operands **


@dataclass(frozen=True)
class Operands(Clause):
    """`%a, %b`: the operands of these fields, or of all fields if `names` is empty."""

    names: tuple[str, ...] = ()

    def parse(self, parser: Parser, body: Body) -> None:
        body.add_operands(parse_operands(parser))

    def print(self, printer: Printer, op: Operation) -> None:
        print_operands(printer, values(op, self.names) if self.names else op.operands)


@dataclass(frozen=True)
class Operand(Clause):
    """`%a` or `KEYWORD %a`: the operand of a field, which may be optional."""

    name: str
    keyword: str = ""
    optional: bool = False

    def parse(self, parser: Parser, body: Body) -> None:
        there = not self.keyword or _parse_keyword(parser, self.keyword, self.optional, body)
        body.add_operands([parser.parse_unresolved_operand()] if there else [])

    def print(self, printer: Printer, op: Operation) -> None:
        if found := values(op, (self.name,)):
            printer.print_string(f" {self.keyword}" if self.keyword else "")
            print_operands(printer, found)


@dataclass(frozen=True)
class Several(Clause):
    """`KEYWORD %a, %b`, or nothing if `optional`: `count` operands of the field `name`; errors call them `what`. With
    `apart`, each is a field of its own, and `name` is a property with all of them.
    """

    name: str
    count: int
    what: str
    optional: bool = False
    apart: bool = False

    def parse(self, parser: Parser, body: Body) -> None:
        found: list[UnresolvedOperand] = []
        if parser.parse_optional_keyword(self.name) is None:
            if not self.optional:
                parser.raise_error(f"{body.op}: expected '{self.name}' with {self.what}")
        else:
            found = parse_operands(parser)
            if len(found) != self.count:
                parser.raise_error(f"expected {self.what} after '{self.name}', got {len(found)} operands")
        for each in [[value] for value in found] if self.apart else [found]:
            body.add_operands(each)

    def print(self, printer: Printer, op: Operation) -> None:
        if found := values(op, (self.name,)):
            printer.print_string(f" {self.name}")
            print_operands(printer, found)


@dataclass(frozen=True)
class Group(Clause):
    """`KEYWORD(%a, %b)`: the operands of a field, in parentheses; an optional group is left out when it is empty."""

    name: str
    keyword: str
    optional: bool = False

    def parse(self, parser: Parser, body: Body) -> None:
        there = _parse_keyword(parser, self.keyword, self.optional, body)
        body.add_operands(parse_operands_in_parens(parser) if there else [])

    def print(self, printer: Printer, op: Operation) -> None:
        found = values(op, (self.name,))
        if found or not self.optional:
            printer.print_string(f" {self.keyword}(")
            printer.print_list(found, printer.print_ssa_value)
            printer.print_string(")")


def values(op: Operation, names: Sequence[str]) -> list[SSAValue]:
    """The values of fields of an op; a field is one value, several, or None."""
    found: list[SSAValue] = []
    for name in names:
        value: SSAValue | Sequence[SSAValue] | None = getattr(op, name)
        found += [value] if isinstance(value, SSAValue) else value or ()
    return found


# ** properties **


@dataclass(frozen=True)
class Kind:
    """The kind of a property: how its value is parsed, printed, and made from a Python value."""

    parse: Callable[[Parser], Attribute]
    print: Callable[[Printer, Any], None]
    make: Callable[[Any], Attribute] | None = None


def _shape(parser: Parser) -> Attribute:
    text, start = scan_to(parser, "[", "]")
    return ShapeAttr(parse_dims(parser, text, start))


def scan_parens(parser: Parser) -> tuple[str, int]:
    """The raw text in parentheses, which may nest, and its offset; the parser resumes after it."""
    content = parser.lexer.input.content
    start = parser.pos
    if content[start : start + 1] != "(":
        parser.raise_error("'(' expected", start, start + 1)
    depth, end = 0, start
    for end in range(start, min(len(content), start + 100_000)):
        depth += (content[end] == "(") - (content[end] == ")")
        if depth == 0 or content[end] == "\n":
            break
    if depth != 0:
        parser.raise_error("no closing ')' on this line", start, start + 1)
    parser._resume_from(end + 1)  # pyright: ignore[reportPrivateUsage]
    return content[start + 1 : end], start + 1


def parse_dim_in_parens(parser: Parser) -> Expr:
    """`(batch * 1536)`; parentheses may nest."""
    text, start = scan_parens(parser)
    dims = parse_dims(parser, text, start)
    if len(dims) != 1:
        parser.raise_error("one dim expression expected", start - 1, start + len(text))
    return dims[0]


def parse_int_attr(parser: Parser) -> IntegerAttr:
    return IntegerAttr(parser.parse_integer(allow_boolean=False), i64)


def parse_int_list(parser: Parser) -> ArrayAttr[IntegerAttr]:
    items = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_int_attr(parser))
    return ArrayAttr(items)


def int_list(attribute: Attribute) -> tuple[int, ...]:
    """The integers of an array attribute."""
    if not isinstance(attribute, ArrayAttr):
        raise VerifyException(f"expected a list of integers, got {attribute}")
    items = cast("ArrayAttr[Attribute]", attribute).data
    return tuple(a.value.data if isinstance(a, IntegerAttr) else 0 for a in items)


def int_list_attr(values: Sequence[int]) -> ArrayAttr[IntegerAttr]:
    return ArrayAttr([IntegerAttr(v, i64) for v in values])


def print_int_list(printer: Printer, values: Sequence[int]) -> None:
    printer.print_string("[" + ", ".join(map(str, values)) + "]")


INT = Kind(
    parse_int_attr, lambda printer, a: printer.print_string(str(a.value.data)), lambda value: IntegerAttr(value, i64)
)
"""`128`"""
INTS = Kind(parse_int_list, lambda printer, a: print_int_list(printer, int_list(a)), int_list_attr)
"""`[0, 2, 1]`"""


def _number_or_bits(parser: Parser) -> Attribute:
    if parser.parse_optional_keyword("bits") is None:
        return FloatAttr(float(parse_number(parser)), f64)
    return ShapeAttr((parse_dim_in_parens(parser),))


def _print_number_or_bits(printer: Printer, attribute: Any) -> None:
    is_bits = isinstance(attribute, ShapeAttr)
    printer.print_string(f"bits({attribute.data[0]})" if is_bits else number_text(attribute.value.data))


NUMBER = Kind(_number_or_bits, _print_number_or_bits, lambda value: FloatAttr(float(value), f64))
"""`1e-05`, `inf`, `bits(eps)`: a number, or the positive f32 whose bits are a dim expression"""
SCALAR = Kind(parse_number_attr, print_literal, number_attr)
"""`6`, `0.5`: an integer stays one"""
SHAPE = Kind(
    _shape, lambda printer, a: printer.print_string(shape_text(a.data)), lambda value: ShapeAttr(as_shape(value))
)
"""`[0, seq - 1]`"""
STRING = Kind(
    lambda parser: StringAttr(parser.parse_str_literal()),
    lambda printer, a: printer.print_string_literal(a.data),
    StringAttr,
)
"""`"encoder.weight"`"""
DIM = Kind(
    lambda parser: ShapeAttr((parse_dim_in_parens(parser),)),
    lambda printer, a: printer.print_string(f"({a.data[0]})"),
)
"""`(batch * 1536)`: one dim expression"""
SYMBOL = Kind(
    lambda parser: SymbolRefAttr(parser.parse_symbol_name().data),
    lambda printer, a: printer.print_symbol_name(a.root_reference.data),
)
"""`@relu_0`"""
LITERAL = Kind(parse_literal, print_literal, literal_attr)
"""`0.5`, `[1, 2, 3]`"""


@dataclass(frozen=True)
class Prop(Clause):
    """`KEYWORD VALUE`: a property. By default the keyword is its name; `""` means no keyword."""

    name: str
    kind: Kind
    keyword: str | None = None
    optional: bool = False

    def parse(self, parser: Parser, body: Body) -> None:
        keyword = self.name if self.keyword is None else self.keyword
        if not keyword or _parse_keyword(parser, keyword, self.optional, body):
            body.properties[self.name] = self.kind.parse(parser)

    def print(self, printer: Printer, op: Operation) -> None:
        if (value := op.properties.get(self.name)) is not None:
            keyword = self.name if self.keyword is None else self.keyword
            printer.print_string(f" {keyword} " if keyword else " ")
            self.kind.print(printer, value)

    def make(self, value: Any) -> Attribute | None:
        return super().make(value) if self.kind.make is None else self.kind.make(value)


@dataclass(frozen=True)
class Flag(Clause):
    """`KEYWORD` or nothing: a unit property. By default the keyword is its name."""

    name: str
    keyword: str = ""

    def parse(self, parser: Parser, body: Body) -> None:
        if _parse_keyword(parser, self.keyword or self.name, True, body):
            body.properties[self.name] = UnitAttr()

    def print(self, printer: Printer, op: Operation) -> None:
        if self.name in op.properties:
            printer.print_string(f" {self.keyword or self.name}")

    def make(self, value: Any) -> Attribute | None:
        return UnitAttr() if value else None


TF32 = Flag("tf32")
"""Whether operands of f32 may be rounded to TF32."""


def rounding(op: Operation) -> dict[str, Attribute]:
    """The property of an op by which operands of f32 may be rounded, for an op that replaces it."""
    return {TF32.name: UnitAttr()} if TF32.name in op.properties else {}


def _likeness(a: str, b: str) -> tuple[float, int]:
    """How much a word resembles another one: by the letters in common, then by those at the same places."""
    return difflib.SequenceMatcher(None, a, b).ratio(), sum(x == y for x, y in zip(a, b, strict=False))


@dataclass(frozen=True)
class Word(Clause):
    """One word out of a list, stored as a string property."""

    name: str
    choices: Sequence[str]
    what: str = ""
    """The description of the word in errors: `a layout, `."""

    def parse(self, parser: Parser, body: Body) -> None:
        start = parser.pos
        word = parser.parse_identifier()
        if word not in self.choices:
            near = sorted(self.choices, key=lambda choice: _likeness(choice, word), reverse=True)[:4]
            with fixing(*(Fix(f"write {choice}", choice) for choice in near)):
                parser.raise_error(f"expected {self.what}one of {', '.join(self.choices)}", start, start + len(word))
        body.properties[self.name] = StringAttr(word)

    def print(self, printer: Printer, op: Operation) -> None:
        word = op.properties[self.name]
        assert isinstance(word, StringAttr)
        printer.print_string(f" {word.data}")

    def make(self, value: Any) -> Attribute | None:
        return StringAttr(value)


def properties_of(op_class: type[Operation], syntax: Syntax, values: Mapping[str, Any]) -> dict[str, Attribute]:
    """The properties of an op from Python values, by its clauses; None, or False for a flag, leaves a property out.

    Attributes stay as they are. Raises `TypeError` for a name that has no clause.
    """
    clauses = {clause.name: clause for clause in syntax if isinstance(clause, Prop | Flag | Word)}
    found: dict[str, Attribute] = {}
    for name, value in values.items():
        if value is not None and not isinstance(value, Attribute):
            if name not in clauses:
                raise TypeError(f"{op_class.name} has no clause for {name}={value!r}; it has {', '.join(clauses)}")
            value = clauses[name].make(value)
        if value is not None:
            found[name] = value
    return found


# ** regions **


@dataclass(frozen=True)
class RegionClause(Clause):
    """`KEYWORD(%a, %b) { ... }` or nothing: a region with the operands of a field. If it is absent, the op has an empty
    region, or no region if it is `optional`. Without a keyword the region is required."""

    operands: str
    keyword: str = ""
    optional: bool = False

    def parse(self, parser: Parser, body: Body) -> None:
        if self.keyword and parser.parse_optional_keyword(self.keyword) is None:
            body.add_operands([])
            body.regions += [] if self.optional else [Region()]
            return
        body.add_operands(parse_operands_in_parens(parser))
        body.regions.append(parser.parse_region())

    def print(self, printer: Printer, op: Operation) -> None:
        region: Region = getattr(op, self.keyword or "body")
        if not region.blocks:
            return
        printer.print_string(f" {self.keyword}(" if self.keyword else "(")
        printer.print_list(values(op, (self.operands,)), printer.print_ssa_value)
        printer.print_string(") ")
        printer.print_region(region)


@dataclass(frozen=True)
class PlainRegion(Clause):
    """`{ ... }`: a region whose block names its own arguments."""

    name: str = "body"

    def parse(self, parser: Parser, body: Body) -> None:
        body.regions.append(parser.parse_region())

    def print(self, printer: Printer, op: Operation) -> None:
        printer.print_string(" ")
        printer.print_region(getattr(op, self.name))
