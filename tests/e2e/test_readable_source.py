"""Generated C++ is for people to read: its structure, over models of many kinds."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from ait_mlir.driver import emit, run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.cpp import CppText
from ait_mlir.lowering.layout import WIDTH, identifiers, laid_out
from ait_mlir.options import CompileOptions
from ait_mlir.selection.meter import plan

T = "!ait.tensor"
LONG = "a_name_of_a_user_that_is_longer_than_a_line_" * 5

TWO = f"""
ait.graph @two("{LONG}" %x: {T}<batch x 64 x f32>, "secret_z" %z: {T}<batch x 128 x f32>) dims {{batch = 1 to 64}} {{
  %w = ait.param "secret_w" : {T}<256 x 64 x f32>
  %c = ait.param "c" : {T}<256 x f32>
  %v = ait.param "v" : {T}<256 x 128 x f32>
  %d = ait.param "d" : {T}<256 x f32>
  %0 = ait.gemm rcr %x, %w : {T}<batch x 256 x f32>
  %1 = ait.add %0, %c : {T}<batch x 256 x f32>
  %2 = ait.gelu %1 : {T}<batch x 256 x f32>
  %3 = ait.gemm rcr %z, %v : {T}<batch x 256 x f32>
  %4 = ait.add %3, %d : {T}<batch x 256 x f32>
  %5 = ait.gelu %4 : {T}<batch x 256 x f32>
  ait.output "secret_y" %2 : {T}<batch x 256 x f32>
  ait.output "q" %5 : {T}<batch x 256 x f32>
}}
"""
ROWS = f"""
ait.graph @rows(%x: {T}<secret_a x secret_b x 64 x f16>) dims {{secret_a = 1 to 8, secret_b = 1 to 1024}} {{
  %g = ait.param "g" : {T}<64 x f16>
  %b = ait.param "b" : {T}<64 x f16>
  %n = ait.layer_norm %x scale %g bias %b axes 1 eps 1.0e-05 : {T}<secret_a x secret_b x 64 x f16>
  %s = ait.softmax %n dim 1 : {T}<secret_a x secret_b x 64 x f16>
  %r = ait.reduce sum %s dims [1] : {T}<secret_a x 64 x f16>
  %t = ait.permute %n [0, 2, 1] : {T}<secret_a x 64 x secret_b x f16>
  ait.output "r" %r : {T}<secret_a x 64 x f16>
  ait.output "t" %t : {T}<secret_a x 64 x secret_b x f16>
}}
"""
ATTENTION = f"""
ait.graph @attention(%q: {T}<b x 4 x s x 64 x f16>, %k: {T}<b x 4 x s x 64 x f16>) dims {{b = 1 to 4, s = 1 to 512}} {{
  %a = ait.attention %q, %k, %k scale 0.125 : {T}<b x 4 x s x 64 x f16>
  ait.output "a" %a : {T}<b x 4 x s x 64 x f16>
}}
"""
CONV = f"""
ait.graph @image(%x: {T}<n x 32 x 32 x 16 x f16>) dims {{n = 1 to 8}} {{
  %w = ait.param "w" : {T}<32 x 3 x 3 x 16 x f16>
  %y = ait.conv %x, %w stride [1, 1] pad [1, 1] dilation [1, 1] groups 1 : {T}<n x 32 x 32 x 32 x f16>
  %z = ait.relu %y : {T}<n x 32 x 32 x 32 x f16>
  ait.output "z" %z : {T}<n x 32 x 32 x 32 x f16>
}}
"""
MODELS = {"two": TWO, "rows": ROWS, "attention": ATTENTION, "image": CONV}


def sources(text: str, kind: str, arch: str) -> dict[str, str]:
    return emit(run_to_phase(parse_text(context(), text), "planned", CompileOptions(kind, arch))).joined()


@pytest.mark.parametrize(
    ("kind", "arch"), [("cpu", "native"), ("cuda", "sm_90a"), ("cuda", "sm_80"), ("rocm", "gfx90a")]
)
@pytest.mark.parametrize("name", MODELS)
def test_sources_are_readable(name: str, kind: str, arch: str) -> None:
    files = sources(MODELS[name], kind, arch)
    structs: dict[str, list[str]] = defaultdict(list)
    for file, text in files.items():
        assert "maybe_unused" not in text, file
        assert not re.search(r"\bsizes\[", text), file
        assert not [line for line in text.split("\n") if len(line) > WIDTH], file
        assert "\n\n\n" not in text and text.endswith("\n"), file
        assert "secret" not in " ".join(identifiers(text)) and "a_name" not in " ".join(identifiers(text)), file
        for struct, body in re.findall(r"^struct (\w+) \{[^\n]*\n(.*?)^\};", text, re.MULTILINE | re.DOTALL):
            structs[body].append(struct)
    assert [names for names in structs.values() if len(names) > 1] == []  # each definition stands in one file


def test_equal_epilogues_are_one() -> None:
    """Two products that differ in sizes alone are one source with one epilogue, on a GPU one kernel."""
    files = sources(TWO, "cpu", "native")
    assert sorted(name.partition(".")[2] for name in files) == ["cc", "cc", "h"]  # the program, the products, the epilogue
    assert "".join(files.values()).count("struct add_gelu_") == 1
    module = run_to_phase(parse_text(context(), TWO), "selected", CompileOptions("cuda", "sm_80"))
    for op in module.walk():
        if "gemm" in op.name:
            op.attributes["kernel"] = Candidate.of(None, [("native", {})]).attrs()[0]
    plan(module)
    files = emit(module).joined()
    # besides copies of the tensors and the header of the sizes
    assert sorted(name.partition(".")[2] for name in files) == ["cc", "cu", "cu", "h", "h"]
    assert "".join(files.values()).count("struct add_gelu_") == 1


def test_a_kernel_names_its_sizes() -> None:
    """The fields of the struct, the reads of the kernel and the assignments of the program are the same names."""
    module = run_to_phase(parse_text(context(), TWO), "selected", CompileOptions("cuda", "sm_80"))
    for op in module.walk():
        if "gemm" in op.name:
            op.attributes["kernel"] = Candidate.of(None, [("native", {})]).attrs()[0]
    plan(module)
    files = emit(module).files
    program = files.pop("program.cc")
    (kernel,) = [text for text in files.values() if "gemm_simt" in text]
    (header,) = [text for name, text in files.items() if name.startswith("sizes_")]
    (body,) = re.findall(r"^struct sizes_\w+ \{[^\n]*\n(.*?)\};", header, re.MULTILINE | re.DOTALL)
    fields = set(re.findall(r"\w+(?=[,;])", body))
    assert {"m", "n", "k", "input0_row", "output0_col"} <= fields
    assert fields == set(re.findall(r"\bsizes\.(\w+)", kernel))
    assert set(re.findall(r"  sizes\.(\w+) = ", program)) <= fields
    for text in (program, kernel):
        assert re.findall(r'^#include "(sizes_\w+\.h)"', text, re.MULTILINE) == [n for n in files if "sizes_" in n]


def test_only_parameters_that_are_used_have_names() -> None:
    for text in sources(TWO, "cpu", "native").values():
        for head, body in re.findall(
            r'^extern "C" int32_t \w+\(([^{;]*)\) \{\n(.*?)^\}', text, re.MULTILINE | re.DOTALL
        ):
            for parameter in re.findall(r"(\w+)(?:,|$)", head.replace("void*,", ",").replace("int64_t,", ",")):
                assert re.search(rf"\b{parameter}\b", body), parameter


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("f(a);  // short", ["f(a);  // short"]),
        ("return f<A, B>(" + ", ".join(["argument"] * 20) + ");", None),
        ('const char* name = "' + "\\303\\251" * 60 + '";', None),
        ("int64_t n = " + " + ".join(f"dim{i}" for i in range(40)) + ";", None),
        ("f(a);  // " + "word " * 60, None),
        ("f(a);  // " + "w" * 300, None),
        ("return x < 3 && y > 4 ? " + "ait::max(" * 20 + "1" + ", 2)" * 20 + " : 0;", None),
    ],
)
def test_long_lines_are_laid_out(code: str, expected: list[str] | None) -> None:
    """The same tokens, in short lines: strings in pieces, comments above."""

    def plain(text: str) -> str:
        return "".join(re.sub(r'"\s+"', "", re.sub(r"//.*", "", text)).split())

    made = laid_out(CppText(code)).rstrip("\n")
    assert all(len(line) <= WIDTH for line in made.split("\n"))
    assert plain(made) == plain(code)
    comments = ["".join("".join(re.findall(r"//(.*)", text)).split()) for text in (made, code)]
    assert comments[0] == comments[1]
    assert expected is None or made.split("\n") == expected


def test_text_of_an_author_stays() -> None:
    code = CppText(f'  f({"a, " * 60}a);\n#line 3 "theirs"\n' + "x" * 200 + "\n\n\n")
    assert laid_out(code).partition("#line")[2] == code.partition("#line")[2]
