"""The tables of a model library (`ait_model_v1`): dims and how inputs bind them, tensors, constants and where they
lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute

from ait_mlir.dialects.ait.dtypes import BY_IR, DType
from ait_mlir.dialects.ait.numbers import Number, literal_values
from ait_mlir.dialects.ait_rt.buffers import ConstantOp, DestinationOp, InputOp, NamedBufferOp
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, const, sym
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.cpp import cstr

ALIGNMENT = 256
PANEL_BYTES = 192
"""As in ait/panels.h."""
LITERAL = "$literal."


@dataclass(frozen=True)
class Literal:
    """Numbers that the IR holds itself: one for all elements, or a row-major list."""

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
    """A param, or a literal under a name that no param can have, and its places in the constants blob."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    bytes: int
    places: list[int] = field(default_factory=list[int])
    packings: list[Packing] = field(default_factory=list["Packing"])
    """How it lies at each of its places."""


@dataclass(frozen=True)
class Binding:
    """Where a dim's value comes from: `(shape(input)[axis] - add) / mul`."""

    input: int
    axis: int
    mul: int
    add: int


@dataclass
class ProgramTables:
    """What the runtime library must know of a program."""

    program: ProgramOp
    inputs: list[InputOp]
    outputs: list[DestinationOp]
    bindings: dict[str, Binding]
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])
    literals: dict[str, Literal] = field(default_factory=dict[str, Literal])
    offsets: dict[object, int] = field(default_factory=dict[object, int])
    size: int = 0

    def taker(self, op: InputOp) -> int | None:
        """The output that takes the place of a donated input; None where the input is not donated."""
        return next((i for i, out in enumerate(self.outputs) if out.in_place_of is op.buffer), None)

    def place_of(self, op: DestinationOp) -> int:
        """`ait_tensor_v1::in_place_of` of an output."""
        return next((1 + i for i, source in enumerate(self.inputs) if op.in_place_of is source.buffer), 0)

    def offset_of(self, op: ConstantOp) -> int:
        return self.offsets[_constant_key(op)]

    def text(self, dims: Mapping[str, str], arena: Expr, name: str, target: str) -> str:
        """The definitions that `model()` refers to."""
        scope = self.program.scope
        lines: list[str] = []
        rows = [
            f"{{{cstr(d.name)}, {d.lo}, {d.hi}, {b.input}, {b.axis}, {b.mul}, {b.add}}}"
            for d in scope.dims
            for b in [self.bindings[d.name]]
        ]
        lines.append(_array("ait_dim_v1", "kDims", rows))
        lines.append(_array("ait_tensor_v1", "kInputs", [_tensor_row(op, 0) for op in self.inputs]))
        lines.append(_array("ait_tensor_v1", "kOutputs", [_tensor_row(op, self.place_of(op)) for op in self.outputs]))
        constant_rows: list[str] = []
        for i, c in enumerate(self.constants.values()):
            lines.append(_array("int64_t", f"kShape{i}", [str(n) for n in c.shape]))
            lines.append(_array("int64_t", f"kPlaces{i}", [str(p) for p in c.places]))
            packings = "nullptr"
            if any(p != Packing() for p in c.packings):
                packings = f"kPackings{i}"
                rows = [f"{{{p.layout}, {p.first}, {p.rows}}}" for p in c.packings]
                lines.append(_array("ait_packing_v1", packings, rows))
            constant_rows.append(
                f"{{{cstr(c.name)}, {c.dtype.abi}, {len(c.shape)}, kShape{i}, {c.bytes}, "
                f"{len(c.places)}, kPlaces{i}, {packings}}}"
            )
        lines.append(_array("ait_constant_v1", "kConstants", constant_rows))
        shapes = [e for op in (*self.inputs, *self.outputs) for e in op.buffer_type.dims]
        load = "".join(f"  [[maybe_unused]] const int64_t {v} = d[{i}];\n" for i, v in enumerate(dims.values()))
        stores = "".join(f"  out[{i}] = {e.cpp(dims)};\n" for i, e in enumerate(shapes))
        lines.append(
            "void shapes([[maybe_unused]] const int64_t* d, [[maybe_unused]] int64_t* out) {\n" + load + stores + "}\n"
        )
        lines.append(
            "int64_t arena_bytes([[maybe_unused]] const int64_t* d) {\n" + load + f"  return {arena.cpp(dims)};\n}}\n"
        )
        lines.append(f"constexpr const char* kName = {cstr(name)};\nconstexpr const char* kTarget = {cstr(target)};\n")
        return "\n".join(lines)

    def model(self) -> str:
        """The definition of the table itself."""
        counts = f"{len(self.program.scope.dims)}, {len(self.inputs)}, {len(self.outputs)}, {len(self.constants)}"
        return (
            f"const ait_model_v1 kModel = {{AIT_MODEL_ABI_VERSION, kName, kTarget, {counts}, kDims, kInputs,\n"
            f"                             kOutputs, kConstants, {self.size}, shapes, arena_bytes, run}};\n"
        )


def program_tables(program: ProgramOp, dims: Mapping[str, str]) -> ProgramTables:
    """Lay out the constants of a program and find how its dims are bound; raises `PassError` for a dim no input
    determines."""
    inputs = [op for op in program.block.ops if isinstance(op, InputOp)]
    outputs = [op for op in program.block.ops if isinstance(op, DestinationOp)]
    bindings: dict[str, Binding] = {}
    for d in program.scope.dims:
        found = _binding(d.name, inputs)
        if found is None:
            raise PassError(
                f"dim {d.name!r} cannot be computed from the shape of any input; "
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
    """The simplest input dim that determines `name`: `name` itself, else `mul * name + add`."""
    best: Binding | None = None
    for i, op in enumerate(inputs):
        for axis, e in enumerate(op.buffer_type.dims):
            if e.symbols != frozenset((name,)):
                continue
            add = e.evaluate({name: 0}) if not e.divisors() else 0
            mul = e.evaluate({name: 1}) - add if not e.divisors() else 0
            if mul <= 0 or sym(name) * mul + const(add) is not e:
                continue
            if best is None or (mul, add) < (best.mul, best.add):
                best = Binding(i, axis, mul, add)
    return best


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
        tables.constants[name] = Constant(name, dtype, shape, size, [offset], [Packing()])
        return
    names = op.param_names()
    first = 0
    for param, part in zip(names, _parts(op, t, len(names)), strict=True):
        nbytes = dtype.bytes
        for n in part:
            nbytes *= n
        known = tables.constants.setdefault(param, Constant(param, dtype, part, nbytes))
        if (known.dtype, known.shape) != (dtype, part):
            raise PassError(f"param {param!r} is used with the shapes {list(known.shape)} and {list(part)}", op)
        known.places.append(offset)
        if op.panels is None:
            known.packings.append(Packing())
            offset += nbytes
        else:
            known.packings.append(Packing(f"AIT_PANELS_{op.panels.data.upper()}", first, shape[0]))
            first += part[0]


def panels_bytes(layout: str, t: BufferType) -> int | None:
    """The bytes of a matrix in panels, filled up to whole ones; None unless its shape is static."""
    shape = t.static_shape()
    if shape is None:
        return None
    n, k = shape if layout == "nk" else reversed(shape)
    columns = PANEL_BYTES // BY_IR[t.element_type].bytes
    return -(-n // columns) * PANEL_BYTES * k


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


def _tensor_row(op: NamedBufferOp, place: int) -> str:
    t = op.buffer_type
    return f"{{{cstr(op.buffer_name.data)}, {BY_IR[t.element_type].abi}, {t.rank}, {place}}}"


def _array(kind: str, name: str, rows: Sequence[str]) -> str:
    """A constant array; a null pointer when it would be empty, which C++ does not allow."""
    if not rows:
        return f"constexpr const {kind}* {name} = nullptr;"
    if kind == "int64_t":
        return f"constexpr {kind} {name}[] = {{{', '.join(rows)}}};"
    body = "".join(f"    {row},\n" for row in rows)
    return f"constexpr {kind} {name}[] = {{\n{body}}};"
