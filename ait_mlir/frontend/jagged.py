"""`JaggedIntVar`: the leading dim of sequences that are laid end to end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ait_mlir import dims
from ait_mlir.dims import Jagged
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import (
    UNNAMED,
    DimLike,
    IntVar,
    IntVarAttrs,
    Symbol,
    as_dim,
    checked_name,
    merge_symbols,
    scope_from,
    serial_numbers,
)
from ait_mlir.frontend.tensor import Tensor


class JaggedDim:
    """The least and the greatest length of the sequences of one level of a jagged dim.

    The least is a number, the greatest a number or a dim of an input.
    """

    def __init__(self, min_value: DimLike, max_value: DimLike):
        self._min, self._max = as_dim(min_value), as_dim(max_value)
        lo = self._min.expr.as_int()
        if lo is None or not 0 <= lo <= self._max.upper_bound():
            raise BuildError(
                "a JaggedDim is between a number of at least 0 and a number or a dim; "
                f"found {min_value} and {max_value}"
            )
        self.range = (lo, self._max.expr)
        hi = self._max.expr.as_int()
        self._attrs: dict[str, Any] = {"values": [lo, self._max if hi is None else hi], "offsets": None}

    def offsets(self) -> Tensor | None:
        """The offsets of the level, once `make_jagged` was called."""
        return self._attrs["offsets"]

    def set_offsets(self, offsets: Tensor) -> None:
        self._attrs["offsets"] = offsets

    def min_value(self) -> IntVar:
        return self._min

    def max_value(self) -> IntVar:
        return self._max

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JaggedDim) and self.range == other.range

    def __hash__(self) -> int:
        return hash(self.range)

    def __repr__(self) -> str:
        return f"JaggedDim({self.range[0]}, {self.range[1]})"


class JaggedIntVar(IntVar):
    """A jagged dim: `batch_dim` sequences laid end to end in `total_length` rows; `make_jagged` gives it to a tensor.

    Its value is the total, but it is a different dim: tensors of one jagged dim have the same sequences.
    """

    def __init__(
        self, total_length: IntVar, batch_dim: IntVar, jagged_dims: Sequence[JaggedDim], name: str | None = None
    ):
        if not jagged_dims:
            raise BuildError("a JaggedIntVar needs a JaggedDim for each of its levels, at least one")
        levels = tuple(level.range for level in jagged_dims)
        longest = [level.max_value().symbols for level in jagged_dims]
        parts = merge_symbols(total_length.symbols, batch_dim.symbols, *longest)
        symbol = f"{UNNAMED}{next(serial_numbers)}" if name is None else checked_name(name)
        jagged = Jagged(total_length.expr, batch_dim.expr, levels)
        found = dims.jagged_dim(symbol, jagged, scope_from(parts))
        self._attrs = IntVarAttrs(self)
        self.expr = dims.sym(symbol)
        self.symbols = {
            **parts,
            symbol: Symbol(symbol, name, found.lo, found.hi, (), jagged.total, jagged, JaggedIntVar),
        }

    @property
    def _symbol(self) -> Symbol:
        return self.symbols[str(self.expr)]

    @property
    def jagged(self) -> Jagged:
        """The declaration in terms of expressions."""
        assert self._symbol.jagged is not None
        return self._symbol.jagged

    def total_length(self) -> IntVar:
        return IntVar.of(self.jagged.total, self.symbols)

    def batch_dim(self) -> IntVar:
        return IntVar.of(self.jagged.batch, self.symbols)

    def jagged_dims(self) -> list[JaggedDim]:
        return [JaggedDim(lo, IntVar.of(hi, self.symbols)) for lo, hi in self.jagged.levels]

    def offsets(self) -> tuple[Tensor, ...]:
        """The offsets of the sequences, one tensor for each level; empty before `make_jagged`."""
        return self._symbol.offsets

    def with_offsets(self, offsets: Sequence[Tensor]) -> JaggedIntVar:
        """This dim with its offsets; `BuildError` if it has others."""
        if self._symbol.offsets and list(self._symbol.offsets) != list(offsets):
            raise BuildError(f"the jagged dim {self} has other offsets already; use a JaggedIntVar for each")
        self._symbol.offsets = tuple(offsets)
        return self

    def offsets_type(self) -> str:
        """The C++ type of an offset; `BuildError` before `make_jagged`, which gives the dim its offsets."""
        if not self._symbol.offsets:
            raise BuildError(f"the jagged dim {self} has no offsets yet; make_jagged gives them")
        return f"{self._symbol.offsets[0].dtype()}_t"

    def offsets_struct_type(self) -> str:
        """The C++ type of the offsets of all levels: a pointer for each."""
        return f"std::array<const {self.offsets_type()}*, {len(self.jagged_dims())}>"

    def offsets_var_name(self) -> str:
        """A name for a C++ variable with the offsets."""
        return f"{self.total_length().name or 'total'}_jagged_offsets"

    def get_max_dense_shape(self) -> list[IntVar]:
        """The dims of the padded form: the batch and the longest sequence of each level."""
        return [self.batch_dim(), *(level.max_value() for level in self.jagged_dims())]
