"""Wrong indices, offsets and ids under sanitizers: they are refused before anything outside of a tensor is read, and
nothing is computed from them that C++ does not define."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ait_mlir.lowering.toolchain import find_cxx

ROOT = Path(__file__).parents[2]
INCLUDE = ROOT / "runtime" / "include"
FILES = ("tests/kernels/test_take.py", "tests/kernels/test_jagged.py")

STRAY = 'extern "C" int read(int* x, long at) { return x[at]; }'
CALL = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).read((ctypes.c_int * 100)(), ctypes.c_long(int(sys.argv[2])))"


INDICES = """
#include <cstdio>
#include "ait/kernels/cpu/scatter.h"
#include "ait/kernels/cpu/take.h"

static int32_t fail(void*, const char* message) { std::puts(message); return 1; }

template <class Id>
static int check(Id wrong) {
  const ait_host_v1 host{nullptr, fail};
  const ait::Context ctx{nullptr, &host};
  const Id ids[] = {0, wrong};
  const Id* const indices[] = {ids};
  float whole[21] = {}, values[6] = {};
  const auto space = ait::indexed_space<2, 1, Id>({2, 3}, {3, 1}, {0, 1}, indices, {{1, 0}}, {7}, {3});
  int64_t dense = 0, place = 0;
  const bool known = space.offsets({1, 2}, dense, place);
  return known || dense != 5 || place != 2 || ait::cpu::take(ctx, space, 1, whole, values) != 1;
}

int main() { return check<int64_t>(INT64_MAX) | check<int64_t>(INT64_MIN) | check<int32_t>(INT32_MAX) | check<int32_t>(INT32_MIN); }
"""


def test_indices_at_the_ends_of_their_type(tmp_path: Path) -> None:
    source, program = tmp_path / "indices.cc", tmp_path / "indices"
    source.write_text(INDICES)
    flags = ["-std=c++17", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=undefined", f"-I{INCLUDE}"]
    subprocess.run([find_cxx(), *flags, str(source), "-o", str(program)], check=True)
    done = run([str(program)], dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"index {2**63 - 1} of index tensor 0 is outside of its dim, which has 7" in done.stdout


@pytest.fixture
def sanitized(tmp_path: Path) -> dict[str, str]:
    """The environment of a Python whose compiler adds AddressSanitizer, and stops at undefined behaviour."""
    compiler = tmp_path / "g++"
    compiler.write_text(
        f'#!/bin/sh\nexec {find_cxx()} -fsanitize=address,undefined -fno-sanitize-recover=undefined -g "$@"\n'
    )
    compiler.chmod(0o755)
    library = subprocess.run(
        [find_cxx(), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(library).is_file():
        pytest.skip("the compiler has no libasan.so")
    return {
        **os.environ,
        "CXX": str(compiler),
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",  # every object is a block of its own
        "AIT_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT),
    }


def run(command: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.full
def test_a_stray_read_is_seen(sanitized: dict[str, str], tmp_path: Path) -> None:
    source, library = tmp_path / "stray.cc", tmp_path / "stray.so"
    source.write_text(STRAY)
    built = run(
        [sanitized["CXX"], "-shared", "-fPIC", str(source), "-o", str(library)], {**sanitized, "LD_PRELOAD": ""}
    )
    assert built.returncode == 0, built.stderr
    assert run([sys.executable, "-c", CALL, str(library), "99"], sanitized).returncode == 0
    found = run([sys.executable, "-c", CALL, str(library), "120"], sanitized)
    assert found.returncode != 0 and "AddressSanitizer: heap-buffer-overflow" in found.stderr


@pytest.mark.full
@pytest.mark.parametrize("file", FILES)
def test_what_is_refused_is_not_read(sanitized: dict[str, str], file: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", file]
    done = run(command, sanitized)
    assert done.returncode == 0 and "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, (
        done.stdout[-3000:] + done.stderr[-3000:]
    )
