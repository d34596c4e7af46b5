"""Numbers in text: exact round trips, also of inf and nan."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, f64, i64
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

Number = float | int
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|inf|nan)(?![\w.])|true|false")


def number_text(value: Number) -> str:
    """The text of a number, which `parse_number` reads back exactly."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def number_attr(value: Number) -> Attribute:
    return IntegerAttr(value, i64) if isinstance(value, int) else FloatAttr(value, f64)


def literal_attr(value: Number | Sequence[Number]) -> Attribute:
    """The attribute of a number or of a list of numbers."""
    return number_attr(value) if isinstance(value, int | float) else ArrayAttr([number_attr(v) for v in value])


def parse_number(parser: AttrParser) -> Number:
    """Parse an integer, a float (`0.5`, `1e-05`), `inf`, `-inf`, `nan`, `true` or `false`.

    It reads the raw text, because MLIR's lexer reads `1e-05` as the integer 1 and a name.
    """
    start = parser.pos
    m = _NUMBER.match(parser.lexer.input.content, start)
    if m is None:
        parser.raise_error("a number expected")
    text = m.group()
    if text in ("true", "false"):
        number: Number = int(text == "true")
    elif text.lstrip("-").isdigit():
        if len(text) > 20 or not -(1 << 63) <= int(text) < 1 << 63:
            parser.raise_error("the integer does not fit in 64 bits", start, m.end())
        number = int(text)
    else:
        number = float(text)
        if math.isinf(number) and "inf" not in text:
            parser.raise_error("the number does not fit in 64 bits; infinity is written as inf", start, m.end())
    parser._resume_from(m.end())  # pyright: ignore[reportPrivateUsage]
    return number


def parse_number_attr(parser: AttrParser) -> Attribute:
    return number_attr(parse_number(parser))


def parse_literal(parser: AttrParser) -> Attribute:
    """Parse a number, or a list of numbers in square brackets."""
    if parser.parse_optional_punctuation("[") is None:
        return parse_number_attr(parser)
    if parser.parse_optional_punctuation("]") is not None:
        return ArrayAttr(())
    items = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_number_attr(parser))
    parser.parse_punctuation("]")
    return ArrayAttr(items)


def literal_values(attribute: Attribute) -> list[Number]:
    """The numbers of a literal; a splat has one."""
    items = cast("ArrayAttr[Attribute]", attribute).data if isinstance(attribute, ArrayAttr) else (attribute,)
    return [a.value.data for a in items if isinstance(a, IntegerAttr | FloatAttr)]


def print_literal(printer: Printer, attribute: Attribute) -> None:
    texts = [number_text(v) for v in literal_values(attribute)]
    printer.print_string(f"[{', '.join(texts)}]" if isinstance(attribute, ArrayAttr) else texts[0])
