"""One page for each op of `ait`, made of its class, its tests and its example, which is run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from xdsl.irdl import IRDLOperation, OptOperandDef, OptResultDef, VarOperandDef, VarResultDef

from ait_mlir.dialects.ait import AIT, traits
from ait_mlir.dialects.ait import syntax as clauses
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.families import FAMILIES
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.reference.core import EvaluationError
from ait_mlir.reference.graph import evaluate_graph
from ait_mlir.tools.op_examples import examples
from ait_mlir.tools.operators import TARGETS, operator_row

ROOT = Path(__file__).parents[2]
REFUSED = ROOT / "lit_tests" / "dialects" / "ait"
RUN_AT = {"b": 2, "s": 3}
"""The dims at which examples are run."""
_ERROR = re.compile(r"//\s*expected-error\s*(?:@(above|below|[+-]\d+))?\s*\{\{(.*?)\}\}")
_KINDS = {
    clauses.INT: "INTEGER",
    clauses.INTS: "[INTEGER, ...]",
    clauses.NUMBER: "NUMBER",
}


def ops() -> list[type[IRDLOperation]]:
    """The ops of the dialect by name."""
    return sorted(AIT.operations, key=lambda op: op.name)


def op_page(op: type[IRDLOperation]) -> str:
    """The page of an op as Markdown."""
    name = op.name.removeprefix("ait.")
    parts = [f"# {op.name}", inspect.cleandoc(op.__doc__ or "")]
    if text := syntax_text(op):
        parts += [
            "## Syntax",
            f"```\n{text}\n```",
            "Parts in `[ ]` may be left out. After the colon are the types of the results.",
        ]
    parts += _tables(op)
    parts += _interfaces(op)
    parts += _example(name)
    parts += _kernels(name)
    if not (rules := refused().get(op.name)) and (peer := _peer(op)) is not None:
        parts += [
            "## Rules of the verifier",
            f"Those of [`{peer}`]({peer.removeprefix('ait.')}.md#rules-of-the-verifier).",
        ]
    if rules:
        parts += [
            "## Rules of the verifier",
            "Each text below is refused with the error above it; the tests check them.",
        ]
        parts += ["```mlir\n" + "\n\n".join(f"// error: {message}\n{line}" for message, line in rules) + "\n```"]
    return "\n\n".join(parts) + "\n"


def syntax_text(op: type[IRDLOperation]) -> str:
    """The text of an op by its clauses, or "" for an op with a parser of its own."""
    table: Sequence[clauses.Clause] | None = getattr(op, "SYNTAX", None)
    if table is None:
        return ""
    definition = op.get_irdl_definition()
    fields = [name for name, _ in definition.operands]
    results = [f"%{name}" for name, _ in definition.results]
    left = f"{', '.join(results)} = " if results else ""
    return f"{left}{op.name} {' '.join(_clause(clause, fields) for clause in table)} : TYPES"


def _clause(clause: clauses.Clause, fields: Sequence[str]) -> str:
    match clause:
        case clauses.Operands(names):
            return ", ".join(f"%{name}" for name in (names or fields))
        case clauses.Operand(name, keyword, optional):
            text = f"{keyword} %{name}" if keyword else f"%{name}"
        case clauses.Several(name, count):
            optional, text = True, f"{name} " + ", ".join(f"%{name}{i}" for i in range(count))
        case clauses.Group(name, keyword, optional):
            text = f"{keyword}(%{name}, ...)"
        case clauses.Prop(name, kind, keyword, optional):
            shown = name if keyword is None else keyword
            value = _KINDS.get(kind) or name.upper()
            text = f"{shown} {value}" if shown else value
        case clauses.Flag(name, keyword):
            optional, text = True, keyword or name
        case clauses.Word(choices=choices):
            return f"({' | '.join(word or 'nothing' for word in choices)})"
        case clauses.RegionClause(operands, keyword):
            optional, text = bool(keyword), f"{keyword}(%{operands}, ...) {{ ... }}"
        case clauses.PlainRegion():
            return "{ ... }"
        case _:
            return f"{type(clause).__name__.upper()}"
    return f"[{text}]" if optional else text


def _tables(op: type[IRDLOperation]) -> list[str]:
    definition = op.get_irdl_definition()
    rows = [("operand", name, _count(d, VarOperandDef, OptOperandDef)) for name, d in definition.operands]
    rows += [
        ("attribute", name, "optional" if "Opt" in type(d).__name__ else "required")
        for name, d in definition.properties.items()
        if name != "operandSegmentSizes"
    ]
    rows += [("result", name, _count(d, VarResultDef, OptResultDef)) for name, d in definition.results]
    rows += [("region", name, "one") for name, _ in definition.regions]
    if not rows:
        return []
    lines = ["| | name | |", "|---|---|---|", *(f"| {kind} | `{name}` | {count} |" for kind, name, count in rows)]
    return ["## Operands, attributes, results", "\n".join(lines)]


def _count(definition: object, several: type, optional: type) -> str:
    if isinstance(definition, optional):
        return "optional"
    return "any number" if isinstance(definition, several) else "one"


def _interfaces(op: type[IRDLOperation]) -> list[str]:
    """The interfaces through which passes and patterns ask about the op."""
    known = {c for _, c in inspect.getmembers(traits, inspect.isclass) if c.__module__ == traits.__name__}
    bases = [c for c in op.__mro__ if c in known and c is not traits.Interface] + [
        type(t) for t in op.traits.traits if type(t) in known
    ]
    found = {c.__name__: (inspect.getdoc(c) or "").partition("\n\n")[0].replace("\n", " ") for c in bases}
    if not found:
        return []
    lines = [
        "| interface | |",
        "|---|---|",
        *(f"| `{name}` | {text.replace('|', chr(92) + '|')} |" for name, text in found.items()),
    ]
    return ["## Interfaces", "\n".join(lines)]


def _example(name: str) -> list[str]:
    """The example that `ait inspect --ops` uses, run by the reference."""
    for element in ("f32", "i32", "i1", "i64"):
        if found := examples(name, element):
            break
    else:
        return []
    graph: Any = found[0]
    while not isinstance(graph, GraphOp):
        graph = graph.parent_op()
    module: Any = graph.parent_op()
    parts = ["## Example", f"```mlir\n{graph!s}\n```"]
    try:
        outputs = run(module, graph)
    except EvaluationError as error:
        return [*parts, f"The reference does not take random inputs here: {error}."]
    dims = ", ".join(f"`{dim} = {value}`" for dim, value in RUN_AT.items())
    lines = [f"| `{output}` | {_shape(value)} | {_values(value)} |" for output, value in outputs.items()]
    return [
        *parts,
        f"The reference, on random inputs at {dims}:",
        "\n".join(["| output | shape | first values |", "|---|---|---|", *lines]),
    ]


def run(module: Any, graph: GraphOp) -> dict[str, Any]:
    """The outputs of the reference on random inputs at `RUN_AT`."""
    checker = SemanticsChecker(module, budget=1)
    declared = {dim.name for dim in graph.scope.dims} - {dim.name for dim in graph.scope.bound}
    dims = {name: value for name, value in RUN_AT.items() if name in declared}
    inputs = checker.inputs(graph, graph.scope.complete(dims))
    return evaluate_graph(graph, inputs, checker.params, dims)


def _shape(value: Any) -> str:
    return " x ".join(map(str, value.shape)) or "one number"


def _values(value: Any) -> str:
    shown = [str(x) if value.dtype.kind in "biu" else f"{float(x):.4g}" for x in value.reshape(-1)[:4]]
    return ", ".join(shown) + (", ..." if value.size > 4 else "") or "none"


def _kernels(name: str) -> list[str]:
    row = operator_row(name)
    lines = ["| target | kernels | element types |", "|---|---|---|"]
    for target in TARGETS:
        found = row[target]
        kernels = found.get("reason") or ", ".join(f"`{p}`" for p in found["providers"])
        lines.append(f"| {target} | {kernels} | {' '.join(found['dtypes']) or '-'} |")
    parts = ["## Kernels", "\n".join(lines)]
    if row["names"]:
        parts += ["## Names in AITemplate", ", ".join(f"`{found}`" for found in row["names"])]
    return parts


@cache
def refused() -> dict[str, list[tuple[str, str]]]:
    """By op: the errors that tests expect, each with the line that causes it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(REFUSED.glob("*_invalid.mlir")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for i, line in enumerate(lines):
            for where, message in _ERROR.findall(line):
                at = i + {"": 0, "above": -1, "below": 1}.get(where, int(where) if where[-1:].isdigit() else 0)
                text = _ERROR.sub("", lines[at]).strip() if 0 <= at < len(lines) else ""
                named = re.match(r"(ait\.\w+)", message) or re.search(r"\b(ait\.\w+)", text)
                if named is not None and len(text) < 200:
                    rows = found.setdefault(named[1], [])
                    if (message, text) not in rows:
                        rows.append((message, text))
    return found


def _peer(op: type[IRDLOperation]) -> str | None:
    """The op with the most tested errors among those of the same base class, whose verifier is the same."""
    peers = [other.name for other in ops() if other.__mro__[1] is op.__mro__[1] and other.name in refused()]
    return max(peers, key=lambda name: len(refused()[name]), default=None)


def op_index() -> str:
    """The list of ops by family, with the first sentence of each."""
    by_module: dict[str, list[type[IRDLOperation]]] = {}
    for op in ops():
        by_module.setdefault(op.__module__.split(".")[3], []).append(op)
    order = [family for family in [*by_module, *FAMILIES] if family in by_module]
    parts = [
        "# Ops of the dialect",
        "The page of an op has its syntax, operands and attributes, an example that is run, its kernels and the rules "
        "of its verifier.",
    ]
    for family in dict.fromkeys(sorted(order)):
        rows = [f"| [`{op.name}`]({op.name.removeprefix('ait.')}.md) | {_first(op)} |" for op in by_module[family]]
        parts += [f"## {family.replace('_', ' ')}", "\n".join(["| op | |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def _first(op: type[IRDLOperation]) -> str:
    text = inspect.cleandoc(op.__doc__ or "").partition("\n\n")[0].partition("```")[0].replace("\n", " ")
    return re.split(r"(?<=\w)[.:;](?:\s|$)", text, maxsplit=1)[0].replace("|", "\\|")
