"""The blocks of docs/kernel_libraries.md run in their order, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.support import ROOT, make_tools, run

PAGE = (ROOT / "docs/kernel_libraries.md").read_text()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page and the files that its commands write."""
    folder = tmp_path_factory.mktemp("kernel_libraries")
    for name, text in re.findall(r"`([\w.]+)`:\n```[\w+]+\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).write_text(text)
    run("python build.py", folder, make_tools(folder / "bin"))
    commands = re.findall(r"```sh\n(.*?)\n```", PAGE, re.DOTALL)
    assert len(commands) == 3
    for command in commands:
        assert "wrote " in run(command, folder, make_tools(folder / "bin"))
    return folder


PROGRAMS = {
    "called": ["[1.5 1.5 1.5]"],
    "exported": ["torch.Size([2, 8])", "(2, 8)", "True"],
    "kernels": ["tensor(0.1250)"],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(place: Path, name: str) -> None:
    assert run(f"python {name}.py", place, make_tools(place / "bin")).splitlines() == PROGRAMS[name]
