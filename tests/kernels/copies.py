"""Many pieces in one launch: more than the table of a kernel has, of all sizes, and one that has a launch of its own."""

from __future__ import annotations

from collections.abc import Mapping

from tests.kernels.harness import Case

LARGE = 300_000
"""Elements of a piece that is no run of whole words, and large enough for a launch of its own."""


def pieces(count: int, element: str, large: int = 0) -> Case:
    """`count` pieces of 0 to 40 rows of 1 to 7 elements that lie apart; with `large`, one of as many elements."""
    shapes = [f"{i % 11 * 4} x {i % 7 + 1}" for i in range(count)] + ([f"{large // 3} x 3"] if large else [])
    types = [f"!ait.tensor<{shape} x {element}>" for shape in shapes]
    inputs = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    names = [f"%y{i}" for i in range(len(types))]
    lines = [f"{', '.join(names)} = ait.copies {', '.join(f'%a{i}' for i in range(len(types)))} : {', '.join(types)}"]
    lines += [f'ait.output "y{i}" {name} : {t}' for i, (name, t) in enumerate(zip(names, types, strict=True))]
    strides = {position: ("9", "1") for position in range(2 * len(types))}
    return Case(f"ait.graph @g({inputs}) {{\n" + "\n".join(lines) + "\n}", strides=strides, offset=1)


def copies_cases(large: int = LARGE) -> Mapping[str, Case]:
    """By name, which ends with the element type. 4 KiB of arguments have room for 40 pieces, 32,764 bytes for 327."""
    return {"many-f16": pieces(45, "f16"), "most-i8": pieces(330, "i8"), "large-f32": pieces(3, "f32", large)}
