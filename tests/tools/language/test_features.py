"""The features of the language server as functions of a text; `test_server.py` asks for them over standard input."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from weakref import ref

import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dims import interned
from ait_mlir.driver import read_module, run_to_phase
from ait_mlir.errors import Fix
from ait_mlir.ir.parser import check, parse_source, parse_text
from ait_mlir.ir.source import SourceError, SourceText
from ait_mlir.options import CompileOptions
from ait_mlir.tools.language.completion import completions_at
from ait_mlir.tools.language.document import MOST_CHARACTERS, Document, Edit, Refused, new_context
from ait_mlir.tools.language.formatting import formatted
from ait_mlir.tools.language.hover import hover_at
from ait_mlir.tools.language.lines import CHARACTERS, ByLine, make_room
from ait_mlir.tools.language.mending import edits_of
from ait_mlir.tools.language.names import named_at, renamed
from ait_mlir.tools.language.recovery import Cancelled
from ait_mlir.tools.language.server import MOST_NEW, Opened, new_server

ROOT = Path(__file__).parents[3]
FFN = (ROOT / "examples" / "ffn.mlir").read_text()
KINDS = (ROOT / "examples" / "kinds.mlir").read_text()
CTX = new_context()


def errors(document: Document) -> list[str]:
    return [f"{d.line}:{d.column}: {d.message}" for d in document.analyse(CTX)]


def place(text: str, what: str, after: str = "") -> tuple[int, int]:
    found = text.index(what, text.index(after))
    return text.count("\n", 0, found), found - (text.rfind("\n", 0, found) + 1)


def edited(text: str, edits: list[Edit]) -> str:
    lines = text.split("\n")
    for e in sorted(edits, key=lambda e: (e.line, e.start), reverse=True):
        assert e.line == e.end_line
        lines[e.line] = lines[e.line][: e.start] + e.text + lines[e.line][e.end :]
    return "\n".join(lines)


# ** errors **


def test_each_error_is_reported_and_no_other() -> None:
    text = FFN.replace("ait.gelu", "ait.gelo").replace("%2, %down_w", "%2, %dwn_w")
    text = text.replace("%4 : !ait.tensor<batch x 768", "%4 : !ait.tensor<batch x 767")
    assert errors(Document("f", text)) == [
        "11:8: Operation ait.gelo is not registered; did you mean ait.gelu?",
        "14:25: %dwn_w is not defined above this op; did you mean %down_w?",
        errors(Document("f", FFN.replace("%4 : !ait.tensor<batch x 768", "%4 : !ait.tensor<batch x 767")))[0],
    ]


@pytest.mark.parametrize(
    "typed, wanted",
    [
        ("  %5 = ", ["17:6: operation name expected"]),
        ("  %5", ["17:4: Expected '='"]),
        ("  garbage here", ["17:3: Operation garbage is not registered; "]),
        ("  %5 = ait.add %4,", ["17:18: "]),
        ("  %5 = ait.relu %4 : !ait.tensor<batch x", ["17:"]),
        ('  %5 = ait.param "a', ["17:"]),
        ("  }", ["18:1: "]),
        ("  %5 = ait.gemm rcr %4, %4 epilogue(%4) {", ["18:", "18:"]),
    ],
)
def test_a_half_typed_line_is_one_error_in_that_line_or_at_the_end(typed: str, wanted: list[str]) -> None:
    lines = FFN.split("\n")
    found = errors(Document("f", "\n".join([*lines[:16], typed, *lines[16:]])))
    assert len(found) == len(wanted) and all(f.startswith(w) for f, w in zip(found, wanted, strict=True)), found


def test_a_brace_that_is_missing_at_the_end_hides_no_other_error() -> None:
    found = errors(Document("f", FFN.replace("ait.gelu", "ait.gelo").rstrip().removesuffix("}")))
    assert len(found) == 2 and "the '{' of line 6 is not closed" in found[1]


@pytest.mark.parametrize("path", sorted((ROOT / "lit_tests" / "dialects").rglob("*.mlir")), ids=lambda p: p.stem)
def test_the_first_error_is_that_of_ait_opt(path: Path) -> None:
    document = Document("text", path.read_text())
    for part in document.parts:
        if not part.source.text.strip():
            continue
        wanted: list[str] = []
        try:
            module = parse_source(CTX, part.source)
            check(module, part.source)
        except SourceError as e:
            wanted = [d.message for d in e.diagnostics]
        part.analysis = None
        alone = Document("text", part.source.text)
        found = [d.message for d in alone.analyse(CTX)]
        assert bool(found) == bool(wanted), (part.source.line_offset, found, wanted)
        if wanted:
            assert set(wanted) & set(found) or "not defined" in wanted[0] or len(wanted) == 1, (found, wanted)


def test_an_edit_parses_only_what_changed() -> None:
    ops = "".join(f"  %v{i} = ait.relu %v{i - 1} : !ait.tensor<b x f32>\n" for i in range(1, 200))
    text = f"ait.graph @g(%v0: !ait.tensor<b x f32>) dims {{b = 1 to 4}} {{\n{ops}" + (
        '  ait.output "y" %v199 : !ait.tensor<b x f32>\n}\n'
    )
    document = Document("g", text)
    for change, parsed, wanted in (
        (text, 202 - 1, []),
        (text, 1, []),
        (text.replace("ait.relu %v99 ", "ait.tanh %v99 "), 2, []),
        ("\n// more\n" + text, 2, []),
        (text.replace("relu %v99 ", "rela %v99 "), 1, ["Operation ait.rela is not registered; did you mean ait.relu?"]),
        (text, 2, []),
        (text.replace("%v99 : !ait.tensor<b x f32>", "%v99 : !ait.tensor<b x f16>"), None, None),
        (text.replace("dims {b = 1 to 4}", "dims {c = 1 to 4}"), None, None),
        (text, None, []),
    ):
        document.update(change)
        found = [d.message for d in document.analyse(CTX, verify_all_ops=False)]
        analysis = document.parts[0].analysis
        assert analysis is not None
        assert parsed is None or analysis.parsed == parsed
        fresh = Document("g", change)
        assert found == [d.message for d in fresh.analyse(CTX)]
        assert wanted is None or found == wanted
        again = fresh.parts[0].analysis
        assert again is not None and str(analysis.module) == str(again.module)
        assert {line: op.name for line, op in analysis.ops.items()} == {line: op.name for line, op in again.ops.items()}


def test_lines_that_are_copied_out_of_a_region_stay_in_it() -> None:
    tensor = "!ait.tensor<8 x f32>"
    head = f"ait.graph @g(%x: !ait.tensor<4 x 8 x f32>, %h: {tensor}) {{\n"
    scan = (
        f"%r = ait.scan %x init(%h) dim 0 {{\n^bb0(%row: {tensor}, %s: {tensor}):\n"
        f"%a = ait.relu %h : {tensor}\n%n = ait.add %s, %a : {tensor}\nait.yield %n : {tensor}\n}} : {tensor}\n"
    )
    line, end = f"%a = ait.relu %h : {tensor}\n", f'ait.output "y" %r : {tensor}\n}}\n'
    document = Document("g")
    for text in (head + scan + end, head + scan + line + end, head + scan + end, head + line + end, head + scan + end):
        document.update(text)
        fresh = Document("g", text)
        assert document.analyse(CTX, verify_all_ops=False) == fresh.analyse(CTX)
        (after, alone) = (d.parts[0].analysis for d in (document, fresh))
        assert after is not None and alone is not None and str(after.module) == str(alone.module)


# ** memory **


def test_edits_leave_no_ops_behind() -> None:
    """Ops that an edit removes do not stay alive as users of the values of ops that stay."""
    document = Document("f", FFN)
    modules: list[ref[ModuleOp]] = []
    for i in range(9):
        document.update(FFN.replace("ait.gelu", ("ait.gelo", "ait.tanh", "ait.gelu")[i % 3]))
        if i == 4:
            with pytest.raises(Cancelled):
                document.analyse(CTX, lambda: True)
            continue
        document.analyse(CTX, verify_all_ops=False)
        analysis = document.parts[0].analysis
        assert analysis is not None
        modules.append(ref(analysis.module))
        del analysis
    gc.collect()
    assert [module() is not None for module in modules] == [False] * 7 + [True]


def test_only_lines_of_the_last_texts_are_remembered() -> None:
    calls = Counter[str]()
    length = ByLine(lambda line: len(line) if calls.update([line]) is None else 0)
    text = [f"{i:0999}" for i in range(CHARACTERS // 1000)]
    for _ in range(3):
        assert {length(line) for line in text} == {999}
    assert set(calls.values()) == {1}
    for i in range(10 * len(text)):
        length(f"{i:01000}")
        assert length.remembered <= 2 * CHARACTERS + 2000
    long = [f"{i:0997}" for i in range(3 * len(text))]
    make_room(3 * CHARACTERS)
    for line in (*long, *long):
        length(line)
    make_room(0)
    assert set(calls.values()) == {1}


def test_dims_of_texts_that_are_gone_are_forgotten() -> None:
    server = new_server()
    opened = Opened("file:///f", "f", "", None)
    most = interned() + MOST_NEW + 500
    for i in range(24):
        names = [f"d{i}_{n}" for n in range(100)]
        dims = ", ".join(f"{name} = 1 to 8" for name in names)
        type_ = f"!ait.tensor<{' x '.join(names)} x i1>"
        opened.text = f'ait.graph @g(%x: {type_}) dims {{{dims}}} {{\n  ait.output "y" %x : {type_}\n}}\n'
        opened.changes += 1
        for everything in (False, True):
            assert server._found(opened, opened.changes, everything) == []  # pyright: ignore[reportPrivateUsage]
        assert interned() < most


def test_parts_of_a_text_have_their_own_names_and_places() -> None:
    part = 'ait.graph @f(%x: !ait.tensor<f32>) {\n  ait.output "y" %x : !ait.tensor<f32>\n}\n'
    document = Document("f", f"{part}// -----\n{part.replace('%x :', '%z :')}")
    assert errors(document) == ["6:18: %z is not defined above this op"]
    named = named_at(document, 0, 14)
    assert named is not None and [s.line for s in named.places] == [0, 1]


@pytest.mark.parametrize(
    "text, message",
    [
        ("\0", "NUL"),
        ("ait.graph @f() {}\n" * (MOST_CHARACTERS // 18 + 1), "at most 2 million"),
        ("", None),
        ("// only words", None),
        ("\ufeffait.graph", ""),
        ("(" * 5000, ""),
        ("{" * 5000, ""),
    ],
)
def test_what_is_no_ir(text: str, message: str | None) -> None:
    found = errors(Document("f", text))
    assert (found == []) if message is None else len(found) <= 2 and (not message or message in found[0] or not found)


# ** mending **

BROKEN = {
    "op": ("ait.gelu", "ait.gelo", "write ait.gelu"),
    "value": ("%2, %down_w", "%2, %dwn_w", "write %down_w"),
    "result": (
        "%down_b : !ait.tensor<batch x 768",
        "%down_b : !ait.tensor<batch x 769",
        "write !ait.tensor<batch x 768 x f16>",
    ),
    "no type": ("%up_w : !ait.tensor<batch x 3072 x f16>", "%up_w", "add : !ait.tensor<batch x 3072 x f16>"),
    "dim": ("%up_w : !ait.tensor<batch x", "%up_w : !ait.tensor<bach x", "write !ait.tensor<batch x 3072 x f16>"),
    "no dims": (" dims {batch = 1 to 64}", "", "declare batch = 1 to 64"),
    "near dim": ("@ffn(%x: !ait.tensor<batch x", "@ffn(%x: !ait.tensor<bach x", "write batch for bach"),
    "layout": ("gemm rcr %x", "gemm rcx %x", "write rcr"),
    "string": ('"up.weight"', '"up.weight', 'write "up.weight"'),
    "element type": ("<3072 x f16>", "<3072 x f61>", "write f16"),
    "x before a dim": ("3072 x 768 x f16", "3072 768 x f16", "write x before 768"),
    "x before the element type": ("batch x 768 x f16", "batch x 768 f16", "write x before f16"),
    "operands of a product": ("%2, %down_w", "%down_w, %2", "swap the first two operands"),
    "value without a likeness": ("ait.add %0, %up_b", "ait.add %o, %up_b", "write %0"),
    "brace": ("\n}\n", "\n", "close the '{' at the end of the text"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_hint_of_an_error_mends_it(name: str) -> None:
    old, new, title = BROKEN[name]
    text = FFN.replace(old, new, 1)
    assert text != FFN
    document = Document("f", text)
    fixes = [(d, fix) for d in document.analyse(CTX) for fix in d.fixes if fix.title == title]
    assert fixes, [(str(d), d.fixes) for d in document.analyse(CTX)]
    assert edited(text, edits_of(document, *fixes[0])).rstrip("\n") == FFN.rstrip("\n")


@pytest.mark.parametrize(
    ("head", "wrong", "column"),
    [
        ("batch x 768 x f16>) dims", "batch x 768 f16>) dims", 44),
        ("dims {batch = 1 to 64}", "dims {batch = 1 64}", 68),
        ("dims {batch = 1 to 64}", "dims batch = 1 to 64", 57),
        ("ait.graph @ffn", "ait.graph ffn", 11),
    ],
)
def test_an_error_in_the_head_of_a_graph_hides_none_of_its_body(head: str, wrong: str, column: int) -> None:
    text = FFN.replace(head, wrong, 1).replace("ait.gelu", "ait.gelo").replace("%4 =", "%q =")
    assert [e[: e.index(": ")] for e in errors(Document("f", text))] == [f"6:{column}", "11:8", "16:18"]
    body = FFN.replace(head, wrong, 1).replace("%down_b : !ait.tensor<batch x 768", "%down_b : !ait.tensor<batch x 769")
    found = errors(Document("f", body))
    verified = [e for e in found if "expected !ait.tensor<batch x 768 x f16>" in e]
    assert len(verified) == (column in (44, 11))  # types are only checked if the dims are known


def test_a_dim_that_is_not_declared_is_one_error() -> None:
    text = FFN.replace(" dims {batch = 1 to 64}", "")
    (found,) = errors(Document("f", text))
    assert found.startswith("6:1: ait.graph: dim 'batch' of ") and found.endswith("; 6 ops name it")
    with pytest.raises(SourceError) as raised:
        parse_text(CTX, text, "f")
    assert [f"{d.line}:{d.column}: {d.message}" for d in raised.value.diagnostics] == [found]
    twice = f"{text}\n// -----\n{text}"
    assert len(errors(Document("f", twice))) == 2


def test_the_error_of_a_product_names_the_types_that_its_result_follows_from() -> None:
    (found,) = errors(Document("f", FFN.replace("%2, %down_w", "%down_w, %2")))
    assert found.endswith("; it follows from operand 0 (768 x 3072 x f16) and operand 1 (batch x 3072 x f16)")


def test_the_nearest_word_is_offered_first() -> None:
    (d,) = Document("f", FFN.replace("gemm rcr %x", "gemm rcs %x")).analyse(CTX)
    assert d.fixes[0].text == "rcr"


def test_a_value_that_is_defined_twice_gets_another_name() -> None:
    text = FFN.replace('%down_b = ait.param "down.bias"', '%up_b = ait.param "down.bias"')
    document = Document("f", text)
    (first, second) = document.analyse(CTX)
    assert "already defined" in first.message and "%down_b is not defined above" in second.message
    assert '%up_b_1 = ait.param "down.bias"' in edited(text, edits_of(document, first, first.fixes[0]))


def test_an_op_without_types_has_those_that_follow_from_its_operands() -> None:
    found = errors(Document("f", FFN.replace("%down_b : !ait.tensor<batch x 768 x f16>", "%down_b")))
    assert found == ["15:26: expected ':' and the types of the results"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('ait.output "y"', "ait.output y"),
        ("(%x: !ait.tensor", "(%x: ait.tensor"),
        ("%2 = ait.gelu", "%2 ait.gelu"),
        ("%x, %up_w", "%x %up_w"),
        ("ait.gelu %1", "ait.gelu 1"),
    ],
)
def test_a_sign_that_is_missing_is_offered(right: str, wrong: str) -> None:
    wrong_text = FFN.replace(right, wrong)
    document = Document("f", wrong_text)
    first = document.analyse(CTX)[0]
    mended = edited(wrong_text, edits_of(document, first, first.fixes[0]))
    assert mended.replace(" ,", ",") == FFN and errors(Document("f", mended)) == []


def test_a_dim_is_declared_beside_others() -> None:
    text = FFN.replace("@ffn(%x: !ait.tensor<batch x 768", "@ffn(%x: !ait.tensor<rows x 768")
    document = Document("f", text)
    (d,) = [d for d in document.analyse(CTX) if "rows" in d.message and d.line == 6]
    edits = edits_of(document, d, Fix("", "rows = 1 to 64", "dims"))
    assert "dims {batch = 1 to 64, rows = 1 to 64} {" in edited(text, edits)


# ** names **


@pytest.mark.parametrize(
    "what, after, definition, uses",
    [
        ("%0", "%1 =", ("%0 =", ""), 2),
        ("%x", "gemm", ("%x:", ""), 2),
        ("batch", "%3 =", ("batch =", "dims"), 8),
        ('"up.weight"', "", ('"up.weight"', ""), 1),
        ("@ffn", "", ("@ffn", ""), 1),
    ],
)
def test_the_definition_and_uses_of_a_name(what: str, after: str, definition: tuple[str, str], uses: int) -> None:
    document = Document("f", FFN)
    found = named_at(document, *place(FFN, what, after))
    assert found is not None and found.definition is not None
    assert (found.definition.line, found.definition.start) == place(FFN, *definition)
    assert len(found.places) == uses


def test_equal_names_of_regions_are_different_values() -> None:
    document = Document("k", KINDS)
    first, second = (named_at(document, *place(KINDS, "%before", after)) for after in ("%states =", "%sum ="))
    assert first is not None and second is not None and len(first.places) == len(second.places) == 2
    assert not set(first.places) & set(second.places)


@pytest.mark.parametrize("text", [FFN, KINDS], ids=["ffn", "kinds"])
def test_a_renamed_text_is_the_same_module(text: str) -> None:
    document = Document("f", text)
    before = parse_source(CTX, SourceText("f", text))
    for what, new in (("%x", "%input"), ("%1" if "%1" in text else "%cb", "sum_of_bias")):
        after = edited(text, renamed(document, *place(text, what, "ait.graph"), new))
        assert after != text and parse_source(CTX, SourceText("f", after)).is_structurally_equivalent(before)
        assert errors(Document("f", after)) == []
    dim = "batch" if "batch" in text else "len"
    after = edited(text, renamed(document, *place(text, dim, "dims {"), "rows"))
    assert errors(Document("f", after)) == [] and f"<{dim} x" not in after


@pytest.mark.parametrize(
    "what, new, why",
    [
        ("%0", "1", "is the name of something else"),
        ("%0", "%up_w", "is the name of something else"),
        ("%0", "a b", "cannot name a value"),
        ("batch", "x", "is a reserved word"),
        ("ait.gelu", "y", "no name here"),
        (": ", "y", "no name here"),
    ],
)
def test_a_name_that_cannot_be_given(what: str, new: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        renamed(Document("f", FFN), *place(FFN, what, "{batch" if what == "batch" else "%0"), new)


# ** hover **


def hover(document: Document, text: str, what: str, after: str = "") -> str:
    document.analyse(CTX)
    found = hover_at(document, CTX, *place(text, what, after))
    return "" if found is None else found.text


def test_hover_over_an_op_a_value_a_dim_and_a_symbol() -> None:
    document = Document("f", FFN)
    op = hover(document, FFN, "ait.gemm")
    assert "operations: `4718592*batch` flops, 302 Mflops at batch = 64" in op
    assert "read: `1536*batch + 4718592` bytes, 4.82 MB at batch = 64" in op and "Matrix product." in op
    value = hover(document, FFN, "%up_b", "ait.add")
    assert value.startswith("`%up_b`: `!ait.tensor<3072 x f16>`: 6.14 kB") and 'ait.param "up.bias"' in value
    assert hover(document, FFN, "%x", "gemm").startswith("`%x`: `!ait.tensor<batch x 768 x f16>`: `1536*batch` bytes")
    assert hover(document, FFN, "batch", "%0") == "dim `batch = 1 to 64` of ait.graph"
    assert "ait.graph @ffn" in hover(document, FFN, "@ffn")
    assert hover(document, FFN, "rcr", "%0") == ""
    assert "wrong" not in hover(
        Document("f", FFN.replace(", %up_w", ", %upw")), FFN.replace(", %up_w", ", %upw"), "ait.gemm"
    )


@pytest.mark.parametrize("phase, over", [("selected", "ait.gemm"), ("planned", "ait_rt.launch")])
def test_hover_shows_the_kernel_and_its_estimate(phase: str, over: str) -> None:
    module, _ = read_module(ROOT / "examples" / "ffn.mlir")
    text = str(run_to_phase(module, phase, CompileOptions(target="cuda", arch="sm_90a")))
    found = hover(Document("f", text), text, over)
    assert "on cuda sm_90a: estimated " in found and " us at batch = 64" in found


# ** completion **


@pytest.mark.parametrize(
    "typed, there, not_there",
    [
        ("  %5 = ait.rel", ["ait.relu", "ait.gemm", "ait_rt.launch"], ["%4"]),
        ("  %5 = ait.relu %", ["%4", "%x", "%up_w"], ["%5", "ait.relu"]),
        ("  %5 = ait.relu %4 : !ait.tensor<", ["batch", "f16"], ["ait.relu"]),
        ("  %5 = ait.relu %4 : !", ["!ait.tensor", "!ait_rt.buffer"], ["ait.relu"]),
        ("  %5 = ait.gemm ", ["rcr", "epilogue"], ["batch"]),
        ("  %5 = ait.reduce sum %4 ", ["dims"], ["batch"]),
        ("  %5 = ait.reshape %4 [", ["batch"], ["ait.relu"]),
        ("  %5 = ait.relu %4 {", ["kernel"], ["ait.relu"]),
        ("  // ait.", [], ["ait.relu"]),
        ('  ait.output "', [], ["ait.relu"]),
    ],
)
def test_completion(typed: str, there: list[str], not_there: list[str]) -> None:
    lines = FFN.split("\n")
    document = Document("f", "\n".join([*lines[:16], typed, *lines[16:]]))
    found = [item.text for item in completions_at(document, CTX, 16, len(typed))]
    assert set(there) <= set(found) and not set(not_there) & set(found), found


# ** formatting **


@pytest.mark.parametrize("path", sorted((ROOT / "lit_tests" / "dialects").rglob("*.mlir")), ids=lambda p: p.stem)
def test_a_formatted_text_keeps_module_comments_and_names(path: Path) -> None:
    text = path.read_text()
    try:
        found = formatted(Document("f", text), CTX)
    except Refused as e:
        assert "not formatted: " in str(e)
        assert "invalid" in path.name or "more than one op" in str(e) or "inside of an op" in str(e), str(e)
        return
    assert formatted(Document("f", found), CTX) == found
    assert [line.strip() for line in found.split("\n") if line.strip().startswith("//")] == [
        line.strip() for line in text.split("\n") if line.strip().startswith("//")
    ]


def test_formatting() -> None:
    ugly = FFN.replace("  %0 = ait.gemm rcr", "%0   =  ait.gemm   rcr").replace("  %1 =", "\n\n// sums\n      %1 =")
    ugly = ugly.replace("%3 = ait.gemm", "%3=ait.gemm").replace(
        ": !ait.tensor<3072 x f16>\n", ": !ait.tensor<3072 x f16>  // ok\n"
    )
    found = formatted(Document("f", ugly), CTX)
    assert "\n\n  // sums\n  %1 = ait.add" in found and "f16>  // ok\n" in found
    assert formatted(Document("f", FFN), CTX) == FFN
    assert formatted(Document("f", FFN.replace("\n", "\r\n")), CTX) == FFN.replace("\n", "\r\n")
    assert "%before" in formatted(Document("k", KINDS), CTX)


@pytest.mark.parametrize(
    "text, why",
    [
        (FFN.replace("ait.gelu", "ait.gelo"), "has an error in line 11"),
        (
            FFN.replace("(%x: !ait.tensor<batch x 768 x f16>)", "(%x:\n // in\n !ait.tensor<batch x 768 x f16>)"),
            "in line 7",
        ),
        ("\0", "NUL"),
    ],
)
def test_a_text_that_cannot_be_formatted_stays(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        formatted(Document("f", text), CTX)
