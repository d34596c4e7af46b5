"""The compiler makes vectors of loops over functions of numbers, on a CPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ait_mlir.lowering.toolchain import toolchain

EXPRESSIONS = (
    "ait::log1p(ait::exp(x))",
    "ait::log1p(ait::exp(-ait::abs(x)))",
    "ait::tanh(x) * ait::log1p(ait::exp(x))",
    "ait::log(ait::sigmoid(x))",
    "ait::log1p(ait::expm1(x))",
    "ait::gelu(ait::relu(x))",
)
"""Functions of functions. GCC 12 makes no vectors where one condition chooses between others."""


BOUNDS = {"ait::relu(x)": 1, "ait::max(x, 1.5f)": 1, "ait::min(x, 1.5f)": 1, "ait::clamp(x, 0.f, 6.f)": 4}
"""Functions of a number and constants, and their comparisons: one for a bound, none for NaN. GCC 12 doubles those of two bounds."""


def _compile(source: Path, arch: str, *flags: str) -> str:
    """Compile as a kernel is compiled; the messages of the compiler."""
    tools = toolchain("cpu", arch)
    command = [
        str(tools.compiler),
        *tools.compile_flags,
        "-O3",
        *flags,
        str(source),
        "-o",
        str(source.with_suffix(".o")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_functions_of_functions_are_vectors(tmp_path: Path) -> None:
    """GCC names the line of each loop that it has made a loop over vectors."""
    loops = [
        f"void f{i}(const float* a, float* b) {{ for (int i = 0; i < 1024; ++i) {{ const float x = a[i]; b[i] = {e}; }} }}"
        for i, e in enumerate(EXPRESSIONS)
    ]
    source = tmp_path / "loops.cc"
    source.write_text('#include "ait/math.h"\n' + "\n".join(loops) + "\n")
    messages = _compile(source, "native", "-fopt-info-vec", "-c")
    vectors = {int(n) for n in re.findall(r"loops\.cc:(\d+):\d+: optimized: loop vectorized", messages)}
    assert [e for i, e in enumerate(EXPRESSIONS, 2) if i not in vectors] == []


def test_a_bound_is_one_comparison(tmp_path: Path) -> None:
    source = tmp_path / "bounds.cc"
    heads = [f'extern "C" void f{i}(const float* a, float* b)' for i in range(len(BOUNDS))]
    body = "{{ for (int i = 0; i < 1024; ++i) {{ const float x = a[i]; b[i] = {}; }} }}"
    loops = [f"{head} {body.format(e)}" for head, e in zip(heads, BOUNDS, strict=True)]
    source.write_text('#include "ait/math.h"\n' + "\n".join(loops) + "\n")
    _compile(source, "x86-64-v4", "-S")
    bodies = re.split(r"^f\d+:$", source.with_suffix(".o").read_text(), flags=re.MULTILINE)[1:]
    found = [len(re.findall(r"\tv(?:cmp|max|min)\w*ps\t.*%zmm", body)) for body in bodies]
    assert dict(zip(BOUNDS, found, strict=True)) == BOUNDS
