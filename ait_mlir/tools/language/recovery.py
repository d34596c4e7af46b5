"""Parses a text in spite of errors: each wrong op is an error, and parsing goes on with the next op.

A wrong op leaves values of the types that its text names, so that ops that use them are still checked. Ops whose text
did not change since the last time are taken over instead of parsed again, which makes an edit of a long text cheap.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, NoneAttr, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def, var_result_def
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind, PunctuationSpelling

from ait_mlir.dialects.ait.types import EMPTY_SCOPE, DimsAttr
from ait_mlir.dims import DimError, Scope
from ait_mlir.errors import Fix, fixes_of
from ait_mlir.ir.collector import rare_collections
from ait_mlir.ir.parser import PARSE_ERRORS, AitParser, Lexer, merged, op_place, source_error, verify_all
from ait_mlir.ir.source import Diagnostic, SourceText, error_at
from ait_mlir.tools.language.outline import Outline, Place, Statement

MOST = 100
"""The most errors that are reported for a text."""
_UNKNOWN = "used or defined with type none"
_ENDS = (MLIRTokenKind.EOF, MLIRTokenKind.R_BRACE, MLIRTokenKind.CARET_IDENT)
_DEPENDS = re.compile(r"->|dims \{|[@!#]\w+[^\w.]|^\s*\"")
"""Texts of ops that name types of operands, dims, symbols or aliases."""
_WITH_DIMS = ("ait.graph", "ait_rt.program")
_DIMS = re.compile(r"\bdims\s*\{([^{}]*)\}")
_ALIASES = (MLIRTokenKind.HASH_IDENT, MLIRTokenKind.EXCLAMATION_IDENT)
_BETWEEN = (*_ALIASES, MLIRTokenKind.FILE_METADATA_BEGIN)


class Cancelled(Exception):
    """The text has changed; its analysis is not needed any more."""


@irdl_op_definition
class WrongOp(IRDLOperation):
    """Stands for an op that could not be parsed; it has the results that the op's text names, and the body of a graph
    or program whose head is wrong, with the dims of the head, if these are right."""

    name = "ait_lsp.wrong"
    outputs = var_result_def()
    traits = traits_def(NoTerminator())


def _around(op: Operation) -> Iterator[Operation]:
    """The ops around an op, the innermost first."""
    while (parent := op.parent_op()) is not None:
        yield parent
        op = parent


@dataclass(eq=False)
class _Kept:
    """An op that the next analysis may take over."""

    op: Operation
    results: tuple[str, ...]
    uses: tuple[tuple[Operation, int, str, int], ...]
    """What it uses of its surroundings: user, index of its operand, name of the value, index of the value."""
    line: int
    """The first line of its text."""


@dataclass
class Memory:
    """What the analysis of one document remembers of the one before."""

    ops: dict[str, list[_Kept]] = field(default_factory=lambda: defaultdict[str, list[_Kept]](list))
    """By their texts."""
    right: dict[Operation, tuple[SSAValue, ...]] = field(default_factory=dict[Operation, tuple[SSAValue, ...]])
    """Ops that were verified, with their operands."""
    dims: list[str] = field(default_factory=list[str])
    """The dims that the ops of the module declared."""
    blocks: list[Block] = field(default_factory=list[Block])
    """The blocks of ops that were parsed. Those that no analysis took over are not needed any more."""

    def take(self, ops: dict[str, list[_Kept]], blocks: list[Block], module: ModuleOp) -> None:
        """Remember a new analysis. Ops of older ones that it has not taken over stop to use its values; otherwise the
        values would keep them alive."""
        alive = {module, *blocks}
        for block in self.blocks:
            if block.get_toplevel_object() in alive:
                blocks.append(block)
                continue
            for op in block.ops:
                op.drop_all_references()
        self.ops, self.blocks = ops, blocks


@dataclass
class Analysis:
    """What is known of a text."""

    source: SourceText
    outline: Outline
    module: ModuleOp
    diagnostics: list[Diagnostic]
    is_whole: bool
    """Whether the text was parsed without an error."""
    parsed: int
    """The ops that were parsed, not taken over."""

    @cached_property
    def ops(self) -> dict[int, Operation]:
        """The ops by the lines, counted from 0, in which they start."""
        found: dict[int, Operation] = {}
        for op in self.module.walk():
            if (place := op_place(op)) is not None:
                found.setdefault(place[1] - 1 - self.source.line_offset, op)
        return found


@lru_cache(maxsize=50_000)
def _location(file: StringAttr, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(file, IntAttr(line), IntAttr(column))


def analyse(
    ctx: Context,
    source: SourceText,
    outline: Outline,
    memory: Memory | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    verify_all_ops: bool = True,
) -> Analysis:
    """Parse and verify a text; raises only `Cancelled`.

    With a `memory` of the text before an edit, unchanged ops are taken over. Unless `verify_all_ops`, only changed ops
    and their neighbours are verified; an op may miss an error that is caused by an op further away.
    """
    memory = Memory() if memory is None else memory
    parser = RecoveringParser(ctx, source, outline, memory, cancelled)
    with rare_collections():
        module = parser.parse_whole()
        found = list(parser.diagnostics)
        is_whole = not found
        for op, message, fixes in merged(_verified(module, parser.unknown, memory, verify_all_ops)):
            _, line, column = op_place(op) or (source.name, source.line_offset + 1, 1)
            found.append(Diagnostic(source.name, line, column, message, source.line_text(line), fixes=fixes))
            if len(found) >= MOST:
                break
    found.sort(key=lambda d: (d.line, d.column))
    return Analysis(source, outline, module, list(dict.fromkeys(found))[:MOST], is_whole, parser.parsed)


def _verified(
    module: ModuleOp, unknown: set[SSAValue], memory: Memory, everything: bool
) -> Iterator[tuple[Operation, str, tuple[Fix, ...]]]:
    """The errors of the verifiers; ops next to a text that was not parsed are left out."""
    every = list(module.walk())
    left_out = {op.parent_op() for op in every if type(op) is WrongOp}
    for wrong_op in (op for op in every if type(op) is WrongOp and op.regions and "dims" not in op.properties):
        left_out.update(wrong_op.walk())  # their dims are not known
    ops = [
        op
        for op in every
        if type(op) is not WrongOp and op not in left_out and not (unknown and unknown.intersection(op.operands))
    ]
    operands = {op: op._operands for op in ops}  # pyright: ignore[reportPrivateUsage]
    dims = [str(op.properties["dims"]) for op in every if isinstance(op.properties.get("dims"), DimsAttr)]
    if everything or dims != memory.dims:
        memory.right = {}
    changed = [op for op in ops if not _is_same(memory.right.get(op), operands[op])]
    only = dict.fromkeys(changed)
    for op in changed:
        only |= dict.fromkeys(v.owner for v in op.operands if isinstance(v.owner, Operation))
        only |= dict.fromkeys(use.operation for result in op.results for use in result.uses)
    only = [op for op in only if op in operands]
    wrong: set[Operation] = set()
    memory.right, memory.dims = {}, dims
    for error in verify_all(module, only):
        wrong.add(error[0])
        yield error
    memory.right = {op: used for op, used in operands.items() if op not in wrong}


def _is_same(before: Sequence[SSAValue] | None, now: Sequence[SSAValue]) -> bool:
    """Whether the operands of an op are those of the last analysis; arguments of blocks are new each time."""
    if before is None:
        return False
    return before == now or all(
        a is b or (isinstance(b, BlockArgument) and isinstance(a, BlockArgument) and a.type == b.type)
        for a, b in zip(before, now, strict=True)
    )


class RecoveringParser(AitParser):
    """Collects errors in `diagnostics` and goes on."""

    def __init__(
        self, ctx: Context, source: SourceText, outline: Outline, memory: Memory, cancelled: Callable[[], bool]
    ) -> None:
        super().__init__(ctx, SourceText(source.name, ""))
        self.source = source
        self.diagnostics: list[Diagnostic] = []
        self.unknown: set[SSAValue] = set()
        """Results of wrong ops whose types are not known."""
        self.parsed = 0
        self._outline = outline
        self._memory = memory
        self._cancelled = cancelled
        self._kept: dict[str, list[_Kept]] = defaultdict(list)
        self._names: dict[SSAValue, tuple[str, int]] = {}
        self._told_end = False
        self._blocks: list[Block] = []
        self._taken_ops: set[Operation] = set()
        self._torn: set[Operation] = set()
        """Ops of the last analysis of which an op inside was taken over alone."""
        self._parser_state.lexer = Lexer(Input(source.text, source.name))
        self._resume(0)

    def location(self, offset: int) -> FileLineColLoc:
        return _location(self._file, *self.source.line_column(offset))

    # ** the text, op by op **

    def parse_whole(self) -> ModuleOp:
        """Parse the text; raises only `Cancelled`."""
        block = Block()
        try:
            self._parse_block_body(block)
            while self._current_token.kind is not MLIRTokenKind.EOF:
                self._parse_between()
                self._parse_block_body(block)
        except Cancelled:  # the next analysis takes over what this one has
            for text, kept in self._kept.items():
                self._memory.ops[text] += kept
            self._memory.blocks += self._blocks
            raise
        for name in list(self.forward_ssa_references):
            at = max(0, self.source.text.find(f"%{name}"))
            self.diagnostics += error_at(self.source, at, f"%{name} is used, but not defined").diagnostics
        ops = list(block.ops)
        for op in ops:
            op.detach()
            self._replace_forward_references(op)
        only = ops[0] if len(ops) == 1 else None
        module = only if isinstance(only, ModuleOp) else ModuleOp(ops)
        self._memory.take(self._kept, [*self._blocks, *module.body.blocks], module)
        return module

    def _parse_between(self) -> None:
        """Parse an alias or metadata; anything else between ops is an error."""
        start = self.pos
        try:
            if self._current_token.kind in _ALIASES:
                self._parse_alias_def()
            elif self._current_token.kind is MLIRTokenKind.FILE_METADATA_BEGIN:
                self._parse_file_metadata_dictionary()
            else:
                self.raise_error("an operation expected")
        except PARSE_ERRORS as e:
            self._tell(e, start)
            self._resume(max(self._after(start), start + 1))

    def _parse_block_body(self, block: Block) -> None:
        self._blocks.append(block)
        while True:
            self._take_over(block)
            at_top = block.parent is None and self._depth == 0
            if self._current_token.kind in _ENDS or (at_top and self._current_token.kind in _BETWEEN):
                return
            if self._cancelled():
                raise Cancelled
            self._parse_op_of(block)

    def _parse_op_of(self, block: Block) -> None:
        """Parse an op, or skip it after an error."""
        start = self.pos
        defined, stack = len(self.ssa_values), len(self._parser_state.dialect_stack)
        blocks, forward, depth = self.blocks, self.forward_block_references, self._depth
        try:
            op = self.parse_optional_operation()
            if op is None:
                self.raise_error("an operation expected")
        except PARSE_ERRORS as e:
            if depth > 0 and self._line_before(start).strip():  # a later op of a line: the op around it is wrong
                raise
            self._tell(e, start)
            while len(self.ssa_values) > defined:
                self.ssa_values.popitem()
            del self._parser_state.dialect_stack[stack:]
            self.blocks, self.forward_block_references, self._depth = blocks, forward, depth
            head = self.source.line_column(self.pos)[0] - 1 - self.source.line_offset
            self._resume(max(self._after(start), start + 1))
            stand_in = self._stand_in(start, fixes_of(e))
            block.add_op(stand_in)
            self._parse_body_of(stand_in, start, head)
            return
        self.parsed += 1
        if (statement := self._statement(start)) is not None:
            self._keep(statement, op)
        block.add_op(op)

    def parse_optional_punctuation(self, punctuation: PunctuationSpelling) -> PunctuationSpelling | None:
        """As in the base class; but a '}' that is missing at the end of the text is reported once, and then assumed to
        be there.
        """
        if punctuation == "}" and self._current_token.kind is MLIRTokenKind.EOF:
            if not self._told_end:
                self._told_end = True
                end = Span(self.pos, self.pos + 1, self.lexer.input)
                self._tell(ParseError(end, "in block definition"), self.pos)
            return punctuation
        return super().parse_optional_punctuation(punctuation)

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        for i, value in enumerate(values):
            self._names[value] = (name, i)

    # ** errors **

    def _tell(self, error: Exception, start: int) -> None:
        """Report an error of the op at `start`; its place is in the lines of the op."""
        at = self._statement(start)
        for d in source_error(error, self.source, self.pos).diagnostics:
            last = None if at is None else at.last + self.source.line_offset + 1
            if last is not None and d.line > last:
                text = self.source.line_text(last)
                d = replace(d, line=last, column=max(1, len(text.rstrip())), line_text=text)
            if _UNKNOWN not in d.message:  # an operand of an op that is wrong itself
                self.diagnostics.append(d)

    def _resume(self, at: int) -> None:
        """Go on at an offset, or after it at the next line that starts with a token."""
        while True:
            try:
                self._resume_from(at)
                return
            except PARSE_ERRORS as e:
                self.diagnostics += source_error(e, self.source, at).diagnostics
                end = self.source.text.find("\n", max(at, self.lexer.pos))
                at = len(self.source.text) if end < 0 else end + 1

    def _after(self, start: int) -> int:
        """The offset at which parsing goes on after an error at `start`: the next statement of the same region, or the
        end of the region."""
        starts, index = self.source.starts, self._line_of(start)
        statement = self._outline.by_line.get(index)
        if statement is None:
            around = self._outline.at(index)
            while around is not None and around.last == index and around.first != index:
                around = around.parent
            below = self._outline.roots if around is None else around.children
            next_ = next((s.first for s in below if s.first > index), None)
            if next_ is not None:
                return starts[next_]
            return len(self.source.text) if around is None or around.last == index else starts[around.last]
        return starts[statement.last + 1] if statement.last + 1 < len(starts) else len(self.source.text)

    def _line_of(self, offset: int) -> int:
        return self.source.line_column(offset)[0] - 1 - self.source.line_offset

    def _line_before(self, offset: int) -> str:
        """The text of a line up to an offset."""
        return self.source.text[self.source.starts[self._line_of(offset)] : offset]

    def _statement(self, start: int) -> Statement | None:
        """The statement that starts at an offset."""
        return None if self._line_before(start).strip() else self._outline.by_line.get(self._line_of(start))

    def _stand_in(self, start: int, fixes: Sequence[Fix]) -> WrongOp:
        """The op that stands for a wrong one: with the results that its text names, of the types after its last
        colon or, if they are missing, those of the fix that adds them."""
        s = self._statement(start)
        names = self._outline.results(s) if s is not None else ()
        added = next((fix.text for fix in fixes if fix.place == "after"), None)
        text = added if added is not None or s is None else self._outline.lines[s.last]
        types = self._types_in(text.partition("//")[0]) if text is not None and names else []
        is_known = len(types) == len(names)
        op = WrongOp.create(result_types=types if is_known else [NoneAttr()] * len(names))
        for token, value in zip(names, op.results, strict=True):
            self.ssa_values.setdefault(token.text[1:], (value,))
            self._names[value] = (token.text[1:], 0)
            self.forward_ssa_references.pop(token.text[1:], None)
        self.unknown.update(() if is_known else op.results)
        op.location = self.location(start)
        return op

    def _parse_body_of(self, op: WrongOp, start: int, at: int) -> None:
        """Parse the body of a wrong graph, kernel or program whose error, in the line `at`, is before its body."""
        s = self._statement(start)
        if s is None or not s.children or at >= s.children[0].first or self._outline.op(s) not in _WITH_DIMS:
            return
        after, defined, stack = self.pos, len(self.ssa_values), len(self._parser_state.dialect_stack)
        blocks, forward, depth = self.blocks, self.forward_block_references, self._depth
        arguments = self._outline.arguments(s)
        types = [self._type_at(place) for place in arguments]
        body = Block(arg_types=types)
        op.add_region(Region(body))
        if (dims := self._dims_of(s)) is not None:
            op.properties["dims"] = dims
        for place, value in zip(arguments, body.args, strict=True):
            self.ssa_values[place.token.text[1:]] = (value,)
            self._names[value] = (place.token.text[1:], 0)
            if isinstance(value.type, NoneAttr):
                self.unknown.add(value)
        self._depth += 1
        self._resume(self.source.starts[s.children[0].first])
        try:
            self._parse_block_body(body)
        except PARSE_ERRORS as e:  # two ops in a line
            self._tell(e, self.pos)
        del self._parser_state.dialect_stack[stack:]
        self.blocks, self.forward_block_references, self._depth = blocks, forward, depth
        while len(self.ssa_values) > defined:
            self.ssa_values.popitem()
        self._resume(after)

    def _type_at(self, place: Place) -> Attribute:
        """The type after a value in the head of an op; `none` if there is none or it is wrong."""
        text = self._outline.lines[place.line][place.token.end :].lstrip()
        try:
            return AitParser(self.ctx, SourceText("type", text.removeprefix(":"))).parse_type()
        except PARSE_ERRORS:
            return NoneAttr()

    def _dims_of(self, s: Statement) -> DimsAttr | None:
        """The dims that the head of an op declares; None if their text is wrong."""
        head = "\n".join(self._outline.lines[s.first : s.children[0].first])
        declared = _DIMS.search(head)
        if declared is None:
            return None if re.search(r"\bdims\b", head) else DimsAttr(EMPTY_SCOPE)
        try:
            return DimsAttr(Scope.parse(declared[1]))
        except DimError:
            return None

    def _replace_forward_references(self, top: Operation) -> None:
        """Give uses of values that are not defined a value; ops with it are not verified."""
        for op in top.walk() if self.diagnostics else ():
            for operand in op.operands:
                if isinstance(operand, ForwardDeclaredValue):
                    (unknown,) = WrongOp.create(result_types=[operand.type]).results
                    operand.replace_all_uses_with(unknown)
                    self.unknown.add(unknown)

    def _types_in(self, text: str) -> list[Attribute]:
        """The types after the last colon of a text."""
        at = text.rfind(" : ")
        if at < 0:
            return []
        try:
            parser = AitParser(self.ctx, SourceText("types", text[at + 3 :].rpartition("->")[2]))
            return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        except PARSE_ERRORS:
            return []

    # ** ops of the last analysis **

    def _keep(self, s: Statement, op: Operation) -> None:
        """Let the next analysis take an op over, unless more than its text and the types of its operands decides how it
        is parsed."""
        text = self._outline.text(s)
        results = self._outline.results(s)
        if s.parent is None or op.successors or len(results) != len(op.results) or _DEPENDS.search(text):
            return
        behind = range(s.last + 1, self._line_of(self.pos))
        if self._line_before(self.pos).strip() or not behind.start <= behind.stop or self._outline.has_code(behind):
            return  # the op is longer or shorter than the statement
        uses: list[tuple[Operation, int, str, int]] = []
        for nested in op.walk() if op.regions else (op,):
            for i, operand in enumerate(nested.operands):
                if isinstance(operand, ForwardDeclaredValue):
                    return
                if operand in self._names and self._is_visible(operand):
                    uses.append((nested, i, *self._names[operand]))
        self._kept[text].append(_Kept(op, tuple(t.text[1:] for t in results), tuple(uses), s.first))

    def _is_visible(self, value: SSAValue) -> bool:
        name, i = self._names[value]
        found = self.ssa_values.get(name, ())
        return i < len(found) and found[i] is value

    def _take_over(self, block: Block) -> None:
        """Take over the ops of the last analysis whose texts stand here."""
        statement = self._statement(self.pos)
        last: Statement | None = None
        while statement is not None and (op := self._taken(statement)) is not None:
            block.add_op(op)
            last, statement = statement, self._outline.following(statement)
        if last is not None:
            starts = self.source.starts
            self._resume(starts[last.last + 1] if last.last + 1 < len(starts) else len(self.source.text))

    def _taken(self, s: Statement) -> Operation | None:
        """The op of the last analysis with the text of a statement, if the operands have the types that they had."""
        text = self._outline.text(s)
        known = self._memory.ops.get(text)
        if not known:
            return None
        kept = known[-1]
        scope = self.ssa_values
        if any(name in scope for name in kept.results):
            return None
        values: list[SSAValue] = []
        for user, i, name, index in kept.uses:
            found = scope.get(name, ())
            if index >= len(found) or found[index].type != user.operands[i].type or found[index] in self.unknown:
                return None
            values.append(found[index])
        known.pop()
        op = kept.op
        around = list(_around(op))
        if op in self._torn or not self._taken_ops.isdisjoint(around):
            return None
        self._torn.update(around)
        self._taken_ops.add(op)
        op.detach()
        for (user, i, _, _), value in zip(kept.uses, values, strict=True):
            if user.operands[i] is not value:
                user.operands[i] = value
        for name, value in zip(kept.results, op.results, strict=True):
            scope[name] = (value,)
            self._names[value] = (name, 0)
        if kept.line != s.first:
            for nested in op.walk() if op.regions else (op,):
                if (place := op_place(nested)) is not None:
                    nested.location = _location(self._file, place[1] + s.first - kept.line, place[2])
            kept.line = s.first
        self._kept[text].append(kept)
        return op
