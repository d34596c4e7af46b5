"""The language server as editors use it: a client in another process, over standard input or TCP."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from ait_mlir.tools.ait_lsp import main
from ait_mlir.tools.language.document import MOST_CHARACTERS
from ait_mlir.tools.language.server import new_server, passes_of_line, serve_tcp
from tests.tools.language.client import URI, Editor, at, document, edited, session

ROOT = Path(__file__).parents[3]
FFN = (ROOT / "examples" / "ffn.mlir").read_text()
OTHER = "file:///work/other.mlir"


def request(kind: type, text: str, what: str, after: str = "", **more: Any) -> Any:
    return kind(text_document=document(), position=at(text, what, after), **more)


def test_an_editor_is_served() -> None:
    """Every feature once, over standard input and output."""

    async def script(editor: Editor) -> None:
        client = editor.client
        editor.open(FFN)
        assert await editor.errors() == []

        place = at(FFN, "ait.gelu", "", 7)  # errors and code actions
        editor.type(lsp.TextEdit(lsp.Range(place, lsp.Position(place.line, place.character + 1)), "o"))
        broken = FFN.replace("ait.gelu", "ait.gelo")
        (error,) = await editor.errors()
        assert error.range.start == at(broken, "ait.gelo") and "did you mean ait.gelu?" in error.message
        context = lsp.CodeActionContext([error])
        actions = await client.text_document_code_action_async(lsp.CodeActionParams(document(), error.range, context))
        assert actions is not None and actions[0].title == "write ait.gelu" and actions[0].edit is not None
        assert edited(broken, actions[0].edit.changes[URI]) == FFN
        editor.replace(FFN.replace("ait.gelu %1 : !ait.tensor<batch x 3072", "ait.gelu %1 : !ait.tensor<batch x 3071"))
        assert [(e.range.start.character, e.range.end.character) for e in await editor.errors()] == [(2, 15), (2, 15)]
        editor.replace(FFN)
        assert await editor.errors() == []

        hover = await client.text_document_hover_async(request(lsp.HoverParams, FFN, "ait.gemm"))
        assert hover is not None and "Matrix product" in hover.contents.value
        assert await client.text_document_hover_async(request(lsp.HoverParams, FFN, "rcr")) is None
        places = await client.text_document_definition_async(request(lsp.DefinitionParams, FFN, "%0", "%1 ="))
        assert places is not None and places[0].range.start == at(FFN, "%0")
        uses = request(lsp.ReferenceParams, FFN, "%0", context=lsp.ReferenceContext(False))
        assert [u.range.start for u in await client.text_document_references_async(uses) or ()] == [at(FFN, "%0,")]
        lights = await client.text_document_document_highlight_async(request(lsp.DocumentHighlightParams, FFN, "%0"))
        assert lights is not None and len(lights) == 2

        names = await client.text_document_completion_async(request(lsp.CompletionParams, FFN, "gemm"))
        assert isinstance(names, lsp.CompletionList) and "ait.relu" in {item.label for item in names.items}
        where = request(lsp.PrepareRenameParams, FFN, "batch", "dims {")
        assert await client.text_document_prepare_rename_async(where) is not None
        rename = request(lsp.RenameParams, FFN, "batch", "dims {", new_name="rows")
        change = await client.text_document_rename_async(rename)
        assert change is not None and change.changes is not None
        assert "dims {rows = 1 to 64}" in edited(FFN, list(change.changes[URI]))
        with pytest.raises(JsonRpcException, match="reserved word"):
            await client.text_document_rename_async(request(lsp.RenameParams, FFN, "batch", "{batch", new_name="x"))

        options = lsp.FormattingOptions(2, True)
        form = lsp.DocumentFormattingParams(document(), options)
        editor.replace(FFN.replace("  %0 = ait.gemm", "%0=ait.gemm"))
        (edit,) = await client.text_document_formatting_async(form) or ()
        assert edit.new_text == FFN
        editor.replace(broken)
        with pytest.raises(JsonRpcException, match="not formatted: the text has an error in line 11"):
            await client.text_document_formatting_async(form)
        editor.replace(FFN)
        await editor.errors()

        symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document()))
        assert symbols is not None and [s.name for s in symbols] == ["@ffn"]
        colours = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document()))
        assert colours is not None and len(colours.data) > 500 and len(colours.data) % 5 == 0

        lenses = await client.text_document_code_lens_async(lsp.CodeLensParams(document())) or ()
        commands = {lens.command.title: lens.command for lens in lenses if lens.command is not None}
        assert list(commands)[:3] == ["run to canonical", "run to simplified", "run to fused"]
        for title, wanted in (("run to fused", "epilogue(%up_b)"), ("check the passes to fused", "// semantics: ")):
            command = commands[title]
            done = await client.workspace_execute_command_async(
                lsp.ExecuteCommandParams(command.command, command.arguments)
            )
            assert wanted in done["text"] and not done["failed"]
            assert Path(editor.opened[-1].removeprefix("file://")).read_text() == done["text"]
        editor.replace(broken)
        phase = lsp.ExecuteCommandParams("ait-lsp.phase", [URI, 5, "fused"])
        done = await client.workspace_execute_command_async(phase)
        assert done["failed"] and "/work/text.mlir:11:8: error: Operation ait.gelo" in editor.messages[-1]
        with pytest.raises(JsonRpcException, match="unknown phase 'up'"):
            await client.workspace_execute_command_async(lsp.ExecuteCommandParams("ait-lsp.phase", [URI, 5, "up"]))

    editor = session(script)
    assert not any("Error in server" in message for message in editor.messages)


def test_the_server_survives_what_editors_send() -> None:
    """Texts that are no IR, places that do not exist, requests for closed texts; then it still answers."""

    async def script(editor: Editor) -> None:
        client = editor.client
        editor.open("\0\x01\x02", OTHER)
        assert "NUL" in (await editor.errors(OTHER))[0].message
        editor.replace("ait.graph @f() {}\n" * (2 * MOST_CHARACTERS // 18), OTHER)
        (told,) = await editor.errors(OTHER)
        assert "too many to be checked while you type" in told.message
        assert told.severity == lsp.DiagnosticSeverity.Warning
        far = lsp.HoverParams(document(OTHER), lsp.Position(10**6, 10**6))
        assert await client.text_document_hover_async(far) is None
        client.text_document_did_close(lsp.DidCloseTextDocumentParams(document(OTHER)))
        with pytest.raises(JsonRpcException, match="is not open"):
            await client.text_document_hover_async(far)
        editor.version += 1
        for n in range(len(FFN) // 2, len(FFN), 37):  # typed, faster than it is checked
            editor.open(FFN[:n]) if n == len(FFN) // 2 else editor.replace(FFN[:n])
        editor.replace("// é😀\n" + FFN.replace("%0 = ait.gemm", "/* 😀 */ %0 = ait.gemm"))
        assert len(await editor.errors()) > 0
        shifted = '// é😀\nait.graph @f(%x: !ait.tensor<f32>) {\n  ait.output "😀" %y : !ait.tensor<f32>\n}\n'
        editor.replace(shifted)
        (error,) = await editor.errors()
        assert error.range == lsp.Range(lsp.Position(2, 18), lsp.Position(2, 20))  # in UTF-16 units
        editor.replace(FFN)
        assert await editor.errors() == []

    editor = session(script)
    assert not any("Error in server" in message for message in editor.messages), editor.messages


def test_two_editors_share_a_server_over_tcp() -> None:
    async def run() -> None:
        port = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve_tcp("127.0.0.1", 0, port.set_result))
        first, second = Editor(), Editor()
        for editor in (first, second):
            await editor.start(await port)
        first.open(FFN)
        second.open(FFN.replace("ait.gelu", "ait.gelo"))
        assert await first.errors() == [] and len(await second.errors()) == 1
        await second.stop()
        first.replace(FFN.replace("ait.add", "ait.ad"))
        assert len(await first.errors()) == 2
        await first.stop()
        serving.cancel()

    asyncio.run(asyncio.wait_for(run(), 120))


def test_the_features_are_those_of_the_page() -> None:
    server = new_server()
    page = (ROOT / "docs" / "editors.md").read_text()
    for command in server.protocol.fm.commands:
        assert command in page
    assert {lsp.TEXT_DOCUMENT_HOVER, lsp.TEXT_DOCUMENT_RENAME} <= set(server.protocol.fm.features)


@pytest.mark.parametrize(
    "line, passes",
    [
        ("// RUN: ait-opt %s -p simplify | filecheck %s", "simplify"),
        ("// RUN: ait-opt %s -p 'simplify,a{x=1}' --split-input-file | filecheck %s", "simplify,a{x=1}"),
        ('// RUN: ait-opt %s --passes="b{y=2}"', "b{y=2}"),
        ("// RUN: ait-opt %s | filecheck %s", ""),
        ("// ait-opt x -p simplify", ""),
    ],
)
def test_the_passes_of_a_run_line(line: str, passes: str) -> None:
    assert passes_of_line(line) == passes


def test_without_pygls_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['pygls'] = None; from ait_mlir.tools.ait_lsp import main; sys.exit(main([]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "pip install 'pygls>=2,<3'" in done.stderr


@pytest.mark.parametrize("port", ["65536", "-1"])
def test_a_number_that_is_no_port_is_an_error(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tcp", port]) == 1
    assert f"ait-lsp: error: cannot listen on port {port}: " in capsys.readouterr().err


def test_futures_of_finished_notifications_are_dropped() -> None:
    """pygls keeps a future for each notification that a generator handles; one that is under way stays."""
    server = new_server()
    kept = server.protocol._request_futures  # pyright: ignore[reportPrivateUsage]
    kept["done"], kept["under way"] = Future(), Future()
    kept["done"].set_result(None)
    server.forget_done()
    assert list(kept) == ["under way"]
