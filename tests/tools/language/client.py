"""A client of the language server, as an editor is one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

URI = "file:///work/text.mlir"


class Editor:
    """A client with one text, and the errors that the server has told of it."""

    def __init__(self, **options: Any) -> None:
        self.client = LanguageClient("editor", "1")
        self.options = options
        self.told: dict[str, list[tuple[int | None, list[lsp.Diagnostic]]]] = {}
        self.messages: list[str] = []
        self.opened: list[str] = []
        self.version = 0
        self._news = asyncio.Event()

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: lsp.PublishDiagnosticsParams) -> None:
            self.told.setdefault(params.uri, []).append((params.version, list(params.diagnostics)))
            self._news.set()

        @self.client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def _(params: lsp.ShowMessageParams) -> None:
            self.messages.append(params.message)

        @self.client.feature(lsp.WINDOW_SHOW_DOCUMENT)
        def _(params: lsp.ShowDocumentParams) -> lsp.ShowDocumentResult:
            self.opened.append(params.uri)
            return lsp.ShowDocumentResult(True)

    async def start(self, port: int | None = None) -> lsp.InitializeResult:
        if port is None:
            await self.client.start_io(sys.executable, "-m", "ait_mlir.tools.ait_lsp")
            server = self.client._server  # pyright: ignore[reportPrivateUsage]
            assert server is not None and server.stderr is not None
            self._log = asyncio.create_task(server.stderr.read())
        else:
            await self.client.start_tcp("127.0.0.1", port)
        window = lsp.WindowClientCapabilities(show_document=lsp.ShowDocumentClientCapabilities(True))
        found = await self.client.initialize_async(
            lsp.InitializeParams(lsp.ClientCapabilities(window=window), initialization_options=self.options or None)
        )
        self.client.initialized(lsp.InitializedParams())
        return found

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()

    def open(self, text: str, uri: str = URI) -> None:
        item = lsp.TextDocumentItem(uri, "mlir", self.version, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def replace(self, text: str, uri: str = URI) -> None:
        """Set the whole text."""
        self.version += 1
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(self.version, uri),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def type(self, edit: lsp.TextEdit, uri: str = URI) -> None:
        """Change a part of the text."""
        self.version += 1
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(self.version, uri),
                [lsp.TextDocumentContentChangePartial(edit.range, edit.new_text)],
            )
        )

    async def errors(self, uri: str = URI, version: int | None = None) -> list[lsp.Diagnostic]:
        """The errors of the last text, or of a version of it, once the server has told them."""
        wanted = self.version if version is None else version
        while True:
            for number, found in reversed(self.told.get(uri, [])):
                if number == wanted:
                    return found
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 60)

    async def request(self, method: str, params: Any) -> Any:
        return await self.client.protocol.send_request_async(method, params)


def document(uri: str = URI) -> lsp.TextDocumentIdentifier:
    return lsp.TextDocumentIdentifier(uri)


def at(text: str, what: str, after: str = "", offset: int = 0) -> lsp.Position:
    """The position of a part of a text, of the first one after another part."""
    found = text.index(what, text.index(after)) + offset
    line = text.count("\n", 0, found)
    return lsp.Position(line, found - (text.rfind("\n", 0, found) + 1))


def edited(text: str, edits: list[lsp.TextEdit]) -> str:
    """A text with edits done; columns count characters."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for e in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        start = starts[e.range.start.line] + e.range.start.character
        end = starts[e.range.end.line] + e.range.end.character
        text = text[:start] + e.new_text + text[end:]
    return text


def session(script: Callable[[Editor], Awaitable[None]], port: int | None = None, **options: Any) -> Editor:
    """Run a script with an editor whose server is a process of its own."""

    async def run() -> Editor:
        editor = Editor(**options)
        await editor.start(port)
        try:
            await script(editor)
        finally:
            await editor.stop()
        return editor

    return asyncio.run(asyncio.wait_for(run(), 300))
