"""The graph with its params, constants and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.base import (
    AitOp,
    PureOp,
    ResultTypes,
    Value,
    check_declared,
    check_name,
    check_param_name,
    check_sizes,
)
from ait_mlir.dialects.ait.dtypes import integer_range, is_element_type, is_float
from ait_mlir.dialects.ait.layouts import check_strides, strides_by_name
from ait_mlir.dialects.ait.numbers import Number, literal_values, number_text
from ait_mlir.dialects.ait.ranks import Part, check_ranks
from ait_mlir.dialects.ait.strided import ZERO, Strided
from ait_mlir.dialects.ait.syntax import LITERAL, SHAPE, STRING, Flag, Operand, Operands, Prop, Syntax
from ait_mlir.dialects.ait.traits import BindsDim
from ait_mlir.dialects.ait.types import DimsAttr, Shape, ShapeAttr, TensorType, scope_of, shape_text
from ait_mlir.dialects.sdy import SHARDING, Sharding, ShardingAttr
from ait_mlir.dims import Expr, Scope


@irdl_op_definition
class GraphOp(AitOp):
    """A model: named inputs, declared dims, and a body of ops in order.

    ```mlir
    ait.graph @ffn(%x: !ait.tensor<batch x 768 x f16>) dims {batch = 1 to 64} {
      ait.output "y" %x : !ait.tensor<batch x 768 x f16>
    }
    ```

    A `donated` input is state: the output in its place uses its memory.

    ```mlir
    ait.graph @step(%cache: !ait.tensor<512 x 64 x f16> donated, %row: !ait.tensor<1 x 64 x f16>) {
    ```

    `strides` are the strides, in elements, of the caller's memory of an input; without them it is row-major. A dim that
    occurs only in strides is computed from them. If a caller passes other strides, the input is copied.

    ```mlir
    ait.graph @f(%x: !ait.tensor<rows x 768 x f16> strides [8*pitch, 1]) dims {rows = 1 to 64, pitch = 96 to 512} {
    ```

    An input may have a sharding, which the pass `partition` follows. A graph with `ranks` is partitioned: it runs once
    on each rank of a mesh, and its types are those of one rank's pieces (`ranks.py`).

    ```mlir
    ait.graph @f(%x: !ait.tensor<8 x 4 x f32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>}) {
    ait.graph @f(%x: !ait.tensor<8 x 4 x f32>) ranks {mesh = #sdy.mesh<["tp"=2]>} {
    ```
    """

    name = "ait.graph"

    sym_name = prop_def(StringAttr)
    dims = prop_def(DimsAttr)
    input_names = prop_def(ArrayAttr[StringAttr])
    donated_names = opt_prop_def(ArrayAttr[StringAttr])
    input_strides = opt_prop_def(DictionaryAttr)
    input_shardings = opt_prop_def(DictionaryAttr)
    ranks = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        inputs: Sequence[tuple[str, TensorType]],
        dims: Scope,
        body: Region | None = None,
        donated: Sequence[str] = (),
        strides: Mapping[str, Shape] | None = None,
    ):
        region = body or Region(Block(arg_types=[t for _, t in inputs]))
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "dims": DimsAttr(dims),
                "input_names": ArrayAttr([StringAttr(n) for n, _ in inputs]),
                "donated_names": _names_or_none(donated),
                "input_strides": strides_by_name(strides or {}),
            },
            regions=[region],
        )

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def scope(self) -> Scope:
        return self.dims.data

    def inputs(self) -> list[tuple[str, SSAValue]]:
        """Names and values of the inputs, in order."""
        return [(n.data, v) for n, v in zip(self.input_names.data, self.block.args, strict=True)]

    def donated(self) -> list[str]:
        """Names of the inputs that are donated."""
        return [] if self.donated_names is None else [n.data for n in self.donated_names.data]

    def strides(self) -> dict[str, Shape]:
        """The declared strides of inputs, by name."""
        if self.input_strides is None:
            return {}
        return {name: cast(ShapeAttr, attr).data for name, attr in self.input_strides.data.items()}

    def shardings(self) -> dict[str, Sharding]:
        """The shardings of inputs, by name."""
        if self.input_shardings is None:
            return {}
        return {name: cast(ShardingAttr, attr).data for name, attr in self.input_shardings.data.items()}

    def outputs(self) -> list[OutputOp]:
        return [op for op in self.block.ops if isinstance(op, OutputOp)]

    def params(self) -> list[ParamOp]:
        return [op for op in self.block.ops if isinstance(op, ParamOp)]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        names: list[StringAttr] = []
        donated: list[str] = []
        strides: dict[str, Shape] = {}
        shardings: dict[str, Attribute] = {}

        def parse_input() -> Parser.Argument:
            given = parser.parse_optional_str_literal()
            argument = parser.parse_argument()
            names.append(StringAttr(argument.name.text[1:] if given is None else given))
            if parser.parse_optional_keyword("strides") is not None:
                strides[names[-1].data] = cast(ShapeAttr, SHAPE.parse(parser)).data
            if parser.parse_optional_keyword("donated") is not None:
                donated.append(names[-1].data)
            start = parser.pos
            given_attributes = parser.parse_optional_attr_dict()
            if (sharding := given_attributes.pop(SHARDING, None)) is not None:
                shardings[names[-1].data] = sharding
            if given_attributes:
                parser.raise_error(f"an input has the attribute {SHARDING} only", start, parser.pos)
            return argument

        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_input)
        dims = DimsAttr(Scope.parse(""))
        if parser.parse_optional_keyword("dims") is not None:
            dims = DimsAttr.parse_braces(parser)
        ranks = None
        if parser.parse_optional_keyword("ranks") is not None:
            ranks = DictionaryAttr(parser.parse_optional_attr_dict())
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(arguments)
        properties: dict[str, Attribute] = {"sym_name": name, "dims": dims, "input_names": ArrayAttr(names)}
        if (state := _names_or_none(donated)) is not None:
            properties["donated_names"] = state
        if (laid_out := strides_by_name(strides)) is not None:
            properties["input_strides"] = laid_out
        if shardings:
            properties["input_shardings"] = DictionaryAttr(shardings)
        if ranks is not None:
            properties["ranks"] = ranks
        return cls.create(
            properties=properties,
            attributes=dict(attributes.data) if attributes is not None else {},
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string("(")
        for i, (name, value) in enumerate(zip(self.input_names.data, self.block.args, strict=True)):
            printer.print_string(", " if i else "")
            if value.name_hint != name.data:
                printer.print_string_literal(name.data)
                printer.print_string(" ")
            printer.print_block_argument(value)
            if (laid_out := self.strides().get(name.data)) is not None:
                printer.print_string(f" strides {shape_text(laid_out)}")
            printer.print_string(" donated" if name.data in self.donated() else "")
            if self.input_shardings is not None and (sharding := self.input_shardings.data.get(name.data)) is not None:
                printer.print_string(" ")
                printer.print_attr_dict({SHARDING: sharding})
        printer.print_string(")")
        if self.scope.dims:
            printer.print_string(f" dims {{{self.scope}}}")
        if self.ranks is not None:
            printer.print_string(" ranks ")
            printer.print_attr_dict(self.ranks.data)
        if self.attributes:
            printer.print_string(" attributes")
            printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        check_name(self, "graph", self.sym_name.data)
        names = [n.data for n in self.input_names.data]
        arguments = self.block.args
        if len(names) != len(arguments):
            raise self.fail(f"has {len(arguments)} inputs, but {len(names)} input names")
        _check_unique(self, "inputs", names)
        for name, value in zip(names, arguments, strict=True):
            if not isinstance(value.type, TensorType):
                raise self.fail(f"input {name!r} must be a tensor, got {value.type}")
            check_declared(self, self.scope, value.type)
            check_sizes(self, self.scope, value.type)
        outputs = self.outputs()
        _check_unique(self, "outputs", [o.output_name.data for o in outputs])
        self.check_donated(outputs)
        self.check_strides()
        self.check_shardings()
        if self.scope.bound:
            self.check_bound_dims()
        params: dict[str, Attribute] = {}
        for p in self.params():
            known = params.setdefault(p.param_name.data, p.output.type)
            if known != p.output.type:
                raise self.fail(f"param {p.param_name.data!r} has two types, {known} and {p.output.type}")

    def check_bound_dims(self) -> None:
        """Raise unless exactly one op binds each bound dim, before any other op uses it."""
        for name, value in self.inputs():
            if isinstance(value.type, TensorType) and (used := _symbols(self.scope, value.type.dims)):
                raise self.fail(f"input {name!r} has dim {used[0]!r}, which an op binds; inputs cannot have it")
        known: set[str] = set()
        for op in self.block.ops:
            binds = str(op.bound_dim) if isinstance(op, BindsDim) else None
            dims = [e for r in op.results if isinstance(r.type, TensorType) for e in r.type.dims]
            dims += [e for a in op.properties.values() if isinstance(a, ShapeAttr) for e in a.data]
            if binds in known:
                raise VerifyException(f"{op.name}: binds dim {binds!r}, which another op has bound")
            for name in _symbols(self.scope, dims):
                if name != binds and name not in known:
                    raise VerifyException(f"{op.name}: uses dim {name!r} before an op binds it")
            if binds is not None:
                known.add(binds)
        for dim in self.scope.bound:
            if dim.jagged is None and dim.name not in known:
                raise self.fail(f"dim {dim.name!r} is to be bound, but no op binds it")

    def check_donated(self, outputs: Sequence[OutputOp]) -> None:
        """Raise unless exactly one output is in place of each donated input."""
        inputs = dict(self.inputs())
        taken: dict[SSAValue, str] = {}
        for op in outputs:
            if (place := op.in_place_of) is None:
                continue
            if place not in inputs.values():
                return  # the check of the output reports it
            if place in taken:
                raise op.fail(f"outputs {taken[place]!r} and {op.output_name.data!r} take the place of one input")
            taken[place] = op.output_name.data
        for name in self.donated():
            if name not in inputs:
                raise self.fail(f"input {name!r} is donated, but there is no such input")
            if inputs[name] not in taken:
                raise self.fail(
                    f"input {name!r} is donated, but no output takes its place; "
                    f"write 'in place of %{inputs[name].name_hint or name}' at an output, or leave out 'donated'"
                )

    def check_strides(self) -> None:
        """Raise unless the declared strides of inputs are valid, so that no two elements overlap."""
        inputs = dict(self.inputs())
        for name, attr in () if self.input_strides is None else self.input_strides.data.items():
            if not isinstance(attr, ShapeAttr):
                raise self.fail(f"the strides of input {name!r} are {attr}, expected a shape as in #ait.shape<8*n, 1>")
        for name, strides in self.strides().items():
            if name not in inputs:
                raise self.fail(f"input {name!r} has strides, but there is no such input")
            if name in self.donated():
                raise self.fail(f"input {name!r} is donated and has strides; a donated input is row-major")
            check_strides(self, self.scope, f"input {name!r}", cast(TensorType, inputs[name].type), strides)

    def check_shardings(self) -> None:
        """Raise unless the shardings of inputs, and the ranks, are valid."""
        if self.input_shardings is not None:
            names = {name for name, _ in self.inputs()}
            for name, sharding in self.input_shardings.data.items():
                if name not in names:
                    raise self.fail(f"input {name!r} has a sharding, but there is no such input")
                if not isinstance(sharding, ShardingAttr):
                    raise self.fail(f"input {name!r} has {sharding}, expected a #sdy.sharding")
        tensors: dict[Part, list[tuple[str, SSAValue]]] = {
            "inputs": self.inputs(),
            "params": [(op.param_name.data, op.output) for op in self.params()],
            "outputs": [(op.output_name.data, op.value) for op in self.outputs()],
        }
        check_ranks(self, ((part, n, cast(TensorType, v.type)) for part, rows in tensors.items() for n, v in rows))

    def infer_result_types(self) -> ResultTypes:
        return []


def stored(value: SSAValue) -> Strided:
    """The memory layout of a value that is not a view: its declared strides for an input, else row-major."""
    dims, given = cast(TensorType, value.type).dims, declared_strides(value)
    return Strided.whole(dims) if given is None else Strided(dims, ZERO, given)


def declared_strides(value: SSAValue) -> Shape | None:
    """The declared strides of an input; None without them and for other values."""
    if not isinstance(value, BlockArgument) or not isinstance(graph := value.owner.parent_op(), GraphOp):
        return None
    if graph.input_strides is None:
        return None
    return graph.strides().get(graph.input_names.data[value.index].data)


def _symbols(scope: Scope, dims: Sequence[Expr]) -> list[str]:
    """The names in these dims that ops bind."""
    return [name for e in dims for name in sorted(scope.host_symbols(e))]


def _names_or_none(names: Sequence[str]) -> ArrayAttr[StringAttr] | None:
    return ArrayAttr([StringAttr(n) for n in names]) if names else None


def _check_unique(op: AitOp, what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for n in names:
        check_name(op, what[:-1], n)
        if n in seen:
            raise op.fail(f"two {what} are named {n!r}")
        seen.add(n)


@irdl_op_definition
class ParamOp(PureOp):
    """A weight, by name; its data comes from a side file or from Python.

    ```mlir
    %w = ait.param "encoder.up.weight" : !ait.tensor<3072 x 768 x f16>
    ```
    """

    name = "ait.param"
    TAKES_STORED: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (Prop("param_name", STRING, ""),)
    SELF_CONTAINED: ClassVar[bool] = True

    param_name = prop_def(StringAttr)
    output = result_def(TensorType)

    def __init__(self, name: str, type: TensorType) -> None:
        self.set_up([], [type], param_name=name)

    def infer_result_types(self) -> ResultTypes:
        t = self.expect_tensor(self.results[0], "the result")
        check_param_name(self, self.param_name.data)
        if t.static_shape() is None:
            raise self.fail(f"param {self.param_name.data!r} must have a static shape, got {shape_text(t.dims)}")
        return [t]


@irdl_op_definition
class ConstantOp(PureOp):
    """A literal: one number for all elements, or a row-major list.

    ```mlir
    %c = ait.constant 0.125 : !ait.tensor<f16>
    %i = ait.constant [0, 1, 2] : !ait.tensor<3 x i64>
    ```
    """

    name = "ait.constant"
    TAKES_STORED: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (Prop("value", LITERAL, ""),)

    value = prop_def(ArrayAttr | FloatAttr | IntegerAttr)
    output = result_def()

    def __init__(self, value: Number | Sequence[Number], type: Attribute) -> None:
        self.set_up([], [type], value=value)

    def values(self) -> list[Number]:
        """The numbers in row-major order; a single number fills the whole tensor unless it is a list."""
        return literal_values(cast(Attribute, self.value))

    def splat(self) -> Number | None:
        """The number that all elements equal; None for a list of different numbers."""
        values = self.values()
        return values[0] if values and all(v == values[0] for v in values) else None

    def infer_result_types(self) -> ResultTypes:
        t = self.output.type
        values = self.values()
        element = t
        if isinstance(t, TensorType):
            element = t.element_type
            if isinstance(self.value, ArrayAttr):
                shape = t.static_shape()
                size = t.num_elements().as_int()
                if shape is None or size != len(values):
                    raise self.fail(f"{len(values)} numbers cannot fill {t}, which has {t.num_elements()} elements")
        elif isinstance(self.value, ArrayAttr):
            raise self.fail(f"a list needs a tensor type, got {t}")
        elif isinstance(self.parent_op(), GraphOp):
            raise self.fail(f"needs a tensor type, got {t}; scalars stand in the regions of ops only")
        if not is_element_type(element):
            raise self.fail(f"type {t} is neither a tensor nor an element type")
        if not is_float(element) and not all(isinstance(v, int) for v in values):
            raise self.fail(f"a number with a point cannot be of type {element}")
        ends = integer_range(element)
        if ends is not None and (outside := [v for v in values if not ends[0] <= v <= ends[1]]):
            raise self.fail(f"{number_text(outside[0])} does not fit in {element}")
        return [t]


@irdl_op_definition
class OutputOp(AitOp):
    """Name a value as an output of the graph.

    ```mlir
    ait.output "y" %v : !ait.tensor<batch x 768 x f16>
    ait.output "cache" %new in place of %cache : !ait.tensor<512 x 64 x f16>
    ```

    `strides` are the strides of the caller's memory, as for an input of `ait.graph`.

    An output in place of a donated input uses that input's memory. Bufferisation must prove that the new value can be
    computed there; otherwise it fails. With `or copy` it may compute the value elsewhere and copy it.
    """

    name = "ait.output"
    TAKES_STORED: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (
        Prop("output_name", STRING, ""),
        Operands(("value",)),
        Prop("strides", SHAPE, optional=True),
        Operand("in_place_of", "in place of", optional=True),
        Flag("or_copy", "or copy"),
    )
    OPERAND_TYPES: ClassVar[str] = "value"

    value = operand_def(TensorType)
    in_place_of = opt_operand_def(TensorType)
    output_name = prop_def(StringAttr)
    strides = opt_prop_def(ShapeAttr)
    or_copy = opt_prop_def(UnitAttr)

    def __init__(
        self,
        name: str,
        value: Value,
        in_place_of: SSAValue | None = None,
        or_copy: bool = False,
        strides: Shape | None = None,
    ) -> None:
        self.set_up([value, in_place_of], [], output_name=name, or_copy=or_copy, strides=strides)

    def infer_result_types(self) -> ResultTypes:
        if not self.output_name.data:
            raise self.fail("needs a name")
        if not isinstance(self.parent_op(), GraphOp | None):
            raise self.fail("stands in the body of an ait.graph only")
        self.check_place()
        if self.strides is not None:
            what = f"output {self.output_name.data!r}"
            if self.in_place_of is not None:
                raise self.fail(f"{what} is in place of an input and has strides; such memory is row-major")
            check_strides(self, scope_of(self), what, cast(TensorType, self.value.type), self.strides.data)
        return []

    def check_place(self) -> None:
        """Raise unless the output may be in place of its input."""
        if (place := self.in_place_of) is None:
            if self.or_copy is not None:
                raise self.fail("allows a copy, but takes the place of no input")
            return
        graph = self.parent_op()
        if not isinstance(graph, GraphOp):
            return
        names = {v: n for n, v in graph.inputs()}
        if not isinstance(place, BlockArgument) or place not in names:
            raise self.fail(f"{self.output_name.data!r} takes the place of a value that is no input of the graph")
        if names[place] not in graph.donated():
            raise self.fail(
                f"{self.output_name.data!r} takes the place of input {names[place]!r}, which is not donated; "
                f"write 'donated' behind its type"
            )
        if place.type != self.value.type:
            raise self.fail(
                f"{self.output_name.data!r} is {self.value.type}, but input {names[place]!r}, "
                f"the place of which it takes, is {place.type}"
            )


OPS = (GraphOp, ParamOp, ConstantOp, OutputOp)
