"""The dims of the inputs of a model, by their names in the model or by input and axis."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ait_mlir.dims import RESERVED, Dim, DimError, Expr, Scope, const, parse, sym
from ait_mlir.importers.errors import ImportFailure

MOST = 4096
"""The largest value of a dim without a range of its own."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class InputDims:
    """Gives each dim of the inputs its expression; dims of one name are one dim."""

    def __init__(
        self,
        ranges: Mapping[str, tuple[int, int]],
        hints: Mapping[str, Sequence[int]],
        same: Mapping[str, str],
        most: Mapping[str, int] | None = None,
    ) -> None:
        self._ranges, self._hints, self._same, self._most = ranges, hints, same, most or {}
        self._dims: dict[str, Dim] = {}
        self._texts: set[str] = set()

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Note the names of all dims, so that a formula of named dims is found whatever the order of the inputs."""
        for item in inputs:
            for dim in item.type.tensor_type.shape.dim:
                if dim.WhichOneof("value") == "dim_param" and _NAME.fullmatch(dim.dim_param):
                    self._texts.add(dim.dim_param)

    def shape(self, name: str, shape: Any) -> tuple[Expr, ...]:
        """The dims of an input."""
        return tuple(self._expr(f"{name}_{axis}", dim) for axis, dim in enumerate(shape.dim))

    def _expr(self, unnamed: str, dim: Any) -> Expr:
        kind = dim.WhichOneof("value")
        if kind == "dim_value":
            if dim.dim_value < 0:
                raise ImportFailure(f"a dim of an input is {dim.dim_value}, expected a size from 0 on")
            return const(dim.dim_value)
        text = dim.dim_param if kind == "dim_param" and dim.dim_param else unnamed
        if not _NAME.fullmatch(text):
            try:
                found = parse(text)
                if found.symbols and found.symbols <= self._texts:  # a formula of dims that are sizes of their own
                    return found.substitute({name: self._named(name) for name in found.symbols})
            except DimError:
                pass
        return self._named(text)

    def _named(self, text: str) -> Expr:
        name = re.sub(r"[^A-Za-z0-9_]", "_", text)[:64] or "dim"
        name = f"dim_{name}" if name[0].isdigit() or name in RESERVED else name
        seen = {name}
        while name in self._same and self._same[name] not in seen:
            name = self._same[name]
            seen.add(name)
        if name not in self._dims:
            lo, hi = self._ranges.get(text, self._ranges.get(name, (1, MOST)))
            try:
                hi = min(hi, self._most.get(name, hi))
                hints = self._hints.get(text, self._hints.get(name, ()))
                self._dims[name] = Dim(name, lo, hi, tuple(n for n in hints if n <= hi))
            except (DimError, TypeError) as error:
                raise ImportFailure(f"dims: {error}") from None
        return sym(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._dims)

    def scope(self) -> Scope:
        return Scope(self._dims.values())
