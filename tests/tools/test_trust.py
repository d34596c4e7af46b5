"""Who runs code from outside says so, and says where docs/trust.md is."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.errors import AitError
from ait_mlir.runtime.safetensors_part import encode
from ait_mlir.tools import ait_opt, cli
from tests.fuzz import load

ROOT = Path(__file__).parents[2]
PAGE = "docs/trust.md"
OF_OUR_OWN = ("cache", "runtime", "doctor", "completion")
"""The commands that run no code but ours and the compiler's."""


def commands() -> dict[str, argparse.ArgumentParser]:
    (subparsers,) = (a for a in cli.argument_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return {f"ait {name}": parser for name, parser in subparsers.choices.items() if name not in OF_OUR_OWN}


@pytest.mark.parametrize("name", [*commands(), "ait-opt"])
def test_the_help_of_a_command_that_runs_code_names_the_page(name: str) -> None:
    parser = ait_opt.argument_parser() if name == "ait-opt" else commands()[name]
    told = " ".join(parser.format_help().split())
    assert PAGE in told
    if "--load FILE" in told:
        assert "only one that you trust" in told


@pytest.mark.parametrize("name", [name for name in commands() if name != "ait inspect"])
def test_the_page_names_each_command_that_runs_code(name: str) -> None:
    must, _ = (ROOT / PAGE).read_text().split("## What is checked before code runs")
    assert f"`{name}`" in must


@pytest.mark.parametrize("name", ["ait run", "ait bench"])
def test_runs_say_that_code_runs_before_options_are_checked(name: str) -> None:
    told = " ".join(commands()[name].format_help().split())
    assert "The machine code of the file runs, also where an option is refused later." in told


@pytest.mark.parametrize("name", ["ait import", "ait compile", "ait bisect"])
def test_commands_that_take_pt2_files_have_the_option(name: str) -> None:
    told = " ".join(commands()[name].format_help().split())
    assert "--trust-pickle let PyTorch run the code that FILE.pt2 may hold" in told


@pytest.mark.parametrize("page", ["README.md", "docs/importing.md", "docs/runtime.md", "docs/kernel_libraries.md"])
def test_pages_link_to_the_page(page: str) -> None:
    text = (ROOT / page).read_text()
    if page == "README.md":
        text = text[text.index("## Read on") :]
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert any((ROOT / page).parent.joinpath(link).resolve() == ROOT / PAGE for link in links)


def test_the_page_names_the_settings_that_lead_to_code() -> None:
    """Each variable that a page or our code takes a program or a library from."""
    page = (ROOT / PAGE).read_text()
    must, need_not = page.split("## What need not be trusted")
    listed = re.search(
        r"Compilers and toolkits are found by the usual names: (.*?)\.",
        (ROOT / "docs/internals/environment.md").read_text(),
    )
    assert listed is not None
    names = re.findall(r"`(\w+)`", listed[1])
    assert "CXX" in names
    names += ["AIT_CACHE_DIR", "AIT_KERNEL_PATH", "AIT_OPENBLAS", "AIT_CUBLASLT", "AIT_HIPBLASLT", "AIT_CUDNN"]
    names += ["--load", "--library", "--trust-pickle", "FILE.py:FUNCTION"]
    assert [name for name in names if f"`{name}" not in must] == []
    assert "safetensors" in need_not and "Hashes are not signatures" in must


NAMED = 'ait.graph @g(%x: !ait.tensor<2 x f32>) {\n  ait.output "NAME" %x : !ait.tensor<2 x f32>\n}\n'
CONTROL = "a\x1b[2J\x07\x9b\x7f\u202ez"


def test_control_characters_are_shown_as_escapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the output of commands about an artifact, weights and IR text, and in errors."""
    monkeypatch.chdir(tmp_path)
    manifest = load.good_manifest()
    manifest["inputs"][0]["name"] = CONTROL
    Path("hostile.ait").write_bytes(load.forged(manifest, {"ir": b"// \x1b[2J\n"}))
    Path("weights.safetensors").write_bytes(b"".join(map(bytes, encode({CONTROL: np.zeros(2, np.float32)}))))
    Path("g.mlir").write_text(NAMED.replace("NAME", "y"))
    Path("broken.mlir").write_text(NAMED.replace("NAME", CONTROL).replace("2 x f32", "n x f32"))
    done = [cli.main(["inspect", "hostile.ait"]), cli.main(["inspect", "hostile.ait", "--ir"])]
    done += [cli.main(["compile", "g.mlir", "--weights", "weights.safetensors", "--to", "planned"])]
    assert done == [0, 0, 0]
    told = capsys.readouterr()
    shown = r"a\x1b[2J\x07\x9b\x7f\u202ez"
    assert f"input     {shown}: float32" in told.out and f"the first '{shown}'" in told.err
    assert cli.main(["compile", "broken.mlir"]) == 1 and ait_opt.main(["broken.mlir", "-o", CONTROL + "/\0"]) == 1
    assert cli.main(["run", CONTROL]) == 1
    told = told.out + told.err + "".join(capsys.readouterr())
    assert f"{shown}: there is no such artifact" in told
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", told)


def test_errors_show_control_characters_as_escapes() -> None:
    assert str(AitError("no input 'a\x1b[2J'\n\tb\ud800")) == "no input 'a\\x1b[2J'\n\tb\\ud800"
