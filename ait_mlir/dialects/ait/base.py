"""The base of all ops: the textual form, the order of verification, inference of result types.

The textual form of an op is `NAME BODY {attributes} : RESULT TYPES`. Operands have the types of their definitions. The
parser also reads the longer form `: (OPERAND TYPES) -> RESULT TYPES`. `SYNTAX` describes the BODY of an op.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn, Self, TypeAlias

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i32
from xdsl.ir import Attribute, ErasedSSAValue, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.bits import LEAST, MOST
from ait_mlir.dialects.ait.dtypes import STORED_ONLY
from ait_mlir.dialects.ait.operands import parse_signature, resolve
from ait_mlir.dialects.ait.structure import region_key
from ait_mlir.dialects.ait.syntax import DIM, NUMBER, Body, Operands, Prop, Syntax, Word, properties_of, values
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import EMPTY_SCOPE, Shape, ShapeAttr, ShapedType, TensorType, scope_of, shape_text
from ait_mlir.dims import Expr, Scope
from ait_mlir.errors import Fix, with_fixes

Value: TypeAlias = SSAValue | Operation
"""An operand of a constructor: a value, or an op with one result."""
ResultTypes: TypeAlias = Sequence[Attribute]


class AitOp(IRDLOperation):
    """Base of the ops of both dialects."""

    SYNTAX: ClassVar[Syntax] = (Operands(),)
    """The text between the op's name and its attribute dictionary."""
    OPERAND_TYPES: ClassVar[str] = ""
    """For an op without results: the field of leading operands whose types follow the colon."""
    SEGMENTED: ClassVar[bool] = False
    """Whether the op stores the number of operands of each clause (`AttrSizedOperandSegments`)."""
    SELF_CONTAINED: ClassVar[bool] = False
    """Whether verification depends only on the op's own types, properties and regions, and on the dims declared around
    it: not on the definitions of operands, the uses of results, or the parent op."""

    TAKES_STORED: ClassVar[bool] = False
    """Whether the op takes element types that are only stored (`is_stored_only`): it moves or converts elements."""

    def set_up(
        self,
        operands: Sequence[Value | Sequence[Value] | None],
        results: Sequence[Attribute | Sequence[Attribute]] | None = None,
        regions: Sequence[Region | Sequence[Region] | None] = (),
        **properties: Any,
    ) -> None:
        """Initialise an op from operands, result types and regions in the order of its fields.

        Properties are Python values, which the clauses of `SYNTAX` convert; None leaves a property out. Without
        `results` the op has one result, whose type is inferred: `VerifyException` if that fails.
        """
        given = results
        if given is None:
            first = operands[0]
            assert first is not None
            type_ = SSAValue.get(first if isinstance(first, SSAValue | Operation) else first[0]).type
            none: Sequence[Attribute] = ()
            given = [type_, *(none for _ in self.get_irdl_definition().results[1:])]
        IRDLOperation.__init__(
            self,
            operands=operands,
            result_types=given,
            properties=properties_of(type(self), self.SYNTAX, properties),
            regions=regions,
        )
        self._check_words()
        if results is None:
            self.infer()

    def infer(self) -> None:
        """Set the result types to the types inferred from operands and properties; `VerifyException` if that fails."""
        for result, inferred in zip(self.results, self.infer_result_types(), strict=True):
            result._type = inferred  # pyright: ignore[reportPrivateUsage]

    @classmethod
    def parse_body(cls, parser: Parser, body: Body) -> None:
        """Parse the clauses of `SYNTAX`."""
        for clause in cls.SYNTAX:
            clause.parse(parser, body)

    def print_body(self, printer: Printer) -> None:
        """Print the text that `parse_body` reads, with a leading space if it is not empty."""
        for clause in self.SYNTAX:
            clause.print(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        body = Body(cls.name)
        cls.parse_body(parser, body)
        if cls.SEGMENTED:
            body.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, body.segments)
        attributes = parser.parse_optional_attr_dict()
        if cls.OPERAND_TYPES:
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
            operands = [resolve(parser, o) for o in body.operands]
            parser.resolve_operands(body.operands[: body.segments[0]], types, parser.pos)  # checks the types
            return cls.create(operands=operands, properties=body.properties, attributes=attributes)
        operand_types, result_types = parse_signature(parser)
        if operand_types is None:
            operands = [resolve(parser, o) for o in body.operands]
        else:
            operands = parser.resolve_operands(body.operands, operand_types, parser.pos)
        return cls.create(
            operands=operands,
            result_types=result_types,
            properties=body.properties,
            attributes=attributes,
            regions=body.regions,
        )

    def print(self, printer: Printer) -> None:
        self.print_body(printer)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        typed = values(self, (self.OPERAND_TYPES,)) if self.OPERAND_TYPES else self.results
        if types := [value.type for value in typed]:
            printer.print_string(" : ")
            printer.print_list(types, printer.print_attribute)

    def verify(self, verify_nested_ops: bool = True) -> None:
        """Verify the op as xDSL does, but only the first of several equal self-contained ops in one scope of dims."""
        key = None if verify_nested_ops and self.regions else _verification_key(self)
        scope = EMPTY_SCOPE if key is None else scope_of(self)
        if scope is EMPTY_SCOPE:
            super().verify(verify_nested_ops)
        elif key not in scope.memo:
            super().verify(verify_nested_ops)
            scope.memo[key] = True

    def emit_error(self, message: str, underlying_error: Exception) -> NoReturn:
        """Raise the error of a verifier unchanged; xDSL would print the whole module with each error."""
        raise underlying_error

    def _check_words(self) -> None:
        """Raise `VerifyException` for a property that is none of its words, as the generic form may have it."""
        for clause in self.SYNTAX:
            if isinstance(clause, Word):
                given = self.properties.get(clause.name)
                if isinstance(given, StringAttr) and given.data not in clause.choices:
                    raise self.fail(f"unknown {clause.name} {given}; expected one of {', '.join(clause.choices)}")

    def verify_(self) -> None:
        self._check_words()
        for clause in self.SYNTAX:
            if isinstance(clause, Prop) and clause.kind is DIM:
                given = self.properties.get(clause.name)
                if isinstance(given, ShapeAttr) and len(given.data) != 1:
                    raise self.fail(f"{clause.name} is one dim expression, got {len(given.data)}")
        expected = self.infer_result_types()
        if not (self.TAKES_STORED or (isinstance(self, Cost) and self.MOVES_ONLY)):
            self._refuse_stored()
        scope = scope_of(self)
        for clause in self.SYNTAX:
            if isinstance(clause, Prop) and clause.kind is NUMBER:
                check_number(self, scope, clause.name)
        for i, (result, want) in enumerate(zip(self.results, expected, strict=True)):
            if not same_type(result.type, want, scope):
                which = f"result {i}" if len(expected) > 1 else "the result"
                error = self.fail(f"{which} is {result.type}, expected {want}{_operands_text(self)}")
                raise with_fixes(error, *_swap(self, scope), Fix(f"write {want}", str(want), "result", i))
            if isinstance(result.type, TensorType) and result.type not in scope.memo:
                check_declared(self, scope, result.type)
                check_sizes(self, scope, result.type)
                scope.memo[result.type] = True

    def computed_values(self) -> Sequence[SSAValue]:
        """The operands and results whose element types must be more than stored, unless the op takes these."""
        return (*self.operands, *self.results)

    def _refuse_stored(self) -> None:
        """Raise for an operand or a result of an element type that no op computes in."""
        for value in self.computed_values():
            t = value.type.element_type if isinstance(value.type, TensorType) else value.type
            if t in STORED_ONLY:
                raise self.fail(
                    f"cannot compute in {t}, which only stores values; convert with ait.cast before and behind"
                )

    def infer_result_types(self) -> ResultTypes:
        """The result types that follow from operands and properties; `VerifyException` if these do not fit together.

        Ops whose result type is given (reshape, param) check it against the operands and return it.
        """
        raise NotImplementedError

    def fail(self, message: str) -> VerifyException:
        """An error to raise: the op's name, then the message."""
        return VerifyException(f"{self.name}: {message}")

    def expect_tensor(self, value: SSAValue, what: str) -> TensorType:
        """The type of an operand that must be a tensor."""
        if not isinstance(value.type, TensorType):
            raise self.fail(f"{what} must be a tensor, got {value.type}")
        return value.type


class PureOp(AitOp):
    """Base of ops without effects, whose results depend only on their operands, properties and regions."""

    traits = traits_def(Pure())


def _verification_key(op: AitOp) -> object | None:
    """A key of everything that the verification of a self-contained op depends on; None if the op must be verified.

    The last op of a block is always verified, because it may have to be a terminator.
    """
    if not op.SELF_CONTAINED or op.next_op is None or op.successors:
        return None
    if any(isinstance(operand, ErasedSSAValue) for operand in op.operands):
        return None
    try:
        regions = [region_key(region) for region in op.regions]
    except (KeyError, ValueError):  # a value from outside of the region, several blocks
        return None
    return (type(op), op.operand_types, op.result_types, *op.properties.items(), *regions)


def _operands_text(op: AitOp) -> str:
    """The operands from which the types of results follow, with their types."""
    told = [
        f"operand {i} ({value.type.body_text()})"
        for i, value in enumerate(op.operands)
        if isinstance(value.type, ShapedType)
    ]
    return f"; it follows from {' and '.join(told)}" if len(told) == 2 else ""


def _swap(op: AitOp, scope: Scope) -> list[Fix]:
    """The fix that swaps the first two operands, if the results then have the types that are written."""
    if len(op.operands) < 2:
        return []
    first, second, *rest = op.operands
    swapped = type(op).create(
        operands=[second, first, *rest],
        result_types=op.result_types,
        properties=op.properties,
        regions=[region.clone() for region in op.regions],
    )
    try:
        expected = swapped.infer_result_types()
    except VerifyException:
        return []
    finally:
        swapped.drop_all_references()
    fits = all(same_type(result.type, want, scope) for result, want in zip(op.results, expected, strict=True))
    return [Fix("swap the first two operands", "", "swap")] if fits else []


def same_type(a: Attribute, b: Attribute, scope: Scope) -> bool:
    """Whether types are equal; dims of tensors may be written differently if the scope proves them equal."""
    if a == b:
        return True
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.element_type != b.element_type:
        return False
    return same_shape(a.dims, b.dims, scope)


def same_shape(a: Shape, b: Shape, scope: Scope) -> bool:
    return len(a) == len(b) and all(x is y or scope.equal(x, y) for x, y in zip(a, b, strict=True))


def check_declared(op: AitOp, scope: Scope, t: ShapedType) -> None:
    """Raise if a type names a dim that the graph around `op` does not declare."""
    check_expressions(op, scope, t.dims, str(t))


def check_expressions(op: AitOp, scope: Scope, expressions: Sequence[Expr], what: str) -> None:
    """Raise if an expression names an undeclared dim, or has a divisor that may be 0."""
    for e in expressions:
        for name in e.symbols:
            if name not in scope:
                error = op.fail(f"dim {name!r} of {what} is not declared; add it to the dims {{...}} around it")
                near = difflib.get_close_matches(name, [dim.name for dim in scope.dims], 1)
                renamed = [Fix(f"write {other} for {name}", f"{name}>{other}", "dim") for other in near]
                raise with_fixes(error, *renamed, Fix(f"declare {name} = 1 to 64", f"{name} = 1 to 64", "dims"))
        if (divisors := e.divisors()) and (bad := [d for d in divisors if not scope.positive(d)]):
            raise op.fail(f"dim {e} divides by {bad[0]}, which is not proved to be at least 1")


def check_number(op: AitOp, scope: Scope, name: str) -> None:
    """Raise unless a number given as bits is positive and finite for all values of the dims."""
    bits = op.properties.get(name)
    if not isinstance(bits, ShapeAttr):
        return
    check_expressions(op, scope, bits.data, name)
    if not (scope.le(LEAST, bits.data[0]) and scope.le(bits.data[0], MOST)):
        low, high = scope.bounds(bits.data[0])
        raise op.fail(f"{name} has bits from {low} to {high}, expected {LEAST} to {MOST}: positive numbers of f32")


def check_sizes(op: AitOp, scope: Scope, t: ShapedType) -> None:
    """Raise unless every dim of a type is proved to be at least 0; a sum of products of named dims needs no proof."""
    for e in t.dims:
        plain = all(c >= 0 and all(atom.op is None for atom in atoms) for c, atoms in e.terms())
        if not plain and not scope.le(0, e):
            raise op.fail(f"dim {e} of {t} is not proved to be at least 0; it is at least {scope.bounds(e)[0]}")


def check_name(op: AitOp, what: str, name: str) -> None:
    """Raise unless a name is valid in C: it has no NUL, which would end it, and is valid UTF-8."""
    if "\0" in name:
        raise op.fail(f"{what} {name!r}: a name may not hold a NUL character")
    if any("\ud800" <= c <= "\udfff" for c in name):
        raise op.fail(f"{what} {name!r}: a name may not hold half of a surrogate pair")


def check_param_name(op: AitOp, name: str) -> None:
    """Raise unless params may have this name."""
    if not name:
        raise op.fail("needs a name")
    check_name(op, "param", name)
    if name.startswith("$"):
        raise op.fail(f"param {name!r}: names that start with '$' are the compiler's own")


def broadcast_shapes(op: AitOp, names: Sequence[str], shapes: Sequence[Shape]) -> Shape:
    """The NumPy broadcast of shapes; a literal 1 or a missing leading dim is stretched, a named dim never is."""
    scope = scope_of(op)
    rank = max(map(len, shapes), default=0)
    out: list[Any] = [None] * rank
    source = [""] * rank
    for name, shape in zip(names, shapes, strict=True):
        for axis in range(1, len(shape) + 1):
            dim, found = shape[-axis], out[-axis]
            if found is None or found.as_int() == 1:
                out[-axis], source[-axis] = dim, name
            elif dim is not found and dim.as_int() != 1 and not scope.equal(dim, found):
                raise op.fail(
                    f"dim {len(shape) - axis} of {name} is {dim}, but {source[-axis]} has {found} there "
                    f"(shapes {', '.join(shape_text(s) for s in shapes)})"
                )
    return tuple(out)


def check_broadcastable(op: AitOp, what: str, shape: Shape, target: Shape) -> None:
    """Raise unless `shape` broadcasts to `target` without enlarging it."""
    scope = scope_of(op)
    if len(shape) > len(target):
        raise op.fail(f"{what} has shape {shape_text(shape)}, of higher rank than {shape_text(target)}")
    for a, b in zip(reversed(shape), reversed(target), strict=False):
        if a is not b and a.as_int() != 1 and not scope.equal(a, b):
            raise op.fail(
                f"{what} has shape {shape_text(shape)}, which does not broadcast to {shape_text(target)}: "
                f"{a} is not {b}"
            )


def broadcasts_to(shape: Shape, target: Shape, scope: Scope) -> bool:
    """Whether `shape` broadcasts to `target` without enlarging it."""
    return len(shape) <= len(target) and all(
        a is b or a.as_int() == 1 or scope.equal(a, b) for a, b in zip(reversed(shape), reversed(target), strict=False)
    )
