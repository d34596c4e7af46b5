"""The data that the templates of a program print: functions, and statements on buffers and launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ait_mlir.dims import Expr
from ait_mlir.lowering.cpp import CppText
from ait_mlir.lowering.layout import identifiers


@dataclass(frozen=True)
class Function:
    """A kernel function and its number of buffers.

    With an `instance`, it only passes its buffers on to this function of another file, with these sizes.
    """

    name: str
    ins: int
    outs: int
    instance: str | None = None
    sizes_type: str | None = None
    """The struct of these sizes."""
    sizes: tuple[tuple[str, Expr], ...] = ()

    @property
    def reads(self) -> frozenset[str]:
        """The dims that the sizes depend on."""
        return frozenset[str]().union(*(e.symbols for _, e in self.sizes))


@dataclass(frozen=True)
class Given:
    """A buffer that is an argument of the run, by number, or part of the constants, by its offset in bytes.

    `bound_as` is the index of a constant that the caller may bind to their own memory.
    """

    kind: Literal["input", "output", "constant"]
    name: str
    place: int
    what: str
    bound_as: int | None = None


@dataclass(frozen=True)
class Alloc:
    """A buffer in the arena; the offset is in bytes."""

    kind: ClassVar[str] = "alloc"
    name: str
    offset: Expr
    what: str


@dataclass(frozen=True)
class View:
    """A part of another buffer that starts at a byte offset."""

    kind: ClassVar[str] = "view"
    name: str
    base: str
    offset: Expr
    what: str


@dataclass(frozen=True)
class Argument:
    """A buffer that a call passes, from byte `start` if that is given."""

    name: str
    start: Expr | None = None


@dataclass(frozen=True)
class Call:
    """A call of a kernel function. The template adds context and dims, which all kernel functions take."""

    function: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Branch:
    """The calls if the axis of a launch is at most `upto`; with None, the calls in all other cases."""

    calls: tuple[Call, ...]
    upto: int | None = None


@dataclass(frozen=True)
class Shown:
    """A contiguous result of a launch that an inspected program shows: its position, buffer, dtype and size."""

    place: int
    name: str
    dtype: str
    elements: Expr


@dataclass(frozen=True)
class LaunchCalls:
    """The calls of a launch, in one branch, or in several branches by the value of `axis`. `number` is the launch's
    position in the list of launches."""

    kind: ClassVar[str] = "launch"
    what: str
    number: int
    branches: Sequence[Branch]
    axis: Expr | None = None
    shown: Sequence[Shown] = ()
    stream: int = 0


@dataclass(frozen=True)
class ReadDim:
    """The wait for a dim that a launch has bound: its index, and the buffer of its value."""

    kind: ClassVar[str] = "read_dim"
    function: str
    source: str
    index: int
    what: str


@dataclass(frozen=True)
class OnEvent:
    """An event is recorded on a stream, or a stream waits for it."""

    kind: ClassVar[str] = "event"
    function: Literal["record", "wait"]
    event: int
    stream: int


@dataclass(frozen=True)
class Loop:
    """Printed statements that run for each value of the variable `step` from 0 to `count - 1`, and the outer buffers
    that they use."""

    kind: ClassVar[str] = "loop"
    what: str
    step: str
    count: Expr
    body: CppText
    uses: frozenset[str]


Statement = Given | Alloc | View | LaunchCalls | OnEvent | Loop | ReadDim


@dataclass(frozen=True)
class Part:
    """A host function that a run calls: either launches or waits."""

    name: str
    body: CppText
    dim_places: Mapping[str, int]
    """The places of all dims, by their C++ names."""
    streams: Sequence[int] = ()
    """The streams that the function uses in addition to the stream of the run."""
    has_streams: bool = False
    """Whether the function uses further streams or events."""

    @property
    def names(self) -> frozenset[str]:
        """The identifiers in the body."""
        return identifiers(self.body)


def streams_of(statements: Sequence[Statement]) -> list[int]:
    """The streams of launches and events, without stream 0."""
    return sorted({s.stream for s in statements if isinstance(s, LaunchCalls | OnEvent)} - {0})


def has_streams(statements: Sequence[Statement]) -> bool:
    """Whether any statement uses a stream other than 0, or an event."""
    return any(isinstance(s, OnEvent) for s in statements) or bool(streams_of(statements))


def buffers_used(statements: Sequence[Statement]) -> frozenset[str]:
    """The buffers that statements use; for a view, the buffer that it is a part of."""
    found: set[str] = set()
    for s in reversed(statements):
        if isinstance(s, LaunchCalls):
            found.update(a.name for branch in s.branches for call in branch.calls for a in call.arguments)
            found.update(result.name for result in s.shown)
        elif isinstance(s, ReadDim):
            found.add(s.source)
        elif isinstance(s, Loop):
            found |= s.uses
        elif isinstance(s, View) and s.name in found:
            found.add(s.base)
    return frozenset(found)


def needed(statements: Sequence[Statement]) -> list[Statement]:
    """The statements without definitions of unused buffers."""
    used = buffers_used(statements)
    return [s for s in statements if not isinstance(s, Given | Alloc | View) or s.name in used]


def parts_of(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Cut a program at its waits: launches, waits, launches and so on. Each part also has all buffers that were defined
    before.

    Adjacent waits are one part. The first part has the launches before the first wait, even if there are none.
    """
    buffers: list[Statement] = []
    parts: list[list[Statement]] = [[]]
    waits = False
    for statement in statements:
        is_buffer = isinstance(statement, Given | Alloc | View)
        if not is_buffer and isinstance(statement, ReadDim) != waits:
            waits = not waits
            parts.append(list(buffers))
        parts[-1].append(statement)
        if is_buffer:
            buffers.append(statement)
    return parts
