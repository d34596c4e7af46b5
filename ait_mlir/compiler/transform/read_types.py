"""The types in which AITemplate's fused elementwise kernels read and compute, as scripts look for them.

Our kernels choose their own widths; these follow from the shapes by AITemplate's rule: the widest load of a thread
divides all rows, and an operand that is repeated along the last dim is read one element at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ait_mlir.dims import Expr
from ait_mlir.dims import const as const_dim
from ait_mlir.frontend.ops.elementwise import FuncEnum

Dims = Sequence[Expr]

LOADS: dict[str, tuple[tuple[int, str], ...]] = {
    "float32": ((4, "uint4"), (2, "uint2"), (1, "float")),
    "int32": ((4, "uint4"), (2, "uint2"), (1, "float")),
    "float16": ((8, "uint4"), (4, "uint2"), (2, "uint"), (1, "half")),
    "bfloat16": ((8, "uint4"), (4, "uint2"), (2, "uint"), (1, "bfloat16")),
    "int64": ((2, "uint4"), (1, "uint2")),
}
"""The types of loads by the number of elements."""

DATA = {"float16": "half", "bfloat16": "bfloat16", "float32": "float", "int32": "int32_t", "int64": "int64_t"}
PAIRS = {"float16": "half2", "bfloat16": "bfloat16_2"}
SINGLE = frozenset({FuncEnum.GELU, FuncEnum.FASTGELU})
"""Functions that have no form for two elements of f16."""


@dataclass(frozen=True)
class ReadTypes:
    """The types of one operator: of the widest load, of the loads of each input, of arithmetic, and of an element."""

    max_read_t: str
    read_types: list[tuple[int, str]]
    op_t: str
    data_t: str

    @staticmethod
    def of(
        dtype: str, read: Sequence[Dims], made: Dims, numbers: Sequence[int], funcs: Sequence[object]
    ) -> ReadTypes | None:
        """For inputs and a result of these dims. `numbers` are offsets and lengths, in elements, of parts of other
        tensors. None for a dtype that AITemplate's kernels do not have."""
        if (loads := LOADS.get(dtype)) is None:
            return None
        widths = [width for width, _ in loads]
        most = widest([static_end(made), *numbers], widths)
        alone: list[int | None] = []
        for dims in read:
            least, most = broadcast_widths(dims, made, widths, most)
            alone.append(least)
        found = [most if least is None else min(least, most) for least in alone]
        names = dict(loads)
        pairs = max(found, default=1) % 2 == 0 and not SINGLE.intersection(f for f in funcs if isinstance(f, FuncEnum))
        op_t = PAIRS[dtype] if pairs and dtype in PAIRS else DATA[dtype]
        types = [(i, names[width]) for i, width in enumerate(found)]
        return ReadTypes(names[max(found, default=1)], types, op_t, DATA[dtype])


def widest(numbers: Sequence[int], widths: Sequence[int]) -> int:
    """The largest width that divides all numbers."""
    return next((width for width in widths if all(number % width == 0 for number in numbers)), 1)


def static_end(dims: Dims, count: int | None = None) -> int:
    """The elements of the last `count` dims, by default all, up to the first that is dynamic."""
    total = 1
    for dim in reversed(dims[len(dims) - count :] if count is not None else dims):
        if (number := dim.as_int()) is None:
            break
        total *= number
    return total


def broadcast_widths(dims: Dims, made: Dims, widths: Sequence[int], most: int) -> tuple[int | None, int]:
    """The width for one input, None for the common one, and the common width with it."""
    if tuple(dims) == tuple(made):
        return None, most
    extended = [*[const_dim(1)] * (len(made) - len(dims)), *dims]
    least: int | None = None
    before: bool | None = None
    for j, (own, whole) in enumerate(zip(reversed(extended), reversed(made), strict=True)):
        repeats: bool | None = own is not whole
        if not repeats and own.as_int() == 1 and before is None:
            continue
        if before is None:
            before = repeats
            least = 1 if repeats else None
        elif before != repeats:
            width = widest([static_end(made, j)], widths)
            return (least if before else width), min(most, width)
    return least, most
