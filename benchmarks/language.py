"""How long errors and hover of the language server take: `python -m benchmarks.language`.

A client in another process types into a text of 2,000 ops, as an editor does, and waits for the errors of each key. The
times hold everything between the key and its answer: both processes, the messages, and the analysis.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time

from lsprotocol import types as lsp

from tests.tools.language.client import Editor, at, document

TENSOR = "!ait.tensor<batch x 768 x f16>"


def text_of(ops: int) -> str:
    """A graph of products, sums and functions."""
    lines, last = [f"ait.graph @g(%x: {TENSOR}) dims {{batch = 1 to 64}} {{"], "%x"
    for i in range(0, ops - 1, 4):
        lines += [
            f'  %w{i} = ait.param "w{i}" : !ait.tensor<768 x 768 x f16>',
            f"  %a{i} = ait.gemm rcr {last}, %w{i} : {TENSOR}",
            f"  %b{i} = ait.add %a{i}, %x : {TENSOR}",
            f"  %c{i} = ait.gelu %b{i} : {TENSOR}",
        ]
        last = f"%c{i}"
    return "\n".join([*lines, f'  ait.output "y" {last} : {TENSOR}', "}", ""])


async def measure(ops: int, keys: int) -> str:
    """A line for each kind of request: the median and the largest time."""
    text = text_of(ops)
    editor = Editor()
    await editor.start()
    rows: dict[str, list[float]] = {}

    async def timed(what: str, request: object) -> None:
        start = time.perf_counter()
        await request  # type: ignore[misc]
        rows.setdefault(what, []).append((time.perf_counter() - start) * 1e3)

    start = time.perf_counter()
    editor.open(text)
    await editor.errors()
    rows["errors after opening"] = [(time.perf_counter() - start) * 1e3]
    middle = f"%c{ops // 8 * 4}"
    place = at(text, "gelu", f"{middle} =")
    before = "gelu"
    for i in range(keys):
        typed = "gelo" if before == "gelu" else "gelu"
        end = lsp.Position(place.line, place.character + 4)
        start = time.perf_counter()
        editor.type(lsp.TextEdit(lsp.Range(place, end), typed))
        found = await editor.errors()
        rows.setdefault("errors after a key", []).append((time.perf_counter() - start) * 1e3)
        assert len(found) == (typed == "gelo")
        before = typed
        if i % 2:
            await asyncio.sleep(1)  # all ops are verified
            hover = lsp.HoverParams(document(), place)
            await timed("hover", editor.client.text_document_hover_async(hover))
            definition = lsp.DefinitionParams(document(), at(text, f"{middle} ", f"{middle} ="))
            await timed("definition", editor.client.text_document_definition_async(definition))
            await timed(
                "completion", editor.client.text_document_completion_async(lsp.CompletionParams(document(), place))
            )
    await editor.stop()
    return "\n".join(
        f"{what:24} {statistics.median(times):8.1f} ms median {max(times):8.1f} ms at most  ({len(times)})"
        for what, times in rows.items()
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=int, default=2000)
    parser.add_argument("--keys", type=int, default=20)
    options = parser.parse_args()
    print(asyncio.run(measure(options.ops, options.keys)))
