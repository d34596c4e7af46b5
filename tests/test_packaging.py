"""What `pyproject.toml` promises: names that load, pins that agree, an import that costs nothing."""

from __future__ import annotations

import importlib
import importlib.metadata
import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
)


def _load(target: str) -> object:
    module, name = target.split(":")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("script", PROJECT["scripts"])
def test_console_scripts_load(script: str):
    assert callable(_load(PROJECT["scripts"][script]))


def test_the_universe_loads():
    universe = _load(PROJECT["entry-points"]["xdsl.universe"]["ait"])
    assert {"ait", "ait_rt"} <= set(getattr(universe, "all_dialects"))  # noqa: B009


def test_the_lexer_for_pygments_loads():
    lexer = _load(PROJECT["entry-points"]["pygments.lexers"]["ait"])
    assert "mlir" in getattr(lexer, "aliases")  # noqa: B009


def test_pins_satisfy_the_requirements():
    extras = PROJECT["optional-dependencies"]
    for text in [*PROJECT["dependencies"], *extras["dev"], *extras["docs"], *extras["torch"]]:
        requirement = Requirement(text)
        assert requirement.name in PINS, f"{requirement.name} is not in constraints.txt"
        assert Version(PINS[requirement.name]) in requirement.specifier


def test_import_is_light():
    heavy = "{'torch', 'numpy', 'scipy', 'sympy', 'jinja2', 'xdsl'}"
    code = f"import sys, ait_mlir; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_tools_import_sympy_scipy_and_jinja2_only_where_they_use_them():
    rare = "{'sympy', 'scipy', 'jinja2'}"
    code = f"import sys, ait_mlir.tools.ait_opt, ait_mlir.driver; sys.exit(bool({rare} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_wheel_holds_templates_headers_and_times(tmp_path: Path):
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    held = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "ait_mlir"
    data = [p for p in package.rglob("*") if p.suffix in {".j2", ".json"} and p.is_file()]
    assert any(p.suffix == ".j2" for p in data)
    assert {str(p.relative_to(ROOT)) for p in data} <= held
    headers = [p for p in (ROOT / "runtime").rglob("*") if p.suffix in {".h", ".cc", ".cmake", ".in"}]
    assert {p.suffix for p in headers} == {".h", ".cc", ".cmake", ".in"}
    assert {f"ait_mlir/_cpp/{p.relative_to(ROOT / 'runtime')}" for p in headers} <= held


def test_a_cpp_program_from_the_wheel_alone(tmp_path: Path):
    """README's model and C++ program, with the package that the wheel installs, in an empty folder."""
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", "site", wheel]
    readme = (ROOT / "README.md").read_text()
    (program,) = re.findall(r"```cpp\n(.*?)```", readme, re.S)
    (tmp_path / "ffn.cc").write_text(program)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    (where,) = re.findall(r"```sh\n(ait runtime.*?)```", readme, re.S)
    compile_ = re.findall(r"^ait compile .* -o ffn\.ait.*$", readme, re.M)
    told = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert told.returncode == 0, told.stderr
    for command in [*compile_, *where.splitlines()]:
        words = command.split()
        if words[0] == "ait":
            words = [sys.executable, "-m", "ait_mlir.tools.cli", *words[1:]]
        told = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
        assert told.returncode == 0, f"{command}: {told.stderr}"
    assert float(told.stdout) != 0 or told.stdout.strip() == "0"
    code = "import ait_mlir; print(ait_mlir.__file__)"
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert told.stdout.startswith(str(tmp_path / "site")), "the package of the wheel was used"


def test_stock_xdsl_opt_knows_the_dialects():
    try:
        importlib.metadata.distribution("ait_mlir")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("ait_mlir is not installed here; `make setup` installs it")
    tool = shutil.which("xdsl-opt", path=str(Path(sys.executable).parent))
    assert tool is not None
    result = subprocess.run([tool, str(ROOT / "examples" / "ffn.mlir")], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "ait.gemm rcr" in result.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize("target", ["setup", "demo", "test", "check", "codegen", "mutate", "clean"])
def test_make_knows_the_target_and_what_it_runs_exists(target: str):
    result = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    for line in result.stdout.splitlines():
        words = line.split()
        for module in [b for a, b in itertools.pairwise(words) if a == "-m" and b.startswith("tests.")]:
            assert (ROOT / (module.replace(".", "/") + ".py")).exists(), f"{target} runs {module}, which is not there"
        assert all((ROOT / word).exists() for word in words if word.startswith("examples/"))
