"""Malformed texts in the language server, as an editor sends them: `python -m tests.fuzz.language --seconds 600`.

The texts are those of `tests.fuzz.text`: examples with tokens deleted, doubled, swapped, replaced or inserted. A server in
another process gets one after the other, and requests at random places of each. It must answer all of them: errors for a text
that `ait-opt` refuses and none for a text that it accepts, and never an internal error. Its memory may not grow.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import time
from collections import Counter
from pathlib import Path

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.source import SourceError
from ait_mlir.tools.language.document import new_context
from tests.fuzz.text import mutate, sources
from tests.tools.language.client import Editor, document

WARM = 300
"""After so many texts the memory of the server is taken as the first one; caches have filled by then."""
GROWTH = 16 << 20
"""The bytes by which the server may grow after that."""
SECONDS = 120
"""A request that is not answered by then hangs; on a busy machine, answers take seconds."""


def resident(pid: int) -> int:
    """The bytes of a process in memory."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return 0 if found is None else int(found[1]) << 10


def is_wrong(text: str) -> bool:
    """Whether `ait-opt` refuses a text."""
    if not re.sub(r"//[^\n]*|\s+", "", text):
        return False  # an empty text is no error in an editor
    try:
        parse_text(new_context(), text)
    except SourceError:
        return True
    return False


async def ask(editor: Editor, rng: random.Random, text: str) -> Counter[str]:
    """Requests at a random place of a text; returns how many were answered, and how many refused."""
    lines = text.split("\n")
    line = rng.randrange(len(lines))
    place = lsp.Position(line, rng.randrange(len(lines[line]) + 2))
    client, counts = editor.client, Counter[str]()
    here = document()
    for name, request in (
        ("hover", client.text_document_hover_async(lsp.HoverParams(here, place))),
        ("completion", client.text_document_completion_async(lsp.CompletionParams(here, place))),
        ("definition", client.text_document_definition_async(lsp.DefinitionParams(here, place))),
        ("rename", client.text_document_rename_async(lsp.RenameParams(here, place, rng.choice(("a", "%0", "x", ""))))),
        ("lens", client.text_document_code_lens_async(lsp.CodeLensParams(here))),
        ("colours", client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(here))),
        (
            "format",
            client.text_document_formatting_async(lsp.DocumentFormattingParams(here, lsp.FormattingOptions(2, True))),
        ),
        (
            "fixes",
            client.text_document_code_action_async(
                lsp.CodeActionParams(here, lsp.Range(lsp.Position(0, 0), place), lsp.CodeActionContext([]))
            ),
        ),
    ):
        try:
            await asyncio.wait_for(request, SECONDS)
            counts[name] += 1
        except JsonRpcException as e:
            assert "internal error" not in str(e).lower(), f"{name} at {place}: {e}"
            counts[f"{name} refused"] += 1
    return counts


async def run(seconds: float, seed: int, least: int = 0) -> str:
    """Feed a server for some seconds, or `least` texts; returns what was done. `AssertionError` with the text for a
    wrong answer."""
    rng = random.Random(seed)
    texts = sources()
    editor = Editor()
    await editor.start()
    server = editor.client._server  # pyright: ignore[reportPrivateUsage]
    assert server is not None
    editor.open("")
    counts, first, half, last, done = Counter[str](), 0, 0, 0, 0
    begin = time.monotonic()
    end = time.monotonic() + seconds
    text = ""
    try:
        while time.monotonic() < end or done < least:
            text = mutate(rng, rng.choice(texts), texts)
            editor.replace(text)
            found = await editor.errors()
            editor.told.clear()
            internal = [d.message for d in found if "internal error" in d.message]
            assert not internal, internal
            assert bool(found) == is_wrong(text), [d.message for d in found] or "no error"
            counts["wrong" if found else "right"] += 1
            counts += await ask(editor, rng, text)
            done += 1
            if done == WARM:
                first = resident(server.pid)
            last = resident(server.pid)
            half = half if half and time.monotonic() > begin + seconds / 2 else last
            assert not first or last < first + GROWTH, f"the server grew from {first >> 20} to {last >> 20} MiB"
    except (AssertionError, TimeoutError) as e:
        raise AssertionError(f"text {done}: {e}\n{text}") from e
    finally:
        await editor.stop()
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    return f"{done} texts; memory {first >> 20} MiB after {WARM}, {half >> 20} MiB at half, {last >> 20} MiB at the end; {told}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(asyncio.run(run(options.seconds, options.seed)))
