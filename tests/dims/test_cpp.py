"""Expressions printed as C++ compute what they compute in Python, negative values and 64-bit ones included."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from ait_mlir.dims import DimError, parse

ROOT = Path(__file__).parents[2]
NAMES = {"a": "d0", "b": "d1", "seq": "d2"}
TEXTS = [
    "0",
    "-7",
    "a",
    "2*a + 1",
    "-a*b + 3",
    "a*b*seq - 4*a*a + 9",
    "(a - b) floordiv 7",
    "(a - b) ceildiv 7",
    "(a - b) mod 7",
    "(a - 100) floordiv (b*b + 1)",
    "(a - 100) mod (b*b + 1)",
    "min(a, b, 17) - max(a - b, b - a, -3)",
    "2*(a ceildiv 64)*(seq floordiv 3) - (b mod 5)*(b mod 5)",
    "64*((4*a*seq) ceildiv 64) + 1099511627776*seq",
    "min(max(a, 3) floordiv 2, (b + seq) mod (a*a + 1))",
]


def test_printed_form():
    assert parse("2*seq + 1").cpp({"seq": "d0"}) == "(2 * d0 + 1)"
    assert parse("seq ceildiv 64").cpp({"seq": "d0"}) == "ait::ceildiv(d0, 64)"
    assert parse("min(seq, 128)").cpp({"seq": "d0"}) == "ait::min(128, d0)"
    assert parse("-3").cpp({}) == "(-3)"
    with pytest.raises(DimError, match="dim 'seq' has no value"):
        parse("seq").cpp({"batch": "d0"})


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_compiled(tmp_path: Path):
    rng = random.Random(3)
    envs = [{name: rng.randint(-60 if name != "seq" else 0, 90) for name in NAMES} for _ in range(40)]
    rows = "\n".join(f'    std::printf("%lld\\n", (long long){parse(text).cpp(NAMES)});' for text in TEXTS)
    source = f"""#include "ait/dims.h"
#include <cstdio>
void row(int64_t d0, int64_t d1, int64_t d2) {{
{rows}
}}
int main() {{
{"".join(f"  row({', '.join(str(v) for v in env.values())});{chr(10)}" for env in envs)}
}}
"""
    (tmp_path / "t.cc").write_text(source)
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-O0", f"-I{ROOT / 'runtime' / 'include'}"]
    subprocess.run([*command, str(tmp_path / "t.cc"), "-o", str(tmp_path / "t")], check=True)
    printed = subprocess.run([str(tmp_path / "t")], check=True, capture_output=True, text=True).stdout.split()
    expected = [parse(text).evaluate(env) for env in envs for text in TEXTS]
    assert [int(line) for line in printed] == expected
