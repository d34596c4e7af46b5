"""Names in IR are data: whatever stands in them, what is compiled and run is the model, and the names come back."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.driver import compile_module, emit, read_module, run_to_phase
from ait_mlir.errors import CompileError
from ait_mlir.frontend import Tensor
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.graph import build_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from ait_mlir.tools.cli import main
from tests.lit.runner import run_ait_opt

BOMB = "__import__('os').abort()"
HOSTILE = {
    "quotes": "a\"b'c`d",
    "end of a comment": "*/ abort(); /*",
    "trigraph": "??/\n??=include <x> ??'",
    "newline": 'x\n#include "/etc/passwd"\n',
    "carriage return": "x\r#error no\r\n",
    "line splice": "ends with a backslash\\",
    "backslashes": "\\n\\0\\x41\\u0041 \\\\ \\",
    "include": "#include </dev/zero>",
    "statement": '"; std::abort(); const char* q = "',
    "raw string": ')"; abort(); R"(',
    "python": f"'''+{BOMB}+'''",
    "format": "{0} {x!r} {__class__} %s %n $HOME `id` $(id)",
    "json": '{"name": "x", "lo": 0}',
    "unicode": "größe 数量 🙂 \u202e \u2028 \ufeff",
    "control": "\x01\x07\x1b[31m\x7f",
    "path": "../../../etc/passwd",
    "empty of letters": " ",
    "long": "n" * 65_536,
}


def quoted(name: str) -> str:
    """A string literal of the IR."""
    return (
        '"'
        + "".join(c if c.isalnum() and c.isascii() else "".join(f"\\{b:02X}" for b in c.encode()) for c in name)
        + '"'
    )


def model_text(name: str) -> str:
    """A graph whose input, param, output and, as a string, symbol have a name."""
    q = quoted(name)
    return f"""
ait.graph @{q}({q} %x: !ait.tensor<b x 4 x f32>) dims {{b = 1 to 4}} {{
  %w = ait.param {q} : !ait.tensor<4 x f32>
  %0 = ait.mul %x, %w : !ait.tensor<b x 4 x f32>
  ait.output {q} %0 : !ait.tensor<b x 4 x f32>
}}
"""


@pytest.mark.parametrize("which", HOSTILE)
def test_compiled_and_run(which: str, tmp_path: Path) -> None:
    name = HOSTILE[which]
    file = tmp_path / "model.mlir"
    file.write_text(model_text(name), encoding="utf-8")
    module, source = read_module(file)
    weights = {name: np.float32([1, 2, 3, 4])}
    path = compile_module(
        module, workdir=tmp_path / "work", constants=weights, output=tmp_path / "m.ait", source=source
    )
    with Model(path) as model:
        assert list(model.get_input_name_to_index_map()) == [name]
        assert list(model.get_output_name_to_index_map()) == [name]
        assert model.get_constant_names(False) == [name]
        found = model.run_with_tensors({name: np.ones((2, 4), np.float32)})
        np.testing.assert_array_equal(found[name], [[1, 2, 3, 4]] * 2)
        taken_up = parse_text(context(), model.ir_text)
    files = emit(taken_up).files
    assert all(re.fullmatch(r"\w+\.\w+", file, re.ASCII) for file in files)
    for text in files.values():
        assert text.isascii() and "abort" not in re.sub(r'"(?:[^"\\]|\\.)*"|//[^\n]*', "", text)
        assert "??" not in text and not re.search(r"\\$", text, re.MULTILINE)
        included = set(re.findall(r'^\s*#\s*\w+ *[<"]([^>"]*)', text, re.MULTILINE))
        assert all(header.startswith("ait/") for header in included - {*files, "stdint.h"})


@pytest.mark.parametrize("which", HOSTILE)
def test_printed_and_read_again_at_every_phase(which: str) -> None:
    module = parse_text(context(), model_text(HOSTILE[which]))
    for start, phase in (
        ("imported", "fused"),
        ("fused", "selected"),
        ("selected", "bufferized"),
        ("bufferized", "planned"),
    ):
        run_to_phase(module, phase, CompileOptions(start=start))
        printed = str(module)
        module = parse_text(context(), printed)
        assert str(module) == printed


@pytest.mark.usefixtures("built_runtime")
def test_the_command_line_takes_and_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for which in ("statement", "newline", "format", "unicode", "control"):
        (tmp_path / "m.mlir").write_text(model_text(HOSTILE[which]))
        artifact = str(tmp_path / f"{which}.ait")
        assert main(["compile", str(tmp_path / "m.mlir"), "-o", artifact, "--weights", "random"]) == 0
        assert main(["run", artifact, "--compare", "reference"]) == 0
        assert main(["inspect", artifact, "--launches"]) == 0
        captured = capsys.readouterr()
        assert captured.err == "" and " ok" in captured.out


NO_DIMS = [
    "x y",
    "b;abort()",
    "b*/",
    "b\n",
    "größe",
    "f16",
    "x",
    "0x10",
    "1b",
    "__import__('os')",
    "b" * 65_536,
    "/*",
    "b#",
]


@pytest.mark.parametrize("name", NO_DIMS, ids=range(len(NO_DIMS)))
def test_dims_are_identifiers(name: str) -> None:
    text = f"ait.graph @f(%x: !ait.tensor<4 x f32>) dims {{{name} = 1 to 4}} {{}}"
    outcome = run_ait_opt(["-"], text)
    assert outcome.code == 1 and "error: " in outcome.stderr and "Traceback" not in outcome.stderr


def test_dims_named_like_c_and_python(tmp_path: Path) -> None:
    """Words that mean something in C++, Python or our own C++."""
    names = [
        "int",
        "return",
        "class",
        "lambda",
        "None",
        "d0",
        "v0",
        "arena",
        "r",
        "ctx",
        "std",
        "ait",
        "M_PI",
        "__LINE__",
    ]
    inputs = ", ".join(f'"in{i}" %x{i}: !ait.tensor<{n} x 2 x f32>' for i, n in enumerate(names))
    body = "".join(
        f'%y{i} = ait.exp %x{i} : !ait.tensor<{n} x 2 x f32>\nait.output "out{i}" %y{i} : !ait.tensor<{n} x 2 x f32>\n'
        for i, n in enumerate(names)
    )
    dims = ", ".join(f"{n} = 1 to {i + 2}" for i, n in enumerate(names))
    module = parse_text(context(), f"ait.graph @f({inputs}) dims {{{dims}}} {{\n{body}}}")
    with Model(compile_module(module, output=tmp_path / "m.ait")) as model:
        assert list(model.dims) == names
        given = {f"in{i}": np.full((i + 1, 2), i, np.float32) for i in range(len(names))}
        for i, array in enumerate(model.run_with_tensors(given).values()):
            np.testing.assert_allclose(array, np.exp(given[f"in{i}"]), rtol=1e-6)


@pytest.mark.parametrize("old", ['"x"', '"w"', '"y"', "@f"])
def test_a_name_may_not_hold_nul(old: str) -> None:
    """C would cut it off there."""
    text = """ait.graph @f("x" %x: !ait.tensor<4 x f32>) {
  %w = ait.param "w" : !ait.tensor<4 x f32>
  %0 = ait.mul %x, %w : !ait.tensor<4 x f32>
  ait.output "y" %0 : !ait.tensor<4 x f32>
}
"""
    new = '@"f\\00"' if old == "@f" else f'{old[:-1]}\\00"'
    planned = parse_text(context(), text)
    run_to_phase(planned, "planned")
    for whole in (text, str(planned)):
        outcome = run_ait_opt(["-"], re.sub(rf"{old}(?!\w)", lambda _: new, whole))
        assert outcome.code == 1, outcome.stdout
        assert "a name may not hold a NUL character" in outcome.stderr


def test_names_from_python_are_checked_too() -> None:
    for name in ("a\0b", "half \ud800"):
        x = Tensor(shape=[4], dtype="float32", name=name, is_input=True)
        with pytest.raises(BuildError, match="cannot name one of the inputs"):
            build_module((-x).mark_as_output("y"), "f")


def test_two_programs_are_no_model() -> None:
    body = '(%x: !ait.tensor<3 x f32>) {\n  ait.output "y" %x : !ait.tensor<3 x f32>\n}\n'
    text = f"ait.graph @f{body}ait.graph @g{body}"
    module = parse_text(context(), text)
    run_to_phase(module, "planned")
    with pytest.raises(CompileError, match="a model is one program; the module has 2"):
        emit(module)
