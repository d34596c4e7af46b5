"""Converts text and types to generated C++: identifiers, strings, comments, numbers, element types.

Each function returns a `CppText`. Templates print only this type (`lowering/template.py`).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Mapping
from typing import SupportsIndex

from xdsl.ir import Attribute

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dims import Expr, Noted

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;()[]{}<>=+-*/%&|^~!@#$")
_COMMENT_UNSAFE = re.compile(r"[^A-Za-z0-9 _.,:;()\[\]{}<>=+\-*%&|^~!@#$'\"]")
_COMMENT_LIMIT = 200
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"ait/[a-z0-9_/]+\.(h|cuh)|\w+\.h")


class CppText(str):
    """Text that is C++. The functions of this file return it; code that generates C++ wraps its own text."""

    __slots__ = ()


def identifier(name: str) -> CppText:
    """A generated name; raises `ValueError` for text that is not an identifier."""
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"{name!r} is not a C++ identifier")
    return CppText(name)


def number(value: SupportsIndex) -> CppText:
    """An integer in decimal; raises `TypeError` for anything else."""
    return CppText(str(value.__index__()))


def numbers(values: Iterable[SupportsIndex]) -> CppText:
    """Integers with commas between them."""
    return CppText(", ".join(number(value) for value in values))


def dim(expr: Expr, names: Mapping[str, str]) -> CppText:
    """The `int64_t` expression of a dim expression; `names` are the C++ names of the dims."""
    if isinstance(names, Noted):
        names.note(expr)
    return CppText(expr.cpp({name: identifier(cpp) for name, cpp in names.items()}))


def dim_variable(index: int) -> CppText:
    """The C++ variable of a dim of a program, by the place of the dim in its table. The underscore matters: CUDA has a
    type `dim3`, which a variable of that name would hide."""
    return CppText(f"dim_{number(index)}")


def header(path: str) -> CppText:
    """`"ait/types.h"`: the name of a header of the runtime or of the program, as `#include` takes it; raises
    `ValueError` for others."""
    if not _HEADER.fullmatch(path):
        raise ValueError(f"{path!r} is not a header of the project")
    return CppText(f'"{path}"')


def indented(code: CppText) -> CppText:
    """Code indented by two more spaces, without the line breaks at its end."""
    if type(code) is not CppText:
        raise TypeError(f"only C++ can be indented, found {code!r}")
    return CppText("\n".join("  " + line if line else "" for line in code.rstrip("\n").split("\n")))


def cstr(text: str) -> CppText:
    """A C++ string literal with the UTF-8 bytes of `text`.

    Every byte outside of a safe set becomes a three-digit octal escape, which following text cannot extend. `?` and
    `\\` are escaped, too, so that no trigraph and no escape can form.
    """
    body = "".join(chr(b) if chr(b) in _PLAIN else f"\\{b:03o}" for b in text.encode("utf-8", "surrogatepass"))
    return CppText(f'"{body}"')


def comment(text: str) -> CppText:
    """`// text` on one line: characters outside a short whitelist become `?`-free dots, and long text is cut."""
    clean = _COMMENT_UNSAFE.sub(".", text)
    if len(clean) > _COMMENT_LIMIT:
        clean = clean[: _COMMENT_LIMIT - 3] + "..."
    return CppText(f"// {clean}")


def element_type(t: Attribute) -> CppText:
    """The C++ type of an element type: `ait::half` for f16."""
    dtype = BY_IR.get(t)
    if dtype is None:
        raise ValueError(f"{t} is not an element type")
    return CppText(dtype.cpp)


def literal(value: float | int | bool, t: Attribute) -> CppText:
    """A C++ expression of `value` as the element type `t`: hexadecimal floats, infinities, NaN, typed integers.

    The value is rounded to the nearest value of the type.
    """
    return CppText(_literal(value, element_type(t)))


def _literal(value: float | int | bool, kind: str) -> str:
    if kind == "bool":
        return "true" if value else "false"
    if kind in ("int8_t", "uint8_t", "int16_t", "int32_t"):
        return f"{kind}({int(value)})" if int(value) != -(2**31) else "int32_t(-2147483647 - 1)"
    if kind == "int64_t":
        return "(-9223372036854775807LL - 1)" if int(value) == -(2**63) else f"int64_t({int(value)}LL)"
    number = _float_literal(float(value), "double" if kind == "double" else "float")
    return number if kind in ("float", "double") else f"ait::from_float<{kind}>({number})"


def _float_literal(value: float, kind: str) -> str:
    suffix = "f" if kind == "float" else ""
    if kind == "float":
        value = _to_f32(value)
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")'
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}__builtin_huge_val{suffix}()"
    return value.hex() + suffix


def _to_f32(value: float) -> float:
    """The nearest float32; infinity if `value` is too large."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
