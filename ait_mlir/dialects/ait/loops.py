"""Loops over elements: results defined element by element, by index expressions, scalar ops and folds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, i1, i64
from xdsl.ir import Attribute, Block, Data, Operation, Region, SSAValue
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from ait_mlir.dialects.ait.base import AitOp, PureOp, ResultTypes, check_expressions
from ait_mlir.dialects.ait.dtypes import compute_type, integer_range, is_float
from ait_mlir.dialects.ait.numbers import Number, number_attr, number_text, parse_number_attr
from ait_mlir.dialects.ait.operands import parse_operands_in_parens
from ait_mlir.dialects.ait.region import YieldOp, check_yield
from ait_mlir.dialects.ait.syntax import (
    DIM,
    Body,
    Clause,
    PlainRegion,
    Prop,
    Syntax,
    Word,
    scan_parens,
)
from ait_mlir.dialects.ait.traits import ChecksIndices, Cost, ScalarLike
from ait_mlir.dialects.ait.types import (
    Induction,
    IterationsAttr,
    Shape,
    ShapeAttr,
    TensorType,
    parse_dim,
    scan_angle_brackets,
    scope_of,
    shape_text,
    split_at_commas,
    tensor_type,
)
from ait_mlir.dims import Expr, Scope, const, minimum, product, sym, total

SUMS = ("add", "mul")
EXTREMES = ("max", "min")
PLACES = ("argmax", "argmin")
KINDS = (*SUMS, *EXTREMES, *PLACES)
"""The kinds of folds."""
MAX_NEST = 32
"""The most dims of a loop nest, folds included."""

Index: TypeAlias = Expr | None
"""The index along one dim: an expression, or None for the next scalar operand."""


# ** text **


@irdl_attr_definition
class IndicesAttr(Data[tuple[Index, ...]]):
    """The indices of a read, `?` for those that are values: `#ait.indices<i, ?, k + 1>`."""

    name = "ait.indices"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Index, ...]:
        text, start = scan_angle_brackets(parser)
        parts = split_at_commas(text)
        return tuple(None if part.strip() == "?" else parse_dim(parser, part, start + at) for part, at in parts)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<" + ", ".join("?" if e is None else str(e) for e in self.data) + ">")


class Read(Clause):
    """`%a[i, %t, k + 1]`: a tensor and an index along each of its dims."""

    def parse(self, parser: Parser, body: Body) -> None:
        body.add_operands([parser.parse_unresolved_operand()])
        parser.parse_punctuation("[")
        found: list[Index] = []
        if parser.parse_optional_punctuation("]") is None:
            while True:
                if (value := parser.parse_optional_unresolved_operand()) is None:
                    found.append(self._parse_expression(parser))
                else:
                    body.add_operands([value])
                    found.append(None)
                if parser.parse_optional_punctuation(",") is None:
                    break
            parser.parse_punctuation("]")
        body.properties["indices"] = IndicesAttr(tuple(found))

    @staticmethod
    def _parse_expression(parser: Parser) -> Expr:
        """Parse the raw text up to the next comma or bracket outside of parentheses."""
        content, start = parser.lexer.input.content, parser.pos
        depth, end = 0, start
        while end < len(content) and content[end] != "\n" and (depth > 0 or content[end] not in ",]"):
            depth += (content[end] == "(") - (content[end] == ")")
            end += 1
        parser._resume_from(end)  # pyright: ignore[reportPrivateUsage]
        return parse_dim(parser, content[start:end], start)

    def print(self, printer: Printer, op: Operation) -> None:
        assert isinstance(op, AtOp)
        values = iter(op.values)
        printer.print_string(" ")
        printer.print_ssa_value(op.tensor)
        printer.print_string("[")
        for position, index in enumerate(op.indices.data):
            printer.print_string(", " if position else "")
            if index is None:
                printer.print_ssa_value(next(values))
            else:
                printer.print_string(str(index))
        printer.print_string("]")


class Else(Clause):
    """`else NUMBER` or nothing: the value of a read outside of the tensor."""

    def parse(self, parser: Parser, body: Body) -> None:
        if parser.parse_optional_keyword("else") is not None:
            body.properties["otherwise"] = parse_number_attr(parser)

    def print(self, printer: Printer, op: Operation) -> None:
        assert isinstance(op, AtOp)
        if op.otherwise is not None:
            printer.print_string(f" else {number_text(op.otherwise.value.data)}")


class For(Clause):
    """`for (i = rows, j = 1024)`: iteration dims and their sizes, outermost first."""

    def parse(self, parser: Parser, body: Body) -> None:
        if parser.parse_optional_keyword("for") is None:
            parser.raise_error(f"{body.op}: expected 'for (NAME = SIZE, ...)'")
        body.properties["iterations"] = IterationsAttr(IterationsAttr.parse_text(parser, *scan_parens(parser)))

    def print(self, printer: Printer, op: Operation) -> None:
        iterations = op.properties["iterations"]
        assert isinstance(iterations, IterationsAttr)
        printer.print_string(f" for ({iterations.text()})")


class Inputs(Clause):
    """`(%a, %b)`: all operands."""

    def parse(self, parser: Parser, body: Body) -> None:
        body.add_operands(parse_operands_in_parens(parser))

    def print(self, printer: Printer, op: Operation) -> None:
        printer.print_string("(")
        printer.print_list(op.operands, printer.print_ssa_value)
        printer.print_string(")")


class Says(Clause):
    """`says "TEXT", "TEXT"` or nothing: the error of each index that is a value; empty for the usual one."""

    def parse(self, parser: Parser, body: Body) -> None:
        if parser.parse_optional_keyword("says") is not None:
            texts = [StringAttr(parser.parse_str_literal())]
            while parser.parse_optional_punctuation(",") is not None:
                texts.append(StringAttr(parser.parse_str_literal()))
            body.properties["says"] = ArrayAttr(texts)

    def print(self, printer: Printer, op: Operation) -> None:
        assert isinstance(op, AtOp)
        if op.says is not None:
            printer.print_string(" says ")
            printer.print_list(op.says, lambda text: printer.print_string_literal(text.data))


# ** the ops of a region **


@irdl_op_definition
class AtOp(PureOp):
    """An element of a tensor, in the compute type of its elements.

    An index is an expression of dims and of iteration dims, or an integer value. Outside of the tensor the result is
    the number after `else`. Without it, expressions are proved to be within the tensor; a value outside is invalid: the
    CPU fails and names it, a GPU gives NaN for floats and 0 for other types. `says` gives the CPU's error for each
    index that is a value. In it, `{index}` is the value, `{size}` the size of its dim, and `{stored}` the index that
    the model has stored, where an op has counted a negative one from the end.

    ```mlir
    %v = ait.at %a[i, k - 1] else 0.0 : f32
    %w = ait.at %table[%id, k] says "embedding: id {index} is outside of the table, which has {size} rows" : f32
    ```
    """

    name = "ait.at"
    TAKES_STORED: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (Read(), Else(), Says())

    tensor = operand_def(TensorType)
    values = var_operand_def()
    indices = prop_def(IndicesAttr)
    otherwise = opt_prop_def(IntegerAttr | FloatAttr)
    says = opt_prop_def(ArrayAttr[StringAttr])
    output = result_def()

    def __init__(
        self,
        tensor: SSAValue,
        indices: Sequence[Expr | int | SSAValue],
        otherwise: Number | None = None,
        says: Sequence[str] = (),
    ) -> None:
        values = [i for i in indices if isinstance(i, SSAValue)]
        found = [None if isinstance(i, SSAValue) else const(i) if isinstance(i, int) else i for i in indices]
        self.set_up(
            [tensor, values],
            [compute_type(tensor_type(tensor).element_type)],
            indices=IndicesAttr(tuple(found)),
            otherwise=None if otherwise is None else number_attr(otherwise),
            says=ArrayAttr([StringAttr(text) for text in says]) if any(says) else None,
        )

    @property
    def number(self) -> Number | None:
        """The number after `else`; None without one."""
        return None if self.otherwise is None else self.otherwise.value.data

    @property
    def texts(self) -> list[str]:
        """The error of each index that is a value; empty for the usual one."""
        return [""] * len(self.values) if self.says is None else [text.data for text in self.says]

    def index(self) -> list[Expr | SSAValue]:
        """The index along each dim of the tensor: an expression or a value."""
        values = iter(self.values)
        return [next(values) if e is None else e for e in self.indices.data]

    def infer_result_types(self) -> ResultTypes:
        _check_place(self)
        t = self.expect_tensor(self.operands[0], "the operand")
        index = self.indices.data
        if len(index) != t.rank:
            raise self.fail(f"has {len(index)} indices for a tensor of shape {shape_text(t.dims)}")
        if len(self.values) != index.count(None):
            raise self.fail(f"has {len(self.values)} values as indices, expected {index.count(None)}")
        for value in self.values:
            if integer_range(value.type) is None:
                raise self.fail(f"an index has type {value.type}, expected an integer")
        if self.says is not None and (self.otherwise is not None or len(self.says) != len(self.values)):
            raise self.fail(
                f"says has {len(self.says)} errors for {len(self.values)} values as indices"
                + (", and with else none is an error" if self.otherwise is not None else "")
            )
        scope = scope_of(self)
        check_expressions(self, scope, [e for e in index if e is not None], "an index")
        compute = compute_type(t.element_type)
        if self.otherwise is None:
            for i, (e, size) in enumerate(zip(index, t.dims, strict=True)):
                if e is not None and not (scope.le(0, e) and scope.lt(e, size)):
                    raise self.fail(
                        f"index {e} of dim {i} is not proved to be from 0 to {size - 1}; limit it by min and max, "
                        "or give the value outside by else"
                    )
        else:
            _check_number(self, self.number, compute)
        return [compute]


@irdl_op_definition
class IndexOp(PureOp):
    """The value of an expression of dims and iteration dims.

    ```mlir
    %p = ait.index (i + 1) : i64
    ```
    """

    name = "ait.index"
    SYNTAX: ClassVar[Syntax] = (Prop("expression", DIM, ""),)

    expression = prop_def(ShapeAttr)
    output = result_def()

    def __init__(self, expression: Expr) -> None:
        self.set_up([], [i64], expression=ShapeAttr((expression,)))

    @property
    def value(self) -> Expr:
        return self.expression.data[0]

    def infer_result_types(self) -> ResultTypes:
        _check_place(self)
        check_expressions(self, scope_of(self), [self.value], "an index")
        return [i64]


class Iterating(PureOp):
    """Base of the ops that run a region at each index along iteration dims."""

    iterations = prop_def(IterationsAttr)
    body = region_def()

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def sizes(self) -> Shape:
        """The sizes of the iteration dims."""
        return tuple(loop.count for loop in self.iterations.data)


@irdl_op_definition
class FoldOp(Iterating):
    """The sum, product, maximum or minimum of a value over iteration dims; or the largest or smallest value and its
    place.

    The region may use values from outside. Max and min are NaN if a value is NaN. Over no values, the sum is 0, the
    product is 1, and max and min are the limits of the type. `argmax` and `argmin` give the value and its row-major
    position along the iteration dims: the first of equal values, and NaN before any number. Integers wrap.

    ```mlir
    %m = ait.fold max for (k0 = 4096) {
      %v = ait.at %a[d0, k0] : f32
      ait.yield %v : f32
    } : f32
    ```
    """

    name = "ait.fold"
    SYNTAX: ClassVar[Syntax] = (Word("kind", KINDS), For(), PlainRegion())

    kind = prop_def(StringAttr)
    outputs = var_result_def()

    def __init__(self, kind: str, iterations: Sequence[Induction], body: Region) -> None:
        yielded = body.block.last_op
        assert yielded is not None
        types = [*yielded.operand_types, *([i64] if kind in PLACES else [])]
        self.set_up([], [types], [body], kind=kind, iterations=IterationsAttr(tuple(iterations)))

    @property
    def yielded(self) -> SSAValue:
        """The value that is folded."""
        last = self.block.last_op
        assert last is not None
        return last.operands[0]

    def infer_result_types(self) -> ResultTypes:
        _check_place(self)
        kind = self.kind.data
        around = scope_of(self)
        _check_iterations(self, self.iterations.data, around)
        if len(self.body.blocks) != 1 or self.block.args:
            raise self.fail("the region must have one block without arguments")
        last = self.block.last_op
        if not isinstance(last, YieldOp) or len(last.operands) != 1:
            raise self.fail("the region must end with ait.yield of one value")
        element = last.operands[0].type
        if element == i1 and kind not in EXTREMES:
            raise self.fail(f"{kind} of i1 has no meaning; convert with ait.cast")
        if kind in PLACES and (empty := [s for s in self.sizes if not around.positive(s)]):
            raise self.fail(f"{kind} needs a value, but {empty[0]} is not proved to be at least 1")
        types = [element, i64] if kind in PLACES else [element]
        if len(self.results) != len(types):
            raise self.fail(f"{kind} has {len(types)} results, not {len(self.results)}")
        return types


# ** the nest **


class Nested(ChecksIndices, Cost, Iterating):
    """Base of the ops whose region computes an element at each index, from elements of the last operands."""

    FIRST_INPUT: ClassVar[int] = 0
    """The position of the first operand whose elements the region reads."""

    @property
    def checks_indices(self) -> bool:
        return any(isinstance(op, AtOp) and op.values and op.number is None for op in self.body.walk())

    @property
    def yielded(self) -> Sequence[SSAValue]:
        """The value of each result."""
        last = self.block.last_op
        return () if last is None else last.operands

    def flops(self) -> Expr:
        """The operations of all scalar ops, each as often as it runs; a fold has one for each value."""
        return total(
            times * (op.WORK if isinstance(op, ScalarLike) else 1)
            for op, times in self.runs()
            if isinstance(op, ScalarLike | FoldOp)
        )

    def elements(self) -> Expr:
        """The number of reads, each as often as it runs."""
        return total(times for op, times in self.runs() if isinstance(op, AtOp))

    def argument(self, position: int) -> SSAValue | None:
        """The block argument that is an operand; None for the operands before those whose elements are read."""
        return None if position < self.FIRST_INPUT else self.block.args[position - self.FIRST_INPUT]

    def bytes_read(self, position: int) -> Expr:
        if (argument := self.argument(position)) is None:
            return super().bytes_read(position)
        reads = [times for op, times in self.runs() if isinstance(op, AtOp) and op.tensor is argument]
        one = TensorType.get((), tensor_type(argument).element_type).byte_size()
        return minimum(super().bytes_read(position), total(reads) * one)

    def runs(self) -> Iterator[tuple[Operation, Expr]]:
        """The ops of the region, and how often each runs: once for each index that it depends on. In a fold, an op runs
        for each value of the fold. A fold runs once for each value."""
        yield from _runs(self.block, frozenset(), self.nests())

    def nests(self) -> dict[SSAValue, frozenset[Induction]]:
        """For each scalar in the region, the iteration dims that it depends on."""
        found: dict[SSAValue, frozenset[Induction]] = {}
        _add_nests(self.block, {loop.name: loop for loop in self.iterations.data}, found)
        return found

    def check_region(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> None:
        """Raise unless the region reads tensors of the types `inputs` and yields an element of each of `outputs`."""
        _check_iterations(self, self.iterations.data, scope_of(self))
        if len(self.body.blocks) != 1:
            raise self.fail(f"the region must have one block, it has {len(self.body.blocks)}")
        if tuple(self.block.arg_types) != tuple(inputs):
            found, want = (", ".join(map(str, types)) for types in (self.block.arg_types, inputs))
            raise self.fail(f"the region takes ({found}), expected ({want}): the operands")
        _check_block(self, self.block, set(self.block.args), len(self.sizes))
        check_yield(self, self.block.last_op, [compute_type(t.element_type) for t in outputs])


@irdl_op_definition
class LoopsOp(Nested):
    """Results defined element by element: the region computes the elements at one index.

    The results have the shape of the iteration dims; the names of these are the index. Block arguments are the operands
    themselves, whose elements `ait.at` reads. The region holds elementwise ops on scalars, constants, reads, folds and
    indices, and yields a value for each result, which is rounded once to the result's element type.

    A result may have size 1 along an iteration dim, if its value is the same at each index of the dim, and the dim is
    proved to have one: `!ait.tensor<rows x 1 x f32>` beside `!ait.tensor<rows x 4096 x f16>` has a number for each row.

    ```mlir
    %y = ait.loops(%x) for (d0 = rows, d1 = 4096) {
    ^bb0(%a: !ait.tensor<rows x 4096 x f16>):
      %s = ait.fold add for (k0 = 4096) {
        %w = ait.at %a[d0, k0] : f32
        %q = ait.mul %w, %w : f32
        ait.yield %q : f32
      } : f32
      %v = ait.at %a[d0, d1] : f32
      %r = ait.rsqrt %s : f32
      %u = ait.mul %v, %r : f32
      ait.yield %u : f32
    } : !ait.tensor<rows x 4096 x f16>
    ```
    """

    name = "ait.loops"
    TAKES_STORED: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (Inputs(), For(), PlainRegion())

    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        iterations: Sequence[Induction],
        results: Sequence[TensorType],
        body: Region,
    ) -> None:
        self.set_up([inputs], [results], [body], iterations=IterationsAttr(tuple(iterations)))

    def infer_result_types(self) -> ResultTypes:
        inputs = [self.expect_tensor(v, f"operand {i}") for i, v in enumerate(self.operands)]
        outputs = [self.expect_tensor(v, f"result {i}") for i, v in enumerate(self.results)]
        if not outputs:
            raise self.fail("needs at least one result")
        self.check_region(inputs, outputs)
        for i in range(len(outputs)):
            self._check_once(i)
        return [TensorType.get(self._dims_of(t), t.element_type) for t in outputs]

    def once_along(self, position: int) -> tuple[Induction, ...]:
        """The iteration dims along which a result has size 1, and is stored once."""
        dims, loops = tensor_type(self.results[position]).dims, self.iterations.data
        if len(dims) != len(loops):
            return ()
        pairs = zip(dims, loops, strict=True)
        return tuple(loop for dim, loop in pairs if dim.as_int() == 1 and loop.count.as_int() != 1)

    def _dims_of(self, t: TensorType) -> Shape:
        """The shape of a result: the sizes of the iteration dims, or 1 where it has 1."""
        if t.rank != len(self.sizes):
            return self.sizes
        return tuple(dim if dim.as_int() == 1 else size for dim, size in zip(t.dims, self.sizes, strict=True))

    def _check_once(self, position: int) -> None:
        """Raise unless a result has one value along the iteration dims along which it has size 1."""
        for loop in self.once_along(position):
            what = f"result {position} has size 1 along iteration dim {loop.name!r}"
            if not scope_of(self).positive(loop.count):
                raise self.fail(f"{what}, whose size {loop.count} is not proved to be at least 1")
            if loop in self.nests()[self.yielded[position]]:
                raise self.fail(f"{what}, but its value depends on {loop.name!r}; give it the size {loop.count}")


def rename_iterations(loops: LoopsOp, letter: str, scope: Scope) -> None:
    """Give the iteration dims of loops without folds names of a letter and a number that `scope` does not declare."""
    while any(f"{letter}{i}" in scope for i in range(len(loops.sizes))):
        letter += "_"
    old = loops.iterations.data
    names = {loop.name: sym(f"{letter}{i}") for i, loop in enumerate(old)}
    loops.properties["iterations"] = IterationsAttr(
        tuple(Induction(f"{letter}{i}", loop.count) for i, loop in enumerate(old))
    )
    for op in loops.block.ops:
        if isinstance(op, AtOp):
            index = tuple(None if e is None else e.substitute(names) for e in op.indices.data)
            op.properties["indices"] = IndicesAttr(index)
        elif isinstance(op, IndexOp):
            op.properties["expression"] = ShapeAttr((op.value.substitute(names),))


def _runs(
    block: Block, around: frozenset[Induction], nests: Mapping[SSAValue, frozenset[Induction]]
) -> Iterator[tuple[Operation, Expr]]:
    for op in block.ops:
        if isinstance(op, YieldOp):
            continue
        nest = around | nests[op.results[0]]
        if isinstance(op, FoldOp):
            nest |= frozenset(op.iterations.data)
            yield from _runs(op.block, nest, nests)
        yield op, product(loop.count for loop in nest)


def _add_nests(block: Block, loops: Mapping[str, Induction], found: dict[SSAValue, frozenset[Induction]]) -> None:
    for op in block.ops:
        nest = frozenset[Induction]().union(*(found[v] for v in op.operands if v in found))
        if isinstance(op, FoldOp):
            own = {loop.name: loop for loop in op.iterations.data}
            _add_nests(op.block, {**loops, **own}, found)
            nest = found[op.yielded] - set(own.values())
        for e in expressions_of(op):
            nest |= {loops[name] for name in e.symbols if name in loops}
        found.update(dict.fromkeys(op.results, nest))


def expressions_of(op: Operation) -> list[Expr]:
    """The index expressions of a read or of an index."""
    if isinstance(op, AtOp):
        return [e for e in op.indices.data if e is not None]
    return [op.value] if isinstance(op, IndexOp) else []


# ** checks **


def _check_place(op: AitOp) -> None:
    """Raise unless the op stands in the region of `ait.loops`, also within folds."""
    parent = op.parent_op()
    while isinstance(parent, FoldOp):
        parent = parent.parent_op()
    if not isinstance(parent, Nested):
        raise op.fail("stands outside of the region of ait.loops")


def _check_iterations(op: AitOp, iterations: Sequence[Induction], around: Scope) -> None:
    """Raise unless iteration dims have new names, and sizes that are proved not to be negative."""
    seen: set[str] = set()
    check_expressions(op, around, [loop.count for loop in iterations], "an iteration")
    for loop in iterations:
        if loop.name in seen:
            raise op.fail(f"iteration dim {loop.name!r} is declared twice; give one another name")
        if loop.name in around:
            raise op.fail(f"iteration dim {loop.name!r} is declared around the op, too; give it another name")
        seen.add(loop.name)
        if index := sorted(n for n in loop.count.symbols if around[n].is_index):
            raise op.fail(f"the size {loop.count} of {loop.name!r} depends on iteration dim {index[0]!r}")
        if not around.le(0, loop.count):
            raise op.fail(f"the size {loop.count} of {loop.name!r} is not proved to be at least 0")


def _check_number(op: AitOp, number: Number | None, element: Attribute) -> None:
    """Raise unless a scalar type can hold this number."""
    if is_float(element) or number is None:
        return
    ends = (0, 1) if element == i1 else integer_range(element)
    if not isinstance(number, int) or (ends is not None and not ends[0] <= number <= ends[1]):
        raise op.fail(f"else {number_text(number)} is no number of type {element}")


def _check_block(op: Nested, block: Block, known: set[SSAValue], depth: int) -> None:
    """Raise unless a block has only reads, folds, indices, constants and scalar ops, on its own values and the `known`
    ones.
    """
    if depth > MAX_NEST:
        raise op.fail(f"the nest has {depth} dims, at most {MAX_NEST} are allowed")
    known = set(known)
    for inner in block.ops:
        is_known = isinstance(inner, ScalarLike | AtOp | FoldOp | IndexOp) or inner.name == "ait.constant"
        if not is_known and not (isinstance(inner, YieldOp) and inner is block.last_op):
            raise op.fail(
                f"the region holds {inner.name}; only elementwise ops, constants, ait.at, ait.fold and ait.index are "
                "allowed there"
            )
        for i, value in enumerate(inner.operands):
            if value not in known:
                raise op.fail(f"{inner.name} in the region uses a value from outside of it; make it an operand")
            if isinstance(value.type, TensorType) and not (isinstance(inner, AtOp) and i == 0):
                raise op.fail(f"{inner.name} in the region uses a whole tensor; read its elements with ait.at")
        if any(isinstance(r.type, TensorType) for r in inner.results):
            raise op.fail(f"{inner.name} in the region makes a tensor; the region works on scalars")
        if isinstance(inner, FoldOp) and len(inner.body.blocks) == 1:
            _check_block(op, inner.block, known, depth + len(inner.sizes))
        known.update(inner.results)
    if not isinstance(block.last_op, YieldOp):
        raise op.fail("the region must end with ait.yield")


OPS = (AtOp, IndexOp, FoldOp, LoopsOp)
