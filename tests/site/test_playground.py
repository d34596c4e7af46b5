"""The playground: its answers, its examples, and the built page under node and in a browser."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ait_mlir import driver
from ait_mlir.options import CompileOptions
from ait_mlir.tools import playground
from ait_mlir.tools.language.tokens import scan
from docs.playground import build
from tests import tiers
from tests.site.browser import browser, chromium, served

ROOT = Path(__file__).parents[2]
FFN = (ROOT / "examples" / "ffn.mlir").read_text()


EXAMPLES = build.examples()


def ask(text: str, **request: Any) -> dict[str, Any]:
    return json.loads(playground.answer(json.dumps({"text": text, **request})))


@pytest.mark.parametrize("target", ["cpu", "cuda", "rocm"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e["title"].partition(":")[0])
def test_examples_compile(example: dict[str, str], target: str) -> None:
    found = ask(example["text"], kind=example["kind"], target=target)
    assert found["diagnostics"] == []
    assert next(iter(found["files"])) == "program.cc"
    assert "ait_rt.program" in found["ir"]


def test_answer_is_that_of_the_compiler() -> None:
    module, source = driver.read_module(ROOT / "examples" / "ffn.mlir")
    driver.run_to_phase(module, "planned", CompileOptions("cuda", "sm_90a"), source=source)
    found = ask(FFN)
    assert found["ir"] == str(module) + "\n"
    assert found["files"] == driver.emit(module, source).joined()


def test_passes_and_their_changes() -> None:
    found = ask(FFN, passes="simplify,fuse-epilogue", steps=True)
    assert [step["name"] for step in found["steps"]] == ["simplify", "fuse-epilogue"]
    fused = found["steps"][1]
    assert "ait.gemm rcr %x, %up_w epilogue" in fused["changes"]
    assert sum(rewrite["count"] for rewrite in fused["rewrites"]) >= 2
    assert all(rewrite["law"] for rewrite in fused["rewrites"])
    assert found["files"] == {} and "epilogue" in found["ir"]


def test_choices_are_accepted() -> None:
    choices = json.loads(playground.choices())
    for phase in choices["phases"]:
        assert ask(FFN, to=phase)["diagnostics"] == [], phase
    for target, archs in choices["archs"].items():
        for arch in archs:
            assert ask(FFN, target=target, arch=arch, to="selected")["diagnostics"] == [], arch
    assert "simplify" in choices["passes"]


SCRIPT = next(e["text"] for e in EXAMPLES if e["title"].startswith("two_layers"))
ERRORS: list[tuple[dict[str, Any], tuple[str, int], str]] = [
    ({"text": FFN.replace("3072 x 768", "3071 x 768")}, ("input.mlir", 9), "expected !ait.tensor<batch x 3071 x f16>"),
    ({"text": FFN.replace("ait.gelu", "ait.gellu")}, ("input.mlir", 11), "did you mean ait.gelu?"),
    ({"text": ""}, ("input.mlir", 1), "the text is empty"),
    ({"text": "\x00\U0001f600"}, ("input.mlir", 1), ""),
    ({"text": FFN, "passes": "simplfy"}, ("<passes>", 1), "did you mean 'simplify'?"),
    ({"text": FFN, "passes": 'apply-patterns{file="mine.mlir"}'}, ("mine.mlir", 1), "cannot read the pattern file"),
    ({"text": FFN, "to": "built"}, ("", 0), "expected one of imported"),
    ({"text": FFN, "target": "tpu"}, ("", 0), "unknown target 'tpu'"),
    ({"text": FFN, "target": "rocm", "arch": "gfx1"}, ("", 0), "gfx1"),
    ({"text": SCRIPT + "nope\n", "kind": "python"}, ("script.py", 10), "NameError: name 'nope' is not defined"),
    ({"text": "x = (\n", "kind": "python"}, ("script.py", 1), "'(' was never closed"),
    ({"text": "\nimport torch_of_nobody\n", "kind": "python"}, ("script.py", 2), "torch_of_nobody is not in this page"),
    ({"text": "raise SystemExit(3)", "kind": "python"}, ("script.py", 1), "SystemExit: 3"),
    ({"text": "def f(): f()\nf()", "kind": "python"}, ("script.py", 1), "RecursionError"),
    ({"text": "x = 1\n", "kind": "python"}, ("script.py", 1), "marks no tensor as an output"),
    ({"text": SCRIPT.replace("(3072, 768)", "(3071, 768)"), "kind": "python"}, ("script.py", 9), "3071"),
]


@pytest.mark.parametrize(("request_", "place", "message"), ERRORS, ids=lambda x: x if isinstance(x, str) else "")
def test_errors_have_places_and_no_traceback(request_: dict[str, Any], place: tuple[str, int], message: str) -> None:
    found = ask(**request_)
    first = found["diagnostics"][0]
    assert (first["file"], first["line"]) == place
    assert message in first["message"]
    assert "Traceback" not in json.dumps(found) and 'File "' not in json.dumps(found)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.mlir")), ids=lambda path: path.stem)
def test_tokens_of_the_page_are_those_of_the_package(path: Path) -> None:
    """The regular expression that the page gets finds the tokens that the lexer finds."""
    table = build.token_table()
    pattern = re.compile(table["token"].replace("(?<", "(?P<"), re.ASCII)
    text = path.read_text()
    assert [m.group() for line in text.split("\n") for m in pattern.finditer(line)] == [t.text for _, t in scan(text)]
    assert set(pattern.groupindex) <= set(table["kinds"])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built page."""
    folder = tmp_path_factory.mktemp("playground") / "page"
    try:
        build.build(folder)
    except build.Missing as missing:
        pytest.skip(str(missing))
    return folder


COMPARED = {"a model and a script": [0, -1], "all": range(len(EXAMPLES))}


@pytest.mark.parametrize("name", tiers.params(COMPARED, ["a model and a script"]))
def test_page_answers_as_the_package_does(page: Path, name: str) -> None:
    """Python in WebAssembly, without NumPy and other packages, makes the same texts; a script without them says so."""
    asked = [{"text": EXAMPLES[i]["text"], "kind": EXAMPLES[i]["kind"]} for i in COMPARED[name]]
    asked.append({"text": FFN, "target": "cpu"})
    missing = [
        ({"text": "import torch", "kind": "python"}, "torch is not in this page"),
        ({"text": "import numpy\nnumpy.zeros(3)", "kind": "python"}, "numpy is not in this page"),
    ]
    requests = json.dumps([*asked, *(request for request, _ in missing)])
    command = ["node", str(ROOT / "docs" / "playground" / "ask.mjs"), str(page)]
    found = json.loads(subprocess.run(command, input=requests, capture_output=True, text=True, check=True).stdout)
    for request, answer in zip(asked, found, strict=False):
        here = ask(**request)
        assert (answer["ir"], answer["files"], answer["diagnostics"]) == (here["ir"], here["files"], []), request[
            "text"
        ][:80]
    for (_, message), answer in zip(missing, found[len(asked) :], strict=True):
        assert message in answer["diagnostics"][0]["message"]


def test_page_names_no_other_host(page: Path) -> None:
    for path in page.glob("*.*"):
        if path.suffix in (".html", ".css", ".mjs"):
            assert "://" not in path.read_text(), path.name


@pytest.mark.full
def test_page_in_a_browser(page: Path) -> None:
    """From the first example to its code, an error with its place, a script, and a damaged link; no request elsewhere."""
    if (found := chromium()) is None:
        pytest.skip("no Chromium found")
    with served(page) as url, browser(found) as tab:
        tab.look(1366, 768)
        tab.open(url)
        tab.wait("document.body.dataset.answers === '1'")
        assert "Compiled" in tab.run("document.getElementById('status').textContent")
        tab.run("document.getElementById('tab-code').click()")
        assert "Program ffn for cuda" in tab.run("document.querySelector('#output .cm-content').textContent")
        tab.run("document.getElementById('tab-ir').click()")
        tab.run("document.querySelector('#editor .cm-content').focus()")
        tab.call("Input.insertText", text="ait.gellu\n")
        tab.wait("document.body.dataset.answers === '2'")
        assert "input.mlir:1:1" in tab.run("document.getElementById('problems').textContent")
        choice = f"{len(EXAMPLES) - 1}"
        script = "const s = document.getElementById('example'); s.value = '%s'; s.dispatchEvent(new Event('change'))"
        tab.run(f"(() => {{ {script % choice} }})()")
        tab.wait("document.body.dataset.answers === '3'")
        assert "ait.attention" in tab.run("document.querySelector('#output .cm-content').textContent")
        link = tab.run("location.hash")
        choose = "const s = document.getElementById('to'); s.value = 'passes'; s.dispatchEvent(new Event('change'))"
        tab.run(f"(() => {{ {choose} }})()")
        tab.wait("document.body.dataset.answers === '4'")
        wrong = "const s = document.getElementById('passes'); s.value = 'simplfy'; s.dispatchEvent(new Event('input'))"
        tab.run(f"(() => {{ {wrong} }})()")
        tab.wait("document.body.dataset.answers === '5'")
        tab.run("document.querySelector('#problems a').click()")  # leads to the field
        assert tab.run("document.activeElement.id") == "passes"
        tab.open(f"{url}/?again{link}")
        tab.wait("document.body.dataset.answers === '0'")  # a script of a link waits for the button
        tab.open(f"{url}/?damaged#s=x")
        tab.wait("document.body.dataset.answers === '1'")
        assert "The link is damaged" in tab.run("document.getElementById('problems').textContent")
        assert tab.complaints() == []
        assert [r for r in tab.requests() if not r.startswith((url, "data:"))] == []
