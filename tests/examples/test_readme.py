"""Every command and program of README.md runs as written."""

from __future__ import annotations

import re

import pytest

from tests.examples.support import ROOT, make_tools, run

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.S)
COMMANDS = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the examples, as commands in README.md expect, and nothing else."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "examples").symlink_to(ROOT / "examples")
    (program,) = [text for language, text in BLOCKS if language == "cpp"]
    (folder / "ffn.cc").write_text(program)
    return folder


def test_there_is_something_to_run():
    assert len(COMMANDS) >= 5
    assert sum(language == "python" for language, _ in BLOCKS) == 2


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=lambda i: COMMANDS[i])
def test_command(number, place):
    env = make_tools(place / "bin")
    for earlier in COMMANDS[:number]:  # what this one needs, if it is run alone
        if (made := re.search(r"(?:-o|--prefix) (\S+)", earlier)) and not (place / made[1]).exists():
            run(earlier, place, env)
    assert run(COMMANDS[number], place, env).strip() or "-o" in COMMANDS[number]


def test_the_first_command_prints_the_block_after_it(place):
    (language, command), (other, output) = BLOCKS[:2]
    assert (language, other) == ("sh", "")
    assert run(command.strip(), place, make_tools(place / "bin")) == output


PROGRAMS = {"first": ["1 True", "7 True", "64 True"], "imported": ["True"]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_python_program(name, place):
    programs = [text for language, text in BLOCKS if language == "python"]
    (place / f"{name}.py").write_text(programs[list(PROGRAMS).index(name)])
    assert run(f"python {name}.py", place, make_tools(place / "bin")).splitlines() == PROGRAMS[name]


def test_ir_is_the_example():
    (text,) = [text for language, text in BLOCKS if language == "mlir"]
    assert text in (ROOT / "examples/ffn.mlir").read_text()


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)", README, re.M)
    assert targets == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md", "docs/importing.md", "docs/onnx.md", "docs/trust.md"])
def test_links_lead_somewhere(page):
    file = ROOT / page
    for link in re.findall(r"\]\(([^)#]+)\)", file.read_text()):
        assert (file.parent / link).exists(), link
