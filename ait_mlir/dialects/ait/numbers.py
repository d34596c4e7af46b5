"""Numbers in text: exact round trips, also of inf and nan."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, f64, i64
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

Number = float | int


def number_text(value: Number) -> str:
    """A number as the lexer reads it back, floats always with a point."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")


def number_attr(value: Number) -> Attribute:
    return IntegerAttr(value, i64) if isinstance(value, int) else FloatAttr(value, f64)


def parse_number_attr(parser: AttrParser) -> Attribute:
    """An integer, a float, `inf`, `-inf`, `nan`, `true` or `false`."""
    start = parser.pos
    negative = parser.parse_optional_punctuation("-") is not None
    for keyword in ("inf", "nan"):
        if parser.parse_optional_keyword(keyword) is not None:
            return FloatAttr(-math.inf if negative else float(keyword), f64)
    number = parser.parse_optional_number(allow_boolean=False)
    if number is None and not negative and (boolean := parser.parse_optional_boolean()) is not None:
        number = int(boolean)
    if number is None:
        parser.raise_error("a number expected")
    if isinstance(number, int) and abs(number) >= 1 << 63:
        parser.raise_error("the integer does not fit in 64 bits", start, parser.pos)
    return number_attr(-number if negative else number)


def parse_literal(parser: AttrParser) -> Attribute:
    """A number, or a list of numbers in square brackets."""
    if parser.parse_optional_punctuation("[") is None:
        return parse_number_attr(parser)
    if parser.parse_optional_punctuation("]") is not None:
        return ArrayAttr(())
    items = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_number_attr(parser))
    parser.parse_punctuation("]")
    return ArrayAttr(items)


def literal_values(attribute: Attribute) -> list[Number]:
    """The numbers of a literal; one for a splat."""
    items = attribute.data if isinstance(attribute, ArrayAttr) else (attribute,)
    return [a.value.data for a in items if isinstance(a, IntegerAttr | FloatAttr)]


def print_literal(printer: Printer, attribute: Attribute) -> None:
    texts = [number_text(v) for v in literal_values(attribute)]
    printer.print_string(f"[{', '.join(texts)}]" if isinstance(attribute, ArrayAttr) else texts[0])
