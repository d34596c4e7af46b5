"""Loop nests over strided operands: building them from shapes, and merging dims that step as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ait_mlir.dims import Expr, Fields, Scope, const
from ait_mlir.lowering.kernels.base import Arg

ZERO, ONE = const(0), const(1)


@dataclass(frozen=True)
class Loop:
    """One dim of an iteration space: its size, and the step of each operand along it, in elements."""

    size: Expr
    strides: tuple[Expr, ...]


def broadcast_strides(arg: Arg, shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """The strides of `arg` over `shape`, to which it broadcasts: 0 for missing dims and for literal 1s."""
    missing = len(shape) - arg.type.rank
    own = (ZERO if dim.as_int() == 1 else stride for dim, stride in zip(arg.type.dims, arg.strides, strict=True))
    return (*(ZERO for _ in range(missing)), *own)


def nest(shape: Sequence[Expr], strides: Iterable[Sequence[Expr]]) -> list[Loop]:
    """One loop for each dim of the shape, with the strides of each operand; one loop of size 1 for an empty shape."""
    columns = list(strides)
    loops = [Loop(size, tuple(s[d] for s in columns)) for d, size in enumerate(shape)]
    return loops or [single(len(columns))]


def single(operands: int) -> Loop:
    """The loop of a single element."""
    return Loop(ONE, (ONE,) * operands)


def collapse(loops: Sequence[Loop], scope: Scope) -> list[Loop]:
    """The same iteration space with fewer loops, at least one.

    Dims of size 1 are dropped. Neighbouring dims are merged if the strides of every operand allow it.
    """
    merged: list[Loop] = []
    for loop in loops:
        if loop.size.as_int() == 1:
            continue
        if merged and _continues(merged[-1], loop, scope):
            merged[-1] = Loop(merged[-1].size * loop.size, loop.strides)
        else:
            merged.append(loop)
    return merged or [single(len(loops[0].strides))]


def in_order_of(loops: Sequence[Loop], position: int, scope: Scope) -> list[Loop]:
    """The loops sorted by the strides of an operand, the smallest stride last, as far as the order can be proved."""
    ordered: list[Loop] = []
    for loop in loops:
        place = len(ordered)
        while place and _is_within(ordered[place - 1].strides[position], loop.strides[position], scope):
            place -= 1
        ordered.insert(place, loop)
    return ordered


def _is_within(a: Expr, b: Expr, scope: Scope) -> bool:
    """Whether stride `a` is provably smaller than stride `b`."""
    return a is not b and scope.le(a, b) and not scope.le(b, a)


def _continues(outer: Loop, inner: Loop, scope: Scope) -> bool:
    return all(
        a is (b * inner.size) or scope.equal(a, b * inner.size)
        for a, b in zip(outer.strides, inner.strides, strict=True)
    )


_INNER = {0: "ait::Inner::zero", 1: "ait::Inner::unit"}


def inner_kind(stride: Expr) -> str:
    """The `ait::Inner` enumerator of an innermost stride, a template argument of C++ kernels."""
    known = stride.as_int()
    return "ait::Inner::strided" if known is None else _INNER.get(known, "ait::Inner::strided")


def braces(exprs: Iterable[Expr], cpp_dims: Mapping[str, str], called: str = "") -> str:
    """`{dim_0, 768}`; in code whose sizes are fields of a struct, the fields are named `called` and a number."""
    return "{" + ", ".join(e.cpp(cpp_dims, called and f"{called}{i}") for i, e in enumerate(exprs)) + "}"


def named_numbers(cpp_dims: Mapping[str, str], prefix: str, **exprs: Expr) -> str:
    """`/*m=*/dim_0, /*n=*/256`: the numbers of a struct, with comments that name its fields. In code whose sizes are
    fields of a struct: `sizes.m, sizes.n`, with `prefix` before these names."""
    texts = {name: e.cpp(cpp_dims, f"{prefix}{name}") for name, e in exprs.items()}
    if isinstance(cpp_dims, Fields):
        return ", ".join(texts.values())
    return ", ".join(f"/*{name}=*/{text}" for name, text in texts.items())


def sizes(loops: Sequence[Loop], cpp_dims: Mapping[str, str]) -> str:
    return braces((loop.size for loop in loops), cpp_dims, "size")


def steps(loops: Sequence[Loop], position: int, cpp_dims: Mapping[str, str], called: str = "") -> str:
    """`{768, 1}`: the strides of one operand of the nest.

    The stride of an outer dim of 1 is never used, so it is written as 0, which is aligned to every size. A kernel that
    moves an element along such a dim gets the dim's stride as a separate argument.
    """
    *outer, inner = loops
    strides = [ZERO if loop.size.as_int() == 1 else loop.strides[position] for loop in outer]
    return braces([*strides, inner.strides[position]], cpp_dims, called)


def operand(name: str, loops: Sequence[Loop], position: int, cpp_dims: Mapping[str, str]) -> str:
    """`ait::operand<ait::Inner::unit>(input0, {768, 1})` for one operand of the nest."""
    inner = inner_kind(loops[-1].strides[position])
    return f"ait::operand<{inner}>({name}, {steps(loops, position, cpp_dims, f'{name}_stride')})"


def result(arg: Arg, loops: Sequence[Loop], position: int, cpp_dims: Mapping[str, str]) -> str:
    """The `operand` of a result; `ait::unread<...>(...)`, to which nothing is written, if nobody reads it."""
    text = operand(arg.name, loops, position, cpp_dims)
    return text.replace("ait::operand<", "ait::unread<", 1) if arg.unread else text


def pack(args: Sequence[Arg], loops: Sequence[Loop], first: int, cpp_dims: Mapping[str, str]) -> str:
    """`ait::pack(...)` of the operands of the nest from number `first` on."""
    return f"ait::pack({', '.join(operand(a.name, loops, first + i, cpp_dims) for i, a in enumerate(args))})"
