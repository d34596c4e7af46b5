"""The only ways in which text and types reach generated C++: string literals, comments, numbers, element types."""

from __future__ import annotations

import math
import re
import struct

from xdsl.ir import Attribute

from ait_mlir.dialects.ait.dtypes import BY_IR

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;()[]{}<>=+-*/%&|^~!@#$")
_COMMENT_UNSAFE = re.compile(r"[^A-Za-z0-9 _.,:;()\[\]{}<>=+\-*%&|^~!@#$'\"]")
_COMMENT_LIMIT = 200


def cstr(text: str) -> str:
    """A C++ string literal with the UTF-8 bytes of `text`.

    Every byte that is not plainly safe is a three-digit octal escape, which ends whatever follows. `?` and `\\` are
    among them, so that no trigraph and no escape can form.
    """
    body = "".join(chr(b) if chr(b) in _PLAIN else f"\\{b:03o}" for b in text.encode("utf-8", "surrogatepass"))
    return f'"{body}"'


def comment(text: str) -> str:
    """`// text` on one line: characters outside a short whitelist become `?`-free dots, and long text is cut."""
    clean = _COMMENT_UNSAFE.sub(".", text)
    if len(clean) > _COMMENT_LIMIT:
        clean = clean[: _COMMENT_LIMIT - 3] + "..."
    return f"// {clean}"


def element_type(t: Attribute) -> str:
    """The C++ type of an element type: `ait::half` for f16."""
    dtype = BY_IR.get(t)
    if dtype is None:
        raise ValueError(f"{t} is not an element type")
    return dtype.cpp


def literal(value: float | int | bool, t: Attribute) -> str:
    """A C++ expression of `value` as the element type `t`: hexadecimal floats, infinities, NaN, typed integers.

    The value is rounded to the nearest of its type, which is exact when it is one.
    """
    kind = element_type(t)
    if kind == "bool":
        return "true" if value else "false"
    if kind in ("int8_t", "int32_t"):
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
    """The nearest float32, or infinity where `value` is too large for one."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
