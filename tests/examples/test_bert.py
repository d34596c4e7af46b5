"""`examples/bert.py` and `benchmarks/models.py`, small, as a user runs them."""

from __future__ import annotations

import re

import pytest

from benchmarks.record import read
from tests import tiers
from tests.examples.support import ROOT, make_tools, run


@pytest.mark.parametrize("dtype", tiers.params(["f32", "f16"], ["f16"]))
def test_example_is_as_precise_as_torch(dtype, tmp_path):
    command = f"python examples/bert.py --device cpu --layers 1 --budget 0.05 --dtype {dtype} --workdir {tmp_path}"
    printed = run(command, ROOT, make_tools(tmp_path / "bin"))
    assert "OK: every result" in printed
    assert len(re.findall(r"^ +\d+ +\d+ ", printed, re.M)) == 4
    assert (tmp_path / "bert.ait").exists()


def test_benchmark_prints_a_table_and_writes_it(tmp_path):
    sizes = "--layers 1 --seq 16 --batch 1,2 --budget 0.1"
    command = f"python benchmarks/models.py bert --device cpu {sizes} --workdir {tmp_path} --save {tmp_path}/rows.json"
    printed = run(command, ROOT, make_tools(tmp_path / "bin"))
    assert "ours / best peer" in printed
    assert "FAILED" not in printed
    assert re.search(r"^ *bert +2 x 16 +\d", printed, re.M)
    (saved,) = read(tmp_path / "rows.json")
    assert saved.command == f"python -m benchmarks.models bert --device cpu {sizes}"
    assert [row[:2] for row in saved.rows] == [["bert", "1 x 16"], ["bert", "2 x 16"]]
    assert "GB/s" in saved.limits and "torch" in saved.software and "cores" in saved.machine


def test_bad_arguments_are_told_in_one_line(tmp_path):
    env = make_tools(tmp_path / "bin")
    with pytest.raises(AssertionError, match="--batch: expected numbers with commas") as error:
        run("python benchmarks/models.py bert --device cpu --batch one", ROOT, env)
    assert "Traceback" not in str(error.value)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_example_on_the_gpu(dtype, tmp_path):
    command = f"python examples/bert.py --device cuda --layers 2 --budget 0.05 --dtype {dtype} --workdir {tmp_path}"
    assert "OK: every result" in run(command, ROOT, make_tools(tmp_path / "bin"))


@pytest.mark.gpu
def test_benchmark_on_the_gpu(tmp_path):
    sizes = "--layers 1 --seq 16 --batch 1,2 --budget 0.1"
    command = f"python benchmarks/models.py bert --device cuda {sizes} --workdir {tmp_path}"
    assert "FAILED" not in run(command, ROOT, make_tools(tmp_path / "bin"))
