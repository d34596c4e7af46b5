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


def test_functions_of_functions_are_vectors(tmp_path: Path) -> None:
    """GCC names the line of each loop that it has made a loop over vectors."""
    loops = [
        f"void f{i}(const float* a, float* b) {{ for (int i = 0; i < 1024; ++i) {{ const float x = a[i]; b[i] = {e}; }} }}"
        for i, e in enumerate(EXPRESSIONS)
    ]
    source = tmp_path / "loops.cc"
    source.write_text('#include "ait/math.h"\n' + "\n".join(loops) + "\n")
    tools = toolchain("cpu", "native")
    command = [
        str(tools.compiler),
        *tools.compile_flags,
        "-O3",
        "-fopt-info-vec",
        "-c",
        str(source),
        "-o",
        str(tmp_path / "loops.o"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    vectors = {
        int(n) for n in re.findall(r"loops\.cc:(\d+):\d+: optimized: loop vectorized", done.stdout + done.stderr)
    }
    assert [e for i, e in enumerate(EXPRESSIONS, 2) if i not in vectors] == []
