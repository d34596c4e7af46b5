"""The language server: answers an editor's requests by the functions beside it.

One thread does all work on IR, in the order of the requests, so that an answer follows every change before it. The
analysis of a text that has changed again is given up.
"""

from __future__ import annotations

import asyncio
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec
from xdsl.context import Context

from ait_mlir.dialects.ait.types import forget_unused
from ait_mlir.dims import interned
from ait_mlir.driver import phase_of
from ait_mlir.ir.source import Diagnostic
from ait_mlir.passes.pipelines import PHASES, passes_between, phase_index
from ait_mlir.tools.language import commands
from ait_mlir.tools.language.completion import Item, completions_at
from ait_mlir.tools.language.document import Document, Edit, Part, Refused, Span, new_context
from ait_mlir.tools.language.formatting import formatted
from ait_mlir.tools.language.hover import hover_at
from ait_mlir.tools.language.mending import edits_of
from ait_mlir.tools.language.names import named_at, renamed
from ait_mlir.tools.language.recovery import Cancelled
from ait_mlir.tools.language.tokens import Kind, tokens_of
from ait_mlir.version import __version__

T = TypeVar("T")

_IR = Lock()
"""Held while IR is worked on: clients of one process have a thread each, and share tables of dims and types."""
MOST_NEW = 1000
"""After so many new dim expressions, those that no text has any more are forgotten."""
QUIET = 0.4
"""Seconds without a change after which all ops are verified, not only changed ones and their neighbours."""
REQUEST_FAILED = -32803
RUN, PHASE, CHECK = "ait-lsp.run", "ait-lsp.phase", "ait-lsp.check"
_RUN_LINE = re.compile(r"RUN:.*?ait-opt\b.*?-(?:p|-passes)[ =](?:'([^']*)'|\"([^\"]*)\"|(\S+))")
_COLOURS: dict[Kind, str] = {
    "comment": "comment",
    "string": "string",
    "value": "variable",
    "symbol": "function",
    "block": "label",
    "type": "type",
    "element": "type",
    "attribute": "decorator",
    "number": "number",
    "op": "keyword",
    "dim": "typeParameter",
    "word": "macro",
}
_LEGEND = sorted(set(_COLOURS.values()))
_ITEMS = {
    "op": lsp.CompletionItemKind.Function,
    "value": lsp.CompletionItemKind.Variable,
    "dim": lsp.CompletionItemKind.TypeParameter,
    "type": lsp.CompletionItemKind.Class,
    "symbol": lsp.CompletionItemKind.Reference,
    "word": lsp.CompletionItemKind.Keyword,
    "attribute": lsp.CompletionItemKind.Property,
}


@dataclass
class Opened:
    """A text of the editor."""

    uri: str
    name: str
    text: str
    version: int | None
    changes: int = 0
    document: Document = field(default_factory=lambda: Document(""))
    shown: int = -1
    """The number of changes that `document` has."""

    def current(self) -> Document:
        """The document with the last text."""
        if self.shown != self.changes:
            self.shown = self.changes
            self.document.update(self.text)
        return self.document


class AitServer(LanguageServer):
    """One connection with an editor."""

    def __init__(self) -> None:
        super().__init__("ait-lsp", __version__, max_workers=2)  # pyright: ignore[reportUnknownMemberType]
        self.opened: dict[str, Opened] = {}
        self.target = "cpu"
        self.shows_texts = False
        """Whether the client shows the texts that commands return."""
        self._worker = ThreadPoolExecutor(1, "ir")
        self._ctx: Context | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._interned = interned()

    @property
    def ctx(self) -> Context:
        if self._ctx is None:
            self._ctx = new_context()
        return self._ctx

    def shutdown(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)
        super().shutdown()

    async def work(self, function: Callable[[], T]) -> T:
        """Call a function on the thread of the IR; a refusal or a bug becomes an error of the request."""

        def locked() -> T:
            with _IR:
                return function()

        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, locked)
        except Refused as e:
            raise JsonRpcException(str(e), code=REQUEST_FAILED) from None
        except Exception as e:
            traceback.print_exc(file=sys.stderr)
            raise JsonRpcInternalError(f"internal error: {type(e).__name__}: {e}") from None

    def text_of(self, uri: str) -> Opened:
        """A text that the editor has opened."""
        if (found := self.opened.get(uri)) is None:
            raise JsonRpcException(f"{uri} is not open", code=REQUEST_FAILED)
        return found

    def forget_done(self) -> None:
        """Drop the futures of finished notifications: pygls 2 keeps one for each notification, and drops only those of
        requests.
        """
        kept: dict[Any, Future[Any]] = self.protocol._request_futures  # pyright: ignore[reportPrivateUsage]
        for key in [key for key, future in kept.items() if future.done()]:
            del kept[key]

    # ** changes **

    def changed(self, uri: str) -> None:
        """Take the text of the workspace, and check it."""
        source = self.workspace.get_text_document(uri)
        name = _name(uri)
        opened = self.opened.setdefault(uri, Opened(uri, name, "", None, document=Document(name)))
        opened.text, opened.version = source.source, source.version
        opened.changes += 1
        self.forget_done()
        task = asyncio.get_running_loop().create_task(self._check(opened))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def closed(self, uri: str) -> None:
        if (opened := self.opened.pop(uri, None)) is not None:
            opened.changes += 1
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    async def _check(self, opened: Opened) -> None:
        changes = opened.changes
        before: list[Diagnostic] | None = None
        for verify_all_ops in (False, True):
            found = await self.work(lambda everything=verify_all_ops: self._found(opened, changes, everything))
            if found is None:
                return
            if found != before:
                self._publish(opened, found)
            before = found
            await asyncio.sleep(QUIET)
            if opened.changes != changes:
                return

    def _found(self, opened: Opened, changes: int, everything: bool) -> list[Diagnostic] | None:
        """The errors of a text; None if it has changed again."""
        if opened.changes != changes:
            return None
        try:
            found = opened.current().analyse(self.ctx, lambda: opened.changes != changes, everything)
            if interned() > self._interned + MOST_NEW:
                forget_unused()
                self._interned = interned()
            return found
        except Cancelled:
            opened.shown = -1
            return None
        except Exception as e:
            traceback.print_exc(file=sys.stderr)
            return [Diagnostic(opened.name, 1, 1, f"internal error of the language server: {type(e).__name__}: {e}")]

    def _publish(self, opened: Opened, found: Sequence[Diagnostic]) -> None:
        if opened.uri not in self.opened:
            return
        shown = [
            lsp.Diagnostic(
                self.range_of(opened, _span_of(opened.document, d)),
                d.message,
                severity=lsp.DiagnosticSeverity.Warning if d.severity == "warning" else lsp.DiagnosticSeverity.Error,
                source="ait",
            )
            for d in found
        ]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(opened.uri, shown, opened.version))

    # ** places **

    @property
    def codec(self) -> PositionCodec:
        return self.workspace.position_codec

    def units(self, text: str) -> int:
        """The units in which the client counts the characters of a text."""
        return len(text) if text.isascii() else self.codec.client_num_units(text)

    def column(self, line: str, character: int) -> int:
        """The column of a client's character in a line."""
        if line.isascii():
            return min(character, len(line))
        for i in range(len(line) + 1):
            if self.units(line[:i]) >= character:
                return i
        return len(line)

    def place(self, document: Document, position: lsp.Position) -> tuple[int, int]:
        """The line and column of a client's position."""
        line = min(position.line, len(document.lines) - 1)
        return line, self.column(document.lines[line], position.character)

    def position(self, document: Document, line: int, column: int) -> lsp.Position:
        text = document.lines[line] if line < len(document.lines) else ""
        return lsp.Position(line, self.units(text[:column]))

    def range_of(self, opened: Opened, span: Span) -> lsp.Range:
        d = opened.document
        return lsp.Range(self.position(d, span.line, span.start), self.position(d, span.line, span.end))

    def edit(self, document: Document, e: Edit) -> lsp.TextEdit:
        start, end = self.position(document, e.line, e.start), self.position(document, e.end_line, e.end)
        return lsp.TextEdit(lsp.Range(start, end), e.text)

    # ** commands **

    async def show(self, name: str, text: str) -> None:
        """Open a text in the editor, in a file of its own."""
        if self.shows_texts:
            return
        folder = commands.shown_folder()
        file = folder / name
        file.write_text(text, encoding="utf-8")
        window = self.client_capabilities.window
        if window is not None and window.show_document is not None and window.show_document.support:
            await self.window_show_document_async(lsp.ShowDocumentParams(file.as_uri(), take_focus=True))
        else:
            told = f"the result is in {file}"
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, told))


def _name(uri: str) -> str:
    """The name of a text in messages: its path, or its URI."""
    parsed = urlparse(uri)
    return unquote(parsed.path) if parsed.scheme == "file" else uri


def _span_of(document: Document, d: Diagnostic) -> Span:
    """The range of an error: the token there, or the rest of the line. For an error of a whole op, from its results to
    its name.
    """
    line = max(0, min(d.line, len(document.lines)) - 1)
    text = document.lines[line]
    start = min(max(0, d.column - 1), len(text))
    token = next((t for t in tokens_of(text) if t.start <= start < t.end), None)
    if token is not None and token.kind == "value" and not text[:start].strip():
        token = next((t for t in tokens_of(text) if t.kind == "op"), token)
    return Span(line, start, token.end if token is not None else max(start, len(text)))


def passes_of_line(line: str) -> str:
    """The passes of a RUN line of a test that calls `ait-opt`; empty for other lines."""
    found = _RUN_LINE.search(line)
    return "" if found is None else next(text for text in found.groups() if text is not None)


def _lenses(document: Document) -> list[tuple[int, str, str, list[Any]]]:
    """Lines, titles, commands and arguments of the lenses."""
    found: list[tuple[int, str, str, list[Any]]] = []
    for line, text in enumerate(document.lines[:2000]):
        if text.lstrip().startswith("//") and (passes := passes_of_line(text)):
            found.append((line, "run these passes", RUN, [line, passes]))
            found.append((line, "check these passes", CHECK, [line, passes]))
    for part in document.parts:
        if part.analysis is None or not part.analysis.is_whole or not part.outline.roots:
            continue
        if not any(part.outline.op(s) in ("ait.graph", "ait_rt.program") for s in part.outline.statements):
            continue
        line = part.outline.roots[0].first + part.first
        now = phase_of(part.analysis.module)
        for phase in commands.SHOWN:
            if phase_index(phase) > phase_index(now):
                found.append((line, f"run to {phase}", PHASE, [line, phase]))
        if phase_index(now) < phase_index("fused"):
            found.append((line, "check the passes to fused", CHECK, [line, passes_between(now, "fused")]))
    return found


def _colours(document: Document, units: Callable[[str], int]) -> list[int]:
    """The tokens of a text as differences, as the protocol wants them."""
    found: list[int] = []
    before = 0
    for number, line in enumerate(document.lines):
        at = 0
        for token in tokens_of(line):
            if (colour := _COLOURS.get(token.kind)) is None:
                continue
            start = units(line[: token.start])
            found += [number - before, start - at, units(token.text), _LEGEND.index(colour), 0]
            before, at = number, start
    return found


def new_server() -> AitServer:
    """A server for one connection, with all its features."""
    server = AitServer()
    feature, document_of = server.feature, server.text_of

    @feature(lsp.INITIALIZE)
    def _(params: lsp.InitializeParams) -> None:
        given = params.initialization_options
        options = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        server.target = options["target"] if options.get("target") in ("cpu", "cuda", "rocm") else "cpu"
        server.shows_texts = bool(options.get("showsTexts"))

    @feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def _(params: lsp.DidOpenTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def _(params: lsp.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def _(params: lsp.DidCloseTextDocumentParams) -> None:
        server.closed(params.text_document.uri)

    @feature(lsp.TEXT_DOCUMENT_HOVER)
    async def _(params: lsp.HoverParams) -> lsp.Hover | None:
        opened = document_of(params.text_document.uri)

        def answer() -> lsp.Hover | None:
            document = opened.current()
            found = hover_at(document, server.ctx, *server.place(document, params.position))
            if found is None:
                return None
            text = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text)
            return lsp.Hover(text, server.range_of(opened, found.span))

        return await server.work(answer)

    async def places(params: Any, is_definition: bool, with_definition: bool = True) -> list[lsp.Location]:
        opened = document_of(params.text_document.uri)

        def answer() -> list[lsp.Location]:
            document = opened.current()
            found = named_at(document, *server.place(document, params.position))
            if found is None:
                return []
            spans = found.places if not is_definition else [found.definition] if found.definition is not None else []
            return [
                lsp.Location(opened.uri, server.range_of(opened, s))
                for s in spans
                if with_definition or s != found.definition
            ]

        return await server.work(answer)

    @feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def _(params: lsp.DefinitionParams) -> list[lsp.Location]:
        return await places(params, is_definition=True)

    @feature(lsp.TEXT_DOCUMENT_REFERENCES)
    async def _(params: lsp.ReferenceParams) -> list[lsp.Location]:
        return await places(params, False, params.context.include_declaration)

    @feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def _(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        return [lsp.DocumentHighlight(location.range) for location in await places(params, False)]

    @feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    async def _(params: lsp.PrepareRenameParams) -> lsp.Range | None:
        opened = document_of(params.text_document.uri)

        def answer() -> lsp.Range | None:
            document = opened.current()
            line, column = server.place(document, params.position)
            found = named_at(document, line, column)
            if found is None or found.definition is None:
                return None
            here = next((s for s in found.places if s.line == line and s.start <= column <= s.end), None)
            return None if here is None else server.range_of(opened, here)

        return await server.work(answer)

    @feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    async def _(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        opened = document_of(params.text_document.uri)

        def answer() -> lsp.WorkspaceEdit:
            document = opened.current()
            edits = renamed(document, *server.place(document, params.position), params.new_name)
            return lsp.WorkspaceEdit({opened.uri: [server.edit(document, e) for e in edits]})

        return await server.work(answer)

    @feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["%", "@", "!", "#", ".", "<"]))
    async def _(params: lsp.CompletionParams) -> lsp.CompletionList:
        opened = document_of(params.text_document.uri)

        def answer() -> lsp.CompletionList:
            document = opened.current()
            line, column = server.place(document, params.position)
            end = server.position(document, line, column)

            def item(i: Item) -> lsp.CompletionItem:
                place = lsp.Range(server.position(document, line, i.start), end)
                edit = lsp.TextEdit(place, i.text)
                return lsp.CompletionItem(i.text, kind=_ITEMS[i.kind], detail=i.detail or None, text_edit=edit)

            found = completions_at(document, server.ctx, line, column)
            return lsp.CompletionList(False, [item(i) for i in dict.fromkeys(found)])

        return await server.work(answer)

    @feature(lsp.TEXT_DOCUMENT_FORMATTING)
    async def _(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        opened = document_of(params.text_document.uri)

        def answer() -> list[lsp.TextEdit]:
            document = opened.current()
            text = formatted(document, server.ctx)
            if text == opened.text:
                return []
            last = len(document.lines) - 1
            return [server.edit(document, Edit(0, 0, last, len(document.lines[last]), text))]

        return await server.work(answer)

    @feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]))
    async def _(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        opened = document_of(params.text_document.uri)

        def answer() -> list[lsp.CodeAction]:
            document = opened.current()
            lines = range(params.range.start.line, params.range.end.line + 1)
            found: list[lsp.CodeAction] = []
            analyses = [part.analysis for part in document.parts if part.analysis is not None]
            for d in (d for analysis in analyses for d in analysis.diagnostics if d.line - 1 in lines):
                for i, fix in enumerate(d.fixes):
                    if edits := [server.edit(document, e) for e in edits_of(document, d, fix)]:
                        change = lsp.WorkspaceEdit({opened.uri: edits})
                        kind = lsp.CodeActionKind.QuickFix
                        found.append(lsp.CodeAction(fix.title, kind, is_preferred=i == 0, edit=change))
            return found

        return await server.work(answer)

    @feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    async def _(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        opened = document_of(params.text_document.uri)

        def answer() -> list[lsp.CodeLens]:
            return [
                lsp.CodeLens(
                    lsp.Range(lsp.Position(line, 0), lsp.Position(line, 0)),
                    lsp.Command(title, command, arguments=[opened.uri, *arguments]),
                )
                for line, title, command, arguments in _lenses(opened.current())
            ]

        return await server.work(answer)

    @feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def _(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        opened = document_of(params.text_document.uri)
        return await server.work(lambda: _symbols(server, opened))

    @feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, lsp.SemanticTokensLegend(token_types=_LEGEND, token_modifiers=[]))
    async def _(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        opened = document_of(params.text_document.uri)

        def answer() -> lsp.SemanticTokens:
            document = opened.current()
            return lsp.SemanticTokens([] if document.problem is not None else _colours(document, server.units))

        return await server.work(answer)

    async def part_of(uri: str, line: int) -> tuple[Opened, str]:
        """The text of the part at a line."""
        opened = document_of(uri)

        def answer() -> str:
            document = opened.current()
            part = document.part_at(line)
            if part is None:
                raise Refused("there is no text that can be run")
            return part.source.text

        return opened, await server.work(answer)

    async def told(opened: Opened, name: str, output: commands.Output) -> dict[str, Any]:
        """The result of a command, which the editor also shows."""
        stem = Path(opened.name).stem or "text"
        ending = "txt" if output.failed else "cpp" if name == "source" else "mlir"
        shown = f"{stem}.{name}.{ending}"
        if output.failed:
            server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, output.text[:2000]))
        else:
            await server.show(shown, output.text)
        return {"name": shown, "text": output.text, "failed": output.failed}

    @server.command(PHASE)
    async def _(uri: str, line: int, phase: str) -> dict[str, Any]:
        if phase not in commands.SHOWN:
            raise JsonRpcException(f"unknown phase {phase!r}; the phases are {', '.join(PHASES)}", code=REQUEST_FAILED)
        opened, text = await part_of(uri, line)
        return await told(opened, phase, await commands.run_to_phase(opened.name, text, phase, server.target))

    @server.command(RUN)
    async def _(uri: str, line: int, passes: str) -> dict[str, Any]:
        opened, text = await part_of(uri, line)
        return await told(opened, "passes", await commands.run_passes(opened.name, text, passes, check=False))

    @server.command(CHECK)
    async def _(uri: str, line: int, passes: str) -> dict[str, Any]:
        opened, text = await part_of(uri, line)
        return await told(opened, "checked", await commands.run_passes(opened.name, text, passes, check=True))

    return server


def _symbols(server: AitServer, opened: Opened) -> list[lsp.DocumentSymbol]:
    """The graphs, programs and kernels of a text, with the names of params in them."""
    document = opened.current()

    def symbol(part: Part, name: str, kind: lsp.SymbolKind, first: int, last: int) -> lsp.DocumentSymbol:
        first, last = first + part.first, last + part.first
        start = server.position(document, first, 0)
        head = lsp.Range(start, server.position(document, first, len(document.lines[first])))
        whole = lsp.Range(start, server.position(document, last, len(document.lines[last])))
        return lsp.DocumentSymbol(name, kind, whole, head)

    found: list[lsp.DocumentSymbol] = []
    for part in document.parts:
        outline = part.outline
        for name, place in outline.symbols().items():
            s = outline.at(place.line)
            if s is not None:
                found.append(symbol(part, f"@{name}", lsp.SymbolKind.Function, s.first, s.last))
                found[-1].children = [
                    symbol(part, token.text, lsp.SymbolKind.Variable, c.first, c.last)
                    for c in s.children
                    for token in outline.results(c)
                ]
    return found


async def serve_tcp(host: str, port: int, started: Callable[[int], None] = lambda port: None) -> None:
    """Serve any number of clients, each with a server of its own; `started` gets the port."""
    import logging
    from threading import Event

    from pygls.io_ import run_async

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = new_server()
        stop = Event()
        server._stop_event = stop  # pyright: ignore[reportPrivateUsage]  # `exit` ends this connection alone
        server.protocol.set_writer(writer)  # pyright: ignore[reportArgumentType]
        try:
            await run_async(stop, reader, server.protocol, logging.getLogger("ait-lsp"))
        except (SystemExit, ConnectionError, asyncio.IncompleteReadError):
            pass  # this editor has ended
        finally:
            server.shutdown()
            writer.close()

    listening = await asyncio.start_server(connected, host, port, limit=1 << 26)
    started(listening.sockets[0].getsockname()[1])
    async with listening:
        await listening.serve_forever()
