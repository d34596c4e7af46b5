"""`examples/decode.py`, small, as a user runs it."""

from __future__ import annotations

import pytest

from tests.examples.support import ROOT, make_tools, run

NAMES = ("torch", "imported", "contiguous", "paged")


def decode(device: str, tmp_path, *options: str) -> None:
    printed = run(
        f"python examples/decode.py --device {device} {' '.join(options)}", ROOT, make_tools(tmp_path / "bin")
    )
    assert "OK: all programs choose the tokens of PyTorch" in printed
    assert [line.split(":")[0].strip() for line in printed.splitlines() if "ms a step" in line] == list(NAMES)


def test_all_programs_choose_the_tokens_of_pytorch(tmp_path):
    decode("cpu", tmp_path, "--hidden", "64", "--layers", "1")


@pytest.mark.gpu
def test_all_programs_choose_the_tokens_of_pytorch_on_the_gpu(tmp_path):
    decode("cuda", tmp_path)
