"""`!ait.tensor`: a shape of dim expressions and an element type; `#ait.dims`: the dims a graph declares."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NoReturn, Self, cast

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Data, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ait_mlir import dims as d
from ait_mlir.dialects.ait.dtypes import BY_IR, BY_MLIR, is_element_type
from ait_mlir.dims import Expr, Scope
from ait_mlir.errors import Fix, fixing

MAX_BYTES = 1 << 48
"""The most bytes of a tensor of known sizes, and the largest coefficient in the bytes of a tensor with dims."""
_SPLIT = re.compile(r"\s+x\s+|[()]")
_WORD = re.compile(r"\w+")

Shape = tuple[Expr, ...]


def as_shape(dims: Sequence[Expr | int]) -> Shape:
    return tuple(d.const(e) if isinstance(e, int) else e for e in dims)


def shape_text(dims: Sequence[Expr]) -> str:
    """The text of a shape: `[batch, 2*seq + 1, 768]`."""
    return "[" + ", ".join(map(str, dims)) + "]"


def _dim_text(e: Expr) -> str:
    text = str(e)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _split_shape(body: str) -> list[tuple[str, int]]:
    """Split `a x (b + 1) x f16` at the separators outside parentheses; returns the texts with their offsets."""
    parts: list[tuple[str, int]] = []
    depth = start = 0
    for m in _SPLIT.finditer(body):
        if m.group() == "(":
            depth += 1
        elif m.group() == ")":
            depth -= 1
        elif depth == 0:
            parts.append((body[start : m.start()], start))
            start = m.end()
    parts.append((body[start:], start))
    return parts


@irdl_attr_definition
class ShapeAttr(Data[Shape]):
    """A tuple of dim expressions, `#ait.shape<batch, 768>`."""

    name = "ait.shape"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Shape:
        body, start = scan_angle_brackets(parser)
        return parse_dims(parser, body, start)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<" + ", ".join(map(str, self.data)) + ">")


def split_at_commas(text: str) -> list[tuple[str, int]]:
    """The parts of a text between the commas outside of parentheses, each with its offset; none of a blank text."""
    if not text.strip():
        return []
    parts: list[tuple[str, int]] = []
    depth, begin = 0, 0
    for i, c in enumerate(text + ","):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append((text[begin:i], begin))
            begin = i + 1
    return parts


def parse_dims(parser: AttrParser, body: str, start: int) -> Shape:
    """Parse comma-separated dim expressions; `start` is the place of `body` in the source."""
    return tuple(parse_dim(parser, text, start + at) for text, at in split_at_commas(body))


def parse_dim(parser: AttrParser, text: str, start: int, of_shape: bool = False) -> Expr:
    """Parse one dim expression; a syntax error points into the source.

    `of_shape`: the expression is one of several with ' x ' between them, and the error may suggest a missing ' x '.
    """
    try:
        return d.parse(text)
    except d.DimSyntaxError as e:
        at = start + max(0, min(e.offset, len(text)))
        word = _WORD.match(text, e.offset) if of_shape and text[: e.offset].strip() else None
        if word is None:
            parser.raise_error(e.message, at, at + 1)
        with fixing(Fix(f"write x before {word[0]}", f"x {word[0]}")):
            parser.raise_error(f"{e.message}; ' x ' stands between the dims", at, at + 1)


def scan_to(parser: AttrParser, opening: str, closing: str) -> tuple[str, int]:
    """The raw text between `opening`, the current token, and the next `closing`, and its offset; the parser resumes
    after it. The lexer's tokens do not fit dim expressions. With the whole text, equal types are parsed only once.
    """
    start = parser.pos
    content = parser.lexer.input.content
    if content[start : start + 1] != opening:
        parser.raise_error(f"'{opening}' expected", start, start + 1)
    end = content.find(closing, start + 1)
    line_end = content.find("\n", start)
    if end < 0 or 0 <= line_end < end:
        parser.raise_error(f"no closing '{closing}' on this line", start, start + 1)
    parser._resume_from(end + 1)  # pyright: ignore[reportPrivateUsage]
    return content[start + 1 : end], start + 1


def scan_angle_brackets(parser: AttrParser) -> tuple[str, int]:
    return scan_to(parser, "<", ">")


_interned: dict[Any, Any] = {}
_parsed: dict[str, tuple[ShapeAttr, Attribute]] = {}


def forget_unused() -> None:
    """Forget the types and dims that nobody uses. No other thread may make any meanwhile."""
    for forget in (_interned.clear, _parsed.clear, in_loops.cache_clear, in_nest.cache_clear):
        forget()
    d.forget_unused()


class ShapedType(ParametrizedAttribute, TypeAttribute):
    """Base of tensor and buffer types: a shape of dim expressions and an element type."""

    shape: ShapeAttr
    element_type: Attribute

    @classmethod
    def get(cls, dims: Sequence[Expr | int], element_type: Attribute) -> Self:
        """The interned type of this shape and element type; `VerifyException` if it is not valid."""
        shape = as_shape(dims)
        key = (cls, shape, element_type)
        found = _interned.get(key)
        if found is None:
            found = _interned[key] = cls(ShapeAttr(shape), element_type)
        return cast(Self, found)

    @property
    def dims(self) -> Shape:
        return self.shape.data

    @property
    def rank(self) -> int:
        return len(self.shape.data)

    def num_elements(self) -> Expr:
        return d.product(self.dims)

    def byte_size(self) -> Expr:
        return self.num_elements() * BY_IR[self.element_type].bytes

    def static_shape(self) -> tuple[int, ...] | None:
        """The dims as integers, or None if a dim is dynamic."""
        sizes = tuple(e.as_int() for e in self.dims)
        return None if None in sizes else cast(tuple[int, ...], sizes)

    def verify(self) -> None:
        if not is_element_type(self.element_type):
            raise VerifyException(
                f"element type {self.element_type} is not supported; expected one of {', '.join(BY_MLIR)}"
            )
        for e in self.dims:
            n = e.as_int()
            if n is not None and n < 0:
                raise VerifyException(f"a dim cannot be negative: {n}")
            if n is not None and n > d.MAX_DIM:
                raise VerifyException(f"a dim is at most 2^40: {n}")
            if e.largest_coefficient() > d.MAX_DIM:
                raise VerifyException(f"a number that a dim is multiplied by is at most 2^40: {e}")
        if math.prod(e.largest_coefficient() for e in self.dims) * BY_IR[self.element_type].bytes > MAX_BYTES:
            raise VerifyException(f"the tensor takes more than 2^48 bytes: {shape_text(self.dims)}")
        try:
            self.byte_size()
        except d.DimError as error:
            raise VerifyException(f"the bytes of {shape_text(self.dims)} cannot be computed: {error}") from None

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        body, start = scan_angle_brackets(parser)
        found = _parsed.get(body)
        if found is None:
            *dims, (element, offset) = _split_shape(body)
            dtype = BY_MLIR.get(element.strip())
            if dtype is None:
                cls._refuse_element(parser, element, start + offset)
            shape = tuple(parse_dim(parser, text, start + at, of_shape=True) for text, at in dims)
            try:
                cls.get(shape, dtype.ir)
            except VerifyException as e:
                parser.raise_error(str(e), start, start + len(body))
            found = _parsed[body] = (ShapeAttr(shape), dtype.ir)
        return found

    @staticmethod
    def _refuse_element(parser: AttrParser, element: str, start: int) -> NoReturn:
        """Raise for the text after the last ' x ', at the offset `start`, which is no element type."""
        *before, last = element.split() or [""]
        known = before and last in BY_MLIR
        fixes = [Fix(f"write x before {last}", f"x {last}")] if known else []
        if not before:
            near = difflib.get_close_matches(last, BY_MLIR, 3, 0.5)
            near.sort(key=lambda name: sorted(name) != sorted(last))  # swapped characters are the likeliest slip
            fixes = [Fix(f"write {name}", name) for name in near]
        start += element.rfind(last) if known else len(element) - len(element.lstrip())
        with fixing(*fixes):
            message = f"element type expected ({', '.join(BY_MLIR)}) after the dims, each followed by ' x '"
            parser.raise_error(message, start, start + max(1, len(last)))

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.body_text()}>")

    def body_text(self) -> str:
        return "".join(_dim_text(e) + " x " for e in self.dims) + BY_IR[self.element_type].mlir


@irdl_attr_definition
class TensorType(ShapedType):
    """A tensor value: `!ait.tensor<batch x (2*seq + 1) x 768 x f16>`; rank 0 is `!ait.tensor<f32>`."""

    name = "ait.tensor"
    shape: ShapeAttr
    element_type: Attribute


@irdl_attr_definition
class DimsAttr(Data[Scope]):
    """The dims declared by a graph: `#ait.dims<batch = 1 to 64, seq = 1 to 512 hints [128]>`."""

    name = "ait.dims"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Scope:
        return cls._parse(parser, *scan_angle_brackets(parser))

    @classmethod
    def parse_braces(cls, parser: AttrParser) -> DimsAttr:
        """Parse `{batch = 1 to 64}`."""
        return DimsAttr(cls._parse(parser, *scan_to(parser, "{", "}")))

    @staticmethod
    def _parse(parser: AttrParser, body: str, start: int) -> Scope:
        try:
            return Scope.parse(body)
        except d.DimSyntaxError as e:
            at = start + max(0, min(e.offset, len(body)))
            parser.raise_error(e.message, at, at + 1)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


@irdl_attr_definition
class KernelAttr(ParametrizedAttribute):
    """The kernel that was selected for an op: provider and config, `#ait.kernel<"cublaslt", {id = 66 : i64}>`.

    The text may leave out an empty config.
    """

    name = "ait.kernel"
    provider: StringAttr
    config: DictionaryAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            start = parser.pos
            provider = parser.parse_optional_attribute()
            if not isinstance(provider, StringAttr):
                parser.raise_error("the provider of a kernel expected, as in 'native'", start, max(start, parser.pos))
            config: Attribute | None = DictionaryAttr({})
            if parser.parse_optional_punctuation(",") is not None:
                start = parser.pos
                config = parser.parse_optional_attribute()
                if not isinstance(config, DictionaryAttr):
                    message = "a configuration expected, as in {split = 2 : i64}"
                    parser.raise_error(message, start, max(start, parser.pos))
        return (provider, config)


@dataclass(frozen=True)
class Induction:
    """The dim that counts the steps of a loop: 0, 1, ..., `count - 1`."""

    name: str
    count: Expr


@irdl_attr_definition
class InductionAttr(Data[Induction]):
    """The induction dim that a loop declares for the ops in it: `#ait.induction<step, seq>`."""

    name = "ait.induction"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Induction:
        body, start = scan_angle_brackets(parser)
        name, _, count = body.partition(",")
        return Induction(name.strip(), parse_dim(parser, count, start + len(name) + 1))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data.name}, {self.data.count}>")


@irdl_attr_definition
class IterationsAttr(Data[tuple[Induction, ...]]):
    """The iteration dims of a loop nest, outermost first: `#ait.iterations<i = rows, j = 1024>`."""

    name = "ait.iterations"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Induction, ...]:
        return cls.parse_text(parser, *scan_angle_brackets(parser))

    @staticmethod
    def parse_text(parser: AttrParser, text: str, start: int) -> tuple[Induction, ...]:
        """Parse `i = rows, j = 1024`; `start` is the place of `text` in the source."""
        found: list[Induction] = []
        for part, at in split_at_commas(text):
            name, equals, size = part.partition("=")
            begin = start + at + len(name) - len(name.lstrip())
            if not equals:
                parser.raise_error("an iteration dim and its size expected, as in 'i = rows'", begin, begin + 1)
            try:
                d.check_name(name.strip())
            except d.DimError as error:
                parser.raise_error(str(error), begin, begin + max(1, len(name.strip())))
            found.append(Induction(name.strip(), parse_dim(parser, size, start + at + len(name) + 1)))
        return tuple(found)

    def text(self) -> str:
        """The text that `parse_text` reads."""
        return ", ".join(f"{i.name} = {i.count}" for i in self.data)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.text()}>")


EMPTY_SCOPE = Scope.parse("")


def scope_of(op: Operation | None) -> Scope:
    """The dims declared by the graph, kernel or program around `op`, and the induction and iteration dims of the loops
    around it; an empty scope if `op` is detached."""
    start = op
    loops: list[Induction] = []
    nests: list[Induction] = []
    while op is not None:
        dims = op.properties.get("dims")
        if isinstance(dims, DimsAttr):
            scope = in_loops(dims.data, tuple(reversed(loops))) if loops else dims.data
            return in_nest(scope, tuple(reversed(nests))) if nests else scope
        induction = op.properties.get("induction")
        if isinstance(induction, InductionAttr):
            loops.append(induction.data)
        iterations = op.properties.get("iterations")
        if op is not start and isinstance(iterations, IterationsAttr):
            nests += reversed(iterations.data)
        op = op.parent_op()
    return EMPTY_SCOPE


@lru_cache(maxsize=256)
def in_loops(scope: Scope, loops: tuple[Induction, ...]) -> Scope:
    """The scope inside of loops (outermost first), which also declares their induction dims."""
    for loop in loops:
        last = min(max(scope.bounds(loop.count)[1] - 1, 0), d.MAX_DIM)
        scope = Scope([*scope.dims, d.Dim(loop.name, 0, last)])
    return scope


@lru_cache(maxsize=1024)
def in_nest(scope: Scope, nest: tuple[Induction, ...]) -> Scope:
    """The scope inside of a nest of iterations (outermost first), whose proofs know the last value of each index.

    Something runs there only if no size is 0: a dim that is a factor of a size is at least 1. A name that is declared
    already keeps its declaration; the verifier refuses it.
    """
    factors = {n for loop in nest for n in _factors(loop.count)}
    dims = [_at_least_one(dim) if dim.name in factors else dim for dim in scope.dims]
    for loop in nest:
        if loop.name in {dim.name for dim in dims}:
            continue
        last = min(max(scope.bounds(loop.count)[1] - 1, 0), d.MAX_DIM)
        dims.append(d.Dim(loop.name, 0, last, upper=loop.count - 1, is_index=True))
    return Scope(dims)


def _factors(size: Expr) -> frozenset[str]:
    """The dims that are factors of a size: if one of them is 0, the size is 0."""
    terms = size.terms()
    return frozenset(atom.name for atom in terms[0][1] if atom.op is None) if len(terms) == 1 else frozenset()


def _at_least_one(dim: d.Dim) -> d.Dim:
    if dim.lo > 0 or dim.hi == 0:
        return dim
    return replace(dim, lo=1, hints=tuple(h for h in dim.hints if h > 0))


def tensor_type(value: SSAValue) -> TensorType:
    """The type of a value that is known to be a tensor."""
    return cast(TensorType, value.type)
