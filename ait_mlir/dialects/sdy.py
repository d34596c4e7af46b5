"""Meshes and shardings in the notation of Shardy's dialect `sdy`, which XLA and JAX print.

A mesh has named axes: `sdy.mesh @mesh = <["dp"=2, "tp"=4]>` has 8 ranks, numbered with the last axis fastest. A
sharding says along which axes each dim of a tensor is divided: `#sdy.sharding<@mesh, [{"tp"}, {}]>`. A dim `{?}` is
open: the partitioner may divide it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Data, Dialect
from xdsl.irdl import IRDLOperation, irdl_attr_definition, irdl_op_definition, prop_def, traits_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface

from ait_mlir.errors import AitError

MOST_RANKS = 1 << 16


@dataclass(frozen=True)
class Mesh:
    """Named axes of ranks. A rank is a number; its place along the last axis changes fastest."""

    axes: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """The number of ranks."""
        return prod(size for _, size in self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.axes)

    def extent(self, axes: Sequence[str]) -> int:
        """The number of places along some axes."""
        sizes = dict(self.axes)
        return prod(sizes[axis] for axis in axes)

    def places(self, rank: int) -> Mapping[str, int]:
        """The place of a rank along each axis."""
        found: dict[str, int] = {}
        for name, size in reversed(self.axes):
            rank, found[name] = divmod(rank, size)
        return found

    def index(self, rank: int, axes: Sequence[str]) -> int:
        """The place of a rank along some axes together, the last one fastest."""
        sizes, places, found = dict(self.axes), self.places(rank), 0
        for axis in axes:
            found = found * sizes[axis] + places[axis]
        return found

    def group(self, rank: int, axes: Sequence[str]) -> list[int]:
        """The ranks that differ from a rank along these axes only, in the order of their places."""
        fixed = [axis for axis in self.names if axis not in axes]
        alike = [r for r in range(self.size) if self.index(r, fixed) == self.index(rank, fixed)]
        return sorted(alike, key=lambda r: self.index(r, axes))

    def __str__(self) -> str:
        return "<[" + ", ".join(f'"{name}"={size}' for name, size in self.axes) + "]>"


@dataclass(frozen=True)
class Sharding:
    """For each dim of a tensor, the axes of a mesh that divide it, and whether more may."""

    mesh: str
    dims: tuple[tuple[str, ...], ...]
    open: tuple[bool, ...]

    @property
    def axes(self) -> tuple[str, ...]:
        """All axes, in the order of the dims."""
        return tuple(axis for dim in self.dims for axis in dim)

    def __str__(self) -> str:
        dims = zip(self.dims, self.open, strict=True)
        texts = [", ".join([*(f'"{axis}"' for axis in axes), *(["?"] if more else [])]) for axes, more in dims]
        return f"<@{self.mesh}, [{', '.join('{' + text + '}' for text in texts)}]>"


_AXIS = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\d+)\s*")


def parse_axes(text: str) -> Mesh:
    """The mesh of `dp=2,tp=4`; `AitError` for another text."""
    axes: list[tuple[str, int]] = []
    for part in text.split(","):
        found = _AXIS.fullmatch(part)
        if found is None:
            raise AitError(f"mesh {text!r}: expected axes with their numbers of ranks, as in tp=2 or dp=2,tp=4")
        axes.append((found[1], int(found[2])))
    mesh = Mesh(tuple(axes))
    if len(dict(axes)) < len(axes) or not 1 <= mesh.size <= MOST_RANKS:
        raise AitError(f"mesh {text!r}: expected axes of different names, and 1 to {MOST_RANKS} ranks")
    return mesh


def parse_axis(parser: AttrParser, seen: Sequence[str]) -> str:
    """Parse the name of an axis, which no name before it may be."""
    start = parser.pos
    name = parser.parse_str_literal(" for the name of an axis")
    if not name or "\0" in name:
        parser.raise_error("an axis needs a name without NUL characters", start, parser.pos)
    if name in seen:
        parser.raise_error(f"axis '{name}' stands twice", start, parser.pos)
    return name


def parse_mesh(parser: AttrParser) -> Mesh:
    """Parse `<["dp"=2, "tp"=4]>`."""
    axes: list[tuple[str, int]] = []

    def parse_sized() -> None:
        name = parse_axis(parser, [name for name, _ in axes])
        parser.parse_punctuation("=")
        start = parser.pos
        size = parser.parse_integer(allow_boolean=False, allow_negative=False)
        axes.append((name, size))
        if size < 1 or Mesh(tuple(axes)).size > MOST_RANKS:
            parser.raise_error(f"a mesh has 1 to {MOST_RANKS} ranks", start, parser.pos)

    with parser.in_angle_brackets():
        start = parser.pos
        parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_sized)
        if not axes:
            parser.raise_error('a mesh needs an axis, as in <["tp"=2]>', start, parser.pos)
    return Mesh(tuple(axes))


@irdl_attr_definition
class MeshAttr(Data[Mesh]):
    """A mesh: `#sdy.mesh<["dp"=2, "tp"=4]>`."""

    name = "sdy.mesh"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Mesh:
        return parse_mesh(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


@irdl_attr_definition
class ShardingAttr(Data[Sharding]):
    """How the dims of a tensor are divided over a mesh: `#sdy.sharding<@mesh, [{"tp"}, {?}]>`."""

    name = "sdy.sharding"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Sharding:
        seen: list[str] = []
        is_open: list[bool] = []

        def parse_dim() -> tuple[str, ...]:
            axes: list[str] = []
            is_open.append(False)

            def parse_item() -> None:
                if parser.parse_optional_punctuation("?") is not None:
                    is_open[-1] = True
                    return
                axes.append(parse_axis(parser, seen))
                seen.append(axes[-1])

            parser.parse_comma_separated_list(parser.Delimiter.BRACES, parse_item)
            return tuple(axes)

        with parser.in_angle_brackets():
            mesh = parser.parse_symbol_name().data
            parser.parse_punctuation(",")
            dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_dim)
        return Sharding(mesh, tuple(dims), tuple(is_open))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


@irdl_op_definition
class MeshOp(IRDLOperation):
    """A mesh of ranks, to which shardings refer by name.

    ```mlir
    sdy.mesh @mesh = <["tp"=2]>
    ```
    """

    name = "sdy.mesh"

    sym_name = prop_def(StringAttr)
    mesh = prop_def(MeshAttr)
    traits = traits_def(SymbolOpInterface())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        parser.parse_punctuation("=")
        return cls.create(properties={"sym_name": name, "mesh": MeshAttr(parse_mesh(parser))})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(f" = {self.mesh.data}")


SHARDING = "sdy.sharding"
"""The attribute of a param, an output or an op whose sharding the text gives."""

SDY = Dialect("sdy", [MeshOp], [MeshAttr, ShardingAttr])
