"""The tables of a model library (`ait_model_v1`): dims and the inputs that bind them, tensors, constants and their
places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Attribute

from ait_mlir.constant_names import LITERAL
from ait_mlir.dialects.ait.dtypes import BY_IR, DType
from ait_mlir.dialects.ait.numbers import Number, literal_values
from ait_mlir.dialects.ait_rt.buffers import ConstantOp, DestinationOp, InputOp, NamedBufferOp
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, const, sym
from ait_mlir.ir.pipeline import PassError

ALIGNMENT = 256
PANEL_BYTES = 192
WINOGRAD_TAPS = 16
"""The products of a Winograd tile, as in ait/panels.h."""


@dataclass(frozen=True)
class Literal:
    """Numbers in the IR: one for all elements, or a row-major list."""

    values: tuple[Number, ...]
    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True)
class Packing:
    """`ait_packing_v1`: row-major, or rows `first` and following of a matrix of `rows` rows in panels."""

    layout: str = "AIT_ROWS"
    first: int = 0
    rows: int = 0


@dataclass
class Constant:
    """A param, or a literal (under a name that no param can have), and its places in the constants blob."""

    index: int
    name: str
    dtype: DType
    shape: tuple[int, ...]
    bytes: int
    places: list[int] = field(default_factory=list[int])
    packings: list[Packing] = field(default_factory=list["Packing"])
    """The layout of the constant at each of its places."""
    can_be_bound: bool = True
    """Whether a run may read the constant from the caller's memory: at each of its places it is the only constant, and
    row-major."""

    @property
    def is_packed(self) -> bool:
        """Whether the constant is not row-major at one of its places."""
        return any(p != Packing() for p in self.packings)


@dataclass(frozen=True)
class Binding:
    """The source of a dim's value: `(shape(input)[axis] - add) / mul`, with strides after the shape for axes from the
    rank on; a launch (`AIT_BOUND` as the input); or the caller of a run (`AIT_GIVEN`, with `add` as the default)."""

    input: int
    axis: int
    mul: int
    add: int


BY_LAUNCH = Binding(-2, 0, 1, 0)


@dataclass(frozen=True)
class DimRow:
    """`ait_dim_v1`."""

    name: str
    lo: int
    hi: int
    binding: Binding


@dataclass(frozen=True)
class TensorRow:
    """`ait_tensor_v1`."""

    name: str
    dtype: DType
    rank: int
    in_place_of: int

    @staticmethod
    def of(op: NamedBufferOp, in_place_of: int = 0) -> TensorRow:
        return TensorRow(op.buffer_name.data, BY_IR[op.buffer_type.element_type], len(op.dims), in_place_of)


@dataclass(frozen=True)
class NumberRow:
    """A number computed from the dims, and a comment."""

    expr: Expr
    what: str


@dataclass
class ProgramTables:
    """The description of a program for the runtime library."""

    program: ProgramOp
    inputs: list[InputOp]
    outputs: list[DestinationOp]
    bindings: dict[str, Binding]
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])
    literals: dict[str, Literal] = field(default_factory=dict[str, Literal])
    offsets: dict[object, int] = field(default_factory=dict[object, int])
    size: int = 0

    @property
    def tensors(self) -> list[NamedBufferOp]:
        """The inputs, then the outputs."""
        return [*self.inputs, *self.outputs]

    @property
    def has_strides(self) -> bool:
        """Whether the caller's memory of some input or output is not row-major."""
        return any(op.strides is not None for op in self.tensors)

    def taker(self, op: InputOp) -> int | None:
        """The index of the output that reuses the memory of a donated input; None if the input is not donated."""
        return next((i for i, out in enumerate(self.outputs) if out.in_place_of is op.buffer), None)

    def place_of(self, op: DestinationOp) -> int:
        """`ait_tensor_v1::in_place_of` of an output."""
        return next((1 + i for i, source in enumerate(self.inputs) if op.in_place_of is source.buffer), 0)

    def offset_of(self, op: ConstantOp) -> int:
        return self.offsets[_constant_key(op)]

    def bound_as(self, op: ConstantOp) -> int | None:
        """The index of a constant's param if a caller may bind it; else None."""
        names = op.param_names()
        if len(names) != 1 or not self.constants[names[0]].can_be_bound:
            return None
        return self.constants[names[0]].index

    def values(self) -> dict[str, object]:
        """The variables of `templates/tables.j2` and `templates/dims.j2`."""
        return {
            "dim_rows": [DimRow(d.name, d.lo, d.hi, self.bindings[d.name]) for d in self.program.scope.dims],
            "inputs": [TensorRow.of(op) for op in self.inputs],
            "outputs": [TensorRow.of(op, self.place_of(op)) for op in self.outputs],
            "constants": list(self.constants.values()),
            "constants_bytes": self.size,
            "bounds": {i: d.upper for i, d in enumerate(self.program.scope.dims) if d.upper is not None},
            "shapes": self._rows(lambda op: op.dims),
            "strides": self._rows(lambda op: op.seen().strides) if self.has_strides else [],
        }

    def _rows(self, numbers: Callable[[NamedBufferOp], Sequence[Expr]]) -> list[NumberRow]:
        """The numbers of all inputs and outputs; the first number of each has a comment with the tensor's name."""
        kinds = ["input"] * len(self.inputs) + ["output"] * len(self.outputs)
        return [
            NumberRow(e, "" if i else f"{kind} {op.buffer_name.data}")
            for kind, op in zip(kinds, self.tensors, strict=True)
            for i, e in enumerate(numbers(op))
        ]


def program_tables(program: ProgramOp) -> ProgramTables:
    """The tables of a program: its constants laid out, and the source of each dim. Raises `PassError` for a dim that no
    input determines."""
    inputs = [op for op in program.block.ops if isinstance(op, InputOp)]
    outputs = [op for op in program.block.ops if isinstance(op, DestinationOp)]
    bindings: dict[str, Binding] = {}
    for d in program.scope.dims:
        found = BY_LAUNCH if d.upper is not None else _binding(d.name, inputs)
        if d.is_given:
            found = Binding(-3, 0, 1, d.usual)
        if found is None:
            raise PassError(
                f"dim {d.name!r} cannot be computed from the shape or strides of any input; "
                "give an input a dim that is it, or a multiple of it plus a number",
                program,
            )
        bindings[d.name] = found
    tables = ProgramTables(program, inputs, outputs, bindings)
    for op in program.block.ops:
        if isinstance(op, ConstantOp):
            _place(tables, op)
    return tables


def _binding(name: str, inputs: Sequence[InputOp]) -> Binding | None:
    """The simplest size or stride of an input that determines dim `name`: `name` itself, else `mul * name + add`."""
    best: Binding | None = None
    for i, op in enumerate(inputs):
        for axis, e in enumerate((*op.dims, *(() if op.strides is None else op.strides.data))):
            if e.symbols != frozenset((name,)):
                continue
            add = e.evaluate({name: 0}) if not e.divisors() else 0
            mul = e.evaluate({name: 1}) - add if not e.divisors() else 0
            if mul <= 0 or sym(name) * mul + const(add) is not e:
                continue
            found = Binding(i, axis, mul, add)
            if best is None or _order(found, inputs) < _order(best, inputs):
                best = found
    return best


def _order(binding: Binding, inputs: Sequence[InputOp]) -> tuple[bool, int, int]:
    """The sort key of bindings: sizes before strides, which the caller may choose; then the simplest."""
    return binding.axis >= len(inputs[binding.input].dims), binding.mul, binding.add


def _constant_key(op: ConstantOp) -> object:
    return (op.params, op.value, op.panels, op.buffer_type)


def _place(tables: ProgramTables, op: ConstantOp) -> None:
    key = _constant_key(op)
    if key in tables.offsets:
        return
    t = op.buffer_type
    dtype, shape = BY_IR[t.element_type], t.static_shape()
    size = t.byte_size().as_int() if op.panels is None else panels_bytes(op.panels.data, t)
    assert shape is not None and size is not None
    offset = tables.offsets[key] = tables.size
    tables.size = (offset + size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    if op.params is None:
        name = f"{LITERAL}{len(tables.literals)}"
        tables.literals[name] = Literal(tuple(_values(op)), shape, dtype)
        tables.constants[name] = Constant(
            len(tables.constants), name, dtype, shape, size, [offset], [Packing()], can_be_bound=False
        )
        return
    names = op.param_names()
    first = 0
    for param, part in zip(names, _parts(op, t, len(names)), strict=True):
        nbytes = dtype.bytes
        for n in part:
            nbytes *= n
        known = tables.constants.setdefault(param, Constant(len(tables.constants), param, dtype, part, nbytes))
        if (known.dtype, known.shape) != (dtype, part):
            raise PassError(f"param {param!r} is used with the shapes {list(known.shape)} and {list(part)}", op)
        known.places.append(offset)
        known.can_be_bound &= op.panels is None and len(names) == 1
        if op.panels is None:
            known.packings.append(Packing())
            offset += nbytes
        else:
            known.packings.append(Packing(f"AIT_PANELS_{op.panels.data.upper()}", first, shape[0]))
            first += part[0]


def panels_bytes(layout: str, t: BufferType) -> int | None:
    """The bytes of a matrix in panels, padded to whole panels; None unless its shape is static."""
    shape = t.static_shape()
    if shape is None:
        return None
    first, others = shape[0], prod(shape[1:])
    if layout == "winograd":
        columns = PANEL_BYTES // 4
        return -(-first // columns) * PANEL_BYTES * WINOGRAD_TAPS * (others // 9)
    n, k = (first, others) if layout == "nk" else (others, first)
    size = BY_IR[t.element_type].bytes
    columns = PANEL_BYTES // max(size, 4)
    k = -(-k // 4) * 4 if size == 1 else k  # bytes lie in fours
    return -(-n // columns) * columns * size * k


def _values(op: ConstantOp) -> list[Number]:
    value: Attribute | None = op.value
    return [] if value is None else literal_values(value)


def _parts(op: ConstantOp, t: BufferType, count: int) -> list[tuple[int, ...]]:
    """The shapes of the params in a constant."""
    shape = t.static_shape()
    assert shape is not None
    if count == 1:
        return [shape]
    return [(n, *shape[1:]) for n in op.rows()]
