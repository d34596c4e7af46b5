"""`IntVar`: a dim whose value is known when the model runs, and the arithmetic of such dims."""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

from ait_mlir import dims
from ait_mlir.dims import Dim, Expr, Jagged, Scope
from ait_mlir.frontend.errors import BuildError

if TYPE_CHECKING:
    import sympy

UNNAMED = "_dim"
"""Prefix of the symbols that stand for dims without a name until the graph is built."""

MAX_DIM = 1 << 40
serial_numbers = itertools.count()


@dataclass(eq=False)
class Symbol:
    """One dim of the model: its symbol in expressions, its name and its range."""

    symbol: str
    name: str | None
    lo: int
    hi: int
    hints: tuple[int, ...] = ()
    upper: Expr | None = None
    """The upper bound of a dim that an op binds."""
    jagged: Jagged | None = None
    """The declaration of a jagged dim."""
    kind: type[IntVar] | None = None
    """The class of a dim that is exactly this symbol, if not `IntVar`."""
    offsets: tuple[Any, ...] = ()
    """The offsets of a jagged dim, one tensor for each level."""
    inputs: list[weakref.ref[Any]] = field(default_factory=list["weakref.ref[Any]"])
    """The input tensors with the dim in their shape."""

    @property
    def range(self) -> str:
        return f"{self.lo} to {self.hi}"

    def declaration(self) -> Dim:
        return Dim(self.symbol, self.lo, self.hi, self.hints, self.upper, self.jagged)


_symbolic: WeakValueDictionary[str, Symbol] = WeakValueDictionary()
"""The dims whose `symbolic_value` was used, by the names of their symbols."""

Symbols = Mapping[str, Symbol]
"""The dims that an expression or a shape uses, by symbol."""


def merge_symbols(*tables: Symbols) -> Symbols:
    """The union of the tables; two dims of one name and different ranges are an error."""
    if not tables:
        return {}
    first, *others = tables
    if all(table is first for table in others):
        return first
    merged = dict(first)
    for table in others:
        for symbol, found in table.items():
            known = merged.setdefault(symbol, found)
            if (known.lo, known.hi) != (found.lo, found.hi):
                raise BuildError(
                    f'the dim "{symbol}" has two ranges: {known.range} and {found.range}; '
                    "use one IntVar for both, or give them different names"
                )
    return merged


def scope_from(symbols: Symbols) -> Scope:
    """The scope in which dims of these symbols are compared and bounded."""
    return Scope([symbol.declaration() for symbol in symbols.values()])


@dataclass
class IntVarAttrs(MutableMapping[str, Any]):
    """`IntVar._attrs`: the name and the values of a dim, read from the dim itself."""

    dim: IntVar
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    of_number: str | None = None
    """The name that a dim of one size was given; it changes nothing."""

    def __getitem__(self, key: str) -> Any:
        if key == "name":
            return self.of_number or self.dim.name
        if key == "values":
            value = self.dim.value()
            return sorted({*value, *self.dim.hints()}) if isinstance(value, list) else [value]
        if key == "symbolic_value":
            return self.dim.symbolic_value()
        return self.extra[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if key == "name" and self.dim.expr.as_int() is not None:
            self.of_number = checked_name(value)
        elif key == "name":
            self.dim.rename(value)
        elif key == "symbolic_value":
            self.dim.set_symbolic_value(value)
        elif key == "values":
            raise BuildError(f'"{key}" of a dim is fixed when it is made; make another IntVar')
        else:
            self.extra[key] = value

    def __delitem__(self, key: str) -> None:
        del self.extra[key]

    def __iter__(self):
        return iter(["name", "values", "symbolic_value", *self.extra])

    def __len__(self) -> int:
        return 3 + len(self.extra)


class IntVar:
    """A dim between two bounds, both inclusive, or an expression of such dims.

    >>> batch = IntVar([1, 64], name="batch")
    >>> str(batch * 2 + 1)
    '2*batch + 1'

    The smallest and the largest of `values` are the bounds; the values between them are hints: sizes to tune for.
    `hints` adds more hints and may contain the bounds. Two IntVars of one name are the same dim and must have
    the same range. `symbolic_value`, the value of another dim, makes this the same dim under any name. A dim without a
    name gets one when the graph is built, from the input and axis where it first
    appears. Raises `BuildError` for an empty or negative range, and for a hint outside of it.
    """

    expr: Expr
    symbols: Symbols
    _quotient: tuple[IntVar, IntVar] | None = None

    def __init__(
        self,
        values: Sequence[int] | int,
        name: str | None = None,
        symbolic_value: sympy.Expr | int | None = None,
        hints: Sequence[int] = (),
    ):
        given: list[Any] = [values] if isinstance(values, int) or not hasattr(values, "__iter__") else list(values)
        if not given or any(type(v) is not int for v in given):
            raise BuildError(f"an IntVar needs its smallest and largest value, two integers; found {values!r}")
        bounds: list[int] = sorted({*given})
        if bounds[0] < 0 or bounds[-1] > MAX_DIM:
            raise BuildError(f"a dim is at least 0 and at most 2^40; found {values!r}")
        self._attrs = IntVarAttrs(self)
        if symbolic_value is not None and (known := _known_value(symbolic_value)) is not None:
            self.expr, self.symbols = known
            return
        if len(bounds) == 1:
            self.expr, self.symbols = dims.const(bounds[0]), {}
            return
        symbol = f"{UNNAMED}{next(serial_numbers)}" if name is None else checked_name(name)
        lo, *between, hi = bounds
        if wrong := [n for n in hints if not lo <= n <= hi]:
            raise BuildError(f"the hint {wrong[0]} is not between the smallest and the largest value, {lo} and {hi}")
        sizes = tuple(sorted({*between, *hints}))
        self.expr, self.symbols = dims.sym(symbol), {symbol: Symbol(symbol, name, lo, hi, sizes)}

    @classmethod
    def of(cls, expr: Expr, symbols: Symbols) -> IntVar:
        """The dim with the value `expr`; an `IntImm` if it is constant."""
        kind: type[IntVar] = IntVar if expr.as_int() is None else IntImm
        if (symbol := symbols.get(str(expr))) is not None and symbol.kind is not None:
            kind = symbol.kind
        self = object.__new__(kind)
        self.expr = expr
        self.symbols = {s: symbols[s] for s in with_parts(expr.symbols, symbols)}
        self._attrs = IntVarAttrs(self)
        return self

    @classmethod
    def bound_by(cls, most: IntVar, name: str | None = None) -> IntVar:
        """A new dim that an op binds when it runs, to at most `most`."""
        symbol = f"{UNNAMED}{next(serial_numbers)}" if name is None else checked_name(name)
        found = Symbol(symbol, name, 0, most.upper_bound(), upper=most.expr)
        return cls.of(dims.sym(symbol), {symbol: found})

    @property
    def name(self) -> str | None:
        """The name of a named dim; the text of an expression; None for a dim that has no name yet."""
        symbol = self.symbols.get(str(self.expr))
        return str(self.expr) if symbol is None else symbol.name

    def rename(self, name: str) -> None:
        """Name a dim that has no name yet."""
        symbol = self.symbols.get(str(self.expr))
        if symbol is None or not symbol.symbol.startswith(UNNAMED):
            if name != self.name:
                raise BuildError(f'the dim "{self}" cannot be renamed to "{name}"; give IntVar its name when making it')
            return
        symbol.name = checked_name(name)

    def lower_bound(self) -> int:
        """The smallest value; 0 for a difference that may be negative, because a dim is never negative."""
        return max(0, scope_from(self.symbols).bounds(self.expr)[0])

    def upper_bound(self) -> int:
        """The greatest value."""
        return scope_from(self.symbols).bounds(self.expr)[1]

    def hints(self) -> tuple[int, ...]:
        """The sizes to tune for; none for an expression of dims."""
        symbol = self.symbols.get(str(self.expr))
        return () if symbol is None else symbol.hints

    def value(self) -> int | list[int]:
        """The constant, or `[smallest, largest]`."""
        constant = self.expr.as_int()
        return [self.lower_bound(), self.upper_bound()] if constant is None else constant

    def symbolic_value(self) -> sympy.Expr | int:
        """The dim as a SymPy expression over integer symbols; a symbol is positive if its dim is at least 1.

        A quotient by `/` becomes a quotient without rounding.
        """
        from ait_mlir.dims.symbolic import to_sympy

        if self._quotient is not None:
            numerator, denominator = self._quotient
            return cast(Any, numerator.symbolic_value()) / denominator.symbolic_value()
        _symbolic.update({dim.name or s: dim for s, dim in self.symbols.items()})
        return to_sympy(self.expr, scope_from(self.symbols), {s: dim.name or s for s, dim in self.symbols.items()})

    def set_symbolic_value(self, value: sympy.Expr | int) -> None:
        """Make this the dim of a value, as `IntVar(symbolic_value=)` does; `BuildError` once an input has the dim."""
        if (known := _known_value(value)) is None:
            raise BuildError(f"{value} is the value of no dim; a value comes from the symbolic_value of one")
        if known[0] is self.expr:
            return
        if any(ref() is not None for symbol in self.symbols.values() for ref in symbol.inputs):
            raise BuildError(f'"symbolic_value" of the dim {self} cannot be set: inputs have the dim in their shapes')
        self.expr, self.symbols = known
        self._quotient = None

    def pseudo_code(self, with_shape: bool = False) -> str:
        """The dim in pseudo code: its name or number; `with_shape` adds the range."""
        bounds = self.value()
        return f"{self} in {bounds}" if with_shape and isinstance(bounds, list) else str(self)

    def __str__(self) -> str:
        return str(self.expr)

    def __repr__(self) -> str:
        if (symbol := self.symbols.get(str(self.expr))) is None:
            return f"IntVar({self.expr})"
        return f"IntVar([{symbol.lo}, {symbol.hi}], name={symbol.name!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IntVar | int):
            return NotImplemented
        return self.expr is as_dim(other).expr

    def __hash__(self) -> int:
        return hash(self.expr)

    def __add__(self, other: IntVar | int) -> IntVar:
        return _combine(self, other, operator.add)

    def __sub__(self, other: IntVar | int) -> IntVar:
        return _combine(self, other, operator.sub)

    def __mul__(self, other: IntVar | int) -> IntVar:
        return _combine(self, other, operator.mul)

    def __floordiv__(self, other: IntVar | int) -> IntVar:
        return _combine(self, _divisor(self, other), dims.floordiv)

    def __mod__(self, other: IntVar | int) -> IntVar:
        return _combine(self, _divisor(self, other), dims.mod)

    def __truediv__(self, other: IntVar | int) -> IntVar:
        """Divide, rounding down; if a shape needs the exact quotient, a run checks that there is no remainder."""
        quotient = self // other
        if self.expr.as_int() is not None and quotient.expr.as_int() is not None and quotient * other != self:
            raise BuildError(f"{self} / {other} leaves a rest; use // to round down")
        if quotient.expr.as_int() is None:
            quotient._quotient = (self, as_dim(other))
        return quotient

    def __radd__(self, other: int) -> IntVar:
        return as_dim(other) + self

    def __rsub__(self, other: int) -> IntVar:
        return as_dim(other) - self

    def __rmul__(self, other: int) -> IntVar:
        return as_dim(other) * self

    def __rtruediv__(self, other: int) -> IntVar:
        return as_dim(other) / self

    def __rfloordiv__(self, other: int) -> IntVar:
        return as_dim(other) // self


class IntImm(IntVar):
    """A constant dim; in the shapes of `reshape` and `expand` it may be -1, like the plain number."""

    def __init__(self, value: int, name: str | None = None):
        super().__init__([0 if value == -1 else value])
        if value == -1:
            self.expr = dims.const(-1)

    def __int__(self) -> int:
        return cast(int, self.expr.as_int())

    __index__ = __int__

    def value(self) -> int:
        return int(self)

    def __repr__(self) -> str:
        return f"IntImm({self.expr})"


class IntVarTensor(IntVar):
    """A dim as a value: the result of `ops.size`, and an operand of `ops.int_elementwise`.

    >>> seq = ops.size()(x, 1)
    >>> y = ops.reshape()(x, [-1, seq * 2])

    It may be used wherever a dim may: in shapes, in the bounds of slices and of `ops.arange`. `_attrs["int_var"]` is
    the dim. `+`, `-`, `*` and `//` return values, too. A constant value is also an index. The arguments behind `name`
    are kept in `_attrs` and change nothing: the operators and the value of a dim follow from the dim.
    """

    def __init__(
        self,
        int_var: IntVar | int,
        name: str | None = None,
        src_ops: object = None,
        dst_ops: object = None,
        dtype: str = "float16",
        is_input: bool = False,
        is_output: bool = False,
        value: object = None,
        is_view_of: object = None,
    ):
        dim = as_dim(int_var)
        self.expr, self.symbols, self._quotient = dim.expr, dim.symbols, dim._quotient
        given = {"src_ops": src_ops, "dst_ops": dst_ops, "dtype": dtype, "is_input": is_input, "is_output": is_output}
        self._attrs = IntVarAttrs(self, {"int_var": dim, **given, "value": value, "is_view_of": is_view_of})
        if name is not None:
            self.rename(name)

    def is_a_const_num(self) -> bool:
        """Whether the value is known when the model is built."""
        return self.expr.as_int() is not None

    def __index__(self) -> int:
        if (value := self.expr.as_int()) is None:
            raise TypeError(f"{self} is known only when the model runs")
        return value

    __int__ = __index__

    def __repr__(self) -> str:
        return f"IntVarTensor({self.expr})"


def with_parts(names: Iterable[str], symbols: Symbols) -> list[str]:
    """These symbols and the symbols in declarations of their jagged dims, in the order of `symbols`."""
    found = set(names)
    for name in names:
        if (jagged := symbols[name].jagged) is not None:
            found |= jagged.total.symbols | jagged.batch.symbols
            found.update(*(longest.symbols for _, longest in jagged.levels))
    return [name for name in symbols if name in found]


DimLike = IntVar | int


def as_dim(value: object) -> IntVar:
    """The dim for an int or a dim; `BuildError` for other values."""
    if isinstance(value, IntVar):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return IntVar.of(dims.const(value), {})
    raise BuildError(f"a dim is an int, an IntVar or an IntImm; found {value!r} of type {type(value).__name__}")


def at_least_0(dim: IntVar) -> Expr:
    """The expression of a dim, or 0 if it is negative."""
    if dim.symbols and not scope_from(dim.symbols).le(0, dim.expr):
        return dims.maximum(dim.expr, dims.const(0))
    return dim.expr


def _known_value(value: sympy.Expr | int) -> tuple[Expr, Symbols] | None:
    """The expression of a symbolic value, and its dims; None for a symbol without a dim."""
    from ait_mlir.dims.symbolic import from_sympy

    try:
        expr = from_sympy(value)
    except dims.DimError as error:
        raise BuildError(f"{value} is the value of no dim: {error}") from None
    symbols = {name: found for name in expr.symbols if (found := _symbolic.get(name)) is not None}
    if len(symbols) == len(expr.symbols):
        return expr.substitute({name: dims.sym(s.symbol) for name, s in symbols.items()}), {
            s.symbol: s for s in symbols.values()
        }
    return None


def minimum(a: DimLike, b: DimLike) -> IntVar:
    return _combine(as_dim(a), b, dims.minimum)


def maximum(a: DimLike, b: DimLike) -> IntVar:
    return _combine(as_dim(a), b, dims.maximum)


def product(values: Sequence[DimLike]) -> IntVar:
    """The product of dims; 1 for an empty list."""
    factors = [as_dim(v) for v in values]
    return IntVar.of(dims.product([f.expr for f in factors]), merge_symbols(*(f.symbols for f in factors)))


def _combine(a: IntVar, b: DimLike, op: Callable[[Expr, Expr], Expr]) -> IntVar:
    other = as_dim(b)
    dim = IntVar.of(op(a.expr, other.expr), merge_symbols(a.symbols, other.symbols))
    return IntVarTensor(dim) if IntVarTensor in (type(a), type(other)) else dim


def _divisor(a: IntVar, b: DimLike) -> IntVar:
    divisor = as_dim(b)
    if divisor.lower_bound() < 1:
        raise BuildError(f"{a} cannot be divided by {divisor}, which may be {divisor.lower_bound()}")
    return divisor


def checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise BuildError(f"the name of a dim is a string; found {name!r}")
    if name.startswith(UNNAMED):
        raise BuildError(f'"{name}" is no name for a dim: names that start with "{UNNAMED}" are reserved')
    try:
        dims.sym(name)
    except dims.DimError as error:
        raise BuildError(str(error)) from None
    return name
