"""The ops that define buffers (inputs, outputs, constants, allocations, views), and copies between them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar, cast

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, Float64Type, FloatAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ait_mlir.dialects.ait.base import (
    AitOp,
    ResultTypes,
    check_declared,
    check_expressions,
    check_param_name,
    check_sizes,
)
from ait_mlir.dialects.ait.dtypes import is_byte
from ait_mlir.dialects.ait.layouts import check_strides
from ait_mlir.dialects.ait.numbers import literal_values, parse_literal, print_literal
from ait_mlir.dialects.ait.strided import ZERO, Strided, extent
from ait_mlir.dialects.ait.syntax import (
    DIM,
    SHAPE,
    STRING,
    Body,
    Flag,
    Operand,
    Operands,
    Prop,
    Syntax,
    int_list,
    int_list_attr,
    parse_int_list,
    print_int_list,
)
from ait_mlir.dialects.ait.types import Shape, ShapeAttr, TensorType, scope_of, shape_text
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, const

PANEL_LAYOUTS = ("kn", "nk", "winograd")


class BufferOp(AitOp):
    """Base of the ops that define one buffer."""

    SELF_CONTAINED: ClassVar[bool] = True

    buffer = result_def(BufferType)

    @property
    def buffer_type(self) -> BufferType:
        return cast(BufferType, self.results[0].type)

    def infer_result_types(self) -> ResultTypes:
        if not isinstance(self.results[0].type, BufferType):
            raise self.fail(f"the result must be a buffer, got {self.results[0].type}")
        scope = scope_of(self)
        check_declared(self, scope, self.buffer_type)
        check_sizes(self, scope, self.buffer_type)
        return [self.results[0].type]


class NamedBufferOp(BufferOp):
    """Base of inputs and outputs.

    The caller's tensor has the shape of the buffer and is row-major, unless `shape` and `strides` say otherwise: then
    the buffer is all memory from its first element to its last one, and views show the tensor.
    """

    buffer_name = prop_def(StringAttr)
    shape = opt_prop_def(ShapeAttr)
    strides = opt_prop_def(ShapeAttr)
    SYNTAX: ClassVar[Syntax] = (
        Prop("buffer_name", STRING, ""),
        Prop("shape", SHAPE, optional=True),
        Prop("strides", SHAPE, optional=True),
    )

    @property
    def dims(self) -> Shape:
        """The shape of the caller's tensor."""
        return self.buffer_type.dims if self.shape is None else self.shape.data

    def seen(self) -> Strided:
        """The caller's tensor in the buffer."""
        return Strided.whole(self.dims) if self.strides is None else Strided(self.dims, ZERO, self.strides.data)

    def infer_result_types(self) -> ResultTypes:
        if (self.shape is None) != (self.strides is None):
            raise self.fail("shape and strides are given together")
        if self.shape is not None and self.strides is not None:
            scope, t = scope_of(self), self.buffer_type
            tensor = TensorType.get(self.shape.data, t.element_type)
            check_declared(self, scope, tensor)
            check_strides(self, scope, repr(self.buffer_name.data), tensor, self.strides.data)
            if t.dims != (room := (extent(self.shape.data, self.strides.data, scope),)):
                raise self.fail(f"{self.buffer_name.data!r} is {t}, but its strides need {shape_text(room)}")
        return super().infer_result_types()


def properties_of(name: str, view: Strided | None) -> dict[str, Attribute | None]:
    """The properties of an input or output; `view` gives the shape and strides of a caller's tensor with strides."""
    laid_out = {} if view is None else {"shape": ShapeAttr(view.dims), "strides": ShapeAttr(view.strides)}
    return {"buffer_name": StringAttr(name), **laid_out}


@irdl_op_definition
class InputOp(NamedBufferOp):
    """The caller's buffer of an input. Only a donated input may be written.

    ```mlir
    %x = ait_rt.input "x" : !ait_rt.buffer<batch x 768 x f16>
    %k = ait_rt.input "cache" donated : !ait_rt.buffer<512 x 64 x f16>
    %z = ait_rt.input "z" shape [batch, 768] strides [1024, 1] : !ait_rt.buffer<(1024*batch - 256) x f16>
    ```
    """

    name = "ait_rt.input"
    SYNTAX: ClassVar[Syntax] = (*NamedBufferOp.SYNTAX, Flag("donated"))

    donated = opt_prop_def(UnitAttr)

    def __init__(self, name: str, type: BufferType, donated: bool = False, view: Strided | None = None) -> None:
        properties = {**properties_of(name, view), "donated": UnitAttr() if donated else None}
        super().__init__(properties=properties, result_types=[type])

    @property
    def is_state(self) -> bool:
        return self.donated is not None


@irdl_op_definition
class DestinationOp(NamedBufferOp):
    """The caller's buffer of an output. An output in place of a donated input is that input's buffer.

    ```mlir
    %y = ait_rt.output "y" : !ait_rt.buffer<batch x 3072 x f16>
    %c = ait_rt.output "cache" in place of %k : !ait_rt.buffer<512 x 64 x f16>
    ```
    """

    name = "ait_rt.output"
    SYNTAX: ClassVar[Syntax] = (*NamedBufferOp.SYNTAX, Operand("in_place_of", "in place of", optional=True))
    SELF_CONTAINED: ClassVar[bool] = False

    in_place_of = opt_operand_def(BufferType)

    def __init__(
        self, name: str, type: BufferType, in_place_of: SSAValue | None = None, view: Strided | None = None
    ) -> None:
        super().__init__(operands=[in_place_of], properties=properties_of(name, view), result_types=[type])

    def infer_result_types(self) -> ResultTypes:
        if (place := self.in_place_of) is not None:
            source = place.owner
            if not isinstance(source, InputOp) or not source.is_state:
                raise self.fail(f"{self.buffer_name.data!r} takes the place of what is no donated input")
            if place.type != self.results[0].type:
                raise self.fail(
                    f"{self.buffer_name.data!r} is {self.results[0].type}, but input {source.buffer_name.data!r}, "
                    f"the place of which it takes, is {place.type}"
                )
            if any(True for _ in self.results[0].uses):
                raise self.fail(f"{self.buffer_name.data!r} is used; use the input the place of which it takes")
        return super().infer_result_types()


@irdl_op_definition
class ConstantOp(BufferOp):
    """Params joined along dim 0, or a literal.

    ```mlir
    %w = ait_rt.constant ["q.weight", "k.weight"] rows [768, 768] : !ait_rt.buffer<1536 x 768 x f16>
    %p = ait_rt.constant ["v.weight"] panels nk : !ait_rt.buffer<768 x 768 x f32>
    %c = ait_rt.constant value 0.125 : !ait_rt.buffer<f16>
    ```

    Its bytes are row-major, or in panels of columns (`nk`: the first dim of the buffer is n, all others k; `kn`: the
    reverse; `winograd`: the transformed weight of a 3 x 3 convolution, in f32). Only a kernel that requests panels can
    read them.
    """

    name = "ait_rt.constant"

    params = opt_prop_def(ArrayAttr[StringAttr])
    row_counts = opt_prop_def(ArrayAttr[IntegerAttr])
    value = opt_prop_def(ArrayAttr | FloatAttr | IntegerAttr)
    panels = opt_prop_def(StringAttr)
    traits = traits_def(Pure())

    def __init__(
        self,
        type: BufferType,
        params: Sequence[str] = (),
        value: Attribute | None = None,
        rows: Sequence[int] = (),
        panels: str | None = None,
    ) -> None:
        names = ArrayAttr([StringAttr(p) for p in params]) if params else None
        counts = int_list_attr(rows) if rows else None
        layout = None if panels is None else StringAttr(panels)
        super().__init__(
            properties={"params": names, "row_counts": counts, "value": value, "panels": layout}, result_types=[type]
        )

    @classmethod
    def parse_body(cls, parser: Parser, body: Body) -> None:
        if parser.parse_optional_keyword("value") is not None:
            body.properties["value"] = parse_literal(parser)
            return
        names = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: StringAttr(parser.parse_str_literal())
        )
        body.properties["params"] = ArrayAttr(names)
        if parser.parse_optional_keyword("rows") is not None:
            body.properties["row_counts"] = parse_int_list(parser)
        if parser.parse_optional_keyword("panels") is not None:
            body.properties["panels"] = StringAttr(parser.parse_identifier("'nk', 'kn' or 'winograd'"))

    def print_body(self, printer: Printer) -> None:
        if self.params is None:
            printer.print_string(" value ")
            print_literal(printer, cast(Attribute, self.value))
            return
        printer.print_string(" [")
        printer.print_list(self.params.data, lambda p: printer.print_string_literal(p.data))
        printer.print_string("]")
        if self.row_counts is not None:
            printer.print_string(" rows ")
            print_int_list(printer, self.rows())
        if self.panels is not None:
            printer.print_string(f" panels {self.panels.data}")

    def param_names(self) -> list[str]:
        return [] if self.params is None else [p.data for p in self.params.data]

    def rows(self) -> tuple[int, ...]:
        """The number of rows along dim 0 of each param; empty for a single param."""
        return () if self.row_counts is None else int_list(self.row_counts)

    def param_dims(self) -> list[tuple[str, Shape]]:
        """The name and shape of each param."""
        names, dims = self.param_names(), self.buffer_type.dims
        if not self.rows():
            return [(name, dims) for name in names]
        return [(name, (const(rows), *dims[1:])) for name, rows in zip(names, self.rows(), strict=False)]

    def infer_result_types(self) -> ResultTypes:
        (t,) = super().infer_result_types()
        size = cast(BufferType, t).num_elements().as_int()
        if size is None:
            raise self.fail(f"a constant must have a static shape, got {t}")
        if (self.params is None) == (self.value is None):
            raise self.fail("holds either params or a literal")
        if self.params is not None and not self.params.data:
            raise self.fail("names no param")
        for name in self.param_names():
            check_param_name(self, name)
        if len(self.param_names()) > 1 or self.row_counts is not None:
            dims = cast(BufferType, t).dims
            if len(self.rows()) != len(self.param_names()) or not dims or sum(self.rows()) != dims[0].as_int():
                raise self.fail(f"rows {list(self.rows())} of {len(self.param_names())} params do not make up {t}")
        if isinstance(self.value, ArrayAttr) and len(literal_values(self.value)) != size:
            raise self.fail(f"{len(literal_values(self.value))} numbers cannot fill {t}")
        if self.panels is not None:
            self.check_panels(self.panels.data, cast(BufferType, t))
        return [t]

    def check_panels(self, layout: str, t: BufferType) -> None:
        if layout not in PANEL_LAYOUTS:
            raise self.fail(f"has panels '{layout}', expected nk, kn or winograd")
        is_narrow = is_byte(t.element_type) and layout != "winograd"
        if self.params is None or t.rank < 2 or not (is_narrow or isinstance(t.element_type, AnyFloat)):
            raise self.fail(f"only params of floats, or of bytes, with two or more dims lie in panels, got {t}")
        row = prod((t.static_shape() or ())[1:])
        if layout == "winograd" and (row % 9 != 0 or isinstance(t.element_type, Float64Type)):
            raise self.fail(f"only weights of n rows of 3 x 3 x channels f16, bf16 or f32 are transformed, got {t}")


@irdl_op_definition
class AllocOp(BufferOp):
    """A buffer in the arena; memory planning sets its byte offset.

    ```mlir
    %h = ait_rt.alloc at (batch * 1536) : !ait_rt.buffer<batch x 768 x f16>
    ```
    """

    name = "ait_rt.alloc"
    SYNTAX: ClassVar[Syntax] = (Prop("offset", DIM, "at", optional=True),)

    offset = opt_prop_def(ShapeAttr)

    def __init__(self, type: BufferType, offset: Expr | None = None) -> None:
        at = None if offset is None else ShapeAttr((offset,))
        super().__init__(properties={"offset": at}, result_types=[type])

    @property
    def at(self) -> Expr | None:
        """The byte offset into the arena, None before memory planning."""
        return None if self.offset is None else self.offset.data[0]

    def infer_result_types(self) -> ResultTypes:
        if self.offset is not None and len(self.offset.data) != 1:
            raise self.fail(f"has {len(self.offset.data)} offsets, expected one")
        check_expressions(self, scope_of(self), () if self.at is None else (self.at,), "the offset")
        return super().infer_result_types()


@irdl_op_definition
class ViewOp(BufferOp):
    """Another shape and other strides for a buffer's memory; `offset` and `strides` count elements of that buffer.

    ```mlir
    %v = ait_rt.view %h offset (768) strides [1536, 1] : !ait_rt.buffer<batch x 768 x f16>
    ```
    """

    name = "ait_rt.view"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("offset", DIM), Prop("strides", SHAPE))

    source = operand_def(BufferType)
    offset = prop_def(ShapeAttr)
    strides = prop_def(ShapeAttr)
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, offset: Expr, strides: Shape, type: BufferType) -> None:
        super().__init__(
            operands=[source],
            properties={"offset": ShapeAttr((offset,)), "strides": ShapeAttr(strides)},
            result_types=[type],
        )

    def infer_result_types(self) -> ResultTypes:
        (t,) = super().infer_result_types()
        source, target = self.operands[0].type, cast(BufferType, t)
        if not isinstance(source, BufferType):
            raise self.fail(f"views a buffer, got {source}")
        if source.element_type != target.element_type:
            raise self.fail(f"the view has element type {target.element_type}, but the buffer {source.element_type}")
        if len(self.strides.data) != target.rank or len(self.offset.data) != 1:
            raise self.fail(f"{len(self.strides.data)} strides for a view of rank {target.rank}")
        check_expressions(self, scope_of(self), (*self.offset.data, *self.strides.data), "the view")
        return [t]


def root_of(buffer: SSAValue) -> Operation | None:
    """The op that defines the memory of a buffer, found through any number of views; None outside of a program."""
    owner = buffer.owner
    while isinstance(owner, ViewOp):
        owner = owner.source.owner
    return owner if isinstance(owner, Operation) else None


def check_writable(op: AitOp, buffer: SSAValue) -> None:
    """Raise if `op` would write a constant, or an input that is not donated."""
    root = root_of(buffer)
    if isinstance(root, InputOp) and not root.is_state:
        raise op.fail(f"writes input {root.buffer_name.data!r}, which is the caller's; write an alloc or an output")
    if isinstance(root, ConstantOp):
        raise op.fail("writes a constant, which all runs share; write an alloc or an output")


@irdl_op_definition
class CopyOp(AitOp):
    """Copy a buffer into another of the same shape and element type.

    ```mlir
    ait_rt.copy %a to %b
    ```
    """

    name = "ait_rt.copy"
    SYNTAX: ClassVar[Syntax] = (Operand("source"), Operand("target", "to"))

    source = operand_def(BufferType)
    target = operand_def(BufferType)

    def __init__(self, source: SSAValue | Operation, target: SSAValue | Operation) -> None:
        super().__init__(operands=[source, target])

    def infer_result_types(self) -> ResultTypes:
        source, target = self.source.type, self.target.type
        if not isinstance(source, BufferType) or not isinstance(target, BufferType):
            raise self.fail(f"copies buffers, got {source} and {target}")
        scope = scope_of(self)
        if (
            source.element_type != target.element_type
            or source.rank != target.rank
            or not all(scope.equal(x, y) for x, y in zip(source.dims, target.dims, strict=True))
        ):
            raise self.fail(f"cannot copy {source} to {target}")
        check_writable(self, self.target)
        return []


@irdl_op_definition
class ReadDimOp(AitOp):
    """Wait on the host for the launch that binds a dim, and read the dim's value from memory.

    After this op the host knows the dim. The launches before it and those after it are recorded as separate CUDA
    graphs.

    ```mlir
    ait_rt.read_dim "count" from %n
    ```
    """

    name = "ait_rt.read_dim"
    SYNTAX: ClassVar[Syntax] = (Prop("dim", STRING, ""), Operand("source", "from"))

    source = operand_def(BufferType)
    dim = prop_def(StringAttr)

    def __init__(self, dim: str, source: SSAValue) -> None:
        super().__init__(operands=[source], properties={"dim": StringAttr(dim)})

    def infer_result_types(self) -> ResultTypes:
        source, scope, name = self.source.type, scope_of(self), self.dim.data
        if not isinstance(source, BufferType) or source.rank or source.element_type != i64:
            raise self.fail(f"reads a number of type i64, got {source}")
        if isinstance(self.parent_op(), Operation) and name not in {d.name for d in scope.bound}:
            raise self.fail(f"{name!r} is no dim that an op binds; declare it as '{name} = 0 to MOST bound'")
        return []


OPS = (InputOp, DestinationOp, ConstantOp, AllocOp, ViewOp, CopyOp, ReadDimOp)
