"""The page on operators of one's own: its files are written, its commands run in order, in a folder with nothing else."""

from __future__ import annotations

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

from ait_mlir import outside
from ait_mlir.frontend import registry
from ait_mlir.tools import ait_opt, cli
from tests.examples.support import ROOT, run

PAGE = (ROOT / "docs/add_an_operator.md").read_text()
FILE = re.compile(r"Save\s+this as `([^`]+)`[^\n]*\n\n```\w+\n(.*?)```", re.S)
COMMANDS = re.compile(r"```sh\n(.*?)```", re.S)

PRINTED = {
    "ait-opt model.mlir --load my_ops.py": "%y = mine.rotate %t angle 0.5 : !ait.tensor<batch x 8 x f32>",
    "ait run model.ait --load": "ok",
    "python build.py": "True",
    "ait-opt cube.mlir": "mine.cube %t scale 2.0 : f32",
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
