"""The page on operators of one's own: its files are written, its commands run in order, in a folder with nothing else."""

from __future__ import annotations

import itertools
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ait_mlir import operators, outside
from ait_mlir.dtypes import DTYPES
from ait_mlir.frontend import registry
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.tools import ait_opt, cli
from tests.examples.support import ROOT, run

PAGE = (ROOT / "docs/add_an_operator.md").read_text()
FILE = re.compile(r"Save\s+this as `([^`]+)`[^\n]*\n\n```\w+\n(.*?)```", re.S)
COMMANDS = re.compile(r"```sh\n(.*?)```", re.S)

PRINTED = {
    "ait-opt model.mlir --load my_ops.py": "%y = mine.rotate %t angle 0.5 : !ait.tensor<batch x 8 x f32>",
    "ait run model.ait --load": "ok",
    "python build.py": "True",
    "ait run ./tmp/turn.ait": "ok",
    "ait-opt bins.mlir": "%n = mine.bins %s count 4 : !ait.tensor<batch x 4 x i32>",
    "ait run bins.ait": "ok",
    "ait-opt cube.mlir": "mine.cube %t scale 2.0 : f32",
    "ait inspect cube.ait": "fused_tanh_mine_cube",
    "ait run cube.ait": "ok",
    "ait compile model.mlir --load my_gpu_ops.py": "rotate_kernel<<<",
    "python my_ffi_ops.py": "True",
    "python add_one.py": "True",
    "ait run add_one.ait": "ok",
}
"""What commands print, by their start."""


def follow(folder: Path, run_command: Callable[[str], str]) -> None:
    """Do what the page says."""
    files = FILE.findall(PAGE)
    for name, text in files:
        (folder / name).write_text(text)
    assert [name for name, _ in files] == [
        *(
            "my_ops.py",
            "model.mlir",
            "build.py",
            "bins.py",
            "bins.mlir",
            "cube.py",
            "cube.mlir",
            "my_gpu_ops.py",
            "my_ffi_ops.py",
            "add_one.py",
            "add_one.mlir",
        )
    ]
    seen: set[str] = set()
    for command in [line for block in COMMANDS.findall(PAGE) for line in block.splitlines()]:
        printed = run_command(command)
        for start, expected in PRINTED.items():
            if command.startswith(start):
                assert expected in printed, f"{command}\n{printed}"
                seen.add(start)
    assert seen == set(PRINTED)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """In this process, each command with operators, modules and paths of its own."""
    monkeypatch.chdir(tmp_path)
    known = set(sys.modules)

    def run_command(command: str) -> str:
        tool, *arguments = shlex.split(command)
        for name in set(sys.modules) - known:
            if Path(getattr(sys.modules[name], "__file__", None) or ".").parent == tmp_path:
                del sys.modules[name]
        with monkeypatch.context() as patch:
            patch.setattr(sys, "path", [str(tmp_path), *sys.path])
            patch.setattr(outside, "_table", {})
            patch.setattr(outside, "_loaded", {})
            patch.setattr(registry, "_functions", {})
            patch.setattr(sys, "argv", [tool, *arguments])
            if tool == "python":
                runpy.run_path(arguments[0], run_name="__main__")
            else:
                assert {"ait": cli, "ait-opt": ait_opt}[tool].main(arguments) == 0, capsys.readouterr().err
        outside._generation += 1
        return capsys.readouterr().out

    follow(tmp_path, run_command)


def rows_of(header: str) -> list[list[str]]:
    """The rows of the table of the page under a header, their cells without quotes."""
    _, _, below = PAGE.partition(f"{header}\n")
    lines = itertools.takewhile(lambda line: line.startswith("|"), below.splitlines()[1:])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_of_element_types():
    rows = rows_of("| element type | C++ | NumPy |")
    assert {row[0]: (row[1], row[2].partition(",")[0]) for row in rows} == {
        f"`{d.mlir}`": (f"`{d.cpp}`", d.name) for d in DTYPES
    }
    assert len(rows) == len(DTYPES)


def test_the_table_of_properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each row is an operator whose kernel compares the type of its property with that of the table."""
    monkeypatch.setattr(outside, "_table", dict(outside.rows()))
    rows = rows_of("| declared as | in text | in Python | in C++ |")
    assert len(rows) == 6
    tried = [(row[0], row[1], row[3].strip("`")) for row in rows[:4]]
    tried += [("`p = opt_prop_def(UnitAttr)`", text, "bool") for text in ("`p`", "``")]
    for declared, text, cpp in [*tried]:
        if "opt_" not in declared:
            optional = declared.replace("prop_def", "opt_prop_def")
            tried += [(optional, text, cpp), (optional, "``", "std::nullptr_t")]
    kernel = """
template <class P>
void prop(const ait::Context&, ait::Tensor<const float, 1> x, ait::Tensor<float, 1> y, P p) {
  static_assert(std::is_same_v<P, TYPE>);
  for (int64_t i = 0; i < x.elements(); ++i) y[i] = x[i];
}
"""
    texts: list[str] = []
    for i, (declared, text, cpp) in enumerate(tried):
        members: dict[str, object] = {"__module__": __name__, "name": f"page.prop_{i}", "x": operators.operand_def()}
        members["p"] = eval(declared.strip("`").partition(" = ")[2], vars(operators))
        members |= {"y": operators.result_def(), "infer_result_types": lambda self: [self.x.type]}
        members["reference"] = staticmethod(lambda x, p: x)
        members["kernels"] = {"cpu": operators.Cpp(kernel.replace("TYPE", cpp), function="prop")}
        operators.operator(type("Prop", (operators.Op,), members))
        texts.append(f"%{i + 1} = page.prop_{i} %{i or 'x'} {text.strip('`')} : !ait.tensor<4 x f32>")
    last = f'ait.output "y" %{len(tried)} : !ait.tensor<4 x f32>'
    (tmp_path / "m.mlir").write_text("\n".join(["ait.graph @g(%x: !ait.tensor<4 x f32>) {", *texts, last, "}\n"]))
    assert cli.main(["compile", str(tmp_path / "m.mlir"), "-o", str(tmp_path / "m.ait")]) == 0


def test_the_table_of_functions(tmp_path: Path):
    """All functions of the header but those of our own kernels, and no others; each compiles for its element types."""
    header = (ROOT / "runtime/include/ait/math.h").read_text()
    defined = set(re.findall(r"^ *AIT_FN \w+ (\w+)\(", header, re.M)) - {"NAME", "div_float8"}
    macros = r"^AIT_(?:ARITHMETIC|BITWISE|OF_LIBRARY|NARROW|COMPARE)\((\w+)"
    defined |= set(re.findall(macros, header, re.M))
    rows = rows_of("| functions | element types |")
    names = [name for row in rows for name in row[0].strip("`").replace("<T>", "").split()]
    assert sorted(names) == sorted(name for name in defined if not name.endswith("_narrow"))
    floats = [d.cpp for d in DTYPES if d.is_float and not d.is_stored_only]
    integers = [d.cpp for d in DTYPES if not (d.is_float or d.is_stored_only or d.cpp == "bool")]
    kinds = {"all": [*floats, *integers, "bool"], "integers": integers, "floats": floats}
    counts = {"neg": 1, "abs": 1, "relu": 1, "clamp": 3, "where": 3}
    lines: list[str] = []
    for (functions, types), count in zip(rows, (2, 2, 1, 2, 1, 2), strict=True):
        for name in functions.strip("`").split():
            for kind in kinds[re.match(r"\w+", types)[0]]:
                operands = [f"{kind}()"] * counts.get(name, count)
                operands[:1] = ["true"] if name == "where" else operands[:1]
                for made in kinds["all"] if name == "cast<T>" else [kind]:
                    result = "bool" if name.startswith("compare_") else made
                    call = f"ait::{name.replace('<T>', f'<{made}>')}({', '.join(operands)})"
                    lines.append(f"  static_assert(std::is_same_v<decltype({call}), {result}>);\n  (void){call};")
    text = "\n".join(['#include "ait/math.h"', 'extern "C" void calls() {', *lines, "}\n"])
    build_library({"calls.cc": text}, Target("cpu", "native"), tmp_path)


def test_the_gpu_template_is_the_one_that_is_tested():
    """A card runs `tests/outside/mine.py`; the kernel here differs in how its type is written."""
    page = dict(FILE.findall(PAGE))["my_gpu_ops.py"]
    assert "ait::from_float<{{ x.dtype }}>(c * a - s * b)" in page and "ait::stream_of(ctx)" in page


@pytest.mark.full
def test_the_page_with_the_wheel_alone(tmp_path: Path):
    """A new user has the wheel and nothing of the repository."""
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = (venv / "lib").glob("python*/site-packages")
    shutil.unpack_archive(wheel, site, "zip")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    (site / "others.pth").write_text("\n".join(packages) + "\n")
    for name, module in (("ait", "ait_mlir.tools.cli"), ("ait-opt", "ait_mlir.tools.ait_opt")):
        script = venv / "bin" / name
        script.write_text(f"#!{venv}/bin/python\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
        script.chmod(0o755)
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "AIT_CACHE_DIR")}
    env |= {"PATH": f"{venv}/bin:{env['PATH']}", "AIT_CACHE_DIR": str(tmp_path / "cache")}
    place = tmp_path / "place"
    place.mkdir()
    where = run("python -c 'import ait_mlir; print(ait_mlir.__file__)'", place, env)
    assert where.startswith(str(venv))
    follow(place, lambda command: run(command, place, env))
