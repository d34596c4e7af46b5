"""The pages of the site that are made from the code: ops, passes with their patterns, examples, the Python API."""

from __future__ import annotations

import base64
import inspect
import json
import posixpath
import re
import subprocess
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ait_mlir.passes.pipelines import PASSES, PHASE_TABLE, Patterns
from ait_mlir.rewrites.families import pattern_set
from ait_mlir.tools import playground
from docs.playground.build import title_of_ir
from docs.site.op_pages import op_index, op_page, ops

ROOT = Path(__file__).parents[2]
GUIDES: tuple[tuple[str, str], ...] = (
    ("Importing models", "importing.md"),
    ("Running a model", "runtime.md"),
    ("Serving", "serving.md"),
    ("Building on several machines", "building.md"),
    ("Numbers with a scale", "quantisation.md"),
    ("Trust", "trust.md"),
    ("Patterns", "patterns.md"),
    ("Add an operator", "add_an_operator.md"),
    ("Kernel libraries", "kernel_libraries.md"),
    ("Graphs as in cuDNN", "graph_api.md"),
    ("From AITemplate", "from_aitemplate.md"),
    ("AITemplate's transformations", "passes.md"),
    ("GPU templates", "gpu_templates.md"),
)
"""The first guides of the menu; further files of `docs/` follow, by their own titles."""
DESIGN = {"Architecture": "architecture.md", "Internals": "internals.md"}
RESULTS = {"Times": "results.md", "Log of experiments": "performance_log.md"}
API: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("compile.md", "Compiling", "From PyTorch, the builder or text to a model.", (
        "ait_mlir.importers.torch.compiled.compile", "ait_mlir.importers.quantized.model.quantize",
        "ait_mlir.importers.checkpoints.checkpoint", "ait_mlir.options.CompileOptions", "ait_mlir.driver",
        "ait_mlir.export", "ait_mlir.errors")),
    ("runtime.md", "Running", "A loaded model, its inputs and its memory.", (
        "ait_mlir.runtime.model.Model", "ait_mlir.runtime.manifest", "ait_mlir.serve.deploy.deployment")),
    ("builder.md", "The Python builder", "Tensors, dims, and the module that they make.", (
        "ait_mlir.frontend.tensor", "ait_mlir.frontend.intvar", "ait_mlir.frontend.graph.build_module",
        "ait_mlir.frontend.compile.compile_model")),
    ("rewriting.md", "Patterns and passes", "The language of patterns, and passes.", (
        "ait_mlir.rewrites.engine.language", "ait_mlir.ir.pipeline",
        "ait_mlir.passes.checks.check_semantics.SemanticsChecker")),
    ("ir.md", "Text and dims", "Parsing, places in texts, dims and their proofs.", (
        "ait_mlir.ir.parser", "ait_mlir.ir.source", "ait_mlir.dims")),
    ("operators.md", "Operators from outside", "An operator of one's own.", ("ait_mlir.operators",)),
)  # fmt: skip
"""Pages of the API: file, title, sentence, and the modules, classes and functions on it."""
PROGRAMS = (
    "examples/bert.py",
    "examples/import_llama.py",
    "examples/decode.py",
    "examples/torch_compile.py",
    "examples/serve.py",
)
COPIED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    **{f"docs/{p.relative_to(ROOT / 'docs').as_posix()}": p.relative_to(ROOT / "docs").as_posix()
       for p in sorted((ROOT / "docs").rglob("*.md"))},
}  # fmt: skip
"""The pages that are files of the repository, and their places in the site."""
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def all_pages(with_playground: bool) -> dict[str, str]:
    """Every page of the site as Markdown, by its path."""
    pages: dict[str, str] = {"ops/index.md": op_index(), "reference/passes.md": passes_page()}
    pages |= {f"ops/{op.name.removeprefix('ait.')}.md": op_page(op) for op in ops()}
    pages["examples/index.md"] = gallery(with_playground)
    pages["examples/compiler_pass.md"] = tutorial()
    pages |= {f"api/{file}": api_page(title, sentence, names) for file, title, sentence, names in API}
    sources: set[str] = set()
    for path, place in COPIED.items():
        pages[place] = with_site_links(path, (ROOT / path).read_text(encoding="utf-8"), sources)
    pages |= {source_place(path): source_page(path) for path in sorted(sources)}
    return pages


def navigation(with_playground: bool) -> list[Any]:
    """The menu."""
    internals = sorted(place for place in COPIED.values() if place.startswith("internals/"))
    placed = {"index.md", "contributing.md", *DESIGN.values(), *RESULTS.values(), *internals, *(p for _, p in GUIDES)}
    others = [place for place in COPIED.values() if place not in placed]
    found: list[Any] = [
        {"Start": "index.md"},
        {"Guides": [*({title: place} for title, place in GUIDES), *others, {"Contributing": "contributing.md"}]},
        {"Examples": ["examples/index.md", {"A pass in thirty lines": "examples/compiler_pass.md"}]},
        {"Ops": ["ops/index.md", *({op.name: f"ops/{op.name.removeprefix('ait.')}.md"} for op in ops())]},
        {"Passes": "reference/passes.md"},
        {"API": [{title: f"api/{file}"} for file, title, _, _ in API]},
        {"Design": [*({title: place} for title, place in DESIGN.items()), *internals]},
        {"Results": [{title: place} for title, place in RESULTS.items()]},
    ]
    return found + ([{"Playground": "playground/index.html"}] if with_playground else [])


# ** links **


def with_site_links(path: str, text: str, sources: set[str]) -> str:
    """The text of a page of the repository with links that lead to pages of the site; `sources` gets the files of the
    repository that it links to and that are no pages."""
    here = COPIED[path]

    def link(found: re.Match[str]) -> str:
        target, hash_, anchor = found[1].partition("#")
        if "://" in target or not target:
            return found[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        place = COPIED.get(file)
        if file == "docs/tutorial/compiler_pass.py":
            place = "examples/compiler_pass.md"
        elif place is None:
            if not (ROOT / file).is_file():
                return found[0]
            sources.add(file)
            place = source_place(file)
        return f"]({posixpath.relpath(place, posixpath.dirname(here) or '.')}{hash_}{anchor})"

    parts = re.split(r"(```.*?```)", text, flags=re.S)  # code is left alone
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def source_place(path: str) -> str:
    return f"source/{path}.md"


def source_page(path: str) -> str:
    """A file of the repository as a page, outside of the search."""
    language = {".py": "python", ".mlir": "mlir", ".cc": "cpp", ".h": "cpp"}.get(Path(path).suffix, "text")
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n{fenced(text, language)}\n"


def fenced(text: str, language: str) -> str:
    """A block of code; its fence is longer than those in the text."""
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`{3,}", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


# ** passes **


def passes_page() -> str:
    """Every pass with its phases, its options, and the laws of its patterns."""
    phases: dict[str, list[str]] = {}
    for phase, names in _phases():
        for name in names:
            phases.setdefault(name, []).append(phase)
    parts = [
        "# Passes and patterns",
        "Run any of them: `ait-opt FILE -p PASS,PASS`. [Patterns](../patterns.md) explains how a pattern is written; "
        "each is listed with its law. `ait-opt --list-constraints` lists the functions that patterns may call.",
    ]
    for name in sorted(PASSES):
        row = PASSES[name]
        summary = row.summary if isinstance(row, Patterns) else _summary(row.load())
        parts += [f"## {name}", summary]
        if name in phases:
            parts.append(
                f"In the phase{'s' if len(phases[name]) > 1 else ''} {', '.join(f'`{p}`' for p in phases[name])}."
            )
        if isinstance(row, Patterns):
            if row.assumption:
                parts.append(f"Only for modules that declare the assumption `{row.assumption}`.")
            parts.append("\n".join(["| pattern | law |", "|---|---|", *_laws(row)]))
    return "\n\n".join(parts) + "\n"


def _phases() -> list[tuple[str, list[str]]]:
    """The names of the passes of each phase, in order."""
    return [
        (phase.name, list(dict.fromkeys(step.partition("{")[0] for step in phase.passes)))
        for phase in PHASE_TABLE.values()
    ]


def _laws(row: Patterns) -> list[str]:
    rows: dict[str, str] = {}
    for family in pattern_set(*row.sets).families:
        law = family.law.replace("|", "\\|").replace("*", "\\*")
        rows.setdefault(family.name, law)
    return [f"| `{name}` | {law} |" for name, law in rows.items()]


def _summary(found: type[Any]) -> str:
    return inspect.cleandoc(found.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


# ** examples **


def gallery(with_playground: bool) -> str:
    """The examples with their output: the IR after fusion for CUDA, and the C++ of the program for the CPU."""
    parts = ["# Examples", "Texts of the IR with their output, then programs. The tests run all of them."]
    for path in sorted((ROOT / "examples").glob("*.mlir"), key=lambda path: path.stat().st_size):
        text = path.read_text(encoding="utf-8")
        parts += [f"## {path.name}", f"{title_of_ir(path)}.", fenced(text, "mlir")]
        fused, built = ask({"text": text, "to": "fused"}), ask({"text": text, "target": "cpu"})
        parts += [f"`ait compile examples/{path.name} --target cuda --to fused` prints", fenced(fused["ir"], "mlir")]
        program = built["files"]["program.cc"]
        parts.append(
            f"`ait compile examples/{path.name} --target cpu --to source` prints, among {len(built['files'])} files,"
        )
        parts.append(fenced(program, "cpp"))
        if with_playground:
            parts.append(f'<a href="../playground/index.html{playground_link(text)}">Open it in the playground</a>')
    for path in PROGRAMS:
        text = (ROOT / path).read_text(encoding="utf-8")
        parts += [f"## {Path(path).name}", f"`python {path} --help` lists its options.", fenced(text, "python")]
    return "\n\n".join(parts) + "\n"


def ask(request: Mapping[str, Any]) -> dict[str, Any]:
    """The compiler's answer to a request of the playground; raises `ValueError` with its errors."""
    found = json.loads(playground.answer(json.dumps(request)))
    if found["diagnostics"]:
        raise ValueError("; ".join(d["message"] for d in found["diagnostics"]))
    return found


def playground_link(text: str) -> str:
    """The hash of a link that opens the playground on a text (docs/playground/page.mjs reads it)."""
    state = {
        "text": text,
        "kind": "ir",
        "target": "cuda",
        "arch": "sm_90a",
        "to": "source",
        "passes": None,
        "tab": "ir",
    }
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = deflate.compress(json.dumps(state).encode()) + deflate.flush()
    return "#s=" + base64.urlsafe_b64encode(data).decode().rstrip("=")


def tutorial() -> str:
    """The tutorial, a program, with what it prints."""
    path = "docs/tutorial/compiler_pass.py"
    command = [sys.executable, str(ROOT / path)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"# A pass in thirty lines\n\n{fenced(text, 'python')}\n\nIt prints\n\n{fenced(printed, 'text')}\n"


# ** API **


def api_page(title: str, sentence: str, names: tuple[str, ...]) -> str:
    return "\n\n".join([f"# {title}", sentence, *(f"::: {name}" for name in names)]) + "\n"
