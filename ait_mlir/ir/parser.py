"""xDSL's parser with a location for every op and errors that point at the source; no input hangs or crashes it."""

from __future__ import annotations

import difflib
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, ModuleOp, StringAttr, f32
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser
from xdsl.parser.generic_parser import ParserState
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind, StringLiteral

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import overflows
from ait_mlir.dialects.ait.numbers import number_text
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.errors import Fix, fixes_of, fixing
from ait_mlir.ir.collector import rare_collections
from ait_mlir.ir.source import Diagnostic, SourceError, SourceText, decode, error_at
from ait_mlir.outside import undecorated

MAX_NESTING = 100
_UNDEFINED = re.compile(r"(?:values used but not defined: \[|missing block declarations for block\(s\) )(%[^,\]]+|\w+)")
_NO_RESULT_TYPES = "Operation has 0 results, but was given"
_EXTERNAL = re.compile(r"(^|=\s*)external\.")
_OPTIONS = "; arguments of an operator's constructor are written as in: options {scale = 2.0}"
_PERMUTE = "; ait.collective_permute sends from one rank and receives on another"
_INSTEAD: Mapping[str, str] = {"ait.send": _PERMUTE, "ait.recv": _PERMUTE, "ait.permute_ranks": _PERMUTE}
"""Hints for names that no op has."""
_LOAD = "; if a Python file defines it, give the file with --load"
_IS_OPEN = ", but the text ends"
_UNCLOSED_STRING = "End of file reached before closing string literal."
_NAME = re.compile(r'"[\w.$/-]+')
_UNCLEAN = (
    *(VerifyException, ValueError, KeyError, IndexError, TypeError, AttributeError, AssertionError, OverflowError),
    *(MemoryError, struct.error, NotImplementedError),
)
PARSE_ERRORS = (ParseError, MemoryError, RecursionError, *_UNCLEAN)
"""Everything that the parser raises for a wrong text."""


class Lexer(MLIRLexer):
    """The MLIR lexer with a string pattern that cannot backtrack, and strings that may hold escaped UTF-8.

    xDSL 0.74 takes exponential time on an unterminated string of 30 characters, and cannot read the strings that it
    prints for non-ASCII letters.
    """

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def _lex_string_literal(self, start_pos: int) -> Token[MLIRTokenKind]:
        token = super()._lex_string_literal(start_pos)
        if token.kind is MLIRTokenKind.BYTES_LIT:
            try:
                StringLiteral.from_span(token.span).string_contents  # noqa: B018
            except UnicodeDecodeError:
                return token
            return Token(MLIRTokenKind.STRING_LIT, token.span)
        return token


class AitParser(Parser):
    """Parses IR text; every op gets its `FileLineColLoc`, every failure becomes a `ParseError` at a place."""

    def __init__(self, ctx: Context, source: SourceText) -> None:
        super().__init__(ctx, "", source.name)
        self.source = source
        self._parser_state = ParserState(Lexer(Input(source.text, source.name)))
        self._file = StringAttr(source.name)
        self._depth = 0

    def parse_operation(self) -> Operation:
        start = self.pos
        self._depth += 1
        if self._depth > MAX_NESTING:
            self.raise_error(f"ops are nested more than {MAX_NESTING} deep", start, start + 1)
        try:
            op = super().parse_operation()
        except ParseError as e:
            if _NO_RESULT_TYPES not in str(e):
                raise
            hint = _OPTIONS if _EXTERNAL.search(self.source.text, start, self.pos) else ""
            before = self.source.text[start : self.pos]
            end = self.pos if "\n" not in before[len(before.rstrip()) :] else start + len(before.rstrip()) - 1
            with fixing(*self._result_types(start), *self._operand(end)):
                self.raise_error(f"expected ':' and the types of the results{hint}", end, end + 1)
        except _UNCLEAN as e:
            with fixing(*fixes_of(e)):
                self.raise_error(_message(e), start, start + 1)
        if isinstance(op, ConstantOp) and "value" in op.properties and len(op.results) == 1:
            self._check_fits(op, start)
        self._depth -= 1
        op.location = self.location(start)
        return op

    def _result_types(self, start: int) -> list[Fix]:
        """The fix that adds the result types to the op at `start`, if they follow from its operands."""
        defined = len(self.ssa_values)
        try:
            self._resume_from(start)
            results = sum(size for _, size in self._parse_op_result_list())
            op = self._get_op_by_name(self.parse_identifier()).parse(self)
            if not isinstance(op, AitOp):
                return []
            regions = [region.clone() for region in op.regions]
            typed = type(op).create(
                operands=op.operands,
                result_types=[TensorType.get((), f32)] * results,
                properties=op.properties,
                regions=regions,
            )
            text = " : " + ", ".join(map(str, typed.infer_result_types()))
        except PARSE_ERRORS:
            return []
        finally:
            while len(self.ssa_values) > defined:
                self.ssa_values.popitem()
        return [Fix(f"add{text}", text, "after")]

    def _operand(self, at: int) -> list[Fix]:
        """The fix for a value in the place of the result types: a comma or the percent sign is missing before it."""
        word = _word(self.source.text, at)
        if word[:1] == "%" and word[1:] in self.ssa_values:
            return [Fix(f"write a comma before {word}", f", {word}")]
        return [Fix(f"write %{word}", f"%{word}")] if word in self.ssa_values else []

    def _check_fits(self, op: ConstantOp, start: int) -> None:
        """Refuse a finite number that its float type makes infinite."""
        t = op.output.type
        element = t.element_type if isinstance(t, TensorType) else t
        if (number := next((n for n in op.values() if overflows(n, element)), None)) is not None:
            self.raise_error(f"ait.constant: {number_text(number)} does not fit in {element}", start, start + 1)

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        if name not in self.ssa_values:
            return super()._register_ssa_definition(name, values, span)
        stem = f"v{name}" if name[0].isdigit() else name
        new = next(f"{stem}_{i}" for i in range(1, len(self.ssa_values) + 2) if f"{stem}_{i}" not in self.ssa_values)
        with fixing(Fix(f"name it %{new}", f"%{new}")):
            return super()._register_ssa_definition(name, values, span)

    def _get_op_by_name(self, name: str) -> type[Operation]:
        found = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if found is not None:
            return found
        start = max(0, self.source.text.rfind(name, 0, self.pos))
        known = [op.name for dialect in self.ctx.loaded_dialects for op in dialect.operations]
        close = [] if name in _INSTEAD else difflib.get_close_matches(name, known, 1, 0.75)
        foreign = name.partition(".")[0] not in {dialect.name for dialect in self.ctx.loaded_dialects}
        hint = f"; did you mean {close[0]}?" if close else undecorated(name) or _LOAD if foreign else ""
        hint = _INSTEAD.get(name, hint)
        fixes = [Fix(f"write {match}", match) for match in close]
        with fixing(*fixes):
            self.raise_error(f"Operation {name} is not registered{hint}", start, start + len(name))

    def location(self, offset: int) -> LocationAttr:
        line, column = self.source.line_column(offset)
        return FileLineColLoc(self._file, IntAttr(line), IntAttr(column))


def _message(e: Exception) -> str:
    """The message of an error in one line."""
    text = str(e) if isinstance(e, VerifyException | ValueError) else f"cannot be read ({type(e).__name__}: {e})"
    if "integer string conversion" in text:
        return "the number has too many digits"
    if isinstance(e, OverflowError | struct.error):
        return "a number is too large for its type"
    if isinstance(e, MemoryError):
        return "too large to be held in memory"
    if isinstance(e, NotImplementedError):
        return "numbers of this type cannot be read"
    return text.strip().splitlines()[-1] if text.strip() else type(e).__name__


def parse_source(ctx: Context, source: SourceText) -> ModuleOp:
    """Parse a module; raises only `SourceError`."""
    parser: AitParser | None = None
    try:
        parser = AitParser(ctx, source)
        if not source.text.strip():
            raise error_at(source, 0, "there is no operation: the text is empty")
        with rare_collections():
            return parser.parse_module()
    except PARSE_ERRORS as e:
        raise source_error(e, source, 0 if parser is None else parser.pos) from None


def source_error(e: Exception, source: SourceText, at: int) -> SourceError:
    """An error of the parser as an error at its place; `at` is the offset of the parser."""
    if isinstance(e, MemoryError):
        return error_at(source, at, "too large to be held in memory")
    if isinstance(e, RecursionError):
        return error_at(source, at, "nested too deeply")
    if not isinstance(e, ParseError):
        return error_at(source, at, _message(e), fixes_of(e))
    at, message, fixes = e.span.start, e.msg.strip(), fixes_of(e)
    if (undefined := _UNDEFINED.search(message)) is not None:
        at = _first_use(source.text, undefined.group(1), at)
    elif message == "in block definition":
        at, message = max(0, at), _unclosed(source, at)
        fixes = (Fix("close the '{' at the end of the text", "}\n", "end"),) if _IS_OPEN in message else ()
    elif message == _UNCLOSED_STRING:
        string = source.text[at:].partition("\n")[0]
        name = _NAME.match(string)
        end = len(string.rstrip()) if name is None else name.end()
        message = "the string is not closed: '\"' is expected on this line"
        fixes = (Fix(f'write {string[:end]}"', f'{string[:end]}"{string[end:]}'),)
    elif message == "Could not parse entire input!":
        message = "an operation expected"
    elif message == "Expected region!":
        message = "expected '{' and the operations of the body"
    elif (slip := _SLIPS.get(message)) is not None and (word := _word(source.text, at)):
        fixes = fixes or (Fix(f"write {slip(word)}", slip(word)),)
    return error_at(source, at, message, fixes)


def _word(text: str, at: int) -> str:
    """The word or the name of a value at an offset; "" if there is none."""
    found = re.compile(r"%?[\w$][\w.$]*").match(text, at)
    return "" if found is None else found[0]


_SLIPS: dict[str, Callable[[str], str]] = {
    "string literal expected": lambda word: f'"{word}"',
    "type expected": lambda word: f"!{word}",
    "Expected '=' after operation result list": lambda word: f"= {word}",
}
"""For errors of xDSL's parser, the text that is expected instead of the word at the error."""


def _unclosed(source: SourceText, at: int) -> str:
    """The message for text in a region, at offset `at`, that is no operation, or for the end of the text there."""
    opened: list[int] = []
    for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|[{}]', source.text[: at + 1]):
        if found.group() == "{":
            opened.append(found.start())
        elif found.group() == "}" and opened:
            opened.pop()
    if not opened:
        return "expected an operation"
    line = source.line_column(opened[-1])[0]
    ends = not source.text[at + 1 :].strip()
    return f"expected an operation or '}}'{_IS_OPEN if ends else ''}; the '{{' of line {line} is not closed"


def _first_use(text: str, name: str, otherwise: int) -> int:
    """The offset of the first use of an undefined value or block."""
    found = re.search(re.escape(name) + r"(?![\w$.-])", text)
    return otherwise if found is None else found.start()


def parse_text(ctx: Context, text: str | bytes, name: str = "<text>") -> ModuleOp:
    """Parse and verify a module from text; raises `SourceError`."""
    source = decode(text, name) if isinstance(text, bytes) else SourceText(name, text)
    module = parse_source(ctx, source)
    check(module, source)
    return module


# ** verification with places **


def op_place(op: Operation) -> tuple[str, int, int] | None:
    """File, line and column of an op, or None if it was not parsed from text."""
    loc = op.location
    if isinstance(loc, FileLineColLoc):
        return loc.filename.data, loc.line.data, loc.column.data
    return None


WrongOp = tuple[Operation, str, tuple[Fix, ...]]
"""An op, what is wrong with it, and the changes of the text that mend it."""


def verify_all(module: Operation, only: Iterable[Operation] | None = None) -> Iterator[WrongOp]:
    """Verify op by op, all ops or `only` some; yields each wrong op."""
    wrong = False
    broken: list[WrongOp] = []  # ops whose verifiers failed because of a wrong nested op
    for op in module.walk() if only is None else only:
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as e:
            duplicate = _duplicate_symbol(op)
            wrong = True
            yield op if duplicate is None else duplicate, _message(e), fixes_of(e)
        except (*_UNCLEAN, RecursionError) as e:
            broken.append((op, _message(e), ()))
    yield from () if wrong else broken
    for op, message in check_dominance(module):
        yield op, message, ()


def _duplicate_symbol(op: Operation) -> Operation | None:
    """The first op in a symbol table with the name of an earlier op; None without one."""
    seen: set[Any] = set()
    if op.has_trait(SymbolTable):
        for inner in (inner for region in op.regions for block in region.blocks for inner in block.ops):
            name = inner.properties.get("sym_name")
            if name is not None and name in seen:
                return inner
            seen.add(name)
    return None


def check_dominance(module: Operation) -> Iterator[tuple[Operation, str]]:
    """Yield each op that uses a value before its definition (possible in generic form), with the error."""
    for top in module.walk():
        for region in top.regions:
            for block in region.blocks:
                seen: set[Any] = set(block.args)
                for op in block.ops:
                    for i, operand in enumerate(op.operands):
                        if operand not in seen and _block_of(operand) is block:
                            yield op, f"{op.name}: operand {i} is used before its definition"
                    seen.update(op.results)


def _block_of(value: Any) -> Any:
    owner = value.owner
    return owner.parent if isinstance(owner, Operation) else owner


def merged(errors: Iterable[WrongOp]) -> list[WrongOp]:
    """The errors, but for a dim that a graph does not declare only the first, with the number of the other ops."""
    found: list[WrongOp] = []
    first: dict[tuple[Operation, Fix], int] = {}
    more = Counter[int]()
    for op, message, fixes in errors:
        if len(fixes) == 1 and fixes[0].place == "dims":
            at = first.setdefault((_outermost(op), fixes[0]), len(found))
            if at < len(found):
                more[at] += 1
                continue
        found.append((op, message, fixes))
    for at, count in more.items():
        op, message, fixes = found[at]
        found[at] = op, f"{message}; {count + 1} ops name it", fixes
    return found


def _outermost(op: Operation) -> Operation:
    """The op around an op, or the op itself, that is directly in the module."""
    while (parent := op.parent_op()) is not None and parent.parent_op() is not None:
        op = parent
    return op


def diagnostics_of(
    module: Operation, source: SourceText | None, limit: int = 20, only: Iterable[Operation] | None = None
) -> list[Diagnostic]:
    """The verification errors of a module, or of `only` some of its ops, as diagnostics."""
    found: list[Diagnostic] = []
    for op, message, fixes in merged(verify_all(module, only)):
        place = op_place(op)
        if place is None:
            found.append(Diagnostic("<ir>", 0, 0, message))
        else:
            text = source.line_text(place[1]) if source is not None and source.name == place[0] else ""
            found.append(Diagnostic(*place, message, text, fixes=fixes))
        if len(found) >= limit:
            break
    return found


def check(module: Operation, source: SourceText | None = None, only: Iterable[Operation] | None = None) -> None:
    """Raise `SourceError` with the verification errors of the module, or of `only` some of its ops. The order of
    definitions and uses is always checked for all ops."""
    found = diagnostics_of(module, source, only=only)
    if found:
        raise SourceError(found)
