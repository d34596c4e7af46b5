"""The ranges of NVTX that a profiler shows, on the fake device of `devices_inside.py`.

`test_devices.py` runs these in a process of their own: the process sets AIT_NVTX before its first run.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
from pathlib import Path

import pytest

from ait_mlir.errors import RunError
from ait_mlir.lowering.toolchain import cuda_home, find_cxx
from ait_mlir.runtime import Model
from tests.runtime.devices_inside import fake, streamed_library

__all__ = ["fake"]


def test_a_profiler_sees_a_range_for_each_launch(
    fake: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, on one stream, closed also by a run that fails; a recorded run has them while it is recorded."""
    import tvm_ffi

    library, source = tmp_path / "libnvtx_profiler.so", Path(__file__).parent / "fake_cuda" / "nvtx.cc"
    command = [str(find_cxx()), "-std=c++17", "-shared", "-fPIC", "-isystem", str(cuda_home() / "include")]
    subprocess.run([*command, str(source), "-o", str(library)], check=True)
    monkeypatch.setenv("NVTX_INJECTION64_PATH", str(library))
    monkeypatch.setenv("AIT_NVTX", "1")
    taken = ctypes.CDLL(str(library)).taken
    taken.restype = ctypes.c_char_p
    with Model.from_library(streamed_library(tmp_path, if_recorded=False), "cuda") as model:
        names = json.loads(model._library.module.describe())["launches"]
        given, found = (
            model._library.module.empty(0, tvm_ffi.dtype("float16"), tvm_ffi.Shape((64, 64))) for _ in range(2)
        )
        expected = "".join(f"open {name}\nclose\n" for name in names)
        assert len(names) == 12
        fake.fake_forget()
        model.run([given], [found])
        assert taken().decode() == "domain ait_mlir\n" + expected
        assert fake.fake_streams() == 1

        counts = [0] * 4
        for i in range(4):
            model.run([given], [found], graph_mode=True)
            counts[i] = taken().decode().count("open")
        assert counts == [12, 12, 0, 0]

        fake.fake_fault_after(5)
        with pytest.raises(RunError):
            model.run([given], [found])
        fake.fake_fault_after(-1)
        lines = taken().decode().splitlines()
        assert 0 < lines.count("close") == len(lines) / 2 < 12
        del given, found
